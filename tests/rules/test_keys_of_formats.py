"""Each rule names the keys of the format at hand, and places that its table has.

The rules work on one model of all formats. Of a 2.0 table, the model takes the network instances as
servers, and those have no server_id: a rule that names it says what the file does not have.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.formats.file_kinds import TARGETS
from hccl_tools.formats.schema import keys_of
from hccl_tools.table.format_names import SERVICE
from hccl_tools.validation.checker import validate
from tests.support.tables import super_pod_service, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Diagnostic

    Path = tuple[str | int, ...]

FORMATS = ("1.0", "1.2", "2.0", "group_list", "server_group_list")
EVERY_KEY = frozenset().union(*map(keys_of, FORMATS))
#: The keys as words of a message; a key that is a usual word, such as device, says nothing.
KEY = re.compile(
    rf"\b({'|'.join(sorted((key for key in EVERY_KEY if '_' in key), key=len, reverse=True))})(?:e?s)?\b"
)
#: What a message says of a key that the table does not have.
IS_ABSENT = re.compile(r"\b(?:missing|lacks?|has no|have no|add)\b")
VALUES: tuple[Any, ...] = (
    "", "127.0.0.1", "0.0.0.0", "10.0.0.1", " 10.0.0.1", "10.0.0.1/24", "x", "${IP}", "fe80::1", "99", "-1",
    "01", None, -1, 0, 7, [], {},
)  # fmt: skip
ABSENT = object()


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def has(value: Any, path: Path) -> bool:
    try:
        at(value, path)
    except (KeyError, IndexError, TypeError):
        return False
    return True


def written(value: Any, paths: list[Path], new: Any) -> Any:
    changed = copy.deepcopy(value)
    for path in reversed(paths):
        outer = at(changed, path[:-1])
        if new is ABSENT:
            del outer[path[-1]]
        else:
            outer[path[-1]] = copy.deepcopy(new)
    return changed


def damaged(value: Any) -> Iterator[Any]:
    """Yield the table with values of some entries changed, and with each key changed everywhere."""
    paths = list(places(value))
    columns: dict[str | int, list[Path]] = {}
    for path in paths:
        if isinstance(path[-1], str):
            columns.setdefault(path[-1], []).append(path)
    single = [[own[index]] for own in columns.values() for index in {0, len(own) // 2, len(own) - 1}]
    single += [[path] for path in paths if isinstance(path[-1], int)]
    for chosen in (*single, *columns.values()):
        for new in (*VALUES, ABSENT):
            yield written(value, chosen, new)


def faults(found: Diagnostic, value: Any, known: frozenset[str]) -> Iterator[str]:
    """Yield what a finding names that its table does not have."""
    text = f"{found.message}; {found.hint or ''}"
    own = known | {path[-1] for path in places(value)}
    for named in KEY.finditer(text):
        if named[1] not in own and not IS_ABSENT.search(found.message):
            yield f"{found.rule.id} names {named[1]}: {text}"
    for path in (found.path, *(one.path for one in found.related)):
        if not has(value, path) and not (has(value, path[:-1]) and IS_ABSENT.search(text)):
            yield f"{found.rule.id} is at {path}: {text}"


BASES = (
    *((one, table(one, 2, 2)) for one in FORMATS),
    ("server_group_list", super_pod_service(2, 2)),
)


@pytest.mark.parametrize(("table_format", "value"), BASES)
def test_no_rule_names_a_key_or_place_that_the_format_does_not_have(table_format: str, value: Any) -> None:
    wrong = set[str]()
    known = keys_of(table_format) | {str(path[-1]) for path in places(value)}
    for changed in damaged(value):
        for target in (None, *TARGETS) if table_format == "2.0" else (None,):
            report = validate(copy.deepcopy(changed), target=target)
            if report.format in (table_format, SERVICE):
                for one in report.findings:
                    wrong.update(faults(one, changed, known))

    assert not wrong


@pytest.mark.parametrize(("name", "rule_id"), [("127.0.0.1", "HCC606"), (" node0", "HCC605")])
def test_the_name_of_a_node_is_named_at_each_of_its_ranks(name: str, rule_id: str) -> None:
    value = table("2.0", 2, 2)
    for rank in value["rank_list"][:2]:
        rank["level_list"][0]["net_instance_id"] = name

    found = [one for one in validate(value).findings if one.rule.id == rule_id]

    assert [one.path for one in found] == [
        ("rank_list", row, "level_list", 0, "net_instance_id") for row in range(2)
    ]
    assert {one.message.partition(" ")[0] for one in found} == {"net_instance_id"}


@pytest.mark.parametrize(
    ("table_format", "key", "message"),
    [
        ("1.0", "server_list", "entry 2 of server_list is the string"),
        ("2.0", "rank_list", "entry 2 of rank_list is the string"),
    ],
)
def test_entries_are_counted_from_1_as_servers_are(table_format: str, key: str, message: str) -> None:
    value = table(table_format, 2, 1)
    value[key][1] = "x"

    assert validate(value).findings[0].message.startswith(message)


@pytest.mark.parametrize("servers", [1, 2])
def test_a_misspelt_key_of_one_device_is_as_certain_with_one_server_as_with_two(servers: int) -> None:
    value = table("1.0", servers, 8)
    device = value["server_list"][0]["device"][5]
    device["devcie_ip"] = device.pop("device_ip")

    (found,) = validate(value, product="910a").findings

    assert found.rule.id == ("HCC604" if servers == 1 else "HCC401")
    assert found.hint == 'rename "devcie_ip" to "device_ip"'
    assert found.right_key == "device_ip"
    if servers == 1:
        assert found.message == 'key "devcie_ip" is ignored, so that rank "5" has no device_ip'
