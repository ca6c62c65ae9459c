"""``gen`` as users type it, on hosts with stand-in tools: what it writes, says and refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.hosts import IPS_910A, StandInHost, conf_text, make_host

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def host(tmp_path: Path) -> StandInHost:
    """A 910A machine with ``hccn_tool`` alone."""
    return make_host(tmp_path / "host", tools=("hccn_tool",))


def written(host: StandInHost, done: subprocess.CompletedProcess[str], name: str) -> dict[str, Any]:
    """Return the table that was written, alone in its folder."""
    assert done.returncode == 0, done.stderr
    assert host.tables() == [name]
    value: dict[str, Any] = json.loads((host.work / name).read_text())
    return value


def devices(table: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return device id, address and rank of each device of the only server."""
    (server,) = table["server_list"]
    return [(one["device_id"], one["device_ip"], one["rank_id"]) for one in server["device"]]


def refused(host: StandInHost, done: subprocess.CompletedProcess[str], code: int, *parts: str) -> str:
    """Check that nothing was written and that the one sentence says why; return it."""
    assert done.returncode == code, done.stdout + done.stderr
    assert host.tables() == []
    assert "Traceback" not in done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert [part for part in parts if part not in sentence] == [], sentence
    return sentence


class TestWhatItWrites:
    def test_the_text_to_the_letter(self, host: StandInHost) -> None:
        done = host.run("gen", "--device_num", "[4,5)", "--server_ip", "127.0.0.1")

        assert done.returncode == 0
        assert (host.work / "hccl_1p_4_127.0.0.1.json").read_text() == (
            "{\n"
            '    "version": "1.0",\n'
            '    "server_count": "1",\n'
            '    "server_list": [\n'
            "        {\n"
            '            "server_id": "127.0.0.1",\n'
            '            "device": [\n'
            "                {\n"
            '                    "device_id": "4",\n'
            '                    "device_ip": "192.168.100.100",\n'
            '                    "rank_id": "0"\n'
            "                }\n"
            "            ],\n"
            '            "host_nic_ip": "reserve"\n'
            "        }\n"
            "    ],\n"
            '    "status": "completed"\n'
            "}\n"
        )

    def test_eight_devices_simulated(self, host: StandInHost) -> None:
        done = host.run("gen", "--simulate", "910a", "--device_num", "[0,8)", "--server_ip", "127.0.0.1")

        table = written(host, done, "hccl_8p_01234567_127.0.0.1.json")
        assert devices(table) == [(str(n), ip, str(n)) for n, ip in enumerate(IPS_910A)]
        assert done.stdout == ""
        assert "simulated" in done.stderr
        assert host.calls() == []

    def test_ranks_count_from_zero(self, host: StandInHost) -> None:
        table = written(host, host.gen("--device_num", "[4,8)"), "hccl_4p_4567_10.0.0.5.json")

        assert devices(table) == [(str(4 + n), IPS_910A[4 + n], str(n)) for n in range(4)]

    def test_the_listed_order_is_the_rank_order_and_the_name_ascends(self, host: StandInHost) -> None:
        table = written(host, host.gen("--devices", "7,6,5,4"), "hccl_4p_4567_10.0.0.5.json")

        assert [(one, rank) for one, _, rank in devices(table)] == [
            ("7", "0"),
            ("6", "1"),
            ("5", "2"),
            ("4", "3"),
        ]

    def test_ids_of_two_digits_stay_joined(self, tmp_path: Path) -> None:
        sixteen = {str(n): {"ip": f"10.0.1.{n}"} for n in range(1, 17)}
        host = make_host(tmp_path / "host", product="a2", devices=sixteen)

        table = written(host, host.gen("--device_num", "[8,16)"), "hccl_8p_89101112131415_10.0.0.5.json")

        assert [one for one, _, _ in devices(table)] == [str(n) for n in range(8, 16)]

    def test_sixteen_dies_of_an_a3_come_by_number(self, tmp_path: Path) -> None:
        sixteen = {str(n): {"ip": f"10.0.1.{n + 1}", "sdid": n} for n in range(16)}
        host = make_host(tmp_path / "host", product="a3", devices=sixteen, nodes=range(16))

        table = written(host, host.gen(), "hccl_16p_0123456789101112131415_10.0.0.5.json")

        assert [(one, rank) for one, _, rank in devices(table)] == [(str(n), str(n)) for n in range(16)]
        assert table["version"] == "1.2"
        assert table["super_pod_list"] == [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.5"}]}]
        assert [one["super_device_id"] for one in table["server_list"][0]["device"]] == [
            str(n) for n in range(16)
        ]

    def test_a_group_list(self, host: StandInHost) -> None:
        done = host.gen("--device_num", "[0,2)", "--format", "group_list", "-o", "-")

        (group,) = json.loads(done.stdout)["group_list"]
        assert (group["device_count"], group["instance_list"][0]["server_id"]) == ("2", "10.0.0.5")
        refused(
            host,
            host.gen("--devices", "1,0", "--format", "group_list"),
            1,
            "a group_list cannot keep this order",
        )

    def test_ipv6_addresses_are_whole(self, tmp_path: Path) -> None:
        two = {str(n): {"ipv6": f"2001:db8::{n + 1}"} for n in range(2)}
        host = make_host(tmp_path / "host", devices=two, tools=("hccn_tool",))

        table = written(host, host.gen("--device_num", "[0,2)"), "hccl_2p_01_10.0.0.5.json")

        assert devices(table) == [("0", "2001:db8::1", "0"), ("1", "2001:db8::2", "1")]

    def test_the_original_s_own_command_line(self, host: StandInHost) -> None:
        done = host.run("--device_num", "[0,8)", "--server_ip", "10.0.0.5")

        assert len(devices(written(host, done, "hccl_8p_01234567_10.0.0.5.json"))) == 8

    def test_printing(self, host: StandInHost) -> None:
        done = host.gen("--devices", "0", "-o", "-")

        assert json.loads(done.stdout)["server_count"] == "1"
        assert host.tables() == []
        assert "wrote" not in done.stderr

    def test_a_full_standard_output(self, host: StandInHost) -> None:
        with open("/dev/full", "w") as full:  # noqa: PTH123
            done = subprocess.run(
                [sys.executable, "-m", "hccl_tools", "gen", "--simulate", "910a", "-o", "-"],
                check=False, stdout=full, stderr=subprocess.PIPE, text=True, env=host.environ(),
            )  # fmt: skip

        assert done.returncode == 1
        assert "error: standard output cannot be written: No space left on device" in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_reader_that_has_gone(self, host: StandInHost) -> None:
        command = f"'{sys.executable}' -m hccl_tools gen --simulate 910a -o - | /bin/true"

        done = subprocess.run(
            ["/bin/sh", "-c", command], check=False, capture_output=True, text=True, env=host.environ()
        )

        assert "Traceback" not in done.stderr
        assert "rror" not in done.stderr


class TestWhatItSays:
    def test_sources_file_and_next_command(self, host: StandInHost) -> None:
        said = host.gen("--devices", "0,1").stderr

        assert "product 910a (the default: neither lspci nor npu-smi shows the product)" in said
        assert "server_id 10.0.0.5 (--server_ip)" in said
        assert "device 0: 192.168.100.101 (hccn_tool)" in said
        assert "wrote hccl_2p_01_10.0.0.5.json" in said
        assert "hccl-tools launch --rank-table hccl_2p_01_10.0.0.5.json train.py" in said

    def test_the_file_as_source(self, tmp_path: Path) -> None:
        host = make_host(tmp_path / "host", tools=(), conf=conf_text(IPS_910A))

        assert f"device 4: 192.168.100.100 ({host.root}/etc/hccn.conf)" in host.gen("--devices", "4").stderr

    def test_a_loopback_server_ip(self, host: StandInHost) -> None:
        said = host.run("gen", "--devices", "0", "--server_ip", "127.0.0.1").stderr

        assert "warning: server_id 127.0.0.1 is valid on this machine only" in said

    def test_a_closed_bracket(self, host: StandInHost) -> None:
        done = host.gen("--device_num", "[0,8]")

        assert len(devices(written(host, done, "hccl_8p_01234567_10.0.0.5.json"))) == 8
        assert 'warning: "[0,8]" read as "[0,8)"' in done.stderr

    @pytest.mark.parametrize(
        ("args", "environ", "said"),
        [
            (["--product", "a2"], {"HCCL_TOOLS_PRODUCT": "910a"}, "product a2 (--product)"),
            ([], {"HCCL_TOOLS_PRODUCT": "a2"}, "product a2 (HCCL_TOOLS_PRODUCT)"),
            ([], {}, "product 910a (lspci: device d801)"),
        ],
    )
    def test_the_product(self, tmp_path: Path, args: list[str], environ: dict[str, str], said: str) -> None:
        host = make_host(tmp_path / "host")

        assert said in host.gen("--devices", "0", *args, **environ).stderr

    def test_help_has_examples(self, host: StandInHost) -> None:
        done = host.run("gen", "--help")

        assert done.returncode == 0
        assert 'hccl-tools gen --device_num "[0,8)"' in done.stdout


class TestFiles:
    NAME = "hccl_1p_0_10.0.0.5.json"

    def test_the_same_table_again_is_left_as_it_is(self, host: StandInHost) -> None:
        host.gen("--devices", "0")
        path = host.work / self.NAME
        # The same table in another layout is the same table.
        path.write_text(json.dumps(json.loads(path.read_text())))
        before = path.stat()

        done = host.gen("--devices", "0")

        assert done.returncode == 0
        assert "already up to date" in done.stderr
        assert path.stat().st_ino == before.st_ino

    @pytest.mark.parametrize("text", ["{}", "", "not json", '{"version": "1.0"}'])
    def test_another_content_is_kept_without_force(self, host: StandInHost, text: str) -> None:
        path = host.work / self.NAME
        path.write_text(text)
        path.chmod(0o604)

        done = host.gen("--devices", "0")

        assert done.returncode == 1
        assert f"error: {self.NAME} exists and is not a rank table" in done.stderr
        assert path.read_text() == text

        assert host.gen("--devices", "0", "--force").returncode == 0
        assert json.loads(path.read_text())["server_count"] == "1"
        assert path.stat().st_mode & 0o777 == 0o604

    def test_a_table_of_other_addresses_is_another_one(self, host: StandInHost) -> None:
        host.gen("--devices", "0")
        host.describe({"product": "910a", "devices": {"0": {"ip": "10.9.9.9"}}})

        done = host.gen("--devices", "0")

        assert done.returncode == 1
        assert f"error: {self.NAME} exists and contains another table" in done.stderr

    def test_folder_and_file_as_output(self, host: StandInHost) -> None:
        (host.work / "tables").mkdir()

        assert host.gen("--devices", "0", "-o", "tables").returncode == 0
        assert host.gen("--devices", "0", "-o", "one.json").returncode == 0
        assert (host.work / "tables" / self.NAME).read_text() == (host.work / "one.json").read_text()

    @pytest.mark.parametrize(("output", "code"), [("none/", 1), ("none/x.json", 1), ("table.txt", 2)])
    def test_output_that_cannot_be(self, host: StandInHost, output: str, code: int) -> None:
        refused(host, host.gen("--devices", "0", "-o", output), code)

    def test_mode(self, host: StandInHost) -> None:
        assert host.gen("--devices", "0", "--mode", "640").returncode == 0
        assert (host.work / self.NAME).stat().st_mode & 0o777 == 0o640

    def test_mode_of_a_new_file_follows_the_umask(self, host: StandInHost) -> None:
        before = os.umask(0o027)
        try:
            host.gen("--devices", "0")
        finally:
            os.umask(before)
        assert (host.work / self.NAME).stat().st_mode & 0o777 == 0o640

    @pytest.mark.parametrize("mode", ["rw", "9", "999", "000", "04755"])
    def test_modes_that_are_none(self, host: StandInHost, mode: str) -> None:
        refused(host, host.gen("--devices", "0", "--mode", mode), 2, "--mode", mode)

    def test_a_link_to_a_table_stays_a_link(self, host: StandInHost) -> None:
        real = host.folder / "real.json"
        (host.work / "link.json").symlink_to(real)

        assert host.gen("--devices", "0", "-o", "link.json").returncode == 0
        assert (host.work / "link.json").is_symlink()
        assert json.loads(real.read_text())["status"] == "completed"


class TestWhatItRefuses:
    def test_a_host_without_devices(self, tmp_path: Path) -> None:
        host = make_host(tmp_path / "host", tools=())

        done = host.gen()

        refused(host, done, 1, "no Ascend device found on this host")
        assert "--simulate 910a" in done.stderr

    def test_a_table_that_validate_would_refuse(self, host: StandInHost) -> None:
        done = host.gen("--devices", "0,4")

        refused(host, done, 1, "no table is written")
        assert "HCC" in done.stderr

    def test_the_rule_may_be_ignored(self, host: StandInHost) -> None:
        found = [word for word in host.gen("--devices", "0,4").stderr.split() if word.startswith("error[HCC")]
        rule = found[0].removeprefix("error[").removesuffix("]:")

        assert host.gen("--devices", "0,4", "--ignore", rule).returncode == 0

    def test_a_missing_address(self, tmp_path: Path) -> None:
        host = make_host(
            tmp_path / "host", devices={"0": {}}, tools=("hccn_tool",), conf="netmask_0=255.0.0.0\n"
        )

        parts = (
            "no address for device 0",
            "no ip was preset",
            "exit status 13",
            "hccn.conf has no address_0",
        )

        refused(host, host.gen("--devices", "0"), 1, *parts)

    def test_a_named_file_stands_in_place_of_the_tool(self, host: StandInHost, tmp_path: Path) -> None:
        conf = tmp_path / "named.conf"
        conf.write_text("address_0=10.9.9.9\n")

        done = host.run("gen", "--devices", "0", "--server_ip", "10.0.0.1", "--hccn-conf", str(conf))

        table = written(host, done, "hccl_1p_0_10.0.0.1.json")
        assert devices(table) == [("0", "10.9.9.9", "0")]
        assert f"device 0: 10.9.9.9 ({conf})" in done.stderr
        assert "warning" not in done.stderr

    def test_sources_that_disagree(self, tmp_path: Path) -> None:
        host = make_host(tmp_path / "host", conf="address_0=10.9.9.9\n")

        refused(host, host.gen("--devices", "0"), 1, "disagree", "192.168.100.101", "10.9.9.9")
        assert devices(
            written(host, host.gen("--devices", "0", "--prefer", "hccn.conf"), "hccl_1p_0_10.0.0.5.json")
        ) == [("0", "10.9.9.9", "0")]

    def test_a_tool_that_hangs(self, tmp_path: Path) -> None:
        host = make_host(tmp_path / "host", answers={"hccn_tool -i 0 -ip -g": {"hang": True}})
        (host.bin / "sleep").symlink_to("/bin/sleep")

        refused(
            host,
            host.gen("--devices", "0,1", "--tool-timeout", "1"),
            1,
            "did not exit within 1 s and was killed",
        )

    @pytest.mark.parametrize(
        ("args", "part"),
        [
            (["--hccn-conf", "/none/hccn.conf"], "--hccn-conf /none/hccn.conf does not exist"),
            (["--hccn-tool", "/none/tool"], "--hccn-tool /none/tool does not exist"),
            (["--server_ip", "not-an-ip"], '--server_ip "not-an-ip" is not an IP address'),
            (["--product", "910"], 'unknown product "910"'),
            (["--simulate", "910x"], '--simulate: unknown product "910x"'),
            (["--device_num", "[0,2)"], "exclude each other"),
        ],
    )
    def test_wrong_usage(self, host: StandInHost, args: list[str], part: str) -> None:
        refused(host, host.run("gen", "--devices", "0", "--server_ip", "10.0.0.5", *args), 2, part)

    def test_an_unknown_option_names_the_one_that_was_meant(self, host: StandInHost) -> None:
        done = host.gen("--device_nums", "[0,8)")

        assert done.returncode == 2
        assert "--device_num" in done.stderr

    def test_a_file_without_permission(self, tmp_path: Path) -> None:
        host = make_host(tmp_path / "host", tools=(), conf=conf_text(IPS_910A))
        (host.root / "etc" / "hccn.conf").chmod(0)
        # Root may read everything: the child becomes somebody else once it has loaded what it needs.
        script = (
            "import locale, os, sys\n"
            "from hccl_tools.cli import gen, main\n"
            "from hccl_tools.files import outputs\n"
            "from hccl_tools.transform import generation\n"
            "from hccl_tools.validation import checker\n"
            "from hccl_tools.host import survey\n"
            "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "main(['gen', '--devices', '0', '--server_ip', '10.0.0.5'])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            check=False, capture_output=True, text=True, cwd=host.work, env=host.environ(),
        )  # fmt: skip

        refused(host, done, 1, "no address for device 0", "hccn.conf is not readable by this user")
        assert "sudo" in done.stderr


class TestContainers:
    def test_the_devices_the_container_is_given(self, tmp_path: Path) -> None:
        host = make_host(tmp_path / "host", nodes=(4, 5, 6, 7))

        table = written(host, host.gen(), "hccl_4p_4567_10.0.0.5.json")

        assert devices(table) == [(str(4 + n), IPS_910A[4 + n], str(n)) for n in range(4)]

    def test_the_runtime_s_variable(self, tmp_path: Path) -> None:
        host = make_host(tmp_path / "host", nodes=range(8))

        written(host, host.gen(ASCEND_VISIBLE_DEVICES="npu-6,npu-7"), "hccl_2p_67_10.0.0.5.json")

    def test_range_among_the_visible_ones(self, tmp_path: Path) -> None:
        host = make_host(tmp_path / "host", nodes=(4, 5, 6, 7))

        written(host, host.gen("--device_num", "[0,4)"), "hccl_4p_4567_10.0.0.5.json")

    def test_an_id_of_the_other_reading(self, tmp_path: Path) -> None:
        host = make_host(tmp_path / "host", nodes=(4, 5, 6, 7))

        done = host.gen("--devices", "0-3")

        refused(host, done, 2, "devices 0,1,2,3 are not among the visible devices 4,5,6,7")
        assert "physical devices 4,5,6,7: add --ids logical" in done.stderr
        written(host, host.gen("--devices", "0-3", "--ids", "logical"), "hccl_4p_4567_10.0.0.5.json")
