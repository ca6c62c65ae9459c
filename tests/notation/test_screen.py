"""Lines are broken between words by the columns that they take, and nothing of them is lost."""

from __future__ import annotations

import shlex
import time
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.notation import screen
from hccl_tools.notation.phrases import aligned
from tests.support.growth import least

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = st.text(st.sampled_from("ab `节　é-\x1b"), max_size=60).map(
    lambda text: text.replace("\x1b", "\x1b[1m")
)


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("训练节点一", 10), ("e\u0301", 1), ("\uff58", 2), ("\x1b[1;31mred\x1b[0m", 3)],
)
def test_the_columns_of_a_text(text: str, columns: int) -> None:
    assert screen.cells(text) == columns


@given(TEXT, st.integers(20, 40))
def test_wrapping_loses_nothing_and_breaks_no_word(text: str, columns: int) -> None:
    lines = screen.wrapped(text, columns)

    assert "".join("".join(lines).split()) == "".join(text.split())
    words = [word for word in text.replace("`", " ").split() if word]
    assert all(any(word in line for line in lines) for word in words)


def test_a_word_that_fits_no_line_stays_where_it_is() -> None:
    path = "/" + "x" * 60

    assert screen.wrapped(f"logs: {path} end", 30) == [f"logs: {path}", "  end"]


def test_a_command_is_one_word() -> None:
    line = "  = help: the table is broken here: `hccl-tools validate --fix t.json` shows it"

    assert screen.wrapped(line, 50) == [
        "  = help: the table is broken here:",
        "    `hccl-tools validate --fix t.json` shows it",
    ]


@pytest.mark.parametrize("quote", ["    | a line of a log " + "x " * 40, "36 | " + '"rank_id" ' * 20])
def test_lines_of_a_log_or_a_file_are_not_broken(quote: str) -> None:
    assert screen.wrapped(quote, 40) == [quote]


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("train.py", 8, "train.py"),
        ("train.py --x", 11, "train.py..."),
        ("训练脚本.py", 8, "训练..."),
        ("训练", 4, "训练"),
    ],
)
def test_what_is_too_wide_is_cut(text: str, columns: int, shown: str) -> None:
    assert screen.cut(text, columns) == shown
    assert screen.cells(shown) <= columns


def test_columns_are_aligned_by_their_width_on_the_screen() -> None:
    first, second = aligned([("训练节点一", "0"), ("node", "1")])

    assert screen.cells(first.removesuffix("0")) == screen.cells(second.removesuffix("1")) == 12


def test_the_width_is_stated_or_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    with Path("/dev/null").open() as nothing:
        assert screen.width(nothing.fileno()) is None
        monkeypatch.setenv("COLUMNS", "132")
        assert screen.width(nothing.fileno()) == 132
        for no_number in ("9" * 5000, "0", "-1", "\u0663"):
            monkeypatch.setenv("COLUMNS", no_number)
            assert screen.width(nothing.fileno()) is None
        monkeypatch.setenv("COLUMNS", "3")  # no text fits
        assert screen.width(nothing.fileno()) == 20


