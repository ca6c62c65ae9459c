"""Text of pagers, editors and prompts in a table: it is named, and without it the table is valid again."""

from __future__ import annotations

import json
import re
import shlex
import subprocess

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

RIGHT = table("1.0", 3, 8)
LINES = json.dumps(RIGHT, indent=3).split("\n")
#: Lines that begin with a key, the last key of an entry, brackets that end and begin an entry.
PLACES = [
    next(n for n, one in enumerate(LINES) if n > 40 and sign in one)
    for sign in ("device_ip", "rank_id", "},", "{")
]


def first(lines: list[str]) -> tuple[str, str]:
    """Return message and hint of the first finding on the lines of a text."""
    found = validate("\n".join(lines).encode()).findings[0]
    return found.message, found.hint or ""


def after_command(hint: str, text: str) -> str:
    """Return a text after the command of a hint."""
    words = shlex.split(hint[hint.index("sed ") :].removesuffix(" OLD > NEW"))
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    return done.stdout


BEFORE_TEXT = ["--More--(7%)", "--More--", "(END)", ":", "^[[0m", "^[[K^M", "> ", "$ ", "[root@n1 ~]# > "]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", BEFORE_TEXT[:-1])
def test_text_before_a_line_is_deleted_and_the_line_stays(place: int, text: str) -> None:
    damaged = [*LINES[:place], text + LINES[place], *LINES[place + 1 :]]

    message, hint = first(damaged)

    assert message.startswith(f"line {place + 1} has text ")
    assert message.endswith(f"that is not part of the table: {text.strip()}")
    assert hint == f"delete only {text.strip()}, and keep the rest of the line"
    damaged[place] = damaged[place].replace(text.strip(), "", 1)
    assert json.loads("\n".join(damaged)) == RIGHT


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", ["--More--(7%)", " (END)", "^M"])
def test_text_behind_a_line_is_deleted_and_the_line_stays(place: int, text: str) -> None:
    damaged = [*LINES[:place], LINES[place] + text, *LINES[place + 1 :]]

    message, hint = first(damaged)

    assert message.startswith(f"line {place + 1} has text ")
    assert hint == f"delete only {text.strip()}, and keep the rest of the line"


ALONE = [
    "--More--(31%)", "(END)", ":", "~", "lines 1-23/376 12%", "lines 25-48/48 (END)", "-- INSERT --",
    "-- VISUAL LINE --", '"t.json" 376L, 9000B written', '"t.json" [noeol] 376L, 9000C', "12,5      30%",
    "1,1  All", "^[[0m", "^C", "Pattern not found  (press RETURN)",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", ALONE)
def test_a_line_of_its_own_is_deleted(place: int, text: str) -> None:
    message, hint = first([*LINES[:place], text, *LINES[place:]])

    assert message.startswith(f"line {place + 1} has text ")
    assert hint == "delete the line"


@pytest.mark.parametrize(
    ("text", "at_end"), [("--More--(9%)", False), (":", False), ("~\n", False), ("^M", True), ("$", True)]
)
def test_many_lines_get_a_command_that_mends_all(text: str, *, at_end: bool) -> None:
    damaged = list(LINES)
    for place in range(3, len(LINES) - 1) if at_end else range(20, len(LINES), 30):
        damaged[place] = damaged[place] + text if at_end else text + damaged[place]

    hint = first(damaged)[1]
    mended = after_command(hint, "\n".join(damaged))

    assert json.loads(mended) == RIGHT


@pytest.mark.parametrize("form", ["{:>4} {}", "{}: {}", "{:>5}\t{}", "{} | {}"])
def test_line_numbers_of_a_part_of_the_lines(form: str) -> None:
    damaged = [form.format(number, one) if 30 <= number <= 60 else one for number, one in enumerate(LINES, 1)]

    message, hint = first(damaged)
    mended = after_command(hint, "\n".join(damaged))

    assert message.startswith("lines 30-60 have text of an editor or `cat -n` (line numbers)")
    assert json.loads(mended) == RIGHT


def test_the_same_number_before_each_line() -> None:
    damaged = [LINES[0], *(f"1: {one}" for one in LINES[1:])]

    message, hint = first(damaged)
    mended = after_command(hint, "\n".join(damaged))

    assert message.startswith(f"lines 2-{len(LINES)} have text of a program such as `srun --label`")
    assert "in the table" not in message
    assert json.loads(mended) == RIGHT


def test_of_a_file_with_other_text_on_each_line_the_first_four_are_named() -> None:
    damaged = [LINES[0], *(f"{place * 7 % 1000}: {one}" for place, one in enumerate(LINES[1:]))]

    message, hint = first(damaged)

    assert message.count("in the table, on line ") == 3
    assert len(message) + len(hint) < 1500


def test_a_long_file_with_other_text_on_each_line_is_explained() -> None:
    text = ["{", *(f'{place * 7 % 100000}: "a{place}": 1,' for place in range(1500)), '"b": 1}']

    message = first(text)[0]

    assert message.startswith("line 2 has text of an editor")


def test_prompts_around_a_table_and_a_pager_in_it_are_told_together() -> None:
    damaged = ["[root@n1 ~]# more t.json", *LINES, "[root@n1 ~]# "]
    damaged[30] = "--More--(31%)" + damaged[30]

    message, hint = first(damaged)

    assert "on line 31: line 31 has text of a pager" in message
    assert hint.startswith(
        "on line 31, delete only --More--(31%), and keep the rest of the line; then delete "
    )
    damaged[30] = damaged[30].removeprefix("--More--(31%)")
    assert json.loads("\n".join(damaged[1:-1])) == RIGHT


def test_a_fault_of_the_table_behind_it_is_told_too() -> None:
    damaged = list(LINES)
    damaged[30] = ":" + damaged[30]
    damaged[60] = damaged[60].replace(": ", " ")

    message = first(damaged)[0]

    assert message.startswith("line 31 has text of a pager")
    assert "in the table, on line 61:" in message


@pytest.mark.parametrize(
    "text", ['{"a": 1\n: 2}', '{"a"\n: "b",\n: "c"}', '{"a": [1,\n 2 3]}', '{"a": "x"$}']
)
def test_other_faults_are_not_those_of_a_terminal(text: str) -> None:
    found = validate(text.encode()).findings[0]

    assert not re.search(r"has text of (?!a pager)", found.message)
