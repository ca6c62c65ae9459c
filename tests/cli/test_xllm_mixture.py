"""xLLM's mixture of server_list and group_list[].server_list: what HCCL and xLLM read from it."""

from __future__ import annotations

import copy
import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.formats import StructureError, xllm
from hccl_tools.validation.checker import validate
from tests.support.growth import least
from tests.support.tables import JSON, table
from tests.validation.test_service_tables import JUNK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.commands import CommandLine

SERVERS = table("1.0", 2, 8)["server_list"]
HEAD = {"version": "1.0", "status": "completed"}
#: Both servers in groups; with a version, without, and the first one in server_list.
IN_GROUPS: JSON = {**HEAD, "group_list": [{"server_list": [server]} for server in SERVERS]}
WITHOUT_VERSION = {key: value for key, value in IN_GROUPS.items() if key != "version"}
MIXED: JSON = {**HEAD, "server_list": SERVERS[:1], "group_list": [{"server_list": SERVERS[1:]}]}


def advice(value: Any) -> list[str]:
    return [one.message for one in validate(value).findings if one.rule.id == "HCC661"]


@pytest.mark.parametrize(
    ("value", "by_hccl"),
    [(MIXED, "ranks 0-7"), (IN_GROUPS, "no rank"), (WITHOUT_VERSION, "no rank")],
)
def test_validate_says_what_each_reader_takes(value: JSON, by_hccl: str) -> None:
    expected = f"xLLM finds ranks 0-15 in server_list and group_list; HCCL reads {by_hccl}"

    assert advice(value) == [expected]


def test_the_verdict_stays_that_of_hccl() -> None:
    assert validate(MIXED).verdict == "accepted"
    assert validate(IN_GROUPS).verdict == "refused"


@pytest.mark.parametrize("value", [table("1.0"), table("group_list"), {**table("1.0"), "group_list": 5}])
def test_other_tables_are_no_mixture(value: JSON) -> None:
    assert advice(value) == []


@pytest.mark.parametrize("value", [MIXED, IN_GROUPS, WITHOUT_VERSION])
def test_convert_lists_all_servers(command_line: CommandLine, value: JSON) -> None:
    done = command_line("convert", command_line.write("t.json", value), "--to", "1.0", "-o", "-")

    assert (done.code, json.loads(done.out)["server_list"]) == (0, SERVERS)
    assert done.err == "read as by xLLM: the servers of server_list, then those of group_list\n"


def test_show_has_the_servers_that_xllm_finds_if_hccl_reads_none(command_line: CommandLine) -> None:
    done = command_line("show", command_line.write("t.json", IN_GROUPS))

    assert (done.code, "rank 15  device 7" in done.out) == (0, True)
    assert done.err == (
        "note: shown as read by xLLM, from server_list and group_list; HCCL does not read it\n"
    )


def test_show_has_the_servers_of_hccl_otherwise(command_line: CommandLine) -> None:
    done = command_line("show", command_line.write("t.json", MIXED))

    assert (done.code, "10.0.0.2" in done.out) == (0, False)
    assert done.err == "note: HCCL's servers are shown; xLLM also searches group_list\n"


def test_the_first_entry_of_a_rank_counts_and_a_number_is_a_rank() -> None:
    own: JSON = {"server_id": "10.0.0.1", "device": [{"device_id": "0", "rank_id": 0}]}
    again = {"server_id": "10.0.0.2", "device": [{"device_id": "5", "rank_id": "0"}]}
    more = {"server_id": "10.0.0.1", "device": [{"device_id": "1", "rank_id": "1"}]}

    read = xllm.read({**HEAD, "server_list": [own], "group_list": [{"server_list": [again, more]}]})

    assert [server.server_id for server in read.servers] == ["10.0.0.1"]
    assert (read.rank_ids, read.device_ids) == (["0", "1"], ["0", "1"])


@pytest.mark.parametrize("rank", ["01", " 1", "1a", -1, 1.0, True, None])
def test_xllm_compares_ranks_as_text(rank: Any) -> None:
    devices = [{"device_id": "0", "rank_id": "0"}, {"device_id": "1", "rank_id": rank}]
    value = {**HEAD, "group_list": [{"server_list": [{"server_id": "10.0.0.1", "device": devices}]}]}

    assert advice(value) == ["xLLM finds ranks 0 in server_list and group_list; HCCL reads no rank"]


#: A change of the last server in a group, and words of the finding on it.
DAMAGES: dict[str, tuple[Callable[[JSON], Any], str]] = {
    "a rank twice": (lambda one: one["device"][1].update(rank_id="8"), "(HCC203)"),
    "a rank of server_list": (
        lambda one: one["device"][0].update(rank_id="0"),
        "(HCC203)",
    ),
    "a rank that is not a number": (lambda one: one["device"][0].update(rank_id="x"), "(HCC201)"),
    "a rank with a zero": (
        lambda one: one["device"][0].update(rank_id="08"),
        "(HCC873)",
    ),
    "a gap": (
        lambda one: one["device"][7].update(rank_id="99"),
        "no device has rank 15 (HCC202)",
    ),
    "a device twice": (lambda one: one["device"][1].update(device_id="0"), "(HCC303)"),
    "a device that is not a number": (lambda one: one["device"][1].update(device_id="npu"), "(HCC301)"),
    "a number": (lambda one: one["device"][1].update(device_id=1), "(HCC112)"),
    "no address": (lambda one: one["device"][1].update(device_ip="10.20.0.256"), "(HCC403)"),
    "an address twice": (
        lambda one: one["device"][1].update(device_ip="192.168.1.100"),
        "is used twice (HCC404)",
    ),
    "a port": (lambda one: one["device"][1].update(device_port="70000"), "(HCC4"),
    "fewer devices": (lambda one: one["device"].pop(), "it does not list device 7 (HCC306)"),
    "no devices": (lambda one: one.pop("device"), '"device" is missing (HCC111)'),
    "no server_id": (lambda one: one.pop("server_id"), '"server_id" is missing (HCC111)'),
    "a name": (lambda one: one.update(server_id="node1"), "no address that other hosts reach (HCC872)"),
    "the host of server_list": (lambda one: one.update(server_id=SERVERS[0]["server_id"]), "(HCC303)"),
}


