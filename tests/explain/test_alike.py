"""Lines that differ in their digits only are judged once, unless a digit decides which message they have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.explain import scanner
from hccl_tools.explain.knowledge import patterns
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.scanner import Scanner

if TYPE_CHECKING:
    from pathlib import Path

PATTERNS = {one.id: one for one in messages().values() if one.pattern and one.example}


def found(folder: Path, lines: list[str]) -> list[tuple[str, int, int | None]]:
    log = folder / "rank_0.log"
    log.write_text("\n".join(lines) + "\n")
    return [(one.message.id, one.line, one.rank) for one in Scanner().scan(str(log), 0).events]


@pytest.mark.parametrize(
    ("usual", "other", "message"),
    [
        ("mpirun: process rank 1 with PID 77 on node a exited on signal 5", "exited on signal 6", "HCM790"),
        ("[INFO] HCCL: error code 0, step 12", "error code 9, step 12", ""),
        ("[ERROR] HCCL: ret=507041, retry 5", "ret=507046, retry 5", ""),
        ("[ERROR] DEVDRV: event id 0x81078602, error code 0", "event id 0x81078603, error code 0", "HCM313"),
        ("[ERROR] DEVDRV: event id 0x8abcdef1, error code 0", "event id 0x81078603, error code 0", "HCM313"),
        ("/dev/nvme0n1p1 3.5T 3.5T 9 099% /data", "/dev/nvme0n1p1 3.5T 3.5T 9 100% /data", "HCM870"),
        ("HCCL_CONNECT_TIMEOUT is 120, the recommended value is 200", "value is 300", "HCM654"),
    ],
)
def test_a_digit_that_decides(tmp_path: Path, usual: str, other: str, message: str) -> None:
    line = f"{usual[: len(usual) - len(other)]}{other}"
    events = [one for one in found(tmp_path, [usual] * 300 + [line]) if one[1] == 301]

    assert len(events) == 1
    assert message in {"", events[0][0]}


def test_a_rank_among_many_lines_of_another(tmp_path: Path) -> None:
    fault = "[rank{1}]: 2026-03-18 10:02:{0:02} EI0006: Getting socket times out, retry {0}"
    lines = [fault.format(number % 60, 13) for number in range(500)] + [fault.format(7, 31)]

    events = found(tmp_path, lines)

    assert [line for _, line, rank in events if rank == 13] == list(range(1, 21))
    assert [line for _, line, rank in events if rank == 31] == [501]


def test_a_storm_of_exceptions_is_not_searched_for_what_follows_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "_MOST_TRACEBACKS", 30)
    lines = [f"ValueError: sample {number} is broken" for number in range(100)]
    searched: list[int] = []

    def is_handled(_: bytes, start: int) -> bool:
        searched.append(start)
        return False

    monkeypatch.setattr(scanner, "is_handled", is_handled)

    events = found(tmp_path, [*lines, "KeyError: 'x'", "ModuleNotFoundError: No module named 'acl'"])

    assert [line for _, line, _ in events] == [*range(1, 21), 102]
    assert len(searched) == 30


def test_a_level_without_a_message_in_each_log(tmp_path: Path) -> None:
    own = Scanner()
    for name in ("rank_0.log", "rank_1.log"):
        log = tmp_path / name
        log.write_text("step 1\n" + "2026-03-18 10:02:05 ERROR the frobnicator stalls, 12 left\n" * 50)

        unknown = own.scan(str(log), 0).unknown

        assert unknown is not None
        assert unknown[0] == 2


@pytest.mark.parametrize("message", PATTERNS)
def test_a_line_has_what_its_pattern_needs(message: str) -> None:
    one = PATTERNS[message]
    line = one.example.encode()
    for texts in patterns.needed(one.pattern):
        assert any(text in line for text in texts), texts


@pytest.mark.parametrize(
    ("pattern", "is_blind"),
    [
        (rb"rank \d{1,3}", True),
        (rb"[0-9a-f]+: \S+", True),
        (rb"rank 1", False),
        (rb"rank [1-9]", False),
        (rb"rank [^7]", False),
        (rb"(?:a|b(?=8))", False),
        (rb"(\d)/\1", False),
    ],
)
def test_whether_a_digit_changes_a_match(pattern: bytes, is_blind: bool) -> None:
    assert patterns.is_blind_to_digits(pattern) is is_blind


def test_what_a_pattern_needs() -> None:
    assert patterns.needed(rb"(?:socket|net) fail(?:ed)?, (?:port )?\d+ on (?=.*host)") == [
        {b"socket", b"net"},
        {b" fail"},
        {b", "},
        {b" on "},
        {b"host"},
    ]
    assert patterns.needed(rb"(?i)fail") == []
    assert patterns.needed(rb"(?:fail)?|down") == []


@settings(max_examples=60)
@given(st.sampled_from(sorted(PATTERNS)), st.text("0123456789", min_size=40, max_size=40))
def test_a_blind_pattern_matches_a_line_with_other_digits(message: str, digits: str) -> None:
    one = PATTERNS[message]
    if patterns.is_blind_to_digits(one.pattern):
        other = iter(digits * 20)
        line = re.sub(r"\d", lambda _: next(other), one.example).encode()

        assert bool(re.search(one.pattern, line)) == bool(re.search(one.pattern, one.example.encode()))
