"""A log whose beginning and end are kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.launch.logs.bounded_log import BoundedLog
from hccl_tools.processes import run_files

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, *parts: bytes, before: bytes = b"") -> bytes:
    path = folder / "log"
    path.write_bytes(before)
    log = BoundedLog(run_files.open_append(str(path)), first=1000, last=500)
    for part in parts:
        log.write(part)
    log.close()
    return path.read_bytes()


def test_a_short_log_is_complete(tmp_path: Path) -> None:
    assert written(tmp_path, b"a\n", b"b\n", before=b"earlier") == b"a\nb\n"


def test_of_a_long_log_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    lines = [b"line %05d\n" % number for number in range(10_000)]

    found = written(tmp_path, *lines)

    assert len(found) < 2200
    assert found[:1000] == b"".join(lines)[:1000]
    assert found.endswith(b"".join(lines[-45:]))
    head, said, rest = re.split(rb"\n\.\.\. (\d+) bytes are left out here \.\.\.\n", found)
    assert len(head) + int(said) + len(rest) == 110_000
    assert rest.startswith(b"line ")


def test_a_large_part_is_shortened_as_well(tmp_path: Path) -> None:
    assert len(written(tmp_path, b"x" * 1_000_000)) < 2200
