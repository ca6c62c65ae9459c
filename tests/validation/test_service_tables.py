"""``validate`` on service tables (server_group_list) of MindIE-Motor and omni-infer."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.diagnostics import FORMATS, render
from hccl_tools.errors import TableError
from hccl_tools.formats import schema, service
from hccl_tools.table.format_names import SERVICE
from hccl_tools.validation.checker import validate
from hccl_tools.validation.loading import load
from hccl_tools.validation.local_check import LocalCheck
from tests.support.tables import JSON, omni_service, super_pod_service, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hccl_tools.diagnostics.diagnostic import Report

#: A table of MindIE-Motor (A2), one with super pods (A3), and a merged one of omni-infer.
TABLES: dict[str, Callable[[int, int], JSON]] = {
    "a2": lambda servers, devices: table(SERVICE, servers, devices),
    "a3": super_pod_service,
    "omni": omni_service,
}
#: The group of the first instance, by table.
FIRST = {"a2": 2, "a3": 2, "omni": 0}
REMOVE = object()


def changed(value: JSON, path: str, new: Any) -> JSON:
    """Return a copy with another value at a path below the groups (``2/group_id``) or top (``/status``)."""
    copy = deepcopy(value)
    holder: Any = copy if path.startswith("/") else copy[SERVICE]
    *keys, last = [int(key) if key.isdecimal() else key for key in path.strip("/").split("/")]
    for key in keys:
        holder = holder[key]
    if new is REMOVE:
        del holder[last]
    else:
        holder[last] = new
    return copy


def ids(report: Report) -> list[str]:
    return sorted({finding.rule.id for finding in report.findings})


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("size", [(1, 1), (1, 8), (2, 8), (4, 2)])
def test_sound_tables_have_no_findings(name: str, size: tuple[int, int]) -> None:
    report = validate(TABLES[name](*size))

    assert (report.format, ids(report), report.verdict) == (SERVICE, [], "accepted")
    assert report.verdict_by == ("omni-infer" if name == "omni" else "MindIE-Motor")


DEVICE = "{}/server_list/0/device/0/"
SERVER = "{}/server_list/0/"
DAMAGES = [
    ("/status", "initializing", "HCC651"),
    ("/status", REMOVE, "HCC701"),
    ("/server_group_list", {}, "HCC702"),
    ("{}/group_id", "two", "HCC711"),
    ("{}/group_id", 2, "HCC702"),
    ("{}/server_count", "7", "HCC653"),
    (SERVER + "server_ip", "pod-0", "HCC731"),
    (SERVER + "server_id", REMOVE, "HCC715"),
    (SERVER + "device", [], "HCC703"),
    (DEVICE + "device_ip", "10.20.0.256", "HCC731"),
    (DEVICE + "device_id", "1", "HCC722"),
    (DEVICE + "device_id", "npu", "HCC721"),
    (DEVICE + "rank_id", "1", "HCC723"),
    (DEVICE + "rank_id", "9", "HCC655"),
    (DEVICE + "device_ip", "10.20.0.2", "HCC724"),
    (DEVICE + "rank_id", None, "HCC702"),
]
MOTOR_DAMAGES = [
    (DEVICE + "device_logical_id", REMOVE, "HCC715"),
    (DEVICE + "device_id", "2049", "HCC721"),
    (SERVER + "predict_port", "65536", "HCC732"),
    (SERVER + "metric_port", "80", "HCC732"),
    (SERVER + "inter_comm_port", "x", "HCC732"),
    ("3/server_list/0/server_ip", "192.168.3.1", "HCC716"),
    ("3/server_list/0/server_id", "10.0.0.1", "HCC656"),
    ("1/group_id", "0", "HCC712"),
    ("0", REMOVE, "HCC713"),
    ("2/deploy_server", "no", "HCC711"),
    ("/version", "2.0", "HCC652"),
]
A3_DAMAGES = [
    ("2/super_pod_list", REMOVE, "HCC741"),
    ("2/super_pod_list/0/server_list", [], "HCC741"),
    ("2/super_pod_list/0/server_list/0/server_id", "10.0.0.9", "HCC741"),
    ("2/super_pod_list/0/super_pod_id", 0, "HCC702"),
    ("2/super_pod_list/0", "pod", "HCC702"),
    (DEVICE + "super_device_id", REMOVE, "HCC741"),
    (DEVICE + "super_device_id", "1073741825", "HCC721"),
    (DEVICE + "super_device_id", 65537, "HCC702"),
]


@pytest.mark.parametrize(
    ("name", "path", "new", "rule"),
    [
        *((name, *damage) for name in TABLES for damage in DAMAGES),
        *((name, *damage) for name in ("a2", "a3") for damage in MOTOR_DAMAGES),
        *(("a3", *damage) for damage in A3_DAMAGES),
    ],
)
def test_a_damage_has_its_finding(name: str, path: str, new: Any, rule: str) -> None:
    value = changed(TABLES[name](1, 2), path.format(FIRST[name]), new)

    report = validate(json.dumps(value, indent=2).encode())

    assert rule in ids(report)


def test_uneven_servers_of_an_instance_are_named() -> None:
    value = changed(table(SERVICE, 2, 4), "2/server_list/1/device/3", REMOVE)

    assert ids(validate(value)) == ["HCC654"]


@pytest.mark.parametrize(
    ("path", "last", "first_bad"),
    [
        ("2/server_list/0/device/1/device_id", "2048", "2049"),
        ("2/server_list/0/device/1/device_logical_id", "2048", "2049"),
        ("2/server_list/0/device/1/super_device_id", "1073741824", "1073741825"),
        ("2/server_list/0/mgmt_port", "65535", "65536"),
        ("2/server_list/0/mgmt_port", "1024", "1023"),
        ("2/server_list/0/device/1/device_ip", "::1", "::"),
        ("2/server_list/0/server_ip", "0.0.0.1", "0.0.0.0"),
        ("2/server_list/0/server_ip", "fe80::1", "fe80::1%eth0"),
    ],
)
def test_a_limit_belongs_to_the_range(path: str, last: str, first_bad: str) -> None:
    assert ids(validate(changed(table(SERVICE, 1, 2), path, last))) == []
    assert validate(changed(table(SERVICE, 1, 2), path, first_bad)).verdict == "refused"


@pytest.mark.parametrize(("number", "found"), [(96, []), (97, ["HCC714"])])
def test_the_number_of_groups_is_limited(number: int, found: list[str]) -> None:
    value = table(SERVICE, 1, 1)
    model = value[SERVICE].pop()
    value[SERVICE].pop()
    for group in range(number):
        one = json.loads(
            json.dumps(model)
            .replace("10.0.0.2", f"10.0.1.{group}")
            .replace("192.168.3.2", f"192.168.4.{group}")
            .replace("10.20.1.1", f"10.20.2.{group}")
        )
        value[SERVICE].append({**one, "group_id": str(group + 2)})

    assert ids(validate(value)) == found


@pytest.mark.parametrize(("number", "found"), [(128, []), (129, ["HCC703"])])
def test_the_number_of_devices_is_limited(number: int, found: list[str]) -> None:
    assert ids(validate(table(SERVICE, 1, number))) == found


def test_the_number_of_coordinators_is_limited() -> None:
    two = [{"server_ip": "10.1.0.1"}, {"server_ip": "10.1.0.2"}]
    value = changed(table(SERVICE), "0/server_count", "2")

    assert ids(validate(changed(value, "0/server_list", two))) == []
    assert "HCC714" in ids(validate(changed(value, "0/server_list", [*two, {"server_ip": "10.1.0.3"}])))


def test_names_may_stand_for_the_hosts_of_coordinator_and_controller() -> None:
    value = changed(table(SERVICE), "0/server_list/0/server_id", "coordinator")

    assert ids(validate(changed(value, "1/server_list/0/server_id", "controller"))) == []


def single_servers() -> JSON:
    """Return a table with all instances in group 2: two servers, each with its own rank 0."""
    value = table(SERVICE, 1, 2)
    last = value[SERVICE].pop()
    value[SERVICE][2]["server_list"] += last["server_list"]
    value[SERVICE][2]["server_count"] = "2"
    return value


def test_in_a_lone_group_each_server_with_rank_0_is_an_instance() -> None:
    assert ids(validate(single_servers())) == []


def test_the_servers_of_a_lone_group_may_share_the_ranks() -> None:
    value = table(SERVICE, 2, 2)
    value[SERVICE].pop()

    assert ids(validate(value)) == []
    assert "HCC723" in ids(validate(changed(value, "2/server_list/1/device/1/rank_id", "1")))


def test_servers_on_one_host_need_different_ports() -> None:
    value = changed(single_servers(), "2/server_list/1/server_ip", "192.168.3.1")

    assert ids(validate(value)) == ["HCC716"]
    for key, port in zip(PORTS, ("2025", "2026", "2027", "2121"), strict=True):
        value = changed(value, f"2/server_list/1/{key}", port)
    assert ids(validate(value)) == []


def test_omni_infer_has_no_groups_with_a_meaning() -> None:
    value = omni_service(2, 4)
    scheduler = {
        "group_id": "0",
        "server_count": 1,
        "server_list": [{"server_id": "10.0.0.9", "server_ip": "10.0.0.9"}],
    }
    for number, group in enumerate(value[SERVICE]):
        group["group_id"] = str(number + 1)

    report = validate({**value, SERVICE: [scheduler, *value[SERVICE]]})

    assert (ids(report), report.verdict_by) == ([], "omni-infer")


def test_a_finding_has_a_line_and_a_column_and_the_service_s_reaction() -> None:
    value = changed(table(SERVICE, 1, 2), "2/server_list/0/device/1/rank_id", "0")
    report = validate(json.dumps(value, indent=1).encode())

    text = "".join(render([report], "text"))

    assert text.startswith("<bytes>: service table, as MindIE-Motor reads it\n")
    assert " = the service: accepts this; the job fails later\n" in text
    assert "first used at <bytes>:" in text
    assert "(/server_group_list/2/server_list/0/device/1/rank_id)" in text
    assert text.splitlines()[-1] == (
        "1 error: MindIE-Motor accepts this service table, but the job fails later; HCCL does not read it"
    )


@pytest.mark.parametrize("output", FORMATS)
def test_every_output_format_shows_a_service_table(output: str) -> None:
    value = changed(table(SERVICE, 1, 2), "2/server_list/0/mgmt_port", "80")

    assert "HCC732" in "".join(render([validate(json.dumps(value).encode())], output))


def test_text_after_the_table_is_refused() -> None:
    report = validate(json.dumps(table(SERVICE)).encode() + b" }")

    assert (ids(report), report.verdict) == (["HCC704"], "refused")


def test_several_damages_are_all_reported() -> None:
    value = changed(table(SERVICE, 2, 4), "2/server_list/0/device/0", 5)
    value = changed(value, "3/server_list/0/device/1/rank_id", "0")
    value = changed(value, "1/group_id", "0")

    assert {"HCC702", "HCC712", "HCC723"} <= set(ids(validate(value)))


def test_load_says_what_to_do_with_a_service_table(tmp_path: Path) -> None:
    file = tmp_path / "global_ranktable.json"
    file.write_text(json.dumps(table(SERVICE)))

    with pytest.raises(TableError, match="it is a service table") as caught:
        load(file)

    assert "--instance N" in (caught.value.hint or "")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "0", "1", "2", "10.0.0.1", "completed", "1.0", "1.2", "-1", "9" * 30]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [
                "version", "status", SERVICE, "group_id", "server_count", "deploy_server", "server_list",
                "server_id",
                "server_ip", "mgmt_port", "device", "device_id", "device_ip", "rank_id", "device_logical_id",
                "super_device_id", "super_pod_list", "super_pod_id",
            ]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> JSON:
    """Return a service table with random JSON in some places."""
    value: Any = {"root": TABLES[draw(st.sampled_from(list(TABLES)))](1, 2)}
    for _ in range(draw(st.integers(0, 3))):
        holder, key = value, "root"
        for _ in range(draw(st.integers(1, 8))):
            below = holder[key]
            keys: list[Any] = (
                list(range(len(below)))
                if isinstance(below, list)
                else list(below)
                if isinstance(below, dict)
                else []
            )
            if not keys:
                break
            holder, key = below, draw(st.sampled_from(keys))
        if holder is not value:
            holder[key] = draw(JUNK)
    root: JSON = value["root"]
    return root


@given(damaged() | JUNK.map(lambda junk: {SERVICE: junk}))
def test_random_json_makes_no_traceback(value: JSON) -> None:
    report = validate(json.dumps(value).encode())
    list(render([report], "text"))

    if report.is_service:
        violations = schema.Violations(value, SERVICE)
        assert service.is_well_formed(value, service.read(value)) == (not violations.kept)


def test_a_service_table_is_not_compared_with_this_host() -> None:
    check = LocalCheck()

    assert check.summary(check.validate(table(SERVICE))) == (
        "<object>: not compared with this host because it is a service table"
    )


def test_the_group_id_of_the_controller_in_the_only_instance_gets_a_free_number() -> None:
    value = table(SERVICE, 1, 8)
    copied = changed({**value, SERVICE: value[SERVICE][:3]}, "2/group_id", "1")

    report = validate(copied)

    assert report.reader == "MindIE-Motor"
    (one,) = report.errors
    assert 'group_id "1" is used twice' in one.message
    assert 'write "group_id": "2" in the group with devices' in (one.hint or "")
    assert report.verdict == "refused"


def test_a_copied_instance_gets_the_next_group_id() -> None:
    value = table(SERVICE, 2, 8)
    copied = changed(value, "3/group_id", "2")
    found = [one for one in validate(copied).findings if one.rule.id == "HCC712"]
    assert 'write "group_id": "3" in the second of the two' in (found[0].hint or "")


# Devices of two instances


def two_instances(host: str, first: int, address: int) -> Any:
    """Return a table of two instances, the second with four devices from a device and an address on."""
    value = table(SERVICE, 2, 4)
    groups = value["server_group_list"]
    second = deepcopy(groups[2])
    second["group_id"] = "3"
    second["server_list"] = second["server_list"][1:]
    groups[2]["server_list"] = groups[2]["server_list"][:1]
    for group in (groups[2], second):
        group["server_count"] = "1"
    (server,) = second["server_list"]
    server["server_id"] = host
    for number, device in enumerate(server["device"]):
        device["device_id"], device["device_ip"] = str(first + number), f"10.20.0.{address + number}"
        device["rank_id"] = str(number)
    del groups[3:]
    groups.append(second)
    return value


def test_an_instance_with_the_devices_of_another_one_is_one_finding() -> None:
    own = table(SERVICE, 1, 4)["server_group_list"][2]["server_list"][0]["device"][0]["device_ip"]
    report = validate(two_instances("10.0.0.1", 0, int(own.rpartition(".")[2])))

    (one,) = [found for found in report.findings if found.rule.id == "HCC656"]

    assert one.message == "devices 0-3 of 10.0.0.1 are in group 2 and group 3"
    assert (one.hint or "").startswith(
        "write in group 3 the device_id and the device_ip of other devices of 10.0.0.1 (no group has 4-7)"
    )


def test_an_instance_with_other_devices_needs_other_addresses() -> None:
    own = table(SERVICE, 1, 4)["server_group_list"][2]["server_list"][0]["device"][0]["device_ip"]
    report = validate(two_instances("10.0.0.1", 4, int(own.rpartition(".")[2])))

    (one,) = [found for found in report.findings if found.rule.id == "HCC656"]

    assert one.message.startswith(f'device_ip "{own}" and 3 other addresses of group 3 are in group 2 too')


def test_instances_with_their_own_devices_are_sound() -> None:
    assert "HCC656" not in ids(validate(two_instances("10.0.0.1", 4, 100)))


# Ports and logical ids of two instances on one host


PORTS = ("predict_port", "mgmt_port", "metric_port", "inter_comm_port")


def on_one_host(*ports: str) -> Any:
    """Return a table of two instances on one host, the second with other values of some ports."""
    value = two_instances("10.0.0.1", 4, 100)
    first, second = (group["server_list"][0] for group in value["server_group_list"][2:])
    second["server_ip"] = first["server_ip"]
    for number, key in enumerate(PORTS):
        first[key], second[key] = str(1025 + number), str((2025 if key in ports else 1025) + number)
    return value


def test_all_equal_ports_of_two_servers_are_named() -> None:
    (one,) = validate(on_one_host()).errors

    assert f"different values of all ports that are equal in both ({', '.join(PORTS)})" in (one.hint or "")


def test_ports_that_stay_equal_are_reported() -> None:
    report = validate(on_one_host("mgmt_port"))

    found = [one for one in report.findings if one.rule.id == "HCC657"]
    assert {one.path[-1] for one in found} == {*PORTS} - {"mgmt_port"}
    assert report.ok


def test_ports_of_their_own_are_sound() -> None:
    assert not {"HCC716", "HCC657"} & {*ids(validate(on_one_host(*PORTS)))}


def logical(first: int, second: int) -> Any:
    """Return two instances of devices 4-7 on two hosts, with device_logical_ids from these numbers on."""
    value = two_instances("10.0.0.2", 4, 100)
    for group, begin in zip(value["server_group_list"][2:], (first, second), strict=True):
        for place, device in enumerate(group["server_list"][0]["device"]):
            device["device_id"], device["device_logical_id"] = str(4 + place), str(begin + place)
    return value


def test_logical_ids_of_the_host_beside_those_of_a_pod_are_advice() -> None:
    report = validate(logical(0, 4))

    (one,) = [found for found in report.findings if found.rule.id == "HCC658"]
    assert one.path[:2] == ("server_group_list", 3)
    assert "write 0-3 as the device_logical_ids" in (one.hint or "")
    assert report.ok


@pytest.mark.parametrize("begins", [(0, 0), (4, 4)])
def test_logical_ids_of_one_kind_are_sound(begins: tuple[int, int]) -> None:
    assert "HCC658" not in ids(validate(logical(*begins)))


def test_addresses_that_are_counted_on_past_255_are_one_cause() -> None:
    value = table(SERVICE, 1, 8)
    for number, device in enumerate(value["server_group_list"][2]["server_list"][0]["device"]):
        device["device_ip"] = f"10.20.0.{252 + number}"

    found = [one for one in validate(value).findings if one.rule.id == "HCC731"]

    assert len({one.alike for one in found}) == 1
    assert all("counted on" in one.message for one in found)


@pytest.mark.parametrize("key", ["server_ip", "server_id"])
def test_two_addresses_in_one_text_are_named(key: str) -> None:
    value = table(SERVICE, 1, 2)
    value["server_group_list"][2]["server_list"][0][key] += " 172.17.0.1"

    (one,) = validate(value).errors

    assert "has 2 addresses: it must be one" in one.message


def test_the_devices_of_a_server_under_a_similar_key() -> None:
    value = table(SERVICE, 2, 4)
    server = value[SERVICE][3]["server_list"][0]
    server["devices"] = server.pop("device")

    (found,) = [one for one in validate(value).findings if one.rule.id == "HCC715"]

    assert "HCC654" not in {one.rule.id for one in validate(value).findings}
    assert found.message == 'a server of an instance has no device list, but "devices"'
    assert found.hint == 'rename it to "device"'


@pytest.mark.parametrize(("rank", "is_gap"), [(1 << 16, False), ((1 << 16) - 1, True)])
def test_a_rank_that_no_job_has_is_no_gap_in_the_ranks(rank: int, is_gap: bool) -> None:
    value = table(SERVICE, 1, 2)
    last = value["server_group_list"][-1]["server_list"][0]["device"][-1]
    last["rank_id"] = str(rank)

    found = {one.rule.id for one in validate(value).findings}

    assert ("HCC655" in found) == is_gap
    assert "HCC721" in found
