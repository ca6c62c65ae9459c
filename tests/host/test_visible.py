"""The real grammars of the two variables that say which devices there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import visible
from hccl_tools.host.site_defaults import Site

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("0", (0,)),
        ("1,3", (1, 3)),
        ("0-7", tuple(range(8))),
        ("0-2,4", (0, 1, 2, 4)),
        (" 5 , 4 ,4, 3-5 ", (3, 4, 5)),
        ("npu-1,npu-3", (1, 3)),
        ("Ascend910-1", (1,)),
        ("10,9", (9, 10)),
        ("128", (128,)),
    ],
)
def test_ascend_visible_devices(text: str, ids: tuple[int, ...]) -> None:
    assert visible.physical({"ASCEND_VISIBLE_DEVICES": text}) == ids


@pytest.mark.parametrize(
    "text", ["a", "1,,2", "3-1", "0-129", "129", "1-2-3", "-1", "0-99999999", "[0,4)", "npu-"]
)
def test_ascend_visible_devices_that_cannot_be_read(text: str) -> None:
    with pytest.raises(DiscoveryError, match="cannot read") as caught:
        visible.physical({"ASCEND_VISIBLE_DEVICES": text})
    assert f"ASCEND_VISIBLE_DEVICES={text}" in caught.value.message


def test_virtual_devices() -> None:
    options = {"ASCEND_RUNTIME_OPTIONS": "NODRV,VIRTUAL"}
    with pytest.raises(DiscoveryError, match="virtual NPUs"):
        visible.physical({"ASCEND_VISIBLE_DEVICES": "100", **options})
    assert visible.physical({"ASCEND_VISIBLE_DEVICES": "void", **options}) is None


def test_variables_that_are_not_set() -> None:
    assert visible.physical({}) is None
    assert visible.physical({"ASCEND_VISIBLE_DEVICES": " "}) is None
    assert visible.physical({"ASCEND_VISIBLE_DEVICES": "void"}) is None
    assert visible.logical({}) is None


def test_ascend_rt_visible_devices_keeps_its_order() -> None:
    assert visible.logical({"ASCEND_RT_VISIBLE_DEVICES": "3, 1,0"}) == (3, 1, 0)


@pytest.mark.parametrize("text", ["0-3", "1,1", "a", "1,", "npu-1"])
def test_ascend_rt_visible_devices_that_cannot_be_read(text: str) -> None:
    with pytest.raises(DiscoveryError, match="ASCEND_RT_VISIBLE_DEVICES="):
        visible.logical({"ASCEND_RT_VISIBLE_DEVICES": text})


def test_device_nodes_come_by_number(tmp_path: Path) -> None:
    for name in ("davinci0", "davinci10", "davinci2", "davinci_manager", "davinci1x", "davincix", "null"):
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / name).touch()

    assert visible.present(Site(environ={"HCCL_TOOLS_ROOT": str(tmp_path)})) == (0, 2, 10)
    assert visible.present(Site(environ={"HCCL_TOOLS_ROOT": str(tmp_path / "none")})) == ()