@pytest.mark.parametrize("value", [MIXED, IN_GROUPS, WITHOUT_VERSION])
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_in_a_group_has_its_finding(name: str, value: JSON) -> None:
    value = deepcopy(value)
    change, words = DAMAGES[name]
    change(value["group_list"][-1]["server_list"][0])

    report = validate(json.dumps(value, indent=1).encode())

    found = [one for one in report.findings if one.rule.id == "HCC876"]
    assert any(words in one.message for one in found), [one.message for one in found]
    assert {one.path[0] for one in found} == {"group_list"}
    assert {one.rule.reader for one in found} == {"xLLM"}
    assert report.verdict == ("accepted" if "server_list" in value else "refused")


def test_a_finding_in_a_group_has_its_line_and_the_verdict_its_reader(command_line: CommandLine) -> None:
    value = deepcopy(MIXED)
    value["group_list"][0]["server_list"][0]["device"][3]["rank_id"] = "0"

    done = command_line("validate", command_line.write("t.json", value), "--ignore", "HCC6")

    assert done.code == 1
    assert "(/group_list/0/server_list/0/device/3/rank_id)" in done.out
    assert "= xLLM: accepts this; the job fails later" in done.out
    assert done.out.splitlines()[-1] == "1 error: HCCL accepts this table, but xLLM does not"


def test_entries_that_repeat_a_server_are_no_damage() -> None:
    value = {**HEAD, "server_list": SERVERS, "group_list": [{"server_list": [server]} for server in SERVERS]}

    assert [one.rule.id for one in validate(value).errors] == []


def test_a_server_may_be_spread_over_groups() -> None:
    server = copy.deepcopy(SERVERS[1])
    halves = [{**server, "device": server["device"][half]} for half in (slice(0, 4), slice(4, 8))]
    value = {**HEAD, "server_list": SERVERS[:1], "group_list": [{"server_list": [one]} for one in halves]}

    assert [one.rule.id for one in validate(value).errors] == []

    value["group_list"][1]["server_list"][0]["device"][3]["rank_id"] = "8"
    (found,) = [one for one in validate(value).findings if "HCC203" in one.message]
    assert found.path == ("group_list", 1, "server_list", 0, "device", 3, "rank_id")


@pytest.mark.parametrize("junk", [5, None, "x", [], [5]])
def test_groups_and_servers_that_are_no_objects(junk: Any) -> None:
    in_list = validate({**MIXED, "group_list": [*MIXED["group_list"], junk]})
    in_group = validate({**HEAD, "server_list": SERVERS, "group_list": [{"server_list": [junk]}]})

    assert "HCC876" in {one.rule.id for one in in_list.findings}
    assert "HCC876" in {one.rule.id for one in in_group.findings}


@pytest.mark.slow
def test_many_groups_take_linear_time() -> None:
    def spent(groups: int) -> float:
        servers = table("1.0", groups, 8)["server_list"]
        value = {**HEAD, "group_list": [{"server_list": [server]} for server in servers]}
        data = json.dumps(value).encode()
        return least(lambda: validate(data))

    # 8 times in linear time, 64 times in quadratic time; a table of some hundred ranks takes a shorter way.
    assert spent(4096) < 32 * spent(512)


def test_a_damaged_mixture_is_refused_with_the_findings(command_line: CommandLine) -> None:
    value = {**HEAD, "group_list": [{"server_list": [{"server_id": "a", "device": [{"rank_id": "0"}]}]}]}

    done = command_line("convert", command_line.write("t.json", value), "--to", "1.0", "-o", "-")

    assert (done.code, "error[HCC111]" in done.err) == (1, True)
    assert command_line("show", "t.json").code == 1


@pytest.mark.parametrize("devices", [[None], [{"rank_id": 0}, 7], {"a": None}, {"0": {}}, "01"])
@pytest.mark.parametrize("named", [{}, {"server_id": 7}])
def test_devices_of_a_server_without_an_id_have_their_own_places(devices: Any, named: JSON) -> None:
    value = {**HEAD, "group_list": [{"server_list": [{**named, "device": devices}]}]}

    report = validate(json.dumps(value).encode())

    places = [one.path for one in report.findings if one.rule.id == "HCC876"]
    assert places
    assert all(place[:4] == ("group_list", 0, "server_list", 0) for place in places if len(place) > 1)


@given(
    JUNK, JUNK, st.lists(st.dictionaries(st.sampled_from(["server_list", "x"]), JUNK, max_size=2), max_size=3)
)
def test_random_json_makes_no_traceback(own: Any, head: Any, groups: Any) -> None:
    value = {"version": head, "server_list": own, "group_list": groups}
    validate(value)
    if xllm.is_mixture(value):
        try:
            xllm.read(value)
        except StructureError:
            return
