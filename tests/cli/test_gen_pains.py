"""What users of other generators met (and reported) on their machines, and what happens here instead."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.hosts import IPS_910A, StandInHost, conf_text, described, make_host

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

#: Each test starts processes, or takes a second or more.
pytestmark = pytest.mark.slow


def refusal(host: StandInHost, done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a refusal; nothing was written."""
    assert done.returncode != 0
    assert host.tables() == []
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


def only_table(host: StandInHost) -> dict[str, Any]:
    (name,) = host.tables()
    value: dict[str, Any] = json.loads((host.work / name).read_text())
    return value


def test_an_address_that_could_not_be_found_out_is_never_written(tmp_path: Path) -> None:
    """``-.-.-.-`` in the table, and the job dies in the framework."""
    host = make_host(tmp_path / "host", answers={"hccn_tool -i 3 -ip -g": {"stdout": "ipaddr:-.-.-.-\n"}})

    said = refusal(host, host.gen("--device_num", "[0,8)"))

    assert "no address for device 3" in said
    assert '"-.-.-.-", which is not an address' in said


def test_a_container_without_hccn_conf(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", nodes=range(8))

    assert host.gen().returncode == 0


def test_a_container_with_neither_source_is_told_what_to_mount(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", tools=(), nodes=range(8))

    done = host.gen()

    said = refusal(host, done)
    assert "no hccn_tool on PATH or at /usr/local/Ascend/driver/tools/hccn_tool" in said
    assert "mount /etc/hccn.conf or /usr/local/Ascend/driver" in done.stderr


def test_a_tool_that_is_not_on_path_is_found_and_named(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", tools=(), nodes=[0])
    place = host.root / "usr/local/Ascend/driver/tools"
    host.install("hccn_tool", place)
    (place / "host").symlink_to(host.bin / "host")

    done = host.gen()

    assert f"device 0: 192.168.100.101 ({place}/hccn_tool)" in done.stderr


def test_one_stale_address_of_many_in_the_file(tmp_path: Path) -> None:
    """RDMA could not reach one NPU of 32."""
    ips = list(IPS_910A)
    ips[5] = "192.168.101.55"
    host = make_host(tmp_path / "host", nodes=range(8), conf=conf_text(ips))

    said = refusal(host, host.gen())

    assert "the sources disagree about 1 of 8 addresses: device 5" in said
    assert "192.168.101.100" in said
    assert "192.168.101.55" in said


def test_a_container_s_file_need_not_be_renumbered_by_hand(tmp_path: Path) -> None:
    """The container holds the devices 4 to 7, and the host's whole file."""
    host = make_host(tmp_path / "host", tools=(), nodes=range(4, 8), conf=conf_text(IPS_910A))

    assert host.gen("--device_num", "[0,4)").returncode == 0

    devices = only_table(host)["server_list"][0]["device"]
    assert [(one["device_id"], one["device_ip"]) for one in devices] == [
        (str(n), IPS_910A[n]) for n in range(4, 8)
    ]


def test_both_ids_are_shown_where_they_differ(tmp_path: Path) -> None:
    """HCCL only says: ranktable config devId[1], but local devId[3]."""
    host = make_host(tmp_path / "host", nodes=(2, 3))

    done = host.gen()

    assert "physical devices 2,3 are devices 0,1 for programs in this container" in done.stderr
    whole = make_host(tmp_path / "whole", nodes=range(8))
    assert "programs in this container" not in whole.gen("--devices", "4-7").stderr


def test_all_devices_with_one_super_device_id(tmp_path: Path) -> None:
    devices = {key: {**value, "sdid": 7} for key, value in described("a3")["devices"].items()}
    host = make_host(tmp_path / "host", {**described("a3"), "devices": devices}, nodes=range(16))

    assert "shows super_device_id 7 for devices 0 and 1" in refusal(host, host.gen())


def test_a_server_index_from_before_a_swap(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", {**described("a3"), "server_index": 9}, nodes=range(16))

    done = host.gen()

    assert done.returncode == 0
    assert "warning: device 0: super_device_id 0 belongs to server index 0, npu-smi shows 9" in done.stderr


@pytest.mark.parametrize("option", ["--device_num", "--devices", "--visible_devices"])
@pytest.mark.parametrize("text", ["[0,4)", "0-3", "0,1,2,3", " 0 - 1, 2,3 ", "[0, 2), 2-3"])
def test_one_syntax_for_every_list_of_devices(tmp_path: Path, option: str, text: str) -> None:
    host = make_host(tmp_path / "host", nodes=range(8))

    done = host.gen(option, text)

    assert done.returncode == 0, done.stderr
    devices = only_table(host)["server_list"][0]["device"]
    assert [one["device_id"] for one in devices] == ["0", "1", "2", "3"]
    assert [type(one["rank_id"]) for one in devices] == [str] * 4


def test_a_busy_tool_is_asked_one_device_at_a_time(tmp_path: Path) -> None:
    """Parallel calls get ``hccn_tool is busy``; the stand-in refuses them as the real one does."""
    host = make_host(tmp_path / "host", nodes=range(8), delay=0.01, busy=3)

    assert host.gen().returncode == 0
    assert len([call for call in host.calls() if "-ip -g" in call]) == 8 + 3


@pytest.mark.parametrize(
    ("typed", "error", "instead"),
    [
        ("[0,8\uff09", 'full-width bracket "\uff09" in "[0,8\uff09"', 'type "[0,8)"'),
        ("0\uff0c1", 'full-width comma "\uff0c" in "0\uff0c1"', 'type "0,1"'),
        ("8", '"8" contains device 8, which 910a does not have', 'for 8 devices type "[0,8)"'),
        ("0,8)", 'cannot read "0,8)" as a device range', 'did you mean "[0,8)"?'),
        ("range(0,8)", 'cannot read "range(0,8)" as a device range', 'did you mean "[0,8)"?'),
    ],
)
def test_a_mistyped_range_is_told_with_the_right_one(
    tmp_path: Path, typed: str, error: str, instead: str
) -> None:
    host = make_host(tmp_path / "host")
    done = host.gen("--device_num", typed)

    assert error in refusal(host, done)
    assert instead in done.stderr


def test_a_refused_table_names_the_source_and_no_file_that_is_not_there(tmp_path: Path) -> None:
    """The cause is a line of hccn.conf, and a table that nobody wrote was cited by line and column."""
    conf = conf_text({0: "192.168.100.100", 1: "192.168.101.100", 2: "192.168.102.100", 3: "192.168.100.100"})
    host = make_host(tmp_path / "host", tools=(), conf=conf)
    path = host.root / "etc" / "hccn.conf"

    done = host.gen("--devices", "0-3", "-o", "hb1.json")

    assert refusal(host, done) == "error: no table is written: it has 1 error"
    assert f" --> device 3: 192.168.100.100 ({path}:7)\n" in done.stderr
    assert f" = first used: device 0: 192.168.100.100 ({path}:1)\n" in done.stderr
    assert "hccl_4p" not in done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("is used twice") == 1
