"""Which hosts of a job count as lost. The first is this host; a program stands for ssh to the others."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.cluster.verdict import Unreported
from hccl_tools.launch.engines.engine import EngineProcess
from hccl_tools.launch.model.outcome import Outcome, RankEnd
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.spares import lost_hosts

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.runs.ends import Reason

HOSTS = ("127.0.0.1", "10.9.0.1", "10.9.0.2")
#: Runs the command on this host, except for a host of the case.
SSH = """#!/bin/sh
case "$*" in *{lost}*) exit 255;; esac
for command; do :; done
exec sh -c "$command"
"""
NONE = "no-host"


@pytest.fixture(autouse=True)
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program that stands for ssh; all hosts run commands."""
    program = tmp_path / "ssh"
    program.write_text(SSH.format(lost=NONE))
    program.chmod(0o755)
    monkeypatch.setenv("OMPI_MCA_plm_ssh_agent", str(program))
    return program


def marked(
    reason: Reason,
    unreported: Unreported,
    failed: type[RankProcess] = RankProcess,
    status: int = 255 << 8,
) -> Outcome:
    ranks = tuple(
        RankProcess(rank, host, rank, 0, 0, {}, ("true",), f"rank_{rank}.log")
        for rank, host in enumerate(HOSTS)
    )
    first = failed(0, "127.0.0.1", 0, 0, 0, {}, ("mpirun",), "engine.log")
    end = RankEnd(first, first.log, status=status)
    outcome = Outcome(reason, [], 1.0, end if reason == "failed" else None)
    plan = Plan(ranks, "torch", "ssh", "log", "/", len(HOSTS), supervisor=(sys.executable,))
    lost_hosts.mark(plan, outcome, unreported)
    return outcome


@pytest.mark.parametrize(
    ("reason", "unreported", "lost"),
    [
        ("host", Unreported(lost=(2, 1)), (2,)),
        ("daemon", Unreported(without_daemon=(1,), lost=(2,)), (1,)),
        ("refused", Unreported(refused=(1, 2)), (1, 2)),
    ],
)
def test_the_first_loss_is_the_cause_of_the_others(
    reason: Reason, unreported: Unreported, lost: tuple[int, ...]
) -> None:
    outcome = marked(reason, unreported)

    assert (outcome.is_host_lost, outcome.lost_servers) == (True, lost)


def test_a_host_that_runs_no_command_is_the_lost_one(ssh: Path) -> None:
    ssh.write_text(SSH.format(lost="10.9.0.2"))

    outcome = marked("host", Unreported(lost=(1,), missing=(2,)))

    assert (outcome.is_host_lost, outcome.lost_servers, outcome.lost_before_start) == (True, (2,), True)


@pytest.mark.parametrize("unreported", [Unreported(lost=(0, 1)), Unreported(lost=(2,), missing=(1,))])
def test_no_spare_takes_the_place_of_a_host_that_may_be_sound(unreported: Unreported) -> None:
    """This host runs the launcher; and an engine kills all agents if one of them did not connect."""
    outcome = marked("host", unreported)

    assert (outcome.is_host_lost, outcome.lost_servers) == (True, ())


@pytest.mark.slow
@pytest.mark.parametrize("missing", [(1,), (1, 2)])
@pytest.mark.parametrize("reason", ["host", "daemon", "refused"])
def test_a_host_that_never_connected_and_runs_commands_is_not_replaced(
    reason: Reason, missing: tuple[int, ...]
) -> None:
    outcome = marked(reason, Unreported(missing=missing))

    assert (outcome.is_host_lost, outcome.lost_servers) == (True, ())


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["failed", "hang", "timeout", "signal", "keeper"])
@pytest.mark.parametrize("unreported", [Unreported(lost=(1,)), Unreported(missing=(1,)), Unreported()])
def test_a_host_that_runs_commands_is_not_lost_by_another_cause(
    reason: Reason, unreported: Unreported
) -> None:
    outcome = marked(reason, unreported)

    assert (outcome.is_host_lost, outcome.lost_servers) == (False, ())


def test_an_engine_that_fails_because_it_has_lost_a_host_names_this_host() -> None:
    """MPICH's mpiexec exits with 255 when it loses the connection to a host."""
    outcome = marked("failed", Unreported(lost=(1,)), EngineProcess)

    assert (outcome.is_host_lost, outcome.lost_servers) == (True, (1,))


def test_an_engine_that_was_killed_names_no_host() -> None:
    """Its processes on the other hosts exit because of it."""
    outcome = marked("failed", Unreported(without_daemon=(1,)), EngineProcess, status=signal.SIGKILL)

    assert (outcome.is_host_lost, outcome.lost_servers) == (False, ())


@pytest.mark.parametrize(
    ("reason", "unreported", "before"),
    [
        ("refused", Unreported(refused=(1,), lost=(1,)), True),
        ("host", Unreported(lost=(1,)), False),
        ("daemon", Unreported(without_daemon=(1,)), False),
    ],
)
def test_a_host_that_began_its_part_was_not_lost_before_the_start(
    reason: Reason, unreported: Unreported, before: bool
) -> None:
    assert marked(reason, unreported).lost_before_start is before
