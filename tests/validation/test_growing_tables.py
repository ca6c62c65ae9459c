"""Tables of a shape that one rule looks at closely: four times the table takes about four times as long.

CPU time is measured here: no count of steps or calls shows what is quadratic within one call of C, such as
``list.index`` or the copy of a set.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import formats, validate
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.rules.address_order import first_in_text_order
from hccl_tools.rules.registry import Input, InputFacts, Subject
from hccl_tools.table.products import PRODUCTS
from tests.support.growth import least
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Each test takes a second or more.
pytestmark = pytest.mark.slow

#: How much longer four times the table may take, on a busy machine; with a quadratic rule it is up to 16.
MOST = 8


def address(number: int) -> str:
    return ".".join(map(str, (10 * 2**24 + number).to_bytes(4, "big")))


def of(ips: Sequence[Sequence[str]], names: Sequence[str] = (), devices: Sequence[int] = ()) -> Any:
    """Return a 1.0 table of servers with these device_ips."""
    value, rank = {**table("1.0", 1, 1), "server_count": str(len(ips)), "server_list": []}, 0
    for index, own in enumerate(ips):
        entries = []
        for place, text in enumerate(own):
            device = devices[place] if devices else place
            entries.append({"device_id": str(device), "device_ip": text, "rank_id": str(rank)})
            rank += 1
        server_id = names[index] if names else address(2**23 + index)
        value["server_list"].append({"server_id": server_id, "device": entries})
    return value


def own(servers: int, devices: int, first: int = 1) -> list[list[str]]:
    """Return device_ips in one row."""
    return [
        [address(first + server * devices + place) for place in range(devices)] for server in range(servers)
    ]


def with_addresses_of_the_server_before(size: int) -> Any:
    """Each second server has two addresses of the one before it."""
    ips = []
    for pair in range(size):
        right, wrong = ([address(32 * pair + first + place) for place in range(4)] for first in (1, 9))
        ips += [right, [*right[:2], *wrong[2:]]]
    return of(ips)


def with_addresses_of_the_first_server(size: int) -> Any:
    """Each server has two addresses of the first one, which has as many devices as there are servers."""
    (first,) = own(1, 2 * size)
    others = [[*first[2 * server : 2 * server + 2], *rest] for server, rest in enumerate(own(size, 2, 2**16))]
    return of([first, *others])


def of_one_server(size: int) -> Any:
    return of(own(1, 5 * size))


def of_two_servers(size: int) -> Any:
    return of(own(2, 3 * size))


def with_device_ids_that_occur_twice(size: int) -> Any:
    return of(own(1, 2 * size), devices=[*range(size), *range(size)])


def without_server_ids(size: int) -> Any:
    return of(own(2 * size, 2), names=[""] * (2 * size))


def with_server_ids_in_the_order_of_text(size: int) -> Any:
    return of(own(8 * size, 2), names=sorted(f"node{99_990 + number}" for number in range(8 * size)))


def with_one_instance_again(size: int) -> Any:
    """The instances of a group_list are copies of the first one, and the counts of the group count them."""
    value = table("group_list", 1, 4)
    (group,) = value["group_list"]
    group["instance_list"] *= 2 * size
    return {
        **value,
        "group_list": [{**group, "instance_count": str(2 * size), "device_count": str(8 * size)}],
    }


def with_a_group_for_each_instance(size: int) -> Any:
    """The groups of a group_list are copies of the first one."""
    value = table("group_list", 1, 2)
    return {**value, "group_count": str(2 * size), "group_list": value["group_list"] * (2 * size)}


def with_one_service_again(size: int) -> Any:
    """The groups of a service are copies of the first ones."""
    value = table("server_group_list", 1, 2)
    return {**value, "server_group_list": value["server_group_list"] * size}


def with_each_group_id_twice(size: int) -> Any:
    value = table("server_group_list", 1, 2)
    *_, group = value["server_group_list"]
    groups = [{**group, "group_id": str(number // 2)} for number in range(4 * size)]
    return {**value, "server_group_list": groups}


@pytest.mark.parametrize(
    "kind",
    [
        with_one_instance_again,
        with_a_group_for_each_instance,
        with_one_service_again,
        with_each_group_id_twice,
        with_addresses_of_the_server_before,
        with_addresses_of_the_first_server,
        of_one_server,
        of_two_servers,
        with_device_ids_that_occur_twice,
        without_server_ids,
        with_server_ids_in_the_order_of_text,
    ],
)
def test_four_times_the_table_is_about_four_times_the_time(kind: Callable[[int], Any]) -> None:
    small, large = (json.dumps(kind(size)).encode() for size in (500, 2000))
    validate(small, limit=20)  # what is loaded or compiled once

    assert least(lambda: validate(large, limit=20), 2) < MOST * least(lambda: validate(small, limit=20), 2)


def test_addresses_in_the_order_of_text_on_each_server_are_found_in_linear_time() -> None:
    texts = [
        [f"10.{number // 256}.{number % 256}.{last}" for last in (10, 11, 9)] for number in range(20_000)
    ]

    def spent(servers: int) -> float:
        read = formats.read(of(texts[:servers]))
        return least(lambda: first_in_text_order(Subject(Input(InputFacts(PRODUCTS["a2"])), read)), 2)

    assert spent(20_000) < MOST * spent(5_000)


@pytest.mark.parametrize("part", [b"\n", b"\r\n", b"data:\n\n", b"name: \n", b'data: {"a":\n', b" "])
@pytest.mark.parametrize("begin", [b"", b"data:", b"name:", b"name: a"])
def test_the_command_for_a_config_map_is_found_in_linear_time(begin: bytes, part: bytes) -> None:
    def spent(times: int) -> float:
        return least(lambda: config_maps.extraction(begin + part * times), 2)

    assert spent(40_000) < MOST * spent(10_000) + 0.02


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_names_of_a_config_map_are_read_with_either_end_of_lines(end: str) -> None:
    lines = ["metadata:", "  name: job-1  ", "  namespace: train", "data:", "", "  my.json: |", "    {}"]

    command = config_maps.extraction(end.join(lines).encode())

    assert command == "kubectl get configmap -n train job-1 -o jsonpath='{.data.my\\.json}' > my.json"
