"""Excerpts that users posted: the cause that they name is found, else the answer says what to look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

DATA = Path(__file__).parents[1] / "data" / "explain" / "excerpts.json"
#: ``named``: the words name the cause. ``open``: the threads do not show it, and the answer says what to look at.
EXCERPTS: dict[str, list[dict[str, str]]] = json.loads(DATA.read_text(encoding="utf-8"))


def explained(command_line: CommandLine, text: str) -> str:
    command_line.write("screen.txt", text)
    done = command_line("explain", "screen.txt")
    assert (done.code, done.err) == (0, "")
    return done.out


def each(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("excerpt", EXCERPTS[kind], ids=[one["source"] for one in EXCERPTS[kind]])


@each("named")
def test_the_cause_of_a_report_is_named(command_line: CommandLine, excerpt: dict[str, str]) -> None:
    first = explained(command_line, excerpt["text"]).splitlines()[0]

    assert excerpt["says"] in first
    sure = ("Certain: the log says so", "HCCL reports", "Reported by other ranks")
    assert any(words in first for words in sure)
    assert excerpt["advice"] in first


@each("open")
def test_a_report_without_a_cause_says_what_to_look_at(
    command_line: CommandLine, excerpt: dict[str, str]
) -> None:
    out = explained(command_line, excerpt["text"])

    assert excerpt["says"] in out.splitlines()[0]
    assert "the logs do not show the cause" in out.splitlines()[0].lower()
    assert excerpt["advice"] in out
    assert "look at" in out


def test_words_without_a_message_are_no_cause(command_line: CommandLine) -> None:
    command_line.write(
        "screen.txt", "the service dies after 30 minutes although HCCL_EXEC_TIMEOUT=0\n"
    )  # pytorch#54
    done = command_line("explain", "screen.txt")

    assert done.code == 1
    assert done.out.splitlines() == [
        "no cause found in 1 log",
        "  look at the plog of each rank, by default in ~/ascend/log: `hccl-tools explain ~/ascend/log` on each host",
    ]


def test_all_reports_are_here() -> None:
    assert sum(map(len, EXCERPTS.values())) >= 38
