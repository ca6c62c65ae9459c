"""Where the last lines of a log begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.errors import InputError
from hccl_tools.launch.logs import viewer
from hccl_tools.processes import run_files
from tests.support.growth import least

if TYPE_CHECKING:
    from pathlib import Path

LINES = st.lists(st.text("ab", max_size=5), max_size=12)


@given(LINES, st.booleans(), st.integers(0, 15), st.integers(1, 9))
def test_the_last_lines_are_found(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], ends: bool, lines: int, block: int
) -> None:
    data = "\n".join(texts).encode() + b"\n" * ends
    log = tmp_path_factory.getbasetemp() / "last_lines.log"
    log.write_bytes(data)
    former, viewer._BLOCK = viewer._BLOCK, block
    try:
        offset = viewer._offset_of_last(str(log), lines)
    finally:
        viewer._BLOCK = former

    kept = data.splitlines(keepends=True)[-lines:] if lines else []
    assert data[offset:] == b"".join(kept)


def test_a_log_of_one_long_line_takes_linear_time(tmp_path: Path) -> None:
    def spent(size: int) -> float:
        log = tmp_path / "log"
        with log.open("wb") as file:
            file.truncate(size)
        assert viewer._offset_of_last(str(log), 10) == 0
        return least(lambda: viewer._offset_of_last(str(log), 10))

    assert spent(64 << 20) < 8 * spent(16 << 20)  # the square would be 16


def test_a_log_that_became_a_link_meanwhile_is_named(tmp_path: Path) -> None:
    """Another user can exchange a log of an own run between the check and the use."""
    run_files.hold(str(tmp_path))
    (tmp_path / "rank_0.log").symlink_to("/etc/passwd")

    with pytest.raises(InputError, match=r"rank_0\.log cannot be read: it is a symbolic link"):
        viewer.local({"rank 0": str(tmp_path / "rank_0.log")}, prefixed=False, lines=None)
    run_files.release(str(tmp_path))
