"""Broken JSON whose fault stands for something else: empty cells, conflicts of git, a text with lines."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table


def first(text: str) -> tuple[str, str]:
    """Return message and hint of the first finding on a text."""
    found = validate(text.encode()).findings[0]
    return found.message, found.hint or ""


def with_word(value: Any, place: tuple[int, int, str], word: str, *, order: bool = False) -> str:
    """Return a table with a word in place of a value; ``order``: the server_id after the devices."""
    server, device, key = place
    value["server_list"][server]["device"][device][key] = "CELL"
    if order:
        for one in value["server_list"]:
            one["server_id"] = one.pop("server_id")
    return json.dumps(value, indent=2).replace('"CELL"', word)


@pytest.mark.parametrize("word", ["NaN", "None", "undefined"])
@pytest.mark.parametrize("order", [False, True])
def test_an_empty_cell_is_named_with_its_command(word: str, *, order: bool) -> None:
    message, hint = first(with_word(table("1.0", 3, 8), (1, 4, "device_ip"), word, order=order))

    assert (
        message
        == f'{word} stands for an empty cell: the device_ip of device 4 of server "10.0.0.2" is missing'
    )
    assert hint == "write the address that `hccn_tool -i 4 -ip -g` on 10.0.0.2 shows, in double quotes"


def test_an_empty_cell_of_a_super_device_id_has_its_own_command() -> None:
    message, hint = first(with_word(table("1.2", 2, 8), (1, 5, "super_device_id"), "NaN"))

    assert message.startswith("NaN stands for an empty cell: the super_device_id of device 5")
    assert "`npu-smi info -t spod-info -i 2 -c 1` on 10.0.0.2" in hint


def test_other_empty_cells_are_counted() -> None:
    value = table("1.0", 1, 4)
    for key in ("device_id", "device_ip"):
        value["server_list"][0]["device"][2][key] = "CELL"

    hint = first(json.dumps(value, indent=2).replace('"CELL"', "NaN"))[1]

    assert hint.endswith("in double quotes; the value of another empty cell is missing, too")


def test_a_word_under_another_key_is_not_an_empty_cell() -> None:
    assert first('{"port": NaN}')[0] == "NaN is not a JSON number"


def conflict(ours: list[str], theirs: list[str], base: list[str] | None = None) -> str:
    middle = [] if base is None else ["||||||| base", *base]
    return "\n".join(
        ["{", "<<<<<<< HEAD", *ours, *middle, "=======", *theirs, ">>>>>>> spare", '"b": 1', "}", ""]
    )


def test_both_sides_of_a_conflict_are_named() -> None:
    hint = first(conflict(['"a": 1,'], ['"a": 2,']))[1]

    assert hint == (
        'keep line 3 ("a": 1,) of HEAD or line 5 ("a": 2,) of spare, and delete the rest with '
        "the marker lines 2, 4 and 6"
    )
    assert first(conflict(['"a": 1,', '"c": 1,'], []))[1].startswith(
        "keep lines 3 to 4 of HEAD or nothing, as on the side of spare"
    )


def entry(name: str) -> list[str]:
    return [f'{{"server_id": "{name}", "device": [', '{"device_id": "0", "rank_id": "0"}]}']


def test_two_servers_of_a_conflict_may_both_be_wanted() -> None:
    hint = first(conflict(entry("10.0.0.3"), entry("10.0.0.4")))[1]

    assert hint.startswith(
        'each side has a server of its own ("10.0.0.3" and "10.0.0.4"); if the job uses both, delete only '
        "the marker lines 2, 5 and 8, and write a comma between the two sides; number the ranks of the "
        "second on"
    )
    assert "; if it uses one, keep lines 3 to 4 of HEAD or lines 6 to 7 of spare" in hint


def test_parts_of_two_servers_are_written_as_entries() -> None:
    hint = first(conflict(['"server_id": "10.0.0.3",'], ['"server_id": "10.0.0.4",']))[1]

    assert hint.startswith('keep line 3 ("server_id": "10.0.0.3",) of HEAD or line 5')
    assert 'only if the job uses both servers ("10.0.0.3" and "10.0.0.4"), write two entries' in hint


def test_two_forms_of_one_server_are_not_both_wanted() -> None:
    assert first(conflict(entry("10.0.0.3"), entry("10.0.0.3")))[1].startswith("keep lines 3 to 4 of HEAD or")


def test_a_conflict_with_its_base_or_without_end_is_not_described() -> None:
    plain = "resolve the conflict and remove its marker lines"

    assert first(conflict(['"a": 1,'], ['"a": 2,'], ['"a": 0,']))[1] == plain
    assert first('{\n<<<<<<< HEAD\n"a": 1}')[1] == plain


def test_a_text_with_line_breaks_is_written_with_its_escapes() -> None:
    inner = json.dumps(table("1.0", 1, 2), indent=2).replace('"', '\\"')
    text = f'{{"kind": "ConfigMap", "data": {{\n"hccl.json": "{inner}"}}}}'

    message, hint = first(text)

    assert message.startswith('the text of "hccl.json" on lines 2 to ')
    program = hint.partition("python3 -I -c '")[2].partition("'")[0]
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    assert json.loads(json.loads(done.stdout)["data"]["hccl.json"]) == table("1.0", 1, 2)


def test_a_string_without_its_end_is_no_text_with_line_breaks() -> None:
    assert first('{"version": "1.0,\n"status": "completed"}')[0].startswith("a double quote is missing")


def test_other_numbers_with_leading_zeros_are_counted() -> None:
    text = json.dumps(table("1.0", 1, 4), indent=2)
    padded = text.replace('"rank_id": "', '"rank_id": 0').replace('0"\n', "0\n")
    for rank in range(4):
        padded = padded.replace(f'"rank_id": 0{rank}"', f'"rank_id": 0{rank}')

    assert "the 3 other numbers with leading zeros" in first(padded)[1]
    assert "other" not in first('{"rank_id": 01}')[1]


def test_the_server_of_a_side_is_found_in_other_lines() -> None:
    """As in super_pod_list: a table with one of the two in each place would be refused."""
    ours, theirs = ['"server_id": "10.0.0.2",'], ['"server_id": "10.0.0.9",']
    alone = conflict(ours, theirs)

    hint = first(alone + '"x": "10.0.0.2"\n')[1]

    line = alone.count("\n") + 1
    assert hint.endswith(f'; line {line} has "10.0.0.2", too: write the server that you keep there')
    assert "too: write" not in first(alone)[1]


@pytest.mark.parametrize(
    ("table_format", "key", "counts", "said"),
    [
        ("2.0", "rank_count", ("16", "8"), "; the file lists 16 ranks"),
        ("1.0", "server_count", ('"3"', '"2"'), "; the file lists 2 servers"),
        ("1.0", "server_count", ('"3"', '"4"'), ""),
    ],
)
def test_two_counts_of_a_conflict_say_what_the_file_lists(
    table_format: str, key: str, counts: tuple[str, str], said: str
) -> None:
    text = json.dumps(table(table_format, 2, 8), indent=4)
    lines = text.split("\n")
    place = next(index for index, line in enumerate(lines) if f'"{key}"' in line)
    sides = [f'    "{key}": {one},' for one in counts]
    lines[place : place + 1] = ["<<<<<<< HEAD", sides[0], "=======", sides[1], ">>>>>>> other"]

    (found,) = validate("\n".join(lines).encode()).findings

    assert (found.hint or "").endswith(f"the marker lines {place + 1}, {place + 3} and {place + 5}{said}")
