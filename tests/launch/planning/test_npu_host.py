"""Launching on a (made-up) host with NPUs: its devices, addresses and product count."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.host.local_addresses import interface_addresses
from hccl_tools.launch.planning import local_npus, planner
from hccl_tools.validation import loading
from tests.support.hosts import IPS_910A, StandInHost, make_host
from tests.support.jobs import eventually
from tests.support.requests import launch_request

if TYPE_CHECKING:
    from hccl_tools.launch.planning.planner import PreparedLaunch


@pytest.fixture
def host(tmp_path: Path) -> StandInHost:
    made = make_host(tmp_path / "host", nodes=range(8))
    (made.work / "show.py").write_text(
        "import json, os\n"
        "names = ('RANK_ID', 'DEVICE_ID', 'RANK_TABLE_FILE', 'ASCEND_RT_VISIBLE_DEVICES')\n"
        "print(json.dumps({name: os.environ.get(name) for name in names}))\n"
    )
    return made


def launch(host: StandInHost, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    environ = host.environ(TMPDIR=str(host.work), **{"PATH": f"{host.bin}:/usr/bin:/bin", **more})
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools", "launch", "--python", sys.executable, *args],
        capture_output=True, text=True, check=False, cwd=host.work, env=environ, timeout=120,
    )  # fmt: skip


#: Modules that a quick look at the devices does not need; together they take several MB.
HEAVY = {
    "hashlib",
    "_hashlib",
    "orjson",
    "statistics",
    "decimal",
    "pathlib",
    "ast",
    "tokenize",
    "jsonschema",
    "referencing",
    "hccl_tools.doctor.bandwidth",
    "hccl_tools.validation.checker",
    "hccl_tools.rules.registry",
    "hccl_tools.launch.supervise.hangs",
}
SHOWS_MODULES = f"""\
import atexit, sys
atexit.register(lambda: print("loaded", sorted({HEAVY!r} & set(sys.modules))))
from hccl_tools.__main__ import main
main()
"""


def said(host: StandInHost, rank: int) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((host.work / "log/latest" / f"rank_{rank}.log").read_text())
    return value


def write_table(host: StandInHost, ips: tuple[str, ...] = IPS_910A, server: str = "127.0.0.1") -> str:
    devices = [
        {"device_id": str(device), "device_ip": ip, "rank_id": str(rank)}
        for rank, (device, ip) in enumerate(list(enumerate(ips))[4:8])
    ]
    value = {
        "version": "1.0", "server_count": "1", "status": "completed",
        "server_list": [{"server_id": server, "device": devices, "host_nic_ip": "reserve"}],
    }  # fmt: skip
    (host.work / "table.json").write_text(json.dumps(value))
    return "table.json"


def test_table_is_made_on_the_spot(host: StandInHost) -> None:
    done = launch(host, "--start", "table", "--devices", "4-7", "show.py")

    assert done.returncode == 0, done.stderr
    assert [said(host, rank)["DEVICE_ID"] for rank in range(4)] == ["4", "5", "6", "7"]
    table = json.loads(Path(said(host, 0)["RANK_TABLE_FILE"]).read_text())
    assert [device["device_ip"] for device in table["server_list"][0]["device"]] == list(IPS_910A[4:8])
    assert "no table given: one was made from devices 4-7 of this host" in done.stderr


def test_settings_are_looked_at_however_they_were_made(host: StandInHost) -> None:
    settings = {"HCCL_CONNECT_TIMEOUT": "10", "HCCL_IF_BASE_PORT": "99999", "HCCL_RDMA_TC": "3"}
    options = [word for name, value in settings.items() for word in ("--env", f"{name}={value}")]
    typed = launch(host, "-n", "4", *options, "show.py")
    exported = launch(host, "-n", "4", "show.py", **settings)

    assert (typed.returncode, exported.returncode) == (125, 125)
    assert typed.stderr == exported.stderr
    assert 'HCCL_CONNECT_TIMEOUT="10": HCCL accepts 120 to 7200 seconds' in typed.stderr
    assert 'HCCL_IF_BASE_PORT="99999": HCCL accepts 1024 to 65520' in typed.stderr
    assert 'HCCL_RDMA_TC="3": HCCL accepts 0 to 255, a multiple of 4' in typed.stderr


def test_all_visible_devices_are_used(host: StandInHost) -> None:
    done = launch(host, "--start", "table", "show.py", ASCEND_RT_VISIBLE_DEVICES="4,5")

    assert done.returncode == 0, done.stderr
    assert [said(host, rank)["DEVICE_ID"] for rank in range(2)] == ["0", "1"]
    table = json.loads(Path(said(host, 0)["RANK_TABLE_FILE"]).read_text())
    assert [device["device_id"] for device in table["server_list"][0]["device"]] == ["4", "5"]


def test_set_that_the_guide_forbids_is_refused_on_the_spot(host: StandInHost) -> None:
    done = launch(host, "--start", "table", "-n", "3", "show.py")

    assert done.returncode == 125
    assert "no table can be made for these devices" in done.stderr
    assert not (host.work / "log").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "visible"), [("table", {}), ("torch", {"ASCEND_RT_VISIBLE_DEVICES": "6,7"})]
)
def test_counts_that_no_product_has(host: StandInHost, start: str, visible: dict[str, str]) -> None:
    done = launch(host, "--no-table", "-n", "9", "--start", start, "show.py", **visible)

    assert done.returncode == 0, done.stderr
    assert "more ranks than devices" in done.stderr
    assert [said(host, rank)["DEVICE_ID"] for rank in range(9)] == [str(rank) for rank in range(9)]
    # A limit of the shell is not widened.
    assert said(host, 8)["ASCEND_RT_VISIBLE_DEVICES"] == visible.get("ASCEND_RT_VISIBLE_DEVICES")
    refused = launch(host, "-n", "9", "--start", start, "show.py", **visible)
    assert refused.returncode == 125
    assert "9 ranks need 9 devices" in refused.stderr


def test_table_that_is_this_hosts(host: StandInHost) -> None:
    done = launch(host, "--start", "table", "--rank-table", write_table(host), "show.py")

    assert done.returncode == 0, done.stderr
    assert said(host, 3)["DEVICE_ID"] == "7"


def test_only_the_devices_of_the_table_are_asked_for_their_addresses(host: StandInHost) -> None:
    done = launch(host, "--start", "table", "--rank-table", write_table(host), "show.py")

    assert done.returncode == 0, done.stderr
    calls = [call for call in host.calls() if call.startswith("hccn_tool")]
    assert calls == [f"hccn_tool -i {device} -ip -g" for device in range(4, 8)]


@pytest.mark.slow
def test_a_tool_that_hangs_is_ended_when_its_answer_is_not_needed(tmp_path: Path) -> None:
    """A table that is refused does not wait for it."""
    host = make_host(tmp_path / "host", nodes=range(8), answers={"hccn_tool -i 4 -ip -g": {"hang": True}})
    (host.bin / "sleep").symlink_to("/bin/sleep")
    early = local_npus.EarlyAddresses(range(8), host.environ())
    table = loading.load(str(host.work / write_table(host)), begin=early.begin).table
    assert eventually(host.calls)
    began = time.monotonic()

    early.close()

    assert time.monotonic() - began < 8.0  # A tool may take 10 s.
    assert early.of(table).problem == "the answer is not needed any more"


def test_without_a_thread_the_addresses_are_read_when_they_are_needed(
    host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on processes (``ulimit -u``) counts threads."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    file = host.work / write_table(host)
    early = local_npus.EarlyAddresses(range(8), host.environ())
    table = loading.load(str(file), begin=early.begin).table

    found = early.of(table)

    early.close()
    assert found.first == dict(zip(range(4, 8), IPS_910A[4:], strict=True))


def test_a_table_of_several_servers_without_a_device_of_this_host(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", nodes=(0, 1))
    servers = [
        {
            "server_id": f"10.0.0.{number}",
            "device": [
                {
                    "device_id": str(4 + place),
                    "device_ip": f"10.1.{number}.{place + 1}",
                    "rank_id": str(2 * number + place),
                }
                for place in range(2)
            ],
        }
        for number in range(2)
    ]
    table = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
    (host.work / "table.json").write_text(json.dumps(table))

    done = launch(host, "--product", "a2", "--rank-table", "table.json", "show.py")

    assert done.returncode == 125
    assert "none of the table's servers is this host" in done.stderr


def table_of(*servers: tuple[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return a table of servers with eight devices each, by their ids and the addresses of their devices."""
    listed = [
        {
            "server_id": server,
            "device": [
                {"device_id": str(place), "device_ip": ip, "rank_id": str(8 * number + place)}
                for place, ip in enumerate(ips)
            ],
        }
        for number, (server, ips) in enumerate(servers)
    ]
    count = str(len(servers))
    return {"version": "1.0", "server_count": count, "server_list": listed, "status": "completed"}


