"""Where the last lines of a log begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.launch.logs import viewer
from tests.support.growth import least

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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
