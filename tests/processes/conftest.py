"""See ``tests.support.job_fixtures``."""

from tests.support.job_fixtures import jobs, own_directory

__all__ = ["jobs", "own_directory"]
