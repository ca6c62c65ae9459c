"""``convert --instance``: the rank table of an instance of a service table (server_group_list)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from hccl_tools.errors import TableError
from hccl_tools.formats import service
from hccl_tools.table.format_names import SERVICE
from hccl_tools.transform import instance_table
from hccl_tools.validation.checker import validate
from tests.support.tables import JSON, omni_service, super_pod_service, table
from tests.validation.test_service_tables import changed, damaged, single_servers

if TYPE_CHECKING:
    from tests.support.commands import CommandLine, Done


def convert(run: CommandLine, value: Any, *options: str) -> Done:
    return run("convert", run.write("t.json", value), *options, "-o", "-")


@pytest.mark.parametrize(
    ("value", "instance", "product"),
    [(table(SERVICE, 2, 8), "2", "a2"), (omni_service(2, 8), "1", "a2"), (table(SERVICE, 1, 3), "3", "a2")],
)
def test_an_instance_becomes_a_1_0_table(
    command_line: CommandLine, value: JSON, instance: str, product: str
) -> None:
    done = convert(command_line, value, "--instance", instance, "--to", "1.0")
    (group,) = [one for one in value[SERVICE] if one["group_id"] == instance]

    assert done.code == 0
    made = json.loads(done.out)
    assert validate(made, product=product).verdict == "accepted"
    assert [server["server_id"] for server in made["server_list"]] == [
        server["server_id"] for server in group["server_list"]
    ]
    assert [
        {**device, "device_logical_id": None} for server in made["server_list"] for device in server["device"]
    ] == [
        {**device, "device_logical_id": None}
        for server in group["server_list"]
        for device in server["device"]
    ]
    assert made["server_list"][0]["container_ip"] == group["server_list"][0]["server_ip"]


def test_what_a_rank_table_cannot_hold_is_listed(command_line: CommandLine) -> None:
    done = convert(command_line, table(SERVICE, 2, 8), "--instance", "2", "--to", "1.0")

    assert done.err.splitlines() == [
        "group 2 of MindIE-Motor: 2 servers, 16 ranks",
        "lost: predict_port of 2 servers",
        "lost: mgmt_port of 2 servers",
        "lost: metric_port of 2 servers",
        "lost: inter_comm_port of 2 servers",
        "lost: device_logical_id of 16 devices",
    ]


def test_an_instance_in_super_pods_becomes_a_1_2_table(command_line: CommandLine) -> None:
    done = convert(command_line, super_pod_service(2, 16), "--instance", "3", "--to", "1.2")

    made = json.loads(done.out)
    assert (done.code, validate(made).verdict) == (0, "accepted")
    assert made["super_pod_list"] == [
        {"super_pod_id": "1", "server_list": [{"server_id": "10.0.0.3"}, {"server_id": "10.0.0.4"}]}
    ]
    assert made["server_list"][1]["device"][0]["super_device_id"] == "65536"


def test_the_super_pods_are_lost_in_1_0(command_line: CommandLine) -> None:
    done = convert(command_line, super_pod_service(2, 16), "--instance", "2", "--to", "1.0")

    assert "lost: 1 super pod: the servers in each\n" in done.err
    assert "super_device_id" not in done.out


def test_1_2_needs_super_pods(command_line: CommandLine) -> None:
    done = convert(command_line, table(SERVICE, 2, 8), "--instance", "2", "--to", "1.2")

    assert (done.code, done.out) == (1, "")
    assert "a 1.2 table needs each server's super pod" in done.sentence


def test_the_file_is_named_after_the_instance(command_line: CommandLine) -> None:
    name = command_line.write("t.json", single_servers())

    assert command_line("convert", name, "--instance", "2/192.168.3.2", "--to", "1.0").code == 0
    assert command_line.names == ["t.instance2-192.168.3.2.v1.0.json", "t.json"]


def test_an_instance_of_one_server_is_named_by_its_server(command_line: CommandLine) -> None:
    refused = convert(command_line, single_servers(), "--instance", "2", "--to", "1.0")
    by_pod = convert(command_line, single_servers(), "--instance", "2/192.168.3.2", "--to", "1.0")
    by_host = convert(command_line, single_servers(), "--instance", "2/10.0.0.2", "--to", "1.0")

    assert (refused.code, refused.sentence) == (1, "group 2 has 2 instances, one per server")
    assert "name a server: --instance 2/192.168.3.1" in refused.err
    assert by_pod.out == by_host.out
    assert [one["server_id"] for one in json.loads(by_pod.out)["server_list"]] == ["10.0.0.2"]


@pytest.mark.parametrize(
    ("instance", "sentence", "hint"),
    [
        ("7", "the service table has no instance 7", "its instances are 2, 3"),
        ("0", "the service table has no instance 0", "group 0 is the coordinator, which has no devices"),
        ("2/10.9.9.9", "group 2 has no server 10.9.9.9 that is an instance", "use --instance 2"),
    ],
)
def test_an_unknown_instance_is_refused(
    command_line: CommandLine, instance: str, sentence: str, hint: str
) -> None:
    done = convert(command_line, table(SERVICE), "--instance", instance, "--to", "1.0")

    assert (done.code, done.sentence) == (1, sentence)
    assert hint in done.err


def test_ranks_with_a_gap_are_refused_or_renumbered(command_line: CommandLine) -> None:
    value = changed(table(SERVICE, 1, 4), "2/server_list/0/device/0/rank_id", "9")

    refused = convert(command_line, value, "--instance", "2", "--to", "1.0")
    done = convert(command_line, value, "--instance", "2", "--to", "1.0", "--renumber")

    assert refused.code == 1
    assert refused.sentence == "group 2 has ranks 1-3,9; HCCL requires the ranks 0-3"
    assert "--renumber gives them new numbers" in refused.err
    assert "changed: ranks 1-3,9 became 0-3, in the order of the old ranks\n" in done.err
    (server,) = json.loads(done.out)["server_list"]
    assert [device["rank_id"] for device in server["device"]] == ["3", "0", "1", "2"]


def test_equal_ranks_are_numbered_in_the_order_of_the_file(command_line: CommandLine) -> None:
    value = omni_service(2, 2)
    for place in range(2):
        value = changed(value, f"0/server_list/1/device/{place}/rank_id", str(place))

    refused = convert(command_line, value, "--instance", "0", "--to", "1.0")
    done = convert(command_line, value, "--instance", "0", "--to", "1.0", "--renumber")

    assert (refused.code, "error[HCC723]" in refused.err) == (1, True)
    assert "changed: 4 devices with only 2 ranks became 0-3, in the order of the file\n" in done.err
    ranks = [device["rank_id"] for one in json.loads(done.out)["server_list"] for device in one["device"]]
    assert ranks == ["0", "1", "2", "3"]


def test_pods_on_one_host_become_one_server(command_line: CommandLine) -> None:
    value = changed(table(SERVICE, 2, 2), "2/server_list/1/server_id", "10.0.0.1")
    for place in range(2):
        value = changed(value, f"2/server_list/1/device/{place}/device_id", str(place + 2))

    done = convert(command_line, value, "--instance", "2", "--to", "1.0")

    assert done.code == 0
    assert "lost: the server_ip of 2 pods, which became 1 server\n" in done.err
    (server,) = json.loads(done.out)["server_list"]
    assert [device["rank_id"] for device in server["device"]] == ["0", "1", "2", "3"]
    assert "container_ip" not in server


def test_only_errors_of_the_instance_itself_matter(command_line: CommandLine) -> None:
    value = changed(table(SERVICE, 1, 2), "3/server_list/0/device/0/device_ip", "none")

    assert convert(command_line, value, "--instance", "2", "--to", "1.0").code == 0
    refused = convert(command_line, value, "--instance", "3", "--to", "1.0")
    assert (refused.code, refused.sentence) == (1, "t.json cannot be used")
    assert "error[HCC731]" in refused.err


def test_the_status_is_that_of_the_service_table(command_line: CommandLine) -> None:
    value = changed(table(SERVICE, 1, 2), "/status", "initializing")

    done = convert(command_line, value, "--instance", "2", "--to", "1.0")

    assert (done.code, json.loads(done.out)["status"]) == (0, "initializing")


def test_without_an_instance_the_hint_names_the_option(command_line: CommandLine) -> None:
    done = convert(command_line, table(SERVICE), "--to", "1.0")

    assert done.code == 1
    assert "`hccl-tools convert FILE --instance N --to 1.0`" in done.err


@pytest.mark.parametrize("target", ["2.0", "group_list"])
def test_other_formats_are_refused(command_line: CommandLine, target: str) -> None:
    done = convert(command_line, table(SERVICE), "--instance", "2", "--to", target)

    assert (done.code, done.sentence) == (2, f"--instance has no {target} table")


@pytest.mark.parametrize("value", [table("1.0"), "{", [], {"endpoint_list": []}])
def test_other_files_have_no_instances(command_line: CommandLine, value: Any) -> None:
    done = convert(command_line, value, "--instance", "2", "--to", "1.0")

    assert done.code == 2
    assert done.sentence == "--instance is for service tables (server_group_list), and t.json is none"


def test_a_config_map_has_service_tables_too(command_line: CommandLine) -> None:
    inner = json.dumps(table(SERVICE, 1, 2))
    config_map = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "global-ranktable"},
        "data": {"global_ranktable.json": inner},
    }  # fmt: skip

    done = convert(command_line, config_map, "--instance", "2", "--to", "1.0")

    assert (done.code, len(json.loads(done.out)["server_list"][0]["device"])) == (0, 2)


@given(damaged())
def test_a_sound_instance_of_random_json_has_a_valid_table(value: JSON) -> None:
    report = validate(value, limit=None)
    if not report.is_service or report.errors:
        return
    found = service.read(value)
    for instance in found.instances:
        try:
            made = instance_table.rank_table(found, instance, renumber=True).table
        except TableError:
            continue
        assert sorted(rank or 0 for rank in made.rank_numbers) == list(range(len(made)))
