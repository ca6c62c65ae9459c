"""Inputs on which the original ``hccl_tools.py`` crashed or wrote a wrong table: each ends well here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.hosts import IPS_910A, StandInHost, conf_text, make_host

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def host(tmp_path: Path) -> StandInHost:
    return make_host(tmp_path / "host", tools=("hccn_tool",))


def table(host: StandInHost, name: str) -> dict[str, Any]:
    assert host.tables() == [name]
    value: dict[str, Any] = json.loads((host.work / name).read_text())
    return value


def device_ids(value: dict[str, Any]) -> list[str]:
    return [device["device_id"] for device in value["server_list"][0]["device"]]


def told(host: StandInHost, done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a refusal; nothing was written."""
    assert done.returncode != 0
    assert host.tables() == []
    assert "Traceback" not in done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return sentence


def test_no_options(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", tools=("hccn_tool",), nodes=range(8))

    done = host.gen()

    assert done.returncode == 0
    assert device_ids(table(host, "hccl_8p_01234567_10.0.0.5.json")) == [str(n) for n in range(8)]


def test_no_options_and_nothing_that_says_which_devices(host: StandInHost) -> None:
    assert "no Ascend device found" in told(host, host.gen())


def test_visible_devices(host: StandInHost) -> None:
    done = host.gen("--device_num", "[0,4)", "--visible_devices", "4,5,6,7")

    assert done.returncode == 0
    value = table(host, "hccl_4p_4567_10.0.0.5.json")
    assert [device["device_ip"] for device in value["server_list"][0]["device"]] == list(IPS_910A[4:])


def test_visible_devices_without_the_tool(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", tools=(), conf=conf_text(dict(enumerate(IPS_910A[4:], 4))))

    done = host.gen("--device_num", "[0,4)", "--visible_devices", "4,5,6,7")

    assert done.returncode == 0
    assert "not found" not in done.stderr
    assert device_ids(table(host, "hccl_4p_4567_10.0.0.5.json")) == ["4", "5", "6", "7"]


def test_addresses_of_other_devices_in_the_file(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", tools=(), conf=conf_text(dict(enumerate(IPS_910A[4:], 4))))

    sentence = told(host, host.gen("--device_num", "[0,4)"))

    assert "no address for device 0" in sentence
    assert "has no address_0" in sentence


def test_eight_to_sixteen(host: StandInHost) -> None:
    sentence = told(host, host.gen("--device_num", "[8,16)"))

    assert '"[8,16)" contains device 15, which 910a does not have: its device ids are 0 to 7' in sentence


def test_sixteen_on_a_machine_of_eight(host: StandInHost) -> None:
    assert '"[0,16)" contains device 15' in told(host, host.gen("--device_num", "[0,16)"))


def test_sixteen_on_a_machine_of_sixteen(tmp_path: Path) -> None:
    sixteen = {str(n): {"ip": f"10.0.1.{n + 1}"} for n in range(16)}
    host = make_host(tmp_path / "host", product="a2", devices=sixteen)

    assert host.gen("--device_num", "[0,16)").returncode == 0
    assert len(device_ids(table(host, "hccl_16p_0123456789101112131415_10.0.0.5.json"))) == 16


@pytest.mark.parametrize(("text", "name"), [("[0, 4)", "hccl_4p_0123"), ("0-7", "hccl_8p_01234567")])
def test_blanks_and_plain_ranges(host: StandInHost, text: str, name: str) -> None:
    assert host.gen("--device_num", text).returncode == 0
    assert host.tables() == [f"{name}_10.0.0.5.json"]


def test_an_empty_range(host: StandInHost) -> None:
    assert '"[4,4)" is empty' in told(host, host.gen("--device_num", "[4,4)"))


def test_across_the_groups(host: StandInHost) -> None:
    refused = host.gen("--device_num", "[2,6)")
    assert "no table is written" in told(host, refused)
    assert "devices 2,3,4,5" in refused.stderr

    assert host.gen("--device_num", "[2,6)", "--product", "a2").returncode == 0
    assert device_ids(table(host, "hccl_4p_2345_10.0.0.5.json")) == ["2", "3", "4", "5"]


def test_unquoted_brackets_fail_in_the_shell(host: StandInHost) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    command = f"'{sys.executable}' -m hccl_tools --device_num [0,8)"

    done = subprocess.run(
        [bash, "-c", command],
        check=False,
        capture_output=True,
        text=True,
        cwd=host.work,
        env=host.environ(),
    )

    assert done.returncode != 0
    assert "syntax error near unexpected token" in done.stderr
    assert host.tables() == []


def test_a_server_ip_that_is_none(host: StandInHost) -> None:
    done = host.run("gen", "--devices", "0", "--server_ip", "not-an-ip")

    assert '--server_ip "not-an-ip" is not an IP address' in told(host, done)


def test_an_ipv6_answer(tmp_path: Path) -> None:
    answers = {
        f"hccn_tool -i {n} -ip -g": {"stdout": f"ipaddr:2001:db8::{n}\nprefix_length:64\n"}
        for n in range(1, 3)
    }
    host = make_host(tmp_path / "host", answers=answers, tools=("hccn_tool",))

    assert host.gen("--devices", "1,2").returncode == 0
    value = table(host, "hccl_2p_12_10.0.0.5.json")
    assert [device["device_ip"] for device in value["server_list"][0]["device"]] == [
        "2001:db8::1",
        "2001:db8::2",
    ]


def test_one_address_for_every_device(tmp_path: Path) -> None:
    same = {str(n): {"ip": "10.0.0.1"} for n in range(8)}
    host = make_host(tmp_path / "host", devices=same, tools=("hccn_tool",))

    done = host.gen("--device_num", "[0,8)")

    assert "no table is written" in told(host, done)
    assert 'all device_ips of server 1 ("10.0.0.5") are "10.0.0.1"' in done.stderr


def test_no_address_set_and_no_file(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", devices={"0": {}}, tools=("hccn_tool",))

    sentence = told(host, host.gen("--devices", "0"))

    assert "no address for device 0" in sentence
    assert "Get ipconf failed, because no ip was preset there!" in sentence
    assert "hccn.conf does not exist" in sentence


def test_a_busy_tool(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", busy=2, busy_status=0)

    assert host.gen("--devices", "0").returncode == 0
    assert host.tables() == ["hccl_1p_0_10.0.0.5.json"]


def test_a_tool_that_stays_busy(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", busy=10_000)

    sentence = told(host, host.gen("--devices", "0", "--tool-timeout", "1"))

    assert "hccn_tool stays busy" in sentence
    assert "hccn_tool is busy, please try again." in sentence
