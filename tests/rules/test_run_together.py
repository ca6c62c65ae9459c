"""Two servers whose devices are in one list: what was between them was lost."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from hccl_tools.rules.run_together import _usual
from hccl_tools.validation.checker import validate
from tests.support.growth import least
from tests.support.tables import table

LOST = 'write ] }, { "server_id": "...", "device": [ in place of the comma before entry'


def run_together(first: int, second: int, number: int = 4) -> Any:
    """Return servers of which the last two are one list: devices up to a number, and from another one on."""
    value: Any = table("1.0", number, 8)
    servers = value["server_list"]
    before, after = servers[number - 2 :]
    before["device"] = before["device"][:first] + after["device"][second:]
    del servers[number - 1]
    return value


def hints(value: Any, product: str) -> dict[str, str]:
    found = validate(json.dumps(value).encode(), product=product).findings
    return {one.rule.id: f"{one.message} | {one.hint}" for one in found}


@pytest.mark.parametrize("product", ["910a", "a2"])
@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_list_that_goes_up_twice_has_another_server(product: str, number: int) -> None:
    found = hints(run_together(6, 2, max(number, 3)), product)

    assert found.keys() == {"HCC501", "HCC202", "HCC303"}
    assert "lists devices 0-5 and then 2-7 with different addresses" in found["HCC303"]
    assert f"{LOST} 7 of the list" in found["HCC303"]
    assert "devices 6,7 of server" in found["HCC303"]
    assert "devices 0,1 of the other server" in found["HCC303"]
    for rule in ("HCC501", "HCC202"):
        assert "which are those of two servers (HCC303); server_count is then right" in found[rule]


def test_an_entry_with_the_rest_of_the_other_server_is_named() -> None:
    value = run_together(8, 1)
    device = value["server_list"][2]["device"][7]
    device["rank_id"], device["device_ip"] = "24", "192.168.3.100"

    found = hints(value, "a2")["HCC303"]

    assert "device 0 of the other server" in found
    assert 'device 7 of server 3 ("10.0.0.3") has the values of device 0 of the other server' in found


def test_ranks_of_two_servers_show_a_list_without_a_device_twice() -> None:
    found = hints(run_together(3, 3), "a2")

    assert found.keys() == {"HCC501", "HCC202"}
    assert f"{LOST} 4 of the list" in found["HCC501"]
    assert "devices 3,4,5,6,7 of server 3" in found["HCC501"]
    assert "(HCC501)" in found["HCC202"]


def test_whole_servers_that_are_lost_between_the_two_are_counted() -> None:
    value: Any = table("1.0", 5, 8)
    servers = value["server_list"]
    servers[1]["device"] = servers[1]["device"][:4] + servers[3]["device"][4:]
    del servers[2:4]

    found = hints(value, "a2")

    assert found.keys() == {"HCC501", "HCC202"}
    assert f"{LOST} 5 of the list" in found["HCC501"]
    assert 'devices 4,5,6,7 of server 2 ("10.0.0.2") and 1 whole server between the two' in found["HCC501"]
    assert found["HCC501"].endswith("server_count is then right")


def test_the_whole_devices_of_two_servers_are_parted() -> None:
    found = hints(run_together(8, 0), "910a")

    assert found.keys() == {"HCC501", "HCC303"}
    assert "part the devices of server 3" in found["HCC501"]


def test_a_single_device_that_is_twice_is_no_other_server() -> None:
    value: Any = table("1.0", 3, 8)
    value["server_list"][1]["device"][4]["device_id"] = "3"

    assert "two servers" not in " ".join(hints(value, "a2").values())


def test_the_usual_devices_of_many_different_servers_take_linear_time() -> None:
    orders = list(itertools.islice(itertools.permutations(range(8)), 8000))

    assert _usual(orders) is None
    assert least(lambda: _usual(orders)) < 20 * least(lambda: set(orders))
