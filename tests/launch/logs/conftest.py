"""The command line in the test's own process."""

from tests.support.commands import command_line

__all__ = ["command_line"]
