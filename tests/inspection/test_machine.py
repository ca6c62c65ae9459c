"""What is read of a host: its versions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hccl_tools.discover.site import Site
from hccl_tools.inspection import machine

if TYPE_CHECKING:
    from pathlib import Path

ARCH = f"{os.uname().machine}-linux"


@pytest.mark.parametrize(
    ("folder", "home"),
    [
        (f"/usr/local/Ascend/ascend-toolkit/latest/{ARCH}", ""),  # up to CANN 8.3
        (f"/usr/local/Ascend/cann/{ARCH}", ""),
        (f"/opt/cann/{ARCH}", "/opt/cann"),
        ("/usr/local/Ascend/cann", ""),
    ],
)
def test_the_version_of_cann(tmp_path: Path, folder: str, home: str) -> None:
    place = tmp_path / folder.lstrip("/")
    place.mkdir(parents=True)
    (place / "ascend_toolkit_install.info").write_text("package_name=Ascend-cann-toolkit\nversion=8.5.0\n")
    site = Site({"HCCL_TOOLS_ROOT": str(tmp_path), "ASCEND_HOME_PATH": home})

    assert machine.cann_version(site) == "8.5.0"
    assert machine.versions(site)["CANN"] == "8.5.0"


def test_a_host_without_cann(tmp_path: Path) -> None:
    assert set(machine.versions(Site({"HCCL_TOOLS_ROOT": str(tmp_path)}))) == {"python", "hccl-tools"}
