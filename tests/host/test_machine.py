"""What is read of a host: its versions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hccl_tools.host import machine, observing, table_copies
from hccl_tools.host.site_defaults import Site

if TYPE_CHECKING:
    from pathlib import Path

ARCH = f"{os.uname().machine}-linux"


@pytest.mark.parametrize(
    ("folder", "home"),
    [
        (f"/usr/local/Ascend/ascend-toolkit/latest/{ARCH}", ""),  # up to CANN 8.3
        (f"/usr/local/Ascend/cann/{ARCH}", ""),
        ("/usr/local/Ascend/ascend-toolkit/latest/other-linux", ""),
        ("/usr/local/Ascend/cann/other-linux", ""),
        ("/home/ann/Ascend/ascend-toolkit/latest/other-linux", ""),
        (f"/opt/cann/{ARCH}", "/opt/cann"),
        ("/usr/local/Ascend/cann", ""),
    ],
)
def test_the_version_of_cann(tmp_path: Path, folder: str, home: str) -> None:
    place = tmp_path / folder.lstrip("/")
    place.mkdir(parents=True)
    (place / "ascend_toolkit_install.info").write_text("package_name=Ascend-cann-toolkit\nversion=8.5.0\n")
    site = Site({"HCCL_TOOLS_ROOT": str(tmp_path), "ASCEND_HOME_PATH": home, "HOME": "/home/ann"})

    assert machine.cann_version(site) == "8.5.0"
    assert machine.versions(site)["CANN"] == "8.5.0"


def test_a_host_without_cann(tmp_path: Path) -> None:
    assert set(machine.versions(Site({"HCCL_TOOLS_ROOT": str(tmp_path)}))) == {"python", "hccl-tools"}


def test_this_hosts_own_architecture_is_first(tmp_path: Path) -> None:
    for folder, version in ((ARCH, "8.5.0"), ("a-linux", "8.2.RC1"), ("z-linux", "8.2.RC1")):
        place = tmp_path / "usr/local/Ascend/cann" / folder
        place.mkdir(parents=True)
        (place / "ascend_toolkit_install.info").write_text(f"version={version}\n")

    assert machine.cann_version(Site({"HCCL_TOOLS_ROOT": str(tmp_path)})) == "8.5.0"


@pytest.mark.parametrize(
    ("folder", "writable"),
    [("/proc/nowhere/ascend/log", False), ("/sys/log", False), ("/tmp/ascend/log", True)],
)
def test_a_folder_of_the_kernel_holds_no_logs(folder: str, writable: bool) -> None:
    assert machine.is_writable(folder) == writable


def test_the_tables_in_variables(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "hccl.json").write_text("{}")

    def state(path: object) -> dict[str, str]:
        return table_copies.states_of_variables({"RANK_TABLE_FILE": str(path)})

    assert state(tmp_path / "full" / "hccl.json") == state(tmp_path / "full") == {"RANK_TABLE_FILE": "file"}
    assert state(tmp_path / "empty") == {"RANK_TABLE_FILE": "directory"}
    assert state(tmp_path / "none.json") == {"RANK_TABLE_FILE": "absent"}
    assert state("none.json") == state("") == table_copies.states_of_variables({}) == {}


def test_layout_and_order_of_a_table_do_not_count(tmp_path: Path) -> None:
    def hashed(text: str) -> str:
        (tmp_path / "table.json").write_text(text)
        found = table_copies.sha256(str(tmp_path / "table.json"))
        named = table_copies.hashes_of_variables({"RANK_TABLE_FILE": str(tmp_path / "table.json")})
        assert named == {"RANK_TABLE_FILE": found}
        return found

    assert (
        hashed('{"a": "1", "b": [1, 2]}')
        == hashed('{"b":[1,2],\n "a":"1"}')
        != hashed('{"a": "1", "b": [2, 1]}')
    )
    assert hashed('{"a": "1"') != hashed('{"a":  "1"')
    assert table_copies.sha256(str(tmp_path)) == table_copies.sha256(str(tmp_path / "none.json")) == ""


@pytest.mark.parametrize(
    ("variable", "conf", "expected"),
    [
        ("/opt/lib:/usr/local/Ascend/driver/lib64/driver", "", "LD_LIBRARY_PATH"),
        ("/opt/lib", "/usr/local/Ascend/driver/lib64/driver\n", "ld.so.conf"),
        ("/opt/lib", "/opt/lib\n", "elsewhere"),
        ("", "", ""),
    ],
)
def test_the_libraries_of_the_driver(tmp_path: Path, variable: str, conf: str, expected: str) -> None:
    folder = tmp_path / "etc/ld.so.conf.d"
    folder.mkdir(parents=True)
    (folder / "ascend.conf").write_text(conf)

    site = Site({"HCCL_TOOLS_ROOT": str(tmp_path), "LD_LIBRARY_PATH": variable})

    assert machine.libraries(site) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"host_ip": ["10.0.0.1"], "device_ip": []}', ("file", ("10.0.0.1",))),
        ('{"host_ip": "10.0.0.1"}', ("invalid", ())),
        ("[]", ("invalid", ())),
        ("", ("invalid", ())),
    ],
)
def test_a_white_list(tmp_path: Path, text: str, expected: tuple[str, tuple[str, ...]]) -> None:
    (tmp_path / "list.json").write_text(text)
    variables = {"HCCL_WHITELIST_DISABLE": "0", "HCCL_WHITELIST_FILE": str(tmp_path / "list.json")}

    assert observing.read(variables) == expected
    assert observing.read({**variables, "HCCL_WHITELIST_DISABLE": "1"}) == ("", ())
    assert observing.read({**variables, "HCCL_WHITELIST_FILE": str(tmp_path)}) == ("directory", ())
    assert observing.read({**variables, "HCCL_WHITELIST_FILE": str(tmp_path / "none")}) == ("absent", ())
