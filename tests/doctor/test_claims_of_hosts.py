"""What a host says about other hosts, or was not asked for, has no effect on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.doctor import ways
from hccl_tools.doctor.case import Case
from hccl_tools.doctor.examining import Job, examine
from hccl_tools.doctor.registry import selection
from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.inspection.observation import DeviceObservation, Observation
from hccl_tools.validation.checker import validate
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

    assert ways.hosts_of_servers(read, cases) == asked


def test_an_address_that_two_hosts_claim_counts_for_none() -> None:
    read = validate(json.dumps(table("1.0", 2, 8)).encode()).table
    assert read is not None
    first, second = (server.server_id for server in read.servers)
    cases = {name: Case(SOUND._replace(local_addresses=(first,))) for name in ("x", "y")}

    assert ways.hosts_of_servers(read, cases | {second: Case(SOUND)}) == ["", second]


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
