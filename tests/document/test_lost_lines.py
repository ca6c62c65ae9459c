"""Lines that a command deleted, with the comma before them left, and a part of a file in UTF-16."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

VALUE = table("1.0", 2, 8)
TEXT = json.dumps(VALUE, indent=2)


def said(data: bytes) -> tuple[str, str]:
    (found,) = validate(data).findings
    return found.message, found.hint or ""


def without(word: str, text: str = TEXT) -> str:
    return "\n".join(line for line in text.split("\n") if f'"{word}"' not in line)


@pytest.mark.parametrize("table_format", ["1.0", "2.0", "group_list"])
def test_a_status_that_was_deleted_is_named_beside_its_comma(table_format: str) -> None:
    value = table(table_format, 2, 8)
    value["status"] = value.pop("status")

    message, hint = said(without("status", json.dumps(value, indent=2)).encode())

    assert message.startswith('trailing comma before }, and "status" is missing')
    assert hint == 'write "status": "completed" after the comma'


def test_the_remedy_makes_the_table_sound() -> None:
    text = without("status")
    at = text.rindex(",") + 1

    assert not validate(f'{text[:at]}\n"status": "completed"{text[at:]}'.encode()).findings


def test_a_key_of_all_entries_that_was_deleted_is_named_with_their_number() -> None:
    message, hint = said(without("rank_id").encode())

    assert message.startswith('trailing comma before }, and "rank_id" in 16 entries of device is missing')
    assert hint.startswith("take the table as it was before")


def test_a_comma_too_much_alone_keeps_its_message() -> None:
    text = TEXT.replace('"completed"', '"completed",')

    assert said(text.encode()) == ("trailing comma before }", "remove the comma")


def test_a_comma_of_a_device_does_not_stand_for_the_status() -> None:
    text = json.dumps({key: one for key, one in VALUE.items() if key != "status"}, indent=2)
    text = text.replace('"rank_id": "3"', '"rank_id": "3",')

    _, hint = said(text.encode())

    assert hint == 'remove the comma, and write "status": "completed" beside server_list'


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("lines", [1, 2, 5])
def test_a_part_in_utf_16_is_named_and_decoded_by_the_command(encoding: str, lines: int) -> None:
    every = [f"{line}\n" for line in TEXT.split("\n")]
    data = "".join(every[:-lines]).encode() + "".join(every[-lines:]).encode(encoding)

    message, hint = said(data)

    assert f"from line {len(every) - lines + 1} on each character has a zero byte" in message
    command = shlex.split(hint.partition(": ")[2].partition(" < OLD")[0])
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    assert json.loads(done.stdout) == VALUE


def test_an_end_in_utf_16_behind_the_table_is_named() -> None:
    data = TEXT.encode() + "\r\n".encode("utf-16-le")

    assert "this is text in UTF-16 after text in UTF-8" in said(data)[0]


def test_zero_bytes_of_a_half_written_file_keep_their_message() -> None:
    assert (
        said(TEXT[: TEXT.index('"server_list"')].encode() + bytes(200))[0]
        == "zero byte (NUL), as in a half-written file"
    )
    assert (
        said(TEXT.encode() + bytes(200))[0] == "HCCL ignores the text after the table: there are zero bytes"
    )


def without_lines(first: int, second: int, *, is_counted: bool = True) -> str:
    """Return three servers without the lines from a device of the second one to a device of the third."""
    value: Any = table("1.0", 3, 8)
    if not is_counted:
        del value["server_count"]
    text = json.dumps(value, indent=1)
    begins = [found.start() for found in re.finditer(r"\n +\{\n +\"device_id\"", text)]
    end = text.index("}", begins[8 + first]) + 1
    return text[:end] + text[begins[16 + second] :]


@pytest.mark.parametrize(("first", "second"), [(7, 0), (5, 2), (3, 3)])
def test_a_hole_between_two_servers_is_no_missing_comma(first: int, second: int) -> None:
    message, hint = said(without_lines(first, second).encode())

    assert message == (
        "the end of a server and the head of the next one are probably missing: "
        f"behind device {first} the list goes on with device {second}, and server_count is 3 for 2 servers"
    )
    assert hint.startswith('write ] }, { "server_id": "...", "device": [ at the end of line ')


def test_a_hole_in_a_table_without_a_count_is_told_if_the_devices_start_again() -> None:
    assert said(without_lines(7, 0, is_counted=False).encode())[0].endswith("the list goes on with device 0")
    assert said(without_lines(5, 2, is_counted=False).encode())[0] == "a comma is missing between two values"


def test_a_missing_comma_within_a_server_keeps_its_message() -> None:
    text = json.dumps(table("1.0", 3, 8), indent=1)
    at = text.index("},", text.index('"device_id": "4"'))

    assert said((text[: at + 1] + text[at + 2 :]).encode())[0] == "a comma is missing between two values"
