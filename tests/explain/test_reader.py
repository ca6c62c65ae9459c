"""Logs that are hard to read: each costs at most one sentence, and all that can be read is read."""

from __future__ import annotations

import gzip
import os
import resource
import time
from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain import reader
from hccl_tools.explain.scanner import Scan, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hccl_tools.explain.events import Event
    from hccl_tools.explain.reader import Block
    from hccl_tools.explain.sieve import Hit
    from tests.support.strangers import Stranger

FAULT = b"[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [x.cc:1] host nic listen start failed, port[60000]\n"


def scan(path: Path, data: bytes) -> Scan:
    path.write_bytes(data)
    return Scanner().scan(str(path), 0)


def found(result: Scan) -> list[tuple[str, int]]:
    return [(event.message.id, event.line) for event in result.events]


def test_a_long_log_of_short_lines_has_no_note(tmp_path: Path) -> None:
    result = scan(tmp_path / "plog.log", b"short\n" * 100_000 + FAULT)

    assert (found(result), result.note) == ([("HCM205", 100_001)], "")


def test_a_compressed_log(tmp_path: Path) -> None:
    result = scan(
        tmp_path / "plog.log.gz", gzip.compress(b"one\n" + FAULT) + gzip.compress(b"three\n" + FAULT)
    )

    assert (found(result), result.note) == ([("HCM205", 2), ("HCM205", 4)], "")


def test_a_compressed_log_that_ends_too_early(tmp_path: Path) -> None:
    path = tmp_path / "plog.log.gz"
    result = scan(path, gzip.compress(FAULT + os.urandom(100_000))[:-50_000])

    assert found(result) == [("HCM205", 1)]
    assert result.note.count(str(path)) == 1


@pytest.mark.slow
def test_a_small_archive_of_a_gigabyte_is_not_unpacked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(bytes(1 << 20))
        file.write(b"\n" + FAULT)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = Scanner().scan(str(path), 0)

    assert found(result) == [("HCM205", 2)]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # KiB


def test_an_archive_of_very_many_empty_members(tmp_path: Path) -> None:
    """Each member once copied what followed it: gigabytes for a file of 20 MB."""
    path = tmp_path / "plog.log.gz"
    result = scan(path, gzip.compress(FAULT) + gzip.compress(b"") * 1_000_000 + gzip.compress(FAULT))

    assert found(result) == [("HCM205", 1)]
    assert result.note == f"{path} has more than 16,384 compressed parts: only these were read"


def test_an_archive_of_some_thousand_members(tmp_path: Path) -> None:
    result = scan(tmp_path / "plog.log.gz", gzip.compress(b"a healthy line\n") * 9000 + gzip.compress(FAULT))

    assert (found(result), result.note) == ([("HCM205", 9001)], "")


def test_a_line_of_many_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "rank_0.log"
    result = scan(path, FAULT + b"x" * 100_000_000 + b"\n" + FAULT)

    assert found(result) == [("HCM205", 1), ("HCM205", 3)]
    assert result.note == f"{path} has a line of more than 65,536 bytes, which was cut there"


def test_binary_data_and_broken_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "rank_0.log"
    result = scan(path, bytes(range(256)) * 100 + b"\xff\xfe\n" + b"EI0011: \xc3\x28 memory\n")

    assert [event.text for event in result.events] == ["EI0011: \ufffd( memory"]
    assert result.note == f"{path} contains binary data, which was read as text"


def test_a_log_that_grows_is_read_up_to_its_size_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "rank_0.log"
    path.write_bytes(FAULT * 10_000)

    class Growing(Scanner):
        def _events(self, block: Block, hits: Sequence[Hit], file: int) -> Iterator[Event]:
            with path.open("ab") as log:
                log.write(FAULT)
            return super()._events(block, hits, file)

    result = Growing().scan(str(path), 0)

    assert result.note == f"{path} is still growing: its first {len(FAULT) * 10_000:,} bytes were read"


def test_a_file_without_permission(stranger: Stranger) -> None:
    path = stranger.folder / "rank_0.log"
    path.write_bytes(FAULT)
    path.chmod(0)
    done = stranger.tools("explain", str(path))

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("cannot be read: Permission denied") == 1


def test_a_pipe_or_device_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rank_0.log")
    result = Scanner().scan(str(tmp_path / "rank_0.log"), 0)

    assert result.note == f"{tmp_path}/rank_0.log cannot be read: it is not a regular file"


@pytest.mark.slow
def test_a_log_full_of_errors_takes_linear_time(tmp_path: Path) -> None:
    line = b"[ERROR] HCCL(1,p): cqe err status localInfo{server[" + b"], deviceId[1" * 200 + b"\n"
    begin = time.process_time()
    result = scan(tmp_path / "rank_0.log", line * 4000)

    assert time.process_time() - begin < 60
    assert len(result.events) == 20


def test_line_numbers_are_those_of_an_editor(tmp_path: Path) -> None:
    filler = b"[INFO] a healthy line of a log of a job that trains\n" * 30_001
    result = scan(tmp_path / "rank_0.log", filler + FAULT + filler + FAULT)

    assert found(result) == [("HCM205", 30_002), ("HCM205", 60_004)]


@pytest.mark.parametrize("most", [1, 40, 1000, 1 << 20])
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_the_end_of_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, end: bytes) -> None:
    monkeypatch.setattr(reader, "_END", 16)
    log = tmp_path / "rank_0.log"
    log.write_bytes(b"\n".join(b"line %d" % number * (number % 5) for number in range(1, 100)) + end)
    lines = [*enumerate(log.read_bytes().split(b"\n"), 1)][::-1]
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(b"after it was read\n")

    found = list(reader.from_end(str(log), reader.Extent(size, len(lines) - 1), most))

    assert found == lines[: len(found)]
    assert len(found) == len(lines) or sum(len(line) + 1 for _, line in found) >= most - 16


def test_the_end_of_a_compressed_log_and_of_none(tmp_path: Path) -> None:
    log = tmp_path / "rank_0.log.gz"
    log.write_bytes(gzip.compress(b"one\ntwo\n"))

    assert list(reader.from_end(str(log), reader.Extent(30, 2), 1 << 20)) == [
        (3, b""),
        (2, b"two"),
        (1, b"one"),
    ]
    assert list(reader.from_end(str(tmp_path / "none"), reader.Extent(30, 2), 1 << 20)) == []
    assert list(reader.from_end(str(tmp_path / "none"), None, 1 << 20)) == []


def test_a_long_line_at_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "rank_0.log"
    log.write_bytes(b"one\n" + b"x" * (3 << 16))

    (last, first) = reader.from_end(str(log), reader.Extent(log.stat().st_size, 1), 1 << 20)

    assert (last[0], set(last[1]), first) == (2, {ord("x")}, (1, b"one"))
