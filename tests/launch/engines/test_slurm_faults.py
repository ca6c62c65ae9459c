"""A Slurm job over two nodes with disks and cables of their own: lost, stopped, followed, restarted."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.network_host import Host
    from tests.beds.slurm_cluster import SlurmCluster

pytestmark = pytest.mark.bed

#: Ranks that nothing but a signal ends: quiet ones, and such as always have output on its way.
QUIET = "echo up; exec sleep 6464"
TALKING = 'while :; do echo "rank $RANK_ID talks, and talks, and has no end"; sleep 0.01 6464e-9; done'
STUBBORN = 'trap "" TERM; echo up; while :; do sleep 1 6464e-9; done'


class Cluster:
    """The cluster and a place on every host's own disk where a job of both nodes is started."""

    def __init__(self, bed: SlurmCluster, place: str) -> None:
        self.bed, self.place = bed, place
        for folder in (bed.login.disk, *(host.folder / "disk" for host in self.hosts)):
            (folder / place).mkdir()

    @property
    def hosts(self) -> tuple[Host, ...]:
        return (self.bed.login, self.bed.first, self.bed.second)

    def path(self, host: Host) -> Path:
        return host.folder / "disk" / self.place

    def here(self, *command: str) -> list[str]:
        return ["env", "-C", f"{self.bed.login.disk}/{self.place}", *command]

    def tool(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.bed.run(self.here(sys.executable, "-m", "hccl_tools", *args))

    def log(self, host: Host, name: str) -> str:
        path = self.path(host) / "log" / "latest" / name
        return path.read_text() if path.exists() else ""

    def start(self, script: str, *options: str) -> subprocess.Popen[str]:
        launch = two_by_two.command(("10.79.0.1", "10.79.0.2"), "--engine", "slurm", "--start", "torch")
        Path("table.json").rename(self.path(self.bed.login) / "table.json")
        command = ["salloc", "-N2", "--ntasks-per-node=1", *launch, "--grace", "2", *options]
        command += ["--no-python", "sh", "-c", script]
        return self.bed.start(self.here(*command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    @contextmanager
    def running(self, script: str, *options: str) -> Iterator[subprocess.Popen[str]]:
        """Start a job and wait until all four ranks run; whatever is left is ended afterwards."""
        job = self.start(script, *options)
        try:
            first, second = self.hosts[1:]
            logs = [(first, 1), (first, 2), (second, 0), (second, 3)]

            def are_up() -> bool:
                return all(self.log(host, f"rank_{rank}.log") for host, rank in logs)

            assert eventually(lambda: are_up() or job.poll() is not None)
            assert are_up(), job.communicate()[1]
            yield job
        finally:
            if job.poll() is None:
                job.terminate()
            job.communicate(timeout=LONG)

    def ranks(self) -> list[int]:
        """The processes of ranks on both nodes."""
        return [
            pid
            for host in self.hosts[1:]
            for pid, command in host.commands().items()
            if any("6464" in word for word in command) and "hccl_tools.launch" not in command
        ]


@pytest.fixture
def cluster(slurm_cluster: SlurmCluster, tmp_path: Path) -> Cluster:
    return Cluster(slurm_cluster, tmp_path.name)


@pytest.mark.parametrize("script", [QUIET, TALKING], ids=["quiet", "talking"])
def test_a_node_that_is_cut_off_ends_the_job_on_both_sides(cluster: Cluster, script: str) -> None:
    second = cluster.bed.second
    with cluster.running(script, *two_by_two.SHORT_LOSS) as job:
        second.cut_off()
        try:
            _, said = job.communicate(timeout=LONG)
            gone = eventually(lambda: not cluster.ranks())
        finally:
            second.reconnect()

    assert job.returncode == 128 + signal.SIGKILL, said
    assert "lost contact with the supervisor on 10.79.0.2 (ranks 0, 3): " in said
    assert gone
    # Slurm finds out by itself that the node is back; the next test wants it.
    assert eventually(lambda: cluster.bed.is_idle)


def test_a_killed_launcher_leaves_nothing_on_the_nodes(cluster: Cluster) -> None:
    with cluster.running(STUBBORN) as job:
        (launcher,) = [
            pid
            for pid, command in cluster.bed.login.commands().items()
            if command[1:4] == ["-m", "hccl_tools", "launch"]
        ]
        os.kill(launcher, signal.SIGKILL)
        job.communicate(timeout=LONG)

        assert eventually(lambda: not cluster.ranks())


def _slurmstepds(cluster: Cluster) -> list[int]:
    """Return the processes of Slurm that have started the ranks of the second node."""
    commands = cluster.bed.second.commands()
    return [pid for pid, command in commands.items() if command[0].startswith("slurmstepd: [")]


def test_a_killed_slurmstepd_ends_the_job_and_is_named(cluster: Cluster) -> None:
    """Srun does not notice, and waits for ever."""
    with cluster.running(QUIET) as job:
        # That of an earlier job may still end.
        assert eventually(lambda: len(_slurmstepds(cluster)) == 1)
        (slurmstepd,) = _slurmstepds(cluster)
        os.kill(slurmstepd, signal.SIGKILL)
        _, said = job.communicate(timeout=LONG)

        assert eventually(lambda: not cluster.ranks())
    assert job.returncode == 128 + signal.SIGKILL, said
    assert f"exit code 137: 10.79.0.2: slurmstepd (pid {slurmstepd}) was killed" in said


def test_ranks_that_have_ended_well_do_not_wait_for_srun(cluster: Cluster) -> None:
    over = Path.cwd() / "over"
    with cluster.running(f"echo up; until [ -e {over} ]; do sleep 0.1 6464e-9; done") as job:
        # That of an earlier job may still end.
        assert eventually(lambda: len(_slurmstepds(cluster)) == 1)
        (slurmstepd,) = _slurmstepds(cluster)
        os.kill(slurmstepd, signal.SIGSTOP)
        try:
            over.touch()
            _, said = job.communicate(timeout=LONG)
        finally:
            os.kill(slurmstepd, signal.SIGCONT)

    assert job.returncode == 0, said
    assert "srun did not exit within 3 s after all ranks: ending it" in said


def test_a_killed_srun_is_named(cluster: Cluster) -> None:
    with cluster.running(QUIET) as job:
        commands = cluster.bed.login.commands()
        srun = min(pid for pid, command in commands.items() if command[0].endswith("/srun"))
        os.kill(srun, signal.SIGKILL)
        _, said = job.communicate(timeout=LONG)

        assert eventually(lambda: not cluster.ranks())
    assert job.returncode == 128 + signal.SIGKILL, said
    assert "srun failed first: killed by SIGKILL" in said


def test_scancel_of_a_batch_job_leaves_nothing_although_slurm_kills_the_launcher(cluster: Cluster) -> None:
    """Without ``exec`` the shell of the batch script ends at once, and Slurm kills what it has started.

    The launcher may have had no time to report that.
    """
    first, second = cluster.hosts[1:]
    launch = two_by_two.command(("10.79.0.1", "10.79.0.2"), "--engine", "slurm", "--start", "torch")
    Path("table.json").rename(cluster.path(first) / "table.json")
    program = shlex.join([*launch, "--grace", "2", "--no-python", "sh", "-c", QUIET])
    Path("job.sh").write_text(f"#!/bin/sh\ncd {cluster.bed.login.disk}/{cluster.place}\n{program}\n")
    options = ("--parsable", "-N2", "--ntasks-per-node=1", "-o", str(Path.cwd() / "out"))
    job = cluster.bed.run(["sbatch", *options, str(Path.cwd() / "job.sh")]).stdout.strip()
    logs = [(first, 1), (first, 2), (second, 0), (second, 3)]
    assert eventually(lambda: all(cluster.log(host, f"rank_{rank}.log") for host, rank in logs))

    cluster.bed.run(["scancel", job])

    assert eventually(lambda: not cluster.bed.run(["squeue", "--noheader"]).stdout)
    assert eventually(lambda: not cluster.ranks())


@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "second node late"])
def test_scancel_of_the_step_is_named(
    cluster: Cluster, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a loaded node Slurm may be so late that the supervisor there has ended and reported its ranks.

    The launcher does not end srun before Slurm does: then it could not know who has ended the step.
    """
    monkeypatch.setenv("HCCL_TOOLS_TIMING", f"engine.end={LONG}")
    with cluster.running(QUIET) as job:
        (step,) = cluster.bed.run(["squeue", "--noheader", "--steps", "--format=%i %j"]).stdout.splitlines()
        number = step.split()[0]
        assert eventually(lambda: len(_slurmstepds(cluster)) == 1)  # That of an earlier job may still end.
        late = _slurmstepds(cluster) if is_late else []
        for slurmstepd in late:
            os.kill(slurmstepd, signal.SIGSTOP)
        cluster.bed.run(["scancel", number])
        if is_late:
            assert eventually(lambda: not cluster.ranks())
        for slurmstepd in late:
            os.kill(slurmstepd, signal.SIGCONT)
        _, said = job.communicate(timeout=LONG)

        assert eventually(lambda: not cluster.ranks())
    assert job.returncode == 128 + signal.SIGKILL, said
    assert f"Slurm has ended step {number} by `scancel {number}`" in said, said


@pytest.mark.parametrize("options", [[], ["--now"]], ids=["in good order", "--now"])
def test_stop_ends_ranks_that_do_not_want_to(cluster: Cluster, options: list[str]) -> None:
    with cluster.running(STUBBORN) as job:
        done = cluster.tool("stop", *options)
        _, said = job.communicate(timeout=LONG)

        assert done.returncode == 0, done.stderr
        assert eventually(lambda: not cluster.ranks())
    assert job.returncode == 128 + signal.SIGTERM, said


def test_ranks_have_the_grace_time_when_the_launcher_is_asked_to_end(cluster: Cluster) -> None:
    """Srun itself kills at once what it has started."""
    saves = 'trap "sleep 1; echo saved; exit" TERM; echo up; while :; do sleep 0.1 6464e-9; done'
    with cluster.running(saves) as job:
        assert cluster.tool("stop").returncode == 0
        _, said = job.communicate(timeout=LONG)

    assert job.returncode == 128 + signal.SIGTERM, said
    for rank, host in ((1, cluster.bed.first), (3, cluster.bed.second)):
        assert cluster.log(host, f"rank_{rank}.log").endswith("saved\n")


def test_logs_of_a_node_are_followed_to_the_end(cluster: Cluster) -> None:
    over = Path.cwd() / "over"
    script = f'i=0; until [ -e {over} ]; do i=$((i+1)); echo "line $i"; sleep 0.1; done; echo "the end"'
    with cluster.running(script) as job:
        logs = cluster.here(sys.executable, "-m", "hccl_tools", "logs", "-f", "--rank", "3", "--rank", "1")
        with Path("shown").open("w") as out:
            following = cluster.bed.start(logs, stdout=out, stderr=subprocess.PIPE)
        assert eventually(lambda: "[rank 3] line" in Path("shown").read_text())
        assert eventually(lambda: "[rank 1] line" in Path("shown").read_text())
        over.touch()
        _, said = following.communicate(timeout=LONG)
        job.communicate(timeout=LONG)

    assert following.returncode == 0, said
    for rank, host in ((1, cluster.bed.first), (3, cluster.bed.second)):
        mark = f"[rank {rank}] "
        shown = [line for line in Path("shown").read_text().splitlines() if line.startswith(mark)]
        written = cluster.log(host, f"rank_{rank}.log").splitlines()
        assert [line.removeprefix(mark) for line in shown] == written


def test_all_ranks_start_again(cluster: Cluster) -> None:
    up = Path.cwd() / "up"
    all_up = " && ".join(f"[ -e {up}_{rank} ]" for rank in range(4))
    starts = f"echo up; touch {up}_$RANK_ID; [ $HCCL_TOOLS_RESTART = 0 ] || exit 0"
    fails = f"until {all_up}; do sleep 0.05; done; [ $RANK_ID != 3 ] || exit 7; exec sleep 6464"
    job = cluster.start(f"{starts}; {fails}", "--max-restarts", "1")
    _, said = job.communicate(timeout=LONG)

    assert job.returncode == 0, said
    for rank, host in ((1, cluster.bed.first), (3, cluster.bed.second)):
        assert cluster.log(host, f"rank_{rank}.log") == "up\n"
        assert cluster.log(host, f"rank_{rank}.restart_1.log") == "up\n"
    report = json.loads(cluster.log(cluster.bed.login, "report.json"))
    assert (report["exit_code"], report["restarts"]) == (0, 1)


def test_only_what_is_exported_reaches_the_ranks(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "a, b")
    monkeypatch.setenv("HCCL_MINE", "c")
    job = cluster.start('echo "$MINE/$HCCL_MINE/$RANK_ID"', "--no-export", "--export", "MINE")
    _, said = job.communicate(timeout=LONG)

    assert job.returncode == 0, said
    assert cluster.log(cluster.bed.first, "rank_1.log") == "a, b//1\n"


def test_the_rank_that_failed_on_another_host_is_shown_with_host_and_path(cluster: Cluster) -> None:
    job = cluster.start('echo "no data here"; [ "$RANK_ID" != 3 ] || exit 4; exec sleep 6464')
    _, said = job.communicate(timeout=LONG)

    assert job.returncode == 4, said
    assert "| no data here" in said
    path = f"{cluster.bed.login.disk}/{cluster.place}/log/"
    assert f"from 10.79.0.2:{path}" in said


#: Rank 3, on the second node, is stopped; the others wait.
STOPS = "echo up; [ $RANK_ID = 3 ] && kill -STOP $$; exec sleep 6464"


def test_stacks_show_a_stopped_rank(cluster: Cluster) -> None:
    with cluster.running(STOPS):
        assert eventually(lambda: "): stopped\n" in cluster.tool("stacks").stdout)


def test_a_stopped_rank_ends_the_job_as_a_hang(cluster: Cluster) -> None:
    with cluster.running(STOPS, "--hang-timeout", "2") as job:
        _, said = job.communicate(timeout=LONG)

    assert job.returncode == 124, said
    assert "rank 3 stopped first" in said
    report = json.loads(cluster.log(cluster.bed.login, "report.json"))
    assert [one["rank"] for one in report["hung"] if one["is_first"]] == [3]
    assert not cluster.ranks()


def test_each_node_leaves_evidence_of_its_ranks(cluster: Cluster) -> None:
    script = 'echo up; [ "$RANK_ID" = 3 ] && { sleep 2; exit 7; }; exec sleep 6464'
    with cluster.running(script) as job:
        _, said = job.communicate(timeout=LONG)

    assert job.returncode == 7, said
    report = json.loads(cluster.log(cluster.bed.login, "report.json"))
    assert sorted(note["host"] for note in report["evidence"]) == ["10.79.0.1", "10.79.0.2"], said
    files = [
        path for host in cluster.hosts[1:] for path in (cluster.path(host) / "log").glob("*/evidence_*.json")
    ]
    found = {one["rank"]: one for path in set(files) for one in json.loads(path.read_text())["ranks"]}
    assert sorted(found) == [0, 1, 2, 3]
    assert found[3]["problem"] == "exit code 7"
    assert all(found[rank]["doing"].startswith("sleeping in") for rank in range(3))
    assert all(one["last_lines"] == ["up"] for one in found.values())
