"""Ranks under an mpirun that the user typed: table, devices and environment are those of ``launch``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import HcclToolsError, LaunchError, UsageError
from hccl_tools.host import device_holders
from hccl_tools.host.site_defaults import Site
from hccl_tools.launch.mpi import options as rank_options
from hccl_tools.launch.mpi import shared_preparation, standalone
from hccl_tools.launch.mpi.world import MpiWorld
from hccl_tools.launch.planning import planner
from hccl_tools.launch.planning.composition import MPI_PREFIXES
from hccl_tools.version import IMPORT_ROOT
from tests.support.hosts import IPS_910A, StandInHost, conf_text, make_host
from tests.support.mpiruns import every_mpirun
from tests.support.requests import launch_request

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import LaunchRequest
    from tests.support.mpiruns import Mpirun

STARTS = ("table", "cluster", "mpi", "torch")


@pytest.fixture
def host(tmp_path: Path) -> StandInHost:
    """A host with 8 NPUs."""
    made = make_host(tmp_path / "host", tools=(), nodes=range(8), conf=conf_text(IPS_910A))
    Path("train.py").write_text(
        "import os\nprint(*(os.environ.get(name) for name in ('RANK_ID', 'DEVICE_ID', 'RANK_SIZE')))\n"
    )
    return made


def write_table(*servers: tuple[str, tuple[int, ...]], ips: tuple[str, ...] = IPS_910A) -> str:
    """Write a table of these servers and their devices in rank order; return its path."""
    found, rank = [], 0
    for number, (server, devices) in enumerate(servers):
        rows = []
        for device in devices:
            ip = ips[device] if number == 0 else f"10.1.{number}.{device}"
            rows.append({"device_id": str(device), "device_ip": ip, "rank_id": str(rank)})
            rank += 1
        found.append({"server_id": server, "device": rows, "host_nic_ip": "reserve"})
    value = {"version": "1.0", "server_count": str(len(found)), "status": "completed", "server_list": found}
    Path("table.json").write_text(json.dumps(value))
    return str(Path("table.json").absolute())


def environment_of(host: StandInHost, **more: str) -> dict[str, str]:
    return host.environ(**{"PATH": f"{host.bin}:/usr/bin:/bin", **more})


def world(rank: int, size: int, local_size: int | None = None) -> MpiWorld:
    """The place of a rank where every host has ``local_size``, one after the other."""
    local_size = local_size or size
    return MpiWorld(rank, size, rank % local_size, local_size, "job", "Open MPI")


def by_hand(rank: MpiWorld, environ: dict[str, str], *typed: str) -> dict[str, str]:
    """Return the environment of a rank that finds out everything by itself."""
    options = rank_options.parse([*typed, "train.py"])
    return standalone.prepare(options, rank, environ).environment


def launched(rank: int, environ: dict[str, str], request: LaunchRequest) -> dict[str, str]:
    prepared = planner.prepare(request, environ=environ, working_dir=str(Path.cwd()))
    return {**prepared.shared_environment, **prepared.plan.ranks[rank].environment}


def normal(found: dict[str, str]) -> dict[str, str]:
    """Return an environment without what differs from run to run, and without what mpirun itself sets."""
    port = int(found.get("MS_SCHED_PORT") or found.get("MASTER_PORT") or 0)
    values = {name: value for name, value in found.items() if not name.startswith(MPI_PREFIXES)}
    # The chosen port can be the last of its range: the ports of the other ranks then leave it.
    ports = {str(port + rank): f"PORT+{rank}" for rank in range(8)} if port else {}
    counted = {
        name: re.sub(r"\b[0-9]{5}\b", lambda match: ports.get(match[0], match[0]), value)
        for name, value in values.items()
    }
    return {name: value.replace(found["HCCL_TOOLS_RUN_DIR"], "RUN") for name, value in counted.items()}


@pytest.mark.parametrize("cpu", [False, True])
@pytest.mark.parametrize("start", STARTS)
def test_environment_with_a_table_is_the_launchers(host: StandInHost, start: Any, *, cpu: bool) -> None:
    table = write_table(("127.0.0.1", (5, 4, 7, 6)))
    environ = environment_of(host, RANK_ID="9", PADDLE_X="old", ASCEND_RT_VISIBLE_DEVICES="4,5,6,7")
    request = launch_request(("train.py",), rank_table=table, start=start, cpu=cpu, own_python=True)

    for rank in range(4):
        found = by_hand(
            world(rank, 4), environ, "--rank-table", table, "--start", start, *(["--cpu"] if cpu else [])
        )
        assert normal(found) == normal(launched(rank, environ, request))
        assert Path(found["HCCL_TOOLS_RUN_DIR"]).is_dir()


@pytest.mark.parametrize("start", STARTS)
def test_environment_without_a_table_is_the_launchers(host: StandInHost, start: Any) -> None:
    environ = environment_of(host, ASCEND_VISIBLE_DEVICES="npu-4,npu-5,6-7")
    request = launch_request(("train.py",), ranks=2, start=start, own_python=True)

    for rank in range(2):
        found = by_hand(world(rank, 2), environ, "--start", start)
        assert normal(found) == normal(launched(rank, environ, request))
    assert [found[name] for name in ("RANK_ID", "DEVICE_NUM")] == ["1", "2"]


@pytest.mark.parametrize("start", ["table", "cluster", "torch"])
def test_environment_on_the_second_host_is_the_launchers(start: Any) -> None:
    Path("train.py").touch()
    table = write_table(("10.0.0.1", (0, 1)), ("10.0.0.2", (0, 1)))
    environ = {"PATH": "/usr/bin:/bin", "HOST_IP": "10.0.0.2", "RANK_TABLE_FILE": table}
    request = launch_request(("train.py",), product="a2", start=start, own_python=True)

    for rank in (2, 3):
        found = by_hand(world(rank, 4, 2), environ, "--product", "a2", "--start", start)
        assert normal(found) == normal(launched(rank, environ, request))
    if start == "cluster":
        assert (found["MS_SCHED_HOST"], found["MS_SCHED_PORT"]) == ("10.0.0.1", "18118")


@every_mpirun
@pytest.mark.mpi
@pytest.mark.parametrize("start", ["table", "mpi"])
def test_the_table_of_the_shell_is_taken(mpirun: Mpirun, start: str, host: StandInHost) -> None:
    table = write_table(("127.0.0.1", (4, 5, 6, 7)))
    shim = [sys.executable, "-m", "hccl_tools.launch.rank", "--start", start, "train.py"]
    environ = environment_of(host, RANK_TABLE_FILE=table, HOME=str(Path.cwd()), TMPDIR=str(Path.cwd()))

    done = subprocess.run(
        mpirun.ranks(4, *shim), capture_output=True, text=True, timeout=120, check=False, env=environ
    )

    assert done.returncode == 0, done.stderr
    said = [Path(f"log/latest/rank_{rank}.log").read_text().splitlines()[-1] for rank in range(4)]
    devices = range(4) if start == "mpi" else range(4, 8)
    assert said == [f"{rank} {device} 4" for rank, device in enumerate(devices)]
    ours = [line for line in done.stderr.splitlines() if line.startswith("hccl-tools: ")]
    assert len(ours) == 1
    assert f"4 ranks, devices 4, 5, 6, 7, start method {start} (--start)" in ours[0]
    assert f"using {table} from RANK_TABLE_FILE of your shell" in ours[0]


@every_mpirun
@pytest.mark.mpi
def test_the_lines_of_a_rank_fit_a_screen(mpirun: Mpirun, host: StandInHost) -> None:
    shim = [sys.executable, "-m", "hccl_tools.launch.rank", "--cpu", "--no-table"]
    folder = str(Path.cwd())
    environ = environment_of(host, HOME=folder, TMPDIR=folder, COLUMNS="80", PYTHONPATH=IMPORT_ROOT)

    done = subprocess.run(
        mpirun.ranks(2, *shim, "train.py"),
        capture_output=True, text=True, timeout=120, check=False, env=environ,
    )  # fmt: skip

    shown = [line for line in done.stderr.splitlines() if line.startswith(("hccl-tools", "  "))]
    assert done.returncode == 0, done.stderr
    assert shown
    assert [line for line in shown if len(line) > 80] == []


@every_mpirun
@pytest.mark.mpi
def test_a_process_of_a_rank_is_known_by_its_run(mpirun: Mpirun, host: StandInHost) -> None:
    node = host.root / "dev/davinci0"
    shim = [sys.executable, "-m", "hccl_tools.launch.rank", "--no-table", "--keep-binding", "--no-python"]
    command = mpirun.ranks(1, *shim, "sh", "-c", f"exec 3<{node}; echo $$; exec sleep 60")
    environ = environment_of(host, HOME=str(Path.cwd()), TMPDIR=str(Path.cwd()))

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as job:
        assert job.stdout is not None
        pid = job.stdout.readline().strip()
        holders, _ = device_holders.holders([0], Site(environ))
        found = [holder for holder in holders if str(holder.pid) == pid]
        job.terminate()

    assert [holder.run for holder in found] == [str(Path("log/latest").resolve())]


def test_the_other_ranks_take_over_what_the_first_has_found_in_the_shells_table(host: StandInHost) -> None:
    table = write_table(("127.0.0.1", (4, 5, 6, 7)))
    environ = environment_of(host, RANK_TABLE_FILE=table)
    options = rank_options.parse(["--start", "table", "train.py"])

    standalone.prepare(options, world(0, 4), environ)
    left = shared_preparation.read(options, world(2, 4), environ)

    assert left == standalone.prepare(options, world(2, 4), environ)
    assert left is not None
    assert left.device == 6
    assert shared_preparation.read(options, world(2, 4), environment_of(host)) is None
    write_table(("127.0.0.1", (7, 6, 5, 4)))
    assert shared_preparation.read(options, world(2, 4), environ) is None


def test_the_first_rank_says_what_was_taken(host: StandInHost, capsys: pytest.CaptureFixture[str]) -> None:
    environ = environment_of(host, ASCEND_RT_VISIBLE_DEVICES="4,5,6,7")
    for rank in range(2):
        by_hand(world(rank, 2), environ, "--start", "mpi")

    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "2 ranks, devices 4, 5, start method mpi" in said
    assert "no rank table, devices in order (ASCEND_RT_VISIBLE_DEVICES)" in said


def refusal(rank: MpiWorld, environ: dict[str, str], *typed: str) -> HcclToolsError:
    with pytest.raises((LaunchError, UsageError)) as caught:
        by_hand(rank, environ, *typed)
    assert caught.value.hint
    return caught.value


def test_what_contradicts_the_table_is_refused(host: StandInHost) -> None:
    table = write_table(("127.0.0.1", (4, 5, 6, 7)))
    environ = environment_of(host, RANK_TABLE_FILE=table)

    size = refusal(world(0, 2), environ)
    assert f"mpirun started 2 ranks, but the table has 4 ({table})" in size.message
    assert "--no-table" in str(size.hint)
    assert "RANK_TABLE_FILE of your shell" in str(size.hint)
    assert "--devices 0, 1, 2, 3, but" in refusal(world(0, 4), environ, "--devices", "0,1,2,3").message
    outside = refusal(world(0, 4), {**environ, "ASCEND_RT_VISIBLE_DEVICES": "0,1,2,3"})
    assert "the table uses devices 4, 5, 6, 7, outside the visible devices 0, 1, 2, 3" in outside.message
    other = write_table(("127.0.0.1", (4, 5, 6, 7)), ips=tuple(f"10.9.9.{device}" for device in range(8)))
    refusal(world(0, 4), {**environ, "RANK_TABLE_FILE": other})
    by_hand(world(0, 4), {**environ, "RANK_TABLE_FILE": other}, "--no-local-check", "--start", "table")


def test_no_table_leaves_the_shells_table_out(host: StandInHost) -> None:
    environ = environment_of(host, RANK_TABLE_FILE=write_table(("127.0.0.1", (4, 5, 6, 7))))

    found = by_hand(world(1, 2), environ, "--no-table", "--start", "mpi")

    assert (found["DEVICE_ID"], found["ASCEND_RT_VISIBLE_DEVICES"]) == ("1", "0,1")


def test_ranks_that_mpirun_spread_unlike_the_table_are_refused() -> None:
    Path("train.py").touch()
    table = write_table(("10.0.0.1", (0, 1)), ("10.0.0.2", (0, 1)))
    environ = {"PATH": "/usr/bin:/bin", "HOST_IP": "10.0.0.1"}

    refused = refusal(
        MpiWorld(2, 4, 1, 2, "job", "Open MPI"), environ, "--rank-table", table, "--product", "a2"
    )

    assert 'rank 2 is on server "10.0.0.2"' in refused.message
    assert 'mpirun started it on "10.0.0.1"' in refused.message
    crowded = MpiWorld(0, 4, 0, 3, "job", "Open MPI")
    refused = refusal(crowded, environ, "--rank-table", table, "--product", "a2")
    assert (
        'mpirun started 3 ranks on this host, but the table has 2 ranks on server "10.0.0.1"'
        in refused.message
    )


def test_ranks_that_alternate_between_hosts_take_different_devices(host: StandInHost) -> None:
    environ = environment_of(host)
    here = [MpiWorld(rank, 5, place, 3, "job", "Open MPI") for place, rank in enumerate((0, 2, 4))]
    options = rank_options.parse(["--start", "mpi", "train.py"])

    found = [by_hand(place, environ, "--start", "mpi") for place in here]

    assert [one["DEVICE_ID"] for one in found] == ["0", "1", "2"]
    assert [one["RANK_ID"] for one in found] == ["0", "2", "4"]
    assert shared_preparation.read(options, here[1], environ) is None


def test_several_hosts_without_a_table_have_to_say_where_they_meet(host: StandInHost) -> None:
    environ = environment_of(host)

    for start in ("table", "cluster", "torch"):
        refused = refusal(world(0, 4, 2), environ, "--start", start)
        assert f"--start {start} on several hosts needs a rank table" in refused.message
    found = by_hand(world(3, 4, 2), environ, "--start", "torch", "--master-addr", "10.0.0.1")
    assert (found["MASTER_ADDR"], found["RANK"], found["LOCAL_RANK"]) == ("10.0.0.1", "3", "1")


def test_mpi_ranks_of_several_hosts_need_no_meeting() -> None:
    Path("train.py").touch()
    found = by_hand(world(2, 4, 2), {"PATH": "/usr/bin:/bin"})

    assert (found["RANK_ID"], found["DEVICE_ID"]) == ("2", "0")
    assert "MS_SCHED_HOST" not in found


@pytest.mark.parametrize("typed", ["RANK_ID=7", "DEVICE_ID=0", "HCCL_TOOLS_RUN_DIR=x", "RANK_TABLE_FILE=x"])
def test_variables_that_ranks_cannot_share_are_refused(host: StandInHost, typed: str) -> None:
    table = write_table(("127.0.0.1", (4, 5, 6, 7)))
    environ = environment_of(host)
    name, _, value = typed.partition("=")
    request = launch_request(("train.py",), rank_table=table, start="table", environment={name: value})

    said = refusal(world(0, 4), environ, "--rank-table", table, "--start", "table", "--env", typed).message
    with pytest.raises(UsageError, match=name) as caught:
        launched(0, environ, request)
    assert caught.value.message == said


def test_variables_that_replace_the_launchers_are_said(host: StandInHost) -> None:
    request = launch_request(
        ("train.py",), ranks=4, start="torch", environment={"DEVICE_NUM": "8", "RANK_SIZE": "4"}
    )

    plan = planner.prepare(request, environ=environment_of(host), working_dir=str(Path.cwd())).plan

    assert [note for note in plan.notes if "--env" in note] == ["DEVICE_NUM=8 (--env) replaces 4"]
    assert plan.ranks[1].environment["DEVICE_NUM"] == "8"
