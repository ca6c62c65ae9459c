"""An A3 machine's place in its super pod, through stand-in tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.host import simulated, super_pod
from hccl_tools.host.selection import Wanted
from hccl_tools.host.site_defaults import Site
from hccl_tools.host.survey import SurveyRequest, survey
from hccl_tools.table.products import PRODUCTS
from tests.support.hosts import StandInHost, make_host

if TYPE_CHECKING:
    from pathlib import Path


def a3(folder: Path, *, roce: bool = True, **differs: Any) -> StandInHost:
    """The simulated A3 machine 10, as its tools show it."""
    devices = {
        str(one.device_id): {"ip": one.ips[0] if roce else None, "sdid": one.super_device_id}
        for one in simulated.devices(PRODUCTS["a3"], 10)
    }
    described = {"product": "a3", "server_index": 9, "devices": devices, **differs}
    return make_host(folder / "host", described, nodes=range(16))


def facts_of(host: StandInHost, **options: Any) -> Any:
    return survey(SurveyRequest(server_ip="10.0.0.10", site=Site(environ=host.environ()), **options))


def test_the_simulated_machine_is_what_its_tools_show(tmp_path: Path) -> None:
    found = facts_of(a3(tmp_path))
    made_up = survey(SurveyRequest(simulate="a3:10", server_ip="10.0.0.10"))

    assert [one._replace(source="") for one in found.devices] == [
        one._replace(source="") for one in made_up.devices
    ]
    assert (found.product, found.super_pod_id, found.table_format) == ("a3", "0", "1.2")
    assert (made_up.product, made_up.super_pod_id, made_up.table_format) == ("a3", "0", "1.2")
    assert found.warnings == ()


def test_no_network_address_is_right_inside_a_super_pod(tmp_path: Path) -> None:
    found = facts_of(a3(tmp_path, roce=False))

    assert all(one.ips == () for one in found.devices)
    assert "no device has a network address" in found.warnings[0]
    assert "no ip was preset" in found.warnings[0]


def test_an_address_for_some_devices_only_is_an_error(tmp_path: Path) -> None:
    host = a3(tmp_path, roce=False)
    host.conf("address_0=192.168.10.6\n")

    with pytest.raises(DiscoveryError, match="no address for device 1"):
        facts_of(host)


def test_a_table_of_version_1_0_needs_no_npu_smi(tmp_path: Path) -> None:
    host = a3(tmp_path)
    (host.bin / "npu-smi").unlink()

    assert facts_of(host, table_format="1.0").super_pod_id is None
    with pytest.raises(DiscoveryError, match="no npu-smi found"):
        facts_of(host)


def test_one_super_device_id_for_two_devices(tmp_path: Path) -> None:
    host = a3(tmp_path, devices={str(n): {"ip": f"10.0.1.{n}", "sdid": 9 << 22} for n in range(16)})

    with pytest.raises(DiscoveryError, match="super_device_id 37748736 for devices 0 and 1"):
        facts_of(host)


def test_a_swapped_machine_is_a_warning(tmp_path: Path) -> None:
    found = facts_of(a3(tmp_path, server_index=3))

    assert "belongs to server index 9, npu-smi shows 3 (16 devices differ)" in found.warnings[0]


def test_a_device_that_npu_smi_does_not_know(tmp_path: Path) -> None:
    host = a3(tmp_path)

    with pytest.raises(DiscoveryError, match="no chip with physical id 20"):
        super_pod.find_super_pod([20], Site(environ=host.environ()))


def test_outside_super_pod_mode(tmp_path: Path) -> None:
    host = a3(tmp_path, devices={str(n): {"ip": f"10.0.1.{n}"} for n in range(16)})

    with pytest.raises(DiscoveryError, match="does not support querying spod-info") as caught:
        facts_of(host)
    assert "--format 1.0" in (caught.value.hint or "")
    assert facts_of(host, product="a3-server").table_format == "1.0"


def test_formats_a_product_does_not_take() -> None:
    with pytest.raises(UsageError, match=r"a5 does not use 1\.0 table"):
        survey(SurveyRequest(Wanted(devices="0"), "10.0.0.1", "a5", "a5", table_format="1.0"))
