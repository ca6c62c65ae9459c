"""What commands print on a screen of a stated width, and in which colours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hccl_tools.notation.screen import cells
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


def wider(text: str, columns: int) -> list[str]:
    return [line for line in text.splitlines() if cells(line) > columns and " " in line.strip()]


@pytest.mark.parametrize("columns", [80, 60])
def test_findings_are_broken_between_words_and_their_source_is_cut(
    command_line: CommandLine, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][1]["device"][3]["rank_id"] = "5"
    value["server_list"][0]["server_id"] = "训练节点一" * 4
    command_line.write("t.json", json.dumps(value, ensure_ascii=False))
    whole = command_line("validate", "t.json").out
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = command_line("validate", "t.json").out

    assert wider(whole, columns)
    assert wider(shown, columns) == []
    assert 'rank id "5" is used by two devices' in " ".join(shown.split())


@pytest.mark.parametrize(
    "words",
    [("doctor",), ("gen", "--devices", "0,0,1"), ("launch", "t.json", "x.py"), ("diff", "t.json", "t.json")],
)
def test_messages_are_broken_between_words(
    command_line: CommandLine, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    command_line.write("t.json", table())
    monkeypatch.setenv("COLUMNS", "60")
    done = command_line(*words)

    assert wider(done.out + done.err, 60) == []


@pytest.mark.parametrize("words", [("show", "a.json"), ("diff", "a.json", "b.json"), ("explain", "no.log")])
def test_colours_can_be_chosen(
    command_line: CommandLine, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    command_line.write("a.json", table("1.0", 1, 8))
    command_line.write("b.json", table("1.0", 2, 8))
    command_line.write("no.log", "RuntimeError: EI0006\n")

    plain = command_line(*words).out
    assert "\x1b[" not in plain
    colored = command_line(*words, "--color", "always").out
    assert "\x1b[" in colored
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert command_line(*words).out == colored
    monkeypatch.setenv("NO_COLOR", "1")
    assert command_line(*words).out == plain


@pytest.mark.parametrize("words", [("explain", "EI0006"), ("rules", "HCC203"), ("rules", "HCD101")])
def test_the_chinese_line_of_a_page_is_a_line_of_its_own(
    command_line: CommandLine, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    lines = command_line(*words, "--lang", "zh").out.splitlines()

    assert sum(line.startswith("= 中文: ") for line in lines) == 1
    assert all(cells(line) <= 80 for line in lines if not line.startswith("    "))