@pytest.mark.parametrize(
    ("variables", "colored"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_variables_decide_about_colours(
    variables: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with Path("/dev/null").open() as nothing:
        assert screen.wants_color(nothing.fileno()) is colored


@pytest.mark.parametrize(
    "line",
    [
        "next: hccl-tools launch --rank-table hccl_8p_01234567_127.0.0.1.json --product a2 --cpu train.py",
        "next: kubectl apply --server-side --force-conflicts -f a_long_name_of_a_file_of_a_config_map.yaml",
    ],
)
def test_the_next_command_is_left_to_the_terminal_which_copies_it_whole(line: str) -> None:
    assert screen.wrapped(line, 40) == [line]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (
            "  more: hccl-tools explain log/20261121-101530-a1b2c3 --all-of-it",
            "hccl-tools explain log/20261121-101530-a1b2c3 --all-of-it",
        ),
        (
            "  help: some words before: hccl-tools gen --simulate 910a --servers 4 -o t.json",
            "hccl-tools gen --simulate 910a --servers 4 -o t.json",
        ),
        (
            "  help: hccn_tool needs root: sudo /opt/venv/bin/hccl-tools gen ...",
            "sudo /opt/venv/bin/hccl-tools gen ...",
        ),
        (
            "  help: set it there, in the shell: export HCCL_IF_IP=10.0.0.1 A=1",
            "export HCCL_IF_IP=10.0.0.1 A=1",
        ),
        (
            "  help: type it with --ssh 'ssh -p PORT -i ~/.ssh/key' or so, in one go",
            "'ssh -p PORT -i ~/.ssh/key'",
        ),
        (
            "  help: keep these lines: LC_ALL=C sed -nE '3,8s/^: > //p' x/t.json > x/new.json",
            "LC_ALL=C sed -nE '3,8s/^: > //p' x/t.json > x/new.json",
        ),
        (
            "  help: it's UTF: any-program -f UTF-16 x/t.json > x/new.json; then `kubectl apply`",
            "any-program -f UTF-16 x/t.json > x/new.json; then `kubectl apply`",
        ),
        (
            """  help: "a: `" is its text: any-program 'it'"'"'s: > ' x/t.json > 'x/`.json'""",
            """any-program 'it'"'"'s: > ' x/t.json > 'x/`.json'""",
        ),
    ],
)
def test_no_line_ends_within_a_command_or_its_quotes(line: str, command: str) -> None:
    shown = screen.wrapped(line, 40)

    assert any(command in one for one in shown), shown


@given(st.lists(st.text("a/`' .", min_size=1), min_size=1), st.text("a/`'. "), st.integers(20, 120))
def test_no_name_breaks_a_command(names: list[str], before: str, columns: int) -> None:
    """The second line of a broken command would be a command: the path of a file that others have made."""
    command = f"hccl-tools diff {shlex.join(names)}"
    for behind in ("compares all of them", "比较所有的表。"):
        shown = screen.wrapped(f"  help: {before} is one table; `{command}` {behind}", columns)
        assert any(command in line for line in shown), shown


def test_a_long_text_of_a_file_takes_linear_time() -> None:
    def taken(number: int) -> float:
        return least(lambda: screen.wrapped('error: "' + '\\"' * number, 80))

    assert taken(200_000) < 4 * taken(100_000) + 0.01


@pytest.mark.parametrize("sign", ["\u0301", "e\u0301", "节"], ids=["combining", "accents", "Chinese"])
@pytest.mark.parametrize(
    "use",
    [screen.cells, lambda text: screen.cut(text, 80), lambda text: screen.wrapped(text, 80)],
    ids=["cells", "cut", "wrapped"],
)
def test_a_megabyte_of_signs_takes_less_than_a_second(use: Callable[[str], object], sign: str) -> None:
    text = sign * (1_000_000 // len(sign.encode()))

    assert least(lambda: use(text)) < 0.5


@given(st.text(max_size=30))
def test_the_columns_are_those_of_each_sign(text: str) -> None:
    plain = text.replace("\x1b", "")

    assert screen.cells(plain) == sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in plain
    )


def test_few_signs_are_remembered() -> None:
    every = "".join(map(chr, range(0x20000, 0x30000)))

    assert screen.cells(every) == screen.cells(every) > len(every)
    assert len(screen._CELLS) <= screen._MOST_KEPT < len(every)


def test_an_apostrophe_does_not_keep_a_line_together() -> None:
    assert len(screen.wrapped("the table's servers and the hosts' names are not those of the file", 30)) == 3


def test_a_line_that_begins_with_many_blanks_takes_linear_time() -> None:
    began = time.process_time()

    screen.fitted(" " * 200_000 + "x", 80)

    assert time.process_time() - began < 2
