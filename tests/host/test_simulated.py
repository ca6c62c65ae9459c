"""Simulated machines: the ids, addresses and subnets of a well set up machine of each product."""

from __future__ import annotations

import pytest

from hccl_tools.errors import UsageError
from hccl_tools.host import simulated
from hccl_tools.host.selection import Wanted
from hccl_tools.host.site_defaults import Site
from hccl_tools.host.survey import SurveyRequest, survey
from hccl_tools.table.products import PRODUCTS
from tests.support.hosts import IPS_910A


def ips(product: str, machine: int = 1) -> list[str]:
    return [",".join(device.ips) for device in simulated.devices(PRODUCTS[product], machine)]


def test_910a_is_the_guide_s_machine() -> None:
    assert ips("910a") == list(IPS_910A)


def test_910a_subnets() -> None:
    subnets = [ip.rsplit(".", 1)[0] for ip in ips("910a")]

    assert subnets[:4] == subnets[4:]
    assert len(set(subnets[:4])) == 4
    assert [ip.rsplit(".", 1)[0] for ip in ips("910a", 2)] == subnets


@pytest.mark.parametrize("product", ["910a", "a2", "a3", "300i"])
def test_addresses_are_unique_over_all_machines(product: str) -> None:
    everything = [ip for machine in range(1, simulated.MOST_MACHINES + 1) for ip in ips(product, machine)]

    assert len(set(everything)) == len(everything)
    assert all(0 < int(part) < 255 for ip in everything for part in ip.split("."))


def test_the_addresses_of_any_devices_are_those_of_one_product() -> None:
    """A table of one device names its product, too."""
    of_product = {
        name: {(device.device_id, device.ips) for device in simulated.devices(PRODUCTS[name])}
        for name in ("910a", "a2", "a3", "300i")
    }

    assert len(set().union(*of_product.values())) == sum(map(len, of_product.values()))


def test_a3_super_device_ids_are_the_driver_s() -> None:
    ids = [device.super_device_id for device in simulated.devices(PRODUCTS["a3"], 10)]

    assert (ids[0], ids[7]) == (37748736, 38600711)
    assert len(set(ids)) == 16


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("910a", ("910a", 1)), ("A2", ("a2", 1)), ("910a:2", ("910a", 2)), (" a3:70 ", ("a3", 70))],
)
def test_names(text: str, parsed: tuple[str, int]) -> None:
    product, machine = simulated.parse(text)

    assert (product.name, machine) == parsed


@pytest.mark.parametrize(
    "text", ["", "a3-server", "910a:", "910a:0", "910a:71", "910a:x", "910a:1:2", "910a:\u0663"]
)
def test_machines_that_are_not_known(text: str) -> None:
    with pytest.raises(UsageError, match="--simulate"):
        simulated.parse(text)


def test_nothing_of_this_host_shows() -> None:
    site = Site(
        environ={"ASCEND_VISIBLE_DEVICES": "9", "ASCEND_RT_VISIBLE_DEVICES": "0", "HCCL_TOOLS_PRODUCT": "a2"}
    )

    facts = survey(SurveyRequest(simulate="910a", site=site))

    assert len(facts.devices) == 8
    assert (facts.product, facts.product_source) == ("910a", "--simulate")
    assert facts.server_id == "127.0.0.1"
    assert "simulated" in facts.notes[0]


def test_devices_are_chosen_as_on_a_real_machine() -> None:
    facts = survey(
        SurveyRequest(
            Wanted(device_num="[0,4)", visible_devices="4,5,6,7"), server_ip="10.0.0.9", simulate="910a:2"
        )
    )

    assert [device.device_id for device in facts.devices] == [4, 5, 6, 7]
    assert facts.devices[0].ips == ("192.168.100.102",)
    assert facts.server_id == "10.0.0.9"
    with pytest.raises(UsageError, match="not among"):
        survey(SurveyRequest(Wanted(visible_devices="0,4"), product="300i", simulate="300i"))
    with pytest.raises(UsageError, match="--simulate a2 and --product a3 are different machines"):
        survey(SurveyRequest(product="a3", simulate="a2"))
