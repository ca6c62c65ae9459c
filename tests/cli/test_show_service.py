"""``show`` of a service table (server_group_list): instances, servers, devices, ranks, ports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from hccl_tools.show import service
from hccl_tools.table.format_names import SERVICE
from hccl_tools.validation.checker import validate
from tests.support.tables import JSON, omni_service, super_pod_service, table
from tests.validation.test_service_tables import JUNK, damaged, single_servers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.commands import CommandLine, Done


@pytest.fixture
def show(command_line: CommandLine) -> Callable[..., Done]:
    """Return a function that writes a value to ``t.json`` and shows it."""

    def run(value: JSON, *options: str) -> Done:
        return command_line("show", command_line.write("t.json", value), *options)

    return run


def test_the_tree_has_groups_servers_and_devices(
    show: Callable[..., Done], golden: Callable[[str, str], None]
) -> None:
    tables = (table(SERVICE, 2, 2), super_pod_service(1, 2), omni_service(1, 2), single_servers())

    golden("show-service.txt", "\n".join(show(value).out for value in tables))


def test_many_servers_are_one_line_each_unless_all_are_asked_for(show: Callable[..., Done]) -> None:
    value = table(SERVICE, 4, 2)

    assert "rank 7" not in show(value).out
    assert "rank 7  device 1  10.20.3.2" in show(value, "--all").out


def test_json_has_numbers_and_names(show: Callable[..., Done]) -> None:
    found = json.loads(show(super_pod_service(1, 2), "-f", "json").out)

    assert (found["format"], found["reader"], found["instance_count"]) == (SERVICE, "MindIE-Motor", 2)
    assert [group["role"] for group in found["groups"]] == [
        "coordinator",
        "controller",
        "instance",
        "instance",
    ]
    (server,) = found["groups"][3]["servers"]
    assert (server["super_pod_id"], server["mgmt_port"]) == ("1", "1026")
    assert server["devices"][1] == {
        "rank": 1,
        "device_id": 1,
        "device_ip": "10.20.1.2",
        "device_logical_id": "1",
        "super_device_id": "1",
    }


def test_a_damaged_table_is_shown_with_a_note(show: Callable[..., Done]) -> None:
    value = table(SERVICE)
    value["status"] = "initializing"
    value[SERVICE][2]["server_list"][0]["device"][0] = {"rank_id": "x"}

    done = show(value)

    assert done.code == 0
    assert done.out.startswith(
        "t.json: service table of MindIE-Motor, 2 instances, 4 servers, 4 devices, status "
    )
    assert "rank ?  device ?  no address" in done.out
    assert done.err.startswith("note: the service table has ")


@pytest.mark.parametrize("option", [["--rank", "0"], ["--server", "10.0.0.1"], ["--here"], ["--fingerprint"]])
def test_parts_cannot_be_selected(show: Callable[..., Done], option: list[str]) -> None:
    done = show(table(SERVICE), *option)

    assert done.code == 2
    assert f"{option[0]} does not apply to t.json: it is not a rank table" in done.err


@given(damaged() | JUNK.map(lambda junk: {SERVICE: junk}))
def test_random_json_makes_no_traceback(value: JSON) -> None:
    report = validate(value)
    if report.is_service:
        assert list(service.lines(report, value, unfold=True))
        assert json.loads(service.as_json(report, value))["format"] == SERVICE
