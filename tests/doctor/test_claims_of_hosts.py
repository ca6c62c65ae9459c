"""What a host says about other hosts, or was not asked for, has no effect on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.doctor import ping_results
from hccl_tools.doctor.check_input import Case
from hccl_tools.doctor.registry import selection
from hccl_tools.doctor.run_checks import Job, examine
from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.host import hccl_variables, host_ports
from hccl_tools.host.observation import DeviceObservation, Observation, PingObservation
from hccl_tools.validation.checker import validate
from tests.support.growth import steps
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.doctor.findings import Examination

SOUND = Observation(names=("a",), devices=(DeviceObservation(0, ("192.168.1.1",)),))
LONG = "1" * 5000


def examined(hosts: Mapping[str, Observation], job: Job | None = None) -> Examination:
    return examine(hosts, job or Job(), selection((), (), ()))


def checks(hosts: Mapping[str, Observation], job: Job | None = None) -> set[tuple[str, tuple[str, ...]]]:
    return {(one.check, one.hosts) for one in examined(hosts, job).findings}


def answer(**fields: Any) -> SurveyAnswer:
    text = json.loads(SurveyAnswer("h1", seen=SOUND).to_json())
    text["seen"].update(fields)
    return SurveyAnswer.from_json(json.dumps(text), "h1")


def test_paths_that_were_not_asked_for_are_not_compared() -> None:
    other = SOUND._replace(code={"/train.py": "abc"}, data={"/data": "abc"})

    assert checks({"h1": other, "h2": SOUND}) == checks({"h1": SOUND, "h2": SOUND})
    asked = Job(code=("/train.py",), data=("/data",))
    assert {"HCD509", "HCD510"} <= {check for check, _ in checks({"h1": other, "h2": SOUND}, asked)}


def test_no_host_takes_the_name_of_another() -> None:
    read = validate(json.dumps(table("1.0", 3, 8)).encode()).table
    assert read is not None
    asked = [server.server_id for server in read.servers]
    cases = {host: Case(SOUND._replace(names=(), local_addresses=(host,))) for host in reversed(asked)}
    cases[asked[0]] = Case(SOUND._replace(names=(), local_addresses=tuple(asked)))

    assert ping_results.hosts_of_servers(read, cases) == asked


def test_an_address_that_two_hosts_claim_counts_for_none() -> None:
    read = validate(json.dumps(table("1.0", 2, 8)).encode()).table
    assert read is not None
    first, second = (server.server_id for server in read.servers)
    cases = {name: Case(SOUND._replace(local_addresses=(first,))) for name in ("x", "y")}

    assert ping_results.hosts_of_servers(read, cases | {second: Case(SOUND)}) == ["", second]


@pytest.mark.parametrize("vnic", ["-EVIL", "a b", "10.0.0.1;id", "10.0.0.1\0x"])
def test_a_place_in_a_super_pod_that_is_no_address_is_refused(vnic: str) -> None:
    devices = [{**SOUND.devices[0]._asdict(), "vnic": vnic}]

    assert answer(devices=devices).message.startswith(
        "the answer of h1 cannot be read: seen.devices[0]: vnic: "
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"kernel": {"local_ports": "32768-60999", "reserved_ports": "x"}},
        {"kernel": {"local_ports": "32768-60999", "reserved_ports": "0-999999999"}},
        {"kernel": {"local_ports": "32768-60999", "reserved_ports": f"{LONG}-{LONG}"}},
        {"closed_nodes": ["/dev/davinciX"]},
        {"variables": {"HCCL_CONNECT_TIMEOUT": LONG}},
        {"variables": {"HCCL_EXEC_TIMEOUT": LONG}},
        {
            "variables": {
                "RANK_TABLE_FILE": "a\0b",
                "ASCEND_RANK_TABLE_FILE_PATH": "c",
                "MINDX_RANK_TABLE": "d",
            }
        },
        {"versions": {"CANN": f"{LONG}.1"}, "kernel": {"local_ports": "32768-60999"}},
    ],
    ids=lambda fields: json.dumps(fields)[:60],
)
def test_a_strange_text_ends_in_no_traceback(fields: dict[str, Any]) -> None:
    seen = answer(**fields).seen
    assert seen is not None

    assert examined({"h1": seen, "h2": SOUND}).hosts == ("h1", "h2")


def test_an_address_of_the_table_on_two_hosts_is_a_fault() -> None:
    twice = {name: SOUND._replace(local_addresses=("10.0.0.3",)) for name in ("h1", "h3")}

    assert ("HCD511", ("h1", "h3")) in checks({**twice, "h2": SOUND._replace(local_addresses=("10.0.0.2",))})
    assert "HCD511" not in {check for check, _ in checks({"h1": twice["h1"], "h2": SOUND})}


@pytest.mark.parametrize(
    ("fields", "name", "what"),
    [({"names": ("a1",)}, "a1", "name"), ({"local_addresses": ("10.0.0.1",)}, "10.0.0.1", "address")],
)
def test_what_of_the_table_several_hosts_have_is_named(fields: dict[str, Any], name: str, what: str) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][0]["server_id"] = name
    job = Job(validate(json.dumps(value).encode()))

    found = examined(dict.fromkeys(("h1", "h2"), SOUND._replace(**fields)), job).findings

    (told,) = (one.message for one in found if one.check == "HCD511" and name in one.message)
    assert told == f"several hosts have the {what} {name} of the table"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("names", [f"n{number}" for number in range(65)]),
        ("local_addresses", [f"10.0.0.{number}" for number in range(257)]),
        ("interfaces", [f"eth{number}" for number in range(4097)]),
        ("devices", [{"device": number} for number in range(257)]),
    ],
)
def test_a_host_with_more_of_something_than_a_host_has_is_named_alone(field: str, value: list[Any]) -> None:
    refused, read = answer(**{field: value}), answer(**{field: value[:-1]})

    assert f"cannot be read: seen: {field}: there are {len(value)}, and a host has at most" in refused.message
    assert not read.has_failed


def super_pod_cases(**seen: tuple[str, ...]) -> tuple[Any, dict[str, Case]]:
    """Return a table of two servers of a super pod, and what their hosts say; ``seen``: the first one too."""
    read = validate(json.dumps(table("1.2", 2, 2)).encode()).table
    assert read is not None
    cases = {
        server.server_id: Case(
            SOUND._replace(
                names=(f"host{index}",),
                local_addresses=(server.server_id,),
                devices=tuple(DeviceObservation(device, vnic=f"10.1.{index}.{device}") for device in (0, 1)),
            )
        )
        for index, server in enumerate(read.servers)
    }
    first = next(iter(cases))
    before = cases[first].seen
    more: Any = {name: (*getattr(before, name), *values) for name, values in seen.items()}
    cases[first] = Case(before._replace(**more))
    return read, cases


def test_a_host_that_claims_the_names_of_another_is_not_taken_for_it() -> None:
    read, cases = super_pod_cases()
    honest = ping_results.servers_in_super_pods(read, cases, every=False)
    read, cases = super_pod_cases(names=("host1",), local_addresses=(read.servers[1].server_id,))
    claimed = ping_results.servers_in_super_pods(read, cases, every=False)

    assert [one.names for one in honest] == [
        (server.server_id, server.server_id, f"host{index}") for index, server in enumerate(read.servers)
    ]
    assert not set(claimed[0].names) & {"host1", read.servers[1].server_id}


def test_a_host_with_many_names_has_a_few_in_a_request() -> None:
    read, cases = super_pod_cases(names=tuple(f"name{number}" for number in range(60)))

    assert len(ping_results.servers_in_super_pods(read, cases, every=False)[0].names) < 12


def test_reserved_ports_are_looked_at_once() -> None:
    text = ",".join(["0-65535"] * 8000)

    assert host_ports.unreserved(range(60000, 60016), text) == ()
    assert host_ports.with_reserved([70], "8080,9100-9101,9101,9100-9102") == "70,8080,9100-9102"


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("eth", ["eth0", "eth1"]),
        ("=eth0", ["eth0"]),
        ("=eth", []),
        ("^eth", ["bond0"]),
        ("^=eth0", ["eth1", "bond0"]),
        ("eth1,bond", ["eth1", "bond0"]),
        ("", ["eth0", "eth1", "bond0"]),
        ("eth00", []),
    ],
)
def test_interfaces_that_a_value_chooses(value: str, chosen: list[str]) -> None:
    assert hccl_variables.matching(value, ["eth0", "eth1", "bond0"]) == chosen


def test_many_names_and_interfaces_take_linear_time() -> None:
    def taken(number: int) -> int:
        names = ",".join(f"e{one}" for one in range(number))
        interfaces = [f"x{one}" for one in range(number)]
        return steps(lambda: hccl_variables.matching(names, interfaces))

    assert taken(2000) < 8 * taken(500)  # the square would be 16


def test_an_address_among_the_names_of_another_host_takes_nothing_from_its_own() -> None:
    read = validate(json.dumps(table("1.0", 3, 8)).encode()).table
    assert read is not None
    asked = [server.server_id for server in read.servers]
    cases = {
        f"node{index}": Case(SOUND._replace(names=(f"node{index}",), local_addresses=(address,)))
        for index, address in enumerate(asked)
    }
    liar = cases["node0"].seen
    cases["node0"] = Case(liar._replace(names=("node0", *asked[1:])))

    assert ping_results.hosts_of_servers(read, cases) == ["node0", "node1", "node2"]


def test_a_name_of_the_table_on_two_hosts_is_a_fault() -> None:
    value = table("1.0", 2, 8)
    for index, server in enumerate(value["server_list"]):
        server["server_id"] = f"node{index}"
    job = Job(report=validate(json.dumps(value).encode()))
    honest = {f"10.0.0.{index}": SOUND._replace(names=(f"node{index}",)) for index in range(2)}
    lying = {**honest, "10.0.0.0": SOUND._replace(names=("node0", "node1"))}

    assert {"HCC552", "HCD511"} <= {check for check, _ in checks(lying, job)}
    assert not {"HCC552", "HCD511"} & {check for check, _ in checks(honest, job)}


def test_pings_of_devices_that_the_table_does_not_have_do_not_count() -> None:
    read = validate(json.dumps(table("1.0", 2, 8)).encode()).table
    assert read is not None
    first, second = (server.server_id for server in read.servers)
    address = read.device_ips[8]
    pings = tuple(PingObservation(device, address, 3, 3) for device in (0, 7, 8, 100, 60_000))
    cases = {first: Case(SOUND._replace(pings=pings)), second: Case(SOUND)}

    assert [one.device for one in ping_results.measured(read, cases)] == [0, 7]
