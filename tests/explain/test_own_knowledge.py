"""``explain --knowledge FILE``: messages of the user's own, which cannot hang the tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

RECORD = {
    "id": "SITE001",
    "name": "license-server",
    "kind": "cause",
    "meaning": "the license server did not answer",
    "remedy": "ask the site's operators to restart it",
    "anchor": "LICENSE-7",
    "pattern": r"LICENSE-7: host (?P<server>\S+)",
    "explains": ["HCM006"],
    "example": "LICENSE-7: host license01 is down",
}


def explain(command_line: CommandLine, log: str, **changes: Any) -> Any:
    command_line.write("own.json", {"messages": [{**RECORD, **changes}]})
    command_line.write("rank_0.log", log)
    return command_line("explain", "rank_0.log", "--knowledge", "own.json")


def test_a_message_of_the_user_is_the_cause(command_line: CommandLine) -> None:
    done = explain(command_line, "step 1\nLICENSE-7: host license01 is down\nEI0006: no data\n")

    assert done.out.splitlines()[0] == (
        "Rank 0 (host license01): the license server did not answer. Certain: the log says so."
        " What to do: ask the site's operators to restart it."
    )


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"pattern": "(a+)+b"}, "repeats a repetition"),
        ({"pattern": "(" * 3}, "it is no regular expression"),
        ({"pattern": ".*a" * 9}, "more than 6 repetitions"),
        ({"pattern": "(?P<colour>x)"}, 'names a field "colour"'),
        ({"id": "HCM006"}, "the id HCM006 is used already"),
        ({"id": "x"}, 'id: "x" does not match ^[A-Z]{2,6}[0-9]{3}$'),
        ({"id": "SITE001\n"}, "is not 2 to 6 capital letters and 3 digits"),
        ({"kind": "guess"}, 'kind: "guess" is none of verdict, cause,'),
        ({"anchor": "L"}, "fewer than 4 bytes"),
        ({"example": "something else"}, "the example does not contain the anchor"),
        ({"remedy": 7}, "remedy: 7 is not text"),
        ({"codes": "EI0006"}, 'codes: "EI0006" is not a list'),
        ({"codes": ["EI0006", 6]}, "codes[1]: 6 is not text"),
        ({"colour": "red"}, '"colour" is not a known key'),
    ],
)
def test_a_wrong_record_is_refused(command_line: CommandLine, changes: dict[str, Any], fault: str) -> None:
    done = explain(command_line, "LICENSE-7\n", **changes)

    assert done.code == 2
    assert done.sentence.startswith("own.json: message 1")
    assert fault in done.sentence


def test_half_of_a_surrogate_pair_is_refused(command_line: CommandLine) -> None:
    done = explain(command_line, "LICENSE-7\n", anchor="LICENSE\ud800")

    assert done.code == 2
    assert done.sentence.startswith("own.json is not JSON: ")


def test_a_wrong_id_is_answered_with_the_form_of_an_id(command_line: CommandLine) -> None:
    done = explain(command_line, "LICENSE-7\n", id="x")

    assert "  help: write 2 to 6 capital letters and 3 digits, for example SITE001\n" in done.err


@pytest.mark.parametrize("text", ["{", "[]", '{"messages": 7}', json.dumps({"messages": [3]})])
def test_a_file_of_another_form_is_refused(command_line: CommandLine, text: str) -> None:
    command_line.write("own.json", text)
    command_line.write("rank_0.log", "x\n")
    done = command_line("explain", "rank_0.log", "--knowledge", "own.json")

    assert done.code == 2
    assert done.sentence.startswith("own.json")


@pytest.mark.slow
def test_a_slow_pattern_cannot_hang_the_tool(command_line: CommandLine) -> None:
    line = "LICENSE-7" + "a" * 4000 + "\n"
    done = explain(command_line, line * 1000 + "EI0011: error\n", pattern=".*a.*a.*a.*a.*a.*b")

    assert "(EI0011)" in done.out.splitlines()[0]
    assert (
        "  the pattern of SITE001 took longer than 0.5 s on a line: it was no longer used"
        in done.out.splitlines()
    )
