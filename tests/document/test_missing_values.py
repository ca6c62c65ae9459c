"""A key without a value: the value is named if the rest of the file determines it, and is right."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hccl_tools.validation.checker import validate
from tests.support.tables import table

#: A hint that states the value, with the comma that is missing, too.
_WRITE = re.compile(r'write ("\w+": (?:"[^"]*"|\d+),?) on line (\d+)')


def first(text: str) -> tuple[str, str]:
    """Return message and hint of the first finding on a text."""
    found = validate(text.encode()).findings[0]
    return found.message, found.hint or ""


def without(text: str, line: int, rest: str) -> str:
    """Return a text in which a line ends after its colon, and then has ``rest``."""
    lines = text.split("\n")
    lines[line] = lines[line].partition(":")[0] + ":" + rest
    return "\n".join(lines)


def lines_of(text: str, key: str) -> list[int]:
    return [line for line, one in enumerate(text.split("\n")) if one.strip().startswith(f'"{key}": ')]


CERTAIN = [
    ("1.0", 3, 8, "rank_id"), ("1.0", 3, 8, "device_id"), ("1.0", 3, 8, "server_count"),
    ("1.0", 1, 4, "status"), ("1.0", 2, 8, "version"), ("1.2", 2, 4, "version"),
    ("1.2", 2, 4, "rank_id"), ("2.0", 2, 4, "rank_count"),
    ("2.0", 3, 2, "rank_id"), ("2.0", 2, 4, "net_layer"), ("group_list", 2, 2, "device_count"),
    ("group_list", 2, 2, "instance_count"), ("2.0", 2, 4, "addr_type"), ("1.0", 2, 2, "host_nic_ip"),
]  # fmt: skip


@pytest.mark.parametrize(("table_format", "servers", "size", "key"), CERTAIN)
@pytest.mark.parametrize("with_comma", [True, False])
def test_a_value_that_the_others_determine_is_stated_and_right(
    table_format: Any, servers: int, size: int, key: str, *, with_comma: bool
) -> None:
    right = table(table_format, servers, size)
    text = json.dumps(right, indent=2)
    for line in lines_of(text, key):
        ends = text.split("\n")[line].endswith(",")
        damaged = without(text, line, " ," if ends and with_comma else "")
        message, hint = first(damaged)

        assert message.startswith(f'"{key}"')
        assert message.endswith("has no value")
        found = _WRITE.fullmatch(hint)
        assert found is not None, hint
        assert int(found[2]) == line + 1
        mended = damaged.split("\n")
        begin = mended[line].partition('"')[0]
        mended[line] = begin + found[1] + ("," if ends and with_comma else "")
        assert json.loads("\n".join(mended)) == right


@pytest.mark.parametrize("place", [0, 5, 7])
def test_an_address_has_its_command(place: int) -> None:
    text = json.dumps(table("1.0", 2, 8), indent=2)
    line = lines_of(text, "device_ip")[8 + place]

    message, hint = first(without(text, line, ","))

    assert message == f'"device_ip" of device {place} of server "10.0.0.2" has no value'
    assert hint == (
        f"write the address that `hccn_tool -i {place} -ip -g` on 10.0.0.2 shows, in double quotes, before "
        f"the comma on line {line + 1}"
    )


def test_a_name_between_two_equal_ones_is_theirs_and_at_the_border_it_is_open() -> None:
    text = json.dumps(table("2.0", 2, 4), indent=2)
    lines = lines_of(text, "net_instance_id")

    assert 'write "net_instance_id": "node0"' in first(without(text, lines[2], ","))[1]
    assert first(without(text, lines[3], ","))[1].startswith("write the value, before the comma")


def test_several_keys_without_a_value_are_counted() -> None:
    text = json.dumps(table("1.0", 2, 8), indent=2)
    for line in lines_of(text, "device_ip")[8:]:
        text = without(text, line, ",")

    message, hint = first(text)

    assert message == '"device_ip" of device 0 of server "10.0.0.2" has no value'
    assert hint.endswith("; 7 other keys have no value, too")
    text = without(text, lines_of(text, "rank_id")[3], "")
    assert "8 other keys" in first(text)[1]


def test_two_ranks_without_a_value_are_not_guessed() -> None:
    text = json.dumps(table("1.0", 2, 8), indent=2)
    for line in lines_of(text, "rank_id")[3:5]:
        text = without(text, line, "")

    assert first(text)[1].startswith(
        "write the rank, which no other device has, in double quotes, before the }"
    )


@pytest.mark.parametrize("text", ['{"a": , "b"}', '{"a":, 3}', '{"a": 1, , "b": 2}', '{"a": [1, , 2]}'])
def test_a_comma_too_many_is_removed(text: str) -> None:
    message, hint = first(text)

    assert message.startswith("one comma too many")
    assert hint.startswith("remove ")
