"""A spare takes a failed server's place: only what differs changes, and only where both are alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools import formats
from hccl_tools.document.document import Document
from hccl_tools.errors import TableError
from hccl_tools.host.survey import SurveyRequest, survey
from hccl_tools.transform import generation
from hccl_tools.transform.merging import merge
from hccl_tools.transform.replacement import Replacement, apply_edits, differences, replace_server
from hccl_tools.validation.checker import validate
from tests.support.clusters import devices_of, host, host_table, tables

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable

FORMATS = ("1.0", "1.2", "2.0", "group_list")


def cluster(*numbers: int, table_format: str = "1.0") -> str:
    table = merge([(str(number), host_table(number, table_format)) for number in numbers]).table
    return "".join(formats.write(table))


def replaced(text: str, server_id: str, spare: dict[str, Any]) -> Replacement:
    return replace_server(Document.parse(text.encode(), "job.json"), server_id, formats.read(spare))


def name_of(number: int, table_format: str) -> str:
    return f"node{number}" if table_format == "2.0" else f"10.1.0.{number}"


@pytest.mark.parametrize("table_format", FORMATS)
def test_the_ranks_go_to_the_spare(table_format: str) -> None:
    text = cluster(1, 2, table_format=table_format)

    done = replaced(text, name_of(2, table_format), host(3, table_format))

    assert [server.server_id for server in done.table.servers] == [
        name_of(1, table_format),
        name_of(3, table_format),
    ]
    assert done.table.rank_numbers == list(range(16))
    assert done.table == formats.read(json.loads(done.data))
    assert validate(done.data).ok
    assert done.data.decode() == cluster(1, 3, table_format=table_format)


def test_everything_else_stays_byte_for_byte() -> None:
    text = (
        cluster(1, 2, 3).replace('"10.1.0.1"', '"10.1.0.1"   ').replace('"rank_id": "9"', '"rank_id":\t"9"')
    )
    text = '{"IsMindIEEPJob": true,' + text[1:]

    done = replaced(text, "10.1.0.2", host(7))

    old, new = text.splitlines(), done.data.decode().splitlines()
    assert len(old) == len(new)
    changed = [(one, other) for one, other in zip(old, new, strict=True) if one != other]
    assert len(changed) == 9
    assert all(
        one.replace("10.1.0.2", "10.1.0.7").replace("192.168.2.", "192.168.7.") == other
        for one, other in changed
    )


def test_it_says_what_changed() -> None:
    done = replaced(cluster(1, 2), "10.1.0.2", host(7))

    assert done.changes[:2] == [
        "10.1.0.2 becomes 10.1.0.7: ranks 8 to 15",
        "rank 8: device 0 192.168.2.100 becomes device 0 192.168.7.100",
    ]
    assert len(done.changes) == 9


def test_the_device_order_stays() -> None:
    value = json.loads(cluster(1, 2))
    entry = value["server_list"][1]
    entry["device"].reverse()
    for place, device in enumerate(entry["device"]):
        device["rank_id"] = str(8 + place)

    done = replaced(json.dumps(value), "10.1.0.2", host(7))

    assert done.table.device_ids[8:] == [str(number) for number in range(7, -1, -1)]
    assert done.table.device_ips[8] == "192.168.7.107"
    assert [change.partition(":")[0] for change in done.changes[1:]] == [
        f"rank {rank}" for rank in range(8, 16)
    ]


def test_other_device_ids_take_their_places_in_ascending_order() -> None:
    spare = host(7)
    spare["server_list"][0]["device"] = spare["server_list"][0]["device"][4:]
    value = host(1, devices=4)

    done = replaced(json.dumps(value), "10.1.0.1", spare)

    assert done.table.device_ids == ["4", "5", "6", "7"]
    assert done.table.device_ips[0] == "192.168.7.104"


def test_super_pods_and_clusters_follow() -> None:
    value = json.loads(cluster(1, 2, table_format="1.2"))
    value["super_pod_list"][0]["note"] = "x"

    done = replaced(json.dumps(value), "10.1.0.2", host(7, "1.2"))

    assert [pod.server_ids for pod in done.table.super_pods or ()] == [["10.1.0.1", "10.1.0.7"]]
    assert done.table.columns["super_device_id"][8] == str(7 * 65536)


def test_clusters_follow() -> None:
    value = json.loads(cluster(1, 2))
    servers = [{"server_id": "10.1.0.1"}, {"server_id": "10.1.0.2"}]
    value["cluster_list"] = [
        {"cluster_id": "c", "network_type": "ROCE", "az_id": "a", "server_list": servers}
    ]

    done = replaced(json.dumps(value), "10.1.0.2", host(7))

    assert done.table.fields["cluster_list"][0]["server_list"][1] == {"server_id": "10.1.0.7"}


def test_a_host_ip_that_names_the_server_follows() -> None:
    value = host(1)
    value["server_list"][0] |= {"host_ip": "10.1.0.1", "container_ip": "10.1.0.1"}

    done = replaced(json.dumps(value), "10.1.0.1", host(7))

    assert done.table.servers[0].host_ip == "10.1.0.7"
    assert done.table.servers[0].fields["container_ip"] == "10.1.0.7"


def test_the_same_server_with_a_new_board() -> None:
    spare = host(1)
    spare["server_list"][0]["device"][3]["device_ip"] = "192.168.1.203"

    done = replaced(cluster(1, 2), "10.1.0.1", spare)

    assert done.table.device_ips[3] == "192.168.1.203"
    assert done.table.device_ips[2] == "192.168.1.102"


def refusal(text: str, server_id: str, spare: dict[str, Any]) -> str:
    with pytest.raises(TableError) as caught:
        replaced(text, server_id, spare)
    assert caught.value.hint
    return caught.value.message


def two_servers(table_format: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(cluster(8, 9, table_format=table_format))
    return value


@pytest.mark.parametrize(("number", "is_named"), [(1024, True), (1025, False)])
def test_the_server_that_was_meant_is_named_among_up_to_1024(number: int, is_named: bool) -> None:
    value = host(1)
    (entry,) = value["server_list"]
    names = ["train-node", *(f"10.1.{place >> 8}.{place & 255}" for place in range(1, number))]
    value["server_list"] = [{**entry, "server_id": name, "device": entry["device"][:1]} for name in names]

    with pytest.raises(TableError) as caught:
        replaced(json.dumps(value), "train-nod", host(7))

    assert caught.value.hint is not None
    assert caught.value.hint.startswith(
        'did you mean "train-node"? its servers are' if is_named else "its servers"
    )


def test_unlike_spares() -> None:
    text = cluster(1, 2)
    other_pod = host(7, "1.2")
    other_pod["super_pod_list"][0]["super_pod_id"] = "1"
    no_pod = host(7, "1.2")
    del no_pod["super_pod_list"]
    v6 = host(7)
    for device in v6["server_list"][0]["device"]:
        device["device_ip"] = f"fd00::{device['device_id']}"

    assert refusal(text, "10.1.0.9", host(7)) == 'the table has no server "10.1.0.9"'
    assert (
        refusal(text, "10.1.0.2", host(7, "1.2"))
        == "the spare's table has format 1.2, this table has format 1.0"
    )
    assert refusal(text, "10.1.0.2", two_servers("1.0")) == "the spare's table has 2 servers, not one"
    assert refusal(text, "10.1.0.2", host(1)) == "the spare 10.1.0.1 is already in the table"
    assert refusal(text, "10.1.0.2", host(7, devices=4)) == "the spare 10.1.0.7 has 4 devices, 10.1.0.2 has 8"
    assert "are of different families, IPv4 and IPv6" in refusal(text, "10.1.0.2", v6)
    pods = cluster(1, 2, table_format="1.2")
    assert refusal(pods, "10.1.0.2", other_pod) == (
        "the spare 10.1.0.7 is in super pod 1, 10.1.0.2 is in super pod 0"
    )
    assert (
        refusal(pods, "10.1.0.2", no_pod)
        == "the spare 10.1.0.7 is in no super pod, 10.1.0.2 is in super pod 0"
    )


def test_a_spare_of_another_product() -> None:
    value, spare = host(1), host(7)
    value["server_list"][0]["hardware_type"], spare["server_list"][0]["hardware_type"] = "A2", "A3"

    assert refusal(json.dumps(value), "10.1.0.1", spare) == (
        "the spare 10.1.0.7 is another product: hardware_type is A3, not A2"
    )


def test_a_spare_whose_table_says_too_little() -> None:
    value, spare = host(1), host(7)
    value["server_list"][0]["host_ip"] = "10.9.9.9"
    assert refusal(json.dumps(value), "10.1.0.1", spare) == "the spare's table has no host_ip for 10.1.0.7"

    del spare["server_list"][0]["device"][0]["device_ip"]
    assert refusal(cluster(1, 2), "10.1.0.2", spare) == "the spare's table has no device_ip for device 0"


def test_the_upper_networks_of_a_2_0_spare() -> None:
    value, spare = host(1, "2.0"), host(7, "2.0")
    for rack, table in enumerate((value, spare)):
        for entry in table["rank_list"]:
            level = json.loads(json.dumps(entry["level_list"][0]))
            entry["level_list"].append(
                {**level, "net_layer": 1, "net_instance_id": f"pod{rack}", "net_type": "CLOS"}
            )

    assert (
        refusal(json.dumps(value), "node1", spare)
        == "the spare node7 is in super pod pod1, node1 is in super pod pod0"
    )


def test_a_group_list_whose_ranks_would_move() -> None:
    text = cluster(1, 2, table_format="group_list")

    assert refusal(text, "10.1.0.1", host(7, "group_list")) == (
        "ranks would change: HCCL numbers a group_list by server_id, and 10.1.0.7 is elsewhere in that order"
    )


@given(tables(), st.data())
def test_there_and_back_is_the_same_file(table: RankTable, data: st.DataObject) -> None:
    text = "".join(formats.write(table))
    number = data.draw(st.integers(0, len(table.servers) - 1))
    failed = table.servers[number]
    alone = json.loads(text)["server_list"][number]
    spare = {"version": "1.0", "status": "completed", "server_list": [{**alone, "server_id": "10.9.9.9"}]}

    there = replaced(text, failed.server_id, spare)
    back = replaced(there.data.decode(), "10.9.9.9", {**spare, "server_list": [alone]})

    assert {one[1:] for one in devices_of(there.table)} == {one[1:] for one in devices_of(table)}
    assert back.data.decode() == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON, JSON)
def test_differences_put_in_give_the_other_value(old: object, new: object) -> None:
    document = Document.parse(json.dumps([old, "é"], ensure_ascii=False).encode(), "x")

    data = apply_edits(document, list(differences((0,), old, new)))

    assert json.loads(data) == [new, "é"]


def simulated(product: str, number: int) -> RankTable:
    """Return the table of a simulated machine, 10.1.0.``number``."""
    facts = survey(SurveyRequest(simulate=f"{product}:{number}", server_ip=f"10.1.0.{number}"))
    return generation.table([facts], table_format="1.0")


def test_a_spare_whose_networks_are_those_of_another_product_is_warned_of() -> None:
    job = merge([("1", simulated("910a", 1)), ("2", simulated("910a", 2))]).table
    document = Document.parse("".join(formats.write(job)).encode(), "job.json")

    other = replace_server(document, "10.1.0.2", simulated("a2", 7)).changes[-1]
    assert other.startswith("warning: the device addresses of the spare 10.1.0.7 are in 1 network (/24)")
    assert "the addresses of 10.1.0.2 in 4: check that both are the same product" in other
    same = replace_server(document, "10.1.0.2", simulated("910a", 7)).changes
    assert not any("warning" in line for line in same)