def prepared(host: StandInHost, table: dict[str, Any]) -> PreparedLaunch:
    """Plan a job of a table in this process, as if its devices were those of a host."""
    (host.work / "table.json").write_text(json.dumps(table))
    request = launch_request(
        (str(host.work / "show.py"),), start="table", python=sys.executable,
        rank_table=str(host.work / "table.json"), master_address="10.0.0.9",
    )  # fmt: skip
    environ = host.environ(PATH=f"{host.bin}:/usr/bin:/bin")
    return planner.prepare(request, environ=environ, working_dir=str(host.work), nodes=tuple(range(8)))


def test_the_devices_tell_which_of_several_servers_this_host_is(host: StandInHost) -> None:
    """Several hosts can have one address: that of the bridge of their containers."""
    others = tuple(f"192.168.{110 + device % 4}.{101 if device < 4 else 100}" for device in range(8))
    found = prepared(host, table_of((interface_addresses()[0], others), ("10.0.0.9", IPS_910A))).plan

    assert found.local_server == 1
    assert [rank.rank for rank in found.local] == [*range(8, 16)]


def test_the_devices_of_the_only_server_are_compared(host: StandInHost) -> None:
    own = interface_addresses()[0]
    assert len(prepared(host, table_of((own, IPS_910A))).plan.local) == 8

    table = table_of((own, (*IPS_910A[:5], "192.168.101.9", *IPS_910A[6:])))
    with pytest.raises(LaunchError, match=f"device 5 has {IPS_910A[5]}, but the table has 192.168.101.9"):
        prepared(host, table)


