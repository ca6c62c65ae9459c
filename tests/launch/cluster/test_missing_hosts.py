"""Hosts whose supervisor has not connected: whether they count as lost, by rounds that the test starts."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.cluster import missing_hosts
from hccl_tools.launch.cluster.agents import Agents
from hccl_tools.launch.cluster.missing_hosts import MissingHosts
from hccl_tools.launch.model.plan import Plan, RankProcess
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: No network has the second and third address.
HOSTS = ("127.0.0.1", "240.0.0.1", "240.0.0.2")


class Start:
    """A start of a job of three hosts, of which the first is this one."""

    def __init__(self) -> None:
        ranks = tuple(
            RankProcess(rank, host, rank, 0, 0, {}, ("true",), f"rank_{rank}.log")
            for rank, host in enumerate(HOSTS)
        )
        plan = Plan(ranks, "torch", "ssh", "log", "/", len(HOSTS), supervisor=(sys.executable,))
        self.agents = Agents(plan)
        self.agents.missing.discard(0)
        self.timers: dict[str, Callable[[], None]] = {}
        self.said, self.lost = list[str](), list[tuple[list[int], str]]()
        attempt: Any = SimpleNamespace(
            state=SimpleNamespace(is_ending=False),
            on_ending=[],
            call_later=self._call_later,
            say=self.said.append,
            age=0.0,
        )
        self.attempt = attempt
        self._watch = MissingHosts(attempt, self.agents, plan, self._end)

    def _call_later(self, name: str, _seconds: float, act: Callable[[], None]) -> None:
        self.timers[name] = act

    def _end(self, servers: Any, why: str) -> None:
        self.lost.append((list(servers), why))

    def end(self) -> None:
        """Let the start end."""
        for act in self.attempt.on_ending:
            act()

    def round(self, age: float) -> None:
        """Let the next round begin once the commands of the last one have ended."""
        asked = self._watch._asked.values()
        assert eventually(lambda: all(one._command.has_ended for one in asked))
        self.attempt.age = age
        self.timers.pop("missing hosts")()


@pytest.fixture
def start() -> Iterator[Start]:
    made = Start()
    yield made
    made.end()


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program that stands for ssh."""
    program = tmp_path / "ssh"
    program.write_text("#!/bin/sh\nexit 255\n")
    program.chmod(0o755)
    monkeypatch.setenv("OMPI_MCA_plm_ssh_agent", str(program))
    return program


@pytest.mark.usefixtures("ssh")
def test_hosts_that_do_not_answer_are_lost_after_a_round(start: Start) -> None:
    start.round(6.0)
    assert start.lost == []

    start.round(12.0)

    assert start.lost == [([1, 2], "it does not answer")]


def test_a_host_that_runs_commands_is_slow_and_named_once(ssh: Path, start: Start) -> None:
    ssh.write_text("#!/bin/sh\nexit 0\n")
    for age in (6.0, 12.0, 18.0):
        start.round(age)
    assert start.said == []

    start.agents.missing.discard(2)
    for age in (24.0, 30.0):
        start.round(age)

    assert start.lost == []
    assert start.said == [
        "still waiting for 240.0.0.1 (rank 1) to start; the job ends after 300 s (--join-timeout)"
    ]
    start.timers["join timeout"]()
    assert start.lost == [([1], "it was not ready within 300 s (--join-timeout)")]


@pytest.mark.usefixtures("ssh")
def test_a_host_that_connects_meanwhile_is_not_lost(start: Start) -> None:
    start.round(6.0)
    start.agents.missing.clear()

    start.round(12.0)
    start.timers["join timeout"]()

    assert start.lost == []
    assert list(start.timers) == ["join timeout"]


def test_without_a_way_to_ask_a_host_it_may_be_there(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_MCA_plm_ssh_agent", "/nowhere/ssh")
    for age in (6.0, 12.0, 18.0):
        start.round(age)

    assert start.lost == []


def test_a_probe_of_a_host_that_prints_without_end_takes_no_more_memory(ssh: Path) -> None:
    ssh.write_text("#!/bin/sh\nexec head -c 64000000 /dev/zero\n")
    probe = missing_hosts.HostProbe(Plan((), "torch", "ssh", "log", "/", 0), "240.0.0.1")

    has_ended = eventually(lambda: probe.has_ended)
    size = os.fstat(probe._output).st_size
    probe.close()

    assert has_ended
    assert size < 1 << 20


def test_what_a_probe_leaves_running_ends_with_it(ssh: Path) -> None:
    ssh.write_text("#!/bin/sh\nexec sleep 6464\n")
    plan = Plan((), "torch", "ssh", "log", "/", 0)
    probe = missing_hosts.HostProbe(plan, "240.0.0.1")
    before = probe.has_ended

    probe.close()

    assert (before, probe.has_ended, probe.has_succeeded) == (False, True, False)
