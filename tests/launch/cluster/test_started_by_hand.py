"""One job whose command was typed on each of its hosts: here two or three launchers on this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.planning import ports
from hccl_tools.runs.index import processes, read
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

SLEEP = "echo up; exec sleep 6262"


class Hosts:
    """The launchers of a job of so many hosts with two ranks each; what each said and left, by host."""

    def __init__(
        self,
        count: int,
        program: str,
        *options: str,
        each: dict[int, list[str]] | None = None,
        port: int | None = None,
    ) -> None:
        self.count, self.port = count, port or ports.free_port()
        self.launchers = [
            self.launch(host, program, *options, *(each or {}).get(host, ())) for host in range(count)
        ]
        self.said: list[str] = []

    def launch(self, host: int, program: str, *options: str) -> subprocess.Popen[bytes]:
        return self.started([sys.executable, "-m", "hccl_tools"], host, program, *options)

    def started(
        self, hccl_tools: list[str], host: int, program: str, *options: str
    ) -> subprocess.Popen[bytes]:
        command = [
            *hccl_tools, "launch", "--no-table", "--start", "torch",
            *("--nnodes", str(self.count), "--node-rank", str(host), "--nproc-per-node", "2"),
            *("--master-addr", "127.0.0.1", "--start-port", str(self.port), "--log-dir", f"log{host}"),
            *("--grace", "2", *options, "--no-python", "sh", "-c", program),
        ]  # fmt: skip
        with Path(f"said{host}").open("w") as said:
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)

    def end(self) -> list[int]:
        """Wait for all launchers; their exit codes."""
        for launcher in self.launchers:
            launcher.wait(LONG)
        self.said = [Path(f"said{host}").read_text() for host in range(self.count)]
        return [launcher.returncode for launcher in self.launchers]

    def report(self, host: int) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(Path(f"log{host}/latest/report.json").read_text())
        return value

    def log(self, host: int, rank: int) -> Path:
        return Path(f"log{host}/latest/rank_{rank}.log")

    def are_up(self) -> None:
        """Wait until every rank has said so."""
        logs = [self.log(rank // 2, rank) for rank in range(2 * self.count)]
        assert eventually(lambda: all(log.exists() and "up" in log.read_text() for log in logs))

    def tells(self, host: int, text: str) -> None:
        """Wait until a launcher says a text."""
        said = Path(f"said{host}")
        assert eventually(lambda: text in said.read_text()), said.read_text()

    def nobody_is_left(self) -> bool:
        """Whether no rank of the job runs any more."""
        runs = [Path(f"log{host}/latest").resolve() for host in range(self.count)]
        return eventually(lambda: not any(processes(read(str(run))) for run in runs))


@pytest.fixture
def hosts() -> Iterator[Any]:
    """Start the hosts of a job, and end what is left of it."""
    started: list[Hosts] = []

    def start(count: int, program: str, *options: str, **more: Any) -> Hosts:
        started.append(Hosts(count, program, *options, **more))
        return started[-1]

    yield start
    for job in started:
        for launcher in job.launchers:
            if launcher.poll() is None:
                launcher.kill()
            launcher.wait()


def only(rank: int, program: str, others: str = SLEEP) -> str:
    return f'if [ "$RANK_ID" = {rank} ]; then {program}; fi; {others}'


def test_all_end_well(hosts: Any) -> None:
    job = hosts(3, "exit 0")

    assert job.end() == [0, 0, 0]
    assert [job.report(host)["reason"] for host in range(3)] == ["ended"] * 3


@pytest.mark.parametrize("rank", [0, 5])
def test_a_failed_rank_ends_the_job_on_all_and_is_named_on_all(hosts: Any, rank: int) -> None:
    job = hosts(3, only(rank, "echo bad luck; exit 7"))

    assert job.end() == [7, 7, 7], job.said
    where = f"node{rank // 2}"
    for host, said in enumerate(job.said):
        assert f"rank {rank} failed first: exit code 7" in said
        assert "    | bad luck" in said
        elsewhere = "" if host == rank // 2 else f" on {where}"
        assert said.splitlines()[-1] == f"hccl-tools: exit code 7, from rank {rank}{elsewhere}"
        report = job.report(host)
        assert report["began_on"] == (where if elsewhere else None)
        assert (report["first_failure"]["rank"], report["first_failure"]["host"]) == (rank, where)
    assert job.nobody_is_left()


def test_a_killed_rank_is_that_on_all(hosts: Any) -> None:
    job = hosts(2, only(3, "kill -9 $$"))

    assert job.end() == [137, 137]
    assert "exit code 137, from rank 3 on node1, ended by SIGKILL (128 + 9)" in job.said[0]


def test_ranks_that_fail_on_two_hosts_have_one_first(hosts: Any) -> None:
    job = hosts(3, "exit $((10 + RANK_ID))")

    codes = job.end()

    assert len(set(codes)) == 1
    assert 10 <= codes[0] <= 15
    assert {job.report(host)["first_failure"]["rank"] for host in range(3)} == {codes[0] - 10}


@pytest.mark.parametrize("host", [0, 2])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_one_launcher_ends_all(hosts: Any, host: int, number: signal.Signals) -> None:
    job = hosts(3, SLEEP)
    job.are_up()
    job.launchers[host].send_signal(number)

    assert job.end() == [128 + number] * 3, job.said
    for other in range(3):
        last = job.said[other].splitlines()[-1]
        if other == host:
            assert f": the launcher received {number.name}" in last
        else:
            assert last.endswith(f": the launcher on node{host} received {number.name}")
    assert job.nobody_is_left()


def test_ranks_elsewhere_have_the_grace_time(hosts: Any) -> None:
    program = "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    job = hosts(2, program, "--grace", str(10 * LONG))
    job.are_up()
    job.launchers[1].terminate()

    assert job.end() == [143, 143]
    assert all(job.log(rank // 2, rank).read_text().endswith("saved\n") for rank in range(4))


def test_second_interrupt_kills_on_all(hosts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_TOOLS_TIMING", "supervisor.repeat_sigint=0")
    program = "trap 'echo asked' INT; echo up; while :; do sleep 0.05; done"
    job = hosts(2, program, "--grace", str(10 * LONG))
    job.are_up()
    job.launchers[1].send_signal(signal.SIGINT)
    assert eventually(lambda: all("asked" in job.log(rank // 2, rank).read_text() for rank in range(4)))
    job.launchers[1].send_signal(signal.SIGINT)

    assert job.end() == [130, 130]


@pytest.mark.parametrize("host", [0, 1])
def test_a_killed_launcher_ends_all_and_is_named(hosts: Any, host: int) -> None:
    job = hosts(3, SLEEP)
    job.are_up()
    job.launchers[host].kill()

    assert job.end() == [-9 if other == host else 137 for other in range(3)]
    named = f"lost contact with the launcher on node{host} (ranks {2 * host}, {2 * host + 1}): "
    assert all(named in job.said[other] for other in range(3) if other != host)
    assert job.nobody_is_left()


def test_a_killed_keeper_ends_all(hosts: Any) -> None:
    job = hosts(2, SLEEP)
    job.are_up()
    rank = Path(f"/proc/{processes(read(str(Path('log1/latest').resolve())))[0]}/stat").read_text()
    os.kill(int(rank.rpartition(")")[2].split()[1]), signal.SIGKILL)

    assert job.end() == [137, 137]
    assert ": the keeper process on node1 was killed" in job.said[0]
    assert job.nobody_is_left()


def test_time_out_is_everybodys(hosts: Any) -> None:
    job = hosts(2, SLEEP, each={1: ["--timeout", "0.7"]})

    assert job.end() == [124, 124]
    assert "exit code 124: the job exceeded --timeout on node1" in job.said[0]


def test_a_log_that_cannot_be_written_on_one_host_ends_all(hosts: Any) -> None:
    Path("log1").mkdir()
    job = hosts(2, SLEEP, each={1: ["--flat-logs"]})
    # Where this host's second rank would write.
    Path("log1/workerlog.1").mkdir()

    assert job.end() == [125, 125]
    assert "node1 does not start its part: " in job.said[0]


def test_a_launcher_returns_when_its_ranks_have_ended_well(
    hosts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_TOOLS_TIMING", "peers.notice=0.5,peers.acknowledge=0.5")
    last = "while ! [ -e enough ]; do sleep 0.05; done; exit 7"
    job = hosts(3, "echo up; " + only(5, last, "exit 0"))
    job.are_up()

    # Whoever passes the others' words on stays, and says so.
    assert job.launchers[1].wait(LONG) == 0
    job.tells(0, "all ranks of this host have exited with 0; ranks of node2 are still running")
    assert [launcher.poll() for launcher in job.launchers] == [None, 0, None]
    Path("enough").touch()
    assert job.end() == [0, 0, 7]
    after = "exit code 7, after all ranks of this host had exited with 0"
    assert f"rank 5 on node2 failed first: {after}" in job.said[0]


def test_interrupt_while_the_others_still_run_ends_them(hosts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_TOOLS_TIMING", "peers.notice=0.1")
    job = hosts(2, 'echo up; [ "$RANK_ID" -gt 1 ] || exit 0; exec sleep 6262')
    job.are_up()
    job.tells(0, "all ranks of this host have exited with 0; ranks of node1 are still running")
    job.launchers[0].send_signal(signal.SIGINT)

    assert job.end() == [130, 130]
    assert "the launcher on node0 received SIGINT" in job.said[1]


def test_a_stopped_launcher_is_not_taken_for_lost(hosts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other has long ended its ranks, and has asked for an answer."""
    monkeypatch.setenv("HCCL_TOOLS_TIMING", "peers.acknowledge=0.2,peers.notice=0.1")
    job = hosts(2, 'echo up; [ "$RANK_ID" -gt 1 ] || until [ -e enough ]; do sleep 0.05; done')
    job.are_up()
    job.launchers[0].send_signal(signal.SIGSTOP)
    assert job.launchers[1].wait(LONG) == 0
    Path("enough").touch()
    job.launchers[0].send_signal(signal.SIGCONT)

    assert job.end() == [0, 0]


