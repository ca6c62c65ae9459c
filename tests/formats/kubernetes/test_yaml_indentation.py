"""The line of a ConfigMap in YAML whose indentation is wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import InputError
from hccl_tools.formats.kubernetes.yaml_reading import read_yaml, wrong_line
from tests.support.growth import steps
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: rings\n  labels:\n    a: b\ndata:\n  hccl.json: |\n"
)
TEXT = "".join(f"    {line}\n" for line in json.dumps(table("1.0", 2, 2), indent=2).splitlines())
GOOD = f"{HEAD}{TEXT}"


def changed(number: int, change: Callable[[str], str]) -> str:
    lines = GOOD.splitlines()
    lines[number - 1] = change(lines[number - 1])
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [GOOD, f"---\n# note\n{GOOD}", GOOD.replace("|", "|-"), "a:\n- b: 1\n  c: 2\n- b: 3\n", "a: [\n{},\n]\n"],
)
def test_a_text_with_right_indentation(text: str) -> None:
    assert wrong_line(text) is None


@pytest.mark.parametrize(
    ("number", "change", "message", "hint"),
    [
        (5, lambda line: line[1:], "the key is indented by 1 blank; the keys above it by 0 and 2",
         "indent it by 2 or 0"),
        (5, lambda line: f" {line}", "the key is indented by 3 blanks, the key above it by 2",
         "indent it by 2 blanks"),
        (9, str.lstrip, 'the text of "hccl.json" begins with 0 blanks', "indent each line of the text by 4"),
        (12, lambda line: line[3:], 'this line of the text of "hccl.json" is indented by ',
         "indent the line by 4"),
        (12, lambda line: f"\t{line.strip()}", "the line is indented with a tab", "write blanks"),
        (6, lambda line: f"\t{line.strip()}", "the line is indented with a tab", "write blanks"),
    ],
)  # fmt: skip
def test_the_line_and_what_it_needs(
    number: int, change: Callable[[str], str], message: str, hint: str
) -> None:
    found = wrong_line(changed(number, change))

    assert found is not None
    assert found.line == number
    assert found.message.startswith(message)
    assert found.hint.startswith(hint)


def test_the_reader_names_the_line_and_not_the_one_at_which_it_stops() -> None:
    with pytest.raises(InputError) as caught:
        read_yaml(changed(13, lambda line: f"  {line.strip()}").encode(), "cm.yaml")

    assert caught.value.message == (
        'cm.yaml:13: not valid YAML: this line of the text of "hccl.json" is indented by 2 blanks, '
        "the text by 4"
    )
    assert caught.value.hint == "indent the line by 4 blanks or more"


def test_another_fault_keeps_its_place() -> None:
    with pytest.raises(InputError) as caught:
        read_yaml(b"a: [b\nc: d\n", "cm.yaml")

    assert caught.value.message.startswith("cm.yaml:2:2: not valid YAML: ")
    assert "correct the line or the one above it" in (caught.value.hint or "")


def test_each_line_is_read_once() -> None:
    def taken(number: int) -> int:
        return steps(lambda: wrong_line(HEAD + TEXT * number + "  x: y: z\n" * number))

    assert taken(80) < 8 * taken(20)  # the square would be 16


def test_all_lines_outside_the_text_are_named_at_once() -> None:
    lines = GOOD.splitlines()
    lines[10:13] = [line.strip() for line in lines[10:13]]

    found = wrong_line("\n".join(lines))

    assert found is not None
    assert found.line == 11
    assert found.message == 'lines 11-13 of the text of "hccl.json" are indented by less than the text (4)'
    assert found.hint == "indent these lines by 4 blanks or more"
