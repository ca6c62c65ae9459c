"""The lines that can have a message are found in one pass, whatever the log consists of."""

from __future__ import annotations

import gzip
import os
import random
from typing import TYPE_CHECKING

import pytest

from benchmarks.explain import megabyte
from hccl_tools.explain import scanning, sources
from hccl_tools.explain.reader import Part
from hccl_tools.explain.scanner import Scanner
from hccl_tools.explain.sieve import Sieve

if TYPE_CHECKING:
    from pathlib import Path

ANCHORS = (
    *(b"illed process", b"Error", b"0x8107", b"createLink para:rank", b"-.-.-", b"oom", b"a 1 b"),
    *(b"127.0.1.1", b"-8020"),
)
BEFORE_CODES = (b"ret=",)
FAULT = b"[ERROR] HCCL(17528,python3):2026-03-18-10:33:52.113.403 [x.cc:1] host nic listen start failed, port[60000]\n"


def lines_with_anchors(data: bytes) -> list[tuple[int, set[int]]]:
    """Return where the lines begin that have an anchor, and which they have, the slow way."""
    found, start = [], 0
    for line in data.replace(b"\r", b"\n").split(b"\n"):
        numbers = {number for number, anchor in enumerate(ANCHORS) if anchor in line}
        if numbers or any(word in line for word in BEFORE_CODES):
            found.append((start, numbers))
        start += len(line) + 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_the_lines_are_those_with_an_anchor(seed: int) -> None:
    pick = random.Random(seed)  # noqa: S311  (not for secrets)
    parts = (
        *ANCHORS,
        *BEFORE_CODES,
        b"error",
        b"zoom",
        b"xcreateLink para:rank[3]",
        b"a 12 b",
        b"1",
        b"3",
        b"10.0.0.1",
        b"-80",
    )
    ends = (b" ", b" ", b"\n", b"\n", b"\r", b"\xff")
    sieve = Sieve(ANCHORS, BEFORE_CODES)
    for _ in range(100):
        data = b"".join(pick.choice(parts) + pick.choice(ends) for _ in range(60))
        found = [(hit.start, hit.anchors) for hit in sieve.hits(data)]

        assert found == lines_with_anchors(data)


def test_a_code_is_found_in_a_line_like_one_with_another_number() -> None:
    sieve = Sieve([b"EI0006", b"E19999"], [b"error code"])

    assert sieve.hits(b"EI at 0006\nE1126 10:00 step\nerror codes\n") == [(28, 28, set())]
    for code, numbers in ((b"EI0006", {0}), (b"E19999", {1}), (b"EI0007", set())):
        assert [hit.anchors for hit in sieve.hits(b"ok\n%s: text\nok\n" % code)] == [numbers]
    assert len(sieve.hits(b"error code is 507046\n")) == 1
    assert sieve.hits(b"step 507046\n") == []


def test_more_shapes_than_are_remembered_hide_nothing() -> None:
    sieve = Sieve(ANCHORS)
    for number in range(40):
        data = b"".join(b"line of word%s\n" % (b"x" * (number * 500 + line)) for line in range(20))
        assert sieve.hits(data) == []
        assert [hit.anchors for hit in sieve.hits(data + b"an oom kill\n")] == [{5}]


def test_a_log_in_which_no_two_lines_are_alike_hides_nothing() -> None:
    sieve = Sieve(ANCHORS)
    for block in range(20):
        data = b"".join(b"a line of %s\n" % (b"xy" * (block * 200 + line)) for line in range(1, 200))

        assert [hit.anchors for hit in sieve.hits(data + b"an oom kill\n")] == [{5}]
        assert sieve.hits(data) == []


def test_a_log_in_parts_has_the_events_of_the_whole(tmp_path: Path) -> None:
    log = tmp_path / "rank_0.log"
    log.write_bytes(b"step 1\n" + FAULT + b"\n" + b"EI0006: x\n" + b"step\n" * 3 + FAULT.rstrip())
    size = log.stat().st_size
    scanner = Scanner()
    whole = [(one.message.id, one.line) for one in scanner.scan(str(log), 0).events]

    assert whole == [("HCM205", 2), ("HCM006", 4), ("HCM205", 8)]
    for at in range(1, size):
        parts = [scanner.scan(str(log), 0, Part(0, at)), scanner.scan(str(log), 0, Part(at, size))]
        scan = scanning.joined(parts)
        assert [(one.message.id, one.line) for one in scan.events] == whole, at
        assert scan.size == size


def test_a_long_log_is_read_by_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "_SHORTEST_PART", 1000)
    monkeypatch.setattr(scanning, "_MANY_BYTES", 1000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    log = tmp_path / "rank_0.log"
    log.write_bytes((b"a healthy line\n" * 99 + FAULT) * 30)
    (whole,) = scanning.scans([sources.source(str(log))], [], None)

    assert [one.line for one in whole.events] == [100 * number for number in range(1, 21)]
    assert (whole.lines, whole.size, whole.note) == (3000, log.stat().st_size, "")


def test_a_compressed_log_is_not_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "_SHORTEST_PART", 10)
    monkeypatch.setattr(scanning, "_MANY_BYTES", 10)
    log = tmp_path / "rank_0.log.gz"
    log.write_bytes(gzip.compress(b"a line\n" * 99 + FAULT))
    (whole,) = scanning.scans([sources.source(str(log))], [], None)

    assert ([one.line for one in whole.events], whole.note) == ([100], "")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("HcclAllReduce failed, error code is 507046", "507046"),
        ("[x.cc:1] rtStreamSynchronize execute failed, ret=507046.", "507046"),
        ("stream sync: return value:507046, wait for it", "507046"),
        ("hccl: errNo[0x0000000005000009] ret[9]", "9"),
        ("last error code 0, error count 507046", None),
        ("507046 lines without error code", None),
        ("HcclAllReduce, error code is 0", None),
        ("error code is 5070461", None),
    ],
)
def test_a_number_is_a_code_only_after_a_word_that_says_so(line: str, code: str | None) -> None:
    found = Scanner().event(line.encode())

    assert (found.codes[0] if found else None) == code


@pytest.mark.parametrize("lines_with_error", [0, 5])
def test_no_message_is_looked_for_in_the_lines_of_a_healthy_log(lines_with_error: int) -> None:
    """An anchor that such lines have would make each of them slow."""
    sieve = Scanner()._sieve
    data = megabyte(lines_with_error)

    assert not [hit for hit in sieve.hits(data) if hit.anchors]
    assert lines_with_error or not sieve.hits(data)