@pytest.mark.slow
def test_table_of_another_host_is_refused(host: StandInHost) -> None:
    moved = (*IPS_910A[:4], "192.168.100.9", *IPS_910A[5:])
    table = write_table(host, moved, server="localhost")

    done = launch(host, "--start", "table", "--rank-table", table, "--server", "localhost", "show.py")

    assert done.returncode == 125
    assert f"device 4 has {IPS_910A[4]}, but the table has 192.168.100.9" in done.stderr
    unchecked = launch(
        host,
        "--start",
        "table",
        "--rank-table",
        table,
        "--server",
        "localhost",
        "--no-local-check",
        "show.py",
    )
    assert unchecked.returncode == 0, unchecked.stderr


def test_torch_needs_no_table(host: StandInHost) -> None:
    done = launch(host, "--start", "torch", "--npus", "6,7", "show.py")

    assert done.returncode == 0, done.stderr
    assert said(host, 1) == {
        "RANK_ID": "1", "DEVICE_ID": "1", "RANK_TABLE_FILE": None, "ASCEND_RT_VISIBLE_DEVICES": "6,7",
    }  # fmt: skip


def test_a_launch_with_devices_does_not_load_what_only_doctor_needs(host: StandInHost) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", SHOWS_MODULES, "launch", "--rank-table", write_table(host),
         "--start", "table", "--no-python", "/bin/true"],
        capture_output=True, text=True, check=False, cwd=host.work, timeout=120,
        env=host.environ(TMPDIR=str(host.work), PATH=f"{host.bin}:/usr/bin:/bin"),
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded []"


def test_product_is_the_hosts_own(host: StandInHost) -> None:
    done = launch(host, "--start", "table", "--rank-table", write_table(host), "--dry-run", "show.py")

    assert "product:       910a: the product of this host, by " in done.stdout


def test_each_rank_has_a_folder_for_the_logs_of_cann_that_the_report_names(host: StandInHost) -> None:
    program = "mkdir $ASCEND_PROCESS_LOG_PATH && echo log > $ASCEND_PROCESS_LOG_PATH/plog.log"

    done = launch(host, "--start", "table", "--devices", "4-7", "--no-python", "sh", "-c", program)

    assert done.returncode == 0, done.stderr
    run_dir = (host.work / "log/latest").resolve()
    ranks = json.loads((run_dir / "report.json").read_text())["ranks"]
    assert [rank["plog"] for rank in ranks] == [f"{run_dir}/plog_rank_{rank}" for rank in range(4)]
    assert all((Path(rank["plog"]) / "plog.log").read_text() == "log\n" for rank in ranks)
