"""``npu-smi``'s tables by header, product by product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import host, npu_smi
from hccl_tools.host.npu_smi import Chip, SuperPodPlace
from hccl_tools.host.site_defaults import Site
from tests.support.hosts import StandInHost, make_host

if TYPE_CHECKING:
    from pathlib import Path

PRODUCTS = {"910a": 8, "a2": 8, "a3": 16, "300i": 4, "a5": 8}


def machine(folder: Path, product: str, **more: Any) -> StandInHost:
    devices = {str(device): {"sdid": 9 << 22 | device} for device in range(PRODUCTS[product])}
    return make_host(folder / "host", **{"product": product, "devices": devices, **more})


def tool(stand_in: StandInHost) -> tuple[str, Site]:
    site = Site(environ=stand_in.environ())
    found = npu_smi.find_npu_smi(site)
    assert found is not None
    return found, site


def test_mapping_of_each_product(tmp_path: Path) -> None:
    chips = {product: npu_smi.chips(*tool(machine(tmp_path / product, product))) for product in PRODUCTS}

    assert {product: len(found) for product, found in chips.items()} == PRODUCTS
    assert chips["910a"][7] == Chip(7, 0, 7, None, "Ascend 910A")
    assert chips["a2"][1] == Chip(1, 0, 1, None, "Ascend 910B3")
    assert chips["a3"][3] == Chip(1, 1, 3, 3, "Ascend910")
    assert chips["a5"][2] == Chip(2, 0, None, 2, "Ascend950PR")
    assert chips["300i"][3] == Chip(1, 1, 3, None, "Ascend 310P3")


def test_a_table_as_an_a3_host_printed_it() -> None:
    text = (
        "\tNPU ID                         Chip ID                        Chip Logic ID                  "
        "Chip Phy-ID                    Chip Name\n"
        "\t0                              0                              0                              "
        "0                              Ascend910\n"
        "\t0                              2                              -                              "
        "-                              Mcu\n"
        "\t2944                           0                              2                              "
        "5                              Ascend910\n"
    )

    assert npu_smi.parse_mapping(text) == [Chip(0, 0, 0, 0, "Ascend910"), Chip(2944, 0, 2, 5, "Ascend910")]
    assert npu_smi.parse_mapping("") == []


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("tools", [("npu-smi",), ("lspci",), ("npu-smi", "lspci")])
def test_the_product_by_either_tool(tmp_path: Path, product: str, tools: tuple[str, ...]) -> None:
    stand_in = machine(tmp_path, product, tools=tools)

    found = host.find_product(Site(environ=stand_in.environ()))

    assert found[0] == product
    assert tools[-1] in found[1]


def test_the_kernel_s_list_needs_no_tool(tmp_path: Path) -> None:
    slot = tmp_path / "sys/bus/pci/devices/0000:3d:00.0"
    slot.mkdir(parents=True)
    (slot / "vendor").write_text("0x19e5\n")
    (slot / "device").write_text("0xd802\n")

    assert host.product_of_cards(Site(environ={"HCCL_TOOLS_ROOT": str(tmp_path), "PATH": ""})) == (
        "a2", "/sys/bus/pci: device d802",
    )  # fmt: skip


def test_cards_of_two_products_are_an_error(tmp_path: Path) -> None:
    lines = "".join(
        f"{slot}:00.0 Processing accelerators: Huawei Technologies Co., Ltd. Device {card} (rev 20)\n"
        for slot, card in (("3d", "d802"), ("3e", "d500"))
    )
    stand_in = make_host(tmp_path / "host", answers={"lspci": {"stdout": lines}})

    with pytest.raises(DiscoveryError, match="d500, d802"):
        host.find_product(Site(environ=stand_in.environ()))


@pytest.mark.parametrize("name", ["Ascend 910B1", "Ascend 910B4", "Ascend 910B2C", "Ascend910B4-1"])
def test_chip_names_of_a2(name: str) -> None:
    assert npu_smi.product_of(Chip(0, 0, 0, None, name)) == "a2"


def test_a_name_that_tells_nothing() -> None:
    assert npu_smi.product_of(Chip(0, 0, 0, None, "Ascend910")) is None
    assert npu_smi.product_of(Chip(0, 0, 0, None, "Ascend 310")) is None


def test_no_tool_no_product(tmp_path: Path) -> None:
    found = host.find_product(Site(environ=make_host(tmp_path / "host", tools=()).environ()))

    assert found == (None, "neither lspci nor npu-smi shows the product")


def test_the_place_in_a_super_pod(tmp_path: Path) -> None:
    path, site = tool(machine(tmp_path, "a3", server_index=40))

    assert npu_smi.super_pod_place(path, 1, 1, site) == SuperPodPlace(9 << 22 | 3, 384, 0, 40)


def test_no_super_pod(tmp_path: Path) -> None:
    path, site = tool(machine(tmp_path, "a5", devices={"0": {}}))

    with pytest.raises(DiscoveryError, match="does not support querying spod-info"):
        npu_smi.super_pod_place(path, 0, 0, site)


def test_a_tool_that_fails_is_quoted(tmp_path: Path) -> None:
    answer = {"stderr": "dcmi module initialize failed. ret is -8005\n", "status": 1}
    stand_in = machine(tmp_path, "910a", answers={"npu-smi info -m": answer})
    path, site = tool(stand_in)

    with pytest.raises(DiscoveryError, match="dcmi module initialize failed"):
        npu_smi.chips(path, site)
    (stand_in.bin / "lspci").unlink()
    product, reason = host.find_product(site)
    assert product is None
    assert "dcmi module initialize failed" in reason