@pytest.mark.parametrize("host", [0, 1])
def test_a_launcher_that_does_not_answer_is_named_and_not_waited_for(
    hosts: Any, host: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_TOOLS_TIMING", "peers.acknowledge=0.5")
    fail = "while ! [ -e enough ]; do sleep 0.05; done; exit 7"
    job = hosts(2, only(2 - 2 * host, fail))
    assert eventually(lambda: all(job.log(one, 1 + 2 * one).exists() for one in (0, 1)))
    job.launchers[host].send_signal(signal.SIGSTOP)
    Path("enough").touch()

    assert job.launchers[1 - host].wait(LONG) == 7
    job.launchers[host].send_signal(signal.SIGCONT)
    assert job.end() == [7, 7]
    assert f"no answer from node{host}: unreachable, down or stopped" in job.said[1 - host]
    assert f"exit code 7, from rank {2 - 2 * host} on node{1 - host}" in job.said[host]


#: Rank 3 fails in the first start, where the others go on with ``then``.
ONCE = 'echo up; [ -e been.here ] && exit; [ "$RANK_ID" != 3 ] || {{ touch been.here; exit 7; }}; {then}'


@pytest.mark.parametrize("then", ["exec sleep 6262", ":"])
def test_all_hosts_start_again_together(hosts: Any, then: str) -> None:
    # If the others do not wait, some have ended well before the failure: their hosts are still there.
    job = hosts(3, ONCE.format(then=then), "--max-restarts", "2")

    assert job.end() == [0, 0, 0], job.said
    for rank in range(6):
        assert job.log(rank // 2, rank).with_name(f"rank_{rank}.restart_1.log").read_text() == "up\n"
    assert [job.report(host)["restarts"] for host in range(3)] == [1, 1, 1]
    assert all("restart 1 of 2: starting all ranks again" in said for said in job.said)


def test_restarts_come_to_an_end_on_all(hosts: Any) -> None:
    job = hosts(2, only(1, "exit 9"), "--max-restarts", "1")

    assert job.end() == [9, 9]
    assert [job.report(host)["restarts"] for host in range(2)] == [1, 1]
    assert job.nobody_is_left()


def test_restart_is_not_waited_for_when_a_host_has_gone(hosts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_TOOLS_TIMING", "peers.notice=0.1")
    stubborn = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    fails = "echo up; while ! [ -e enough ]; do sleep 0.05; done; exit 7"
    graces = {0: ["--grace", "0.2"], 1: ["--grace", str(10 * LONG)]}
    job = hosts(2, only(0, fails, stubborn), "--max-restarts", "1", each=graces)
    job.are_up()
    Path("enough").touch()
    job.tells(0, "waiting for the other hosts to end their ranks")
    job.launchers[1].kill()

    assert job.end() == [7, -9]
    assert "no restart: lost contact with the launcher on node1" in job.said[0]


def test_restarts_that_differ_are_refused(hosts: Any) -> None:
    job = hosts(2, SLEEP, each={1: ["--max-restarts", "3"]})

    assert job.end() == [125, 125]
    assert all("--max-restarts: node0 has 0, node1 has 3" in said for said in job.said)


def test_restarts_need_the_meeting(hosts: Any) -> None:
    job = hosts(2, SLEEP, "--max-restarts", "1", "--no-preflight")

    assert job.end() == [125, 125]
    assert "hosts without a rendezvous cannot restart together" in job.said[0]


def test_the_start_port_is_free_for_the_ranks(hosts: Any) -> None:
    # As torch's store and MindSpore's scheduler do.
    listen = "import os, socket; socket.create_server(('', int(os.environ['MASTER_PORT'])), reuse_port=False)"
    job = hosts(2, f'[ "$RANK_ID" != 0 ] || exec {sys.executable} -c "{listen}"')

    assert job.end() == [0, 0], job.said


def hccl_tools(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hccl_tools", *args, "--log-dir", "log1"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONG)


def test_stop_and_jobs_know_the_other_hosts(hosts: Any) -> None:
    job = hosts(2, SLEEP)
    job.are_up()
    listed = json.loads(hccl_tools("jobs", "-f", "json").stdout)["runs"]
    found = [run for run in listed if run["path"].startswith(f"{Path.cwd()}/log1/")]
    header = hccl_tools("jobs").stdout.split("\n")[0]
    stopped = hccl_tools("stop")

    assert [(run["ranks"], run["hosts"]) for run in found] == [(4, 2)]
    assert header.split() == ["run", "state", "ranks", "hosts", "age", "exit", "program"]
    assert stopped.returncode == 0
    assert "exit code 143; its ranks on node0 end as well" in stopped.stderr
    assert job.end() == [143, 143]
    assert ": the launcher on node1 received SIGTERM" in job.said[0]


@pytest.mark.parametrize("host", [0, 1])
def test_an_error_on_one_host_ends_the_wait_on_the_other(hosts: Any, host: int) -> None:
    job = hosts(2, "exit 0", each={host: ["--env", "RANK_ID=1"]})

    assert job.end()[1 - host] == 125, job.said
    assert f"node{host} does not start its part: " in job.said[1 - host]
    assert f"see the output of hccl-tools on node{host}" in job.said[1 - host]
    assert "telling the other hosts that the job does not start" in job.said[host]


@pytest.mark.parametrize("host", [0, 1])
def test_a_failed_health_command_on_one_host_ends_the_wait_on_the_other(hosts: Any, host: int) -> None:
    each = {host: ["--preflight-command", "echo broken; exit 3"]}
    job = hosts(2, "exit 0", "--cpu", each=each)

    assert job.end() == [125, 125], job.said
    assert (
        f"node{host} does not start its part: the health command failed with exit code 3: broken"
        in " ".join(job.said[1 - host].split())
    )
    assert "--preflight quick" not in job.said[host]


def test_a_taken_start_port_ends_the_wait_on_the_other(hosts: Any) -> None:
    port = ports.free_port()
    with socket.create_server(("127.0.0.1", port)):
        job = hosts(2, "exit 0", port=port)
        codes = job.end()

    assert codes == [125, 125], job.said
    assert f"port {port}" in job.said[0]
    assert "node0 does not start its part: " in job.said[1]
