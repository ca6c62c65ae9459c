"""Fixtures of tests of launches and runs: a directory of their own, and jobs of real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.jobs import Jobs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory of one's own; the locks of tables lie there too, so that tests do not meet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    """Start jobs; at the end, kill what a failed test has left of them."""
    started = Jobs(tmp_path)
    yield started
    started.clean_up()
