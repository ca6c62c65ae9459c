"""Which hosts of a job count as lost; all of these hosts are this one, which runs commands."""

from __future__ import annotations

import pytest

from hccl_tools.launch.cluster.verdict import Unreported
from hccl_tools.launch.engines.engine import EngineProcess
from hccl_tools.launch.model.outcome import Outcome, RankEnd, Reason
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.spares import lost_hosts

HOSTS = 3


def marked(reason: Reason, unreported: Unreported, failed: type[RankProcess] = RankProcess) -> Outcome:
    ranks = tuple(
        RankProcess(rank, "127.0.0.1", rank, 0, 0, {}, ("true",), f"rank_{rank}.log") for rank in range(HOSTS)
    )
    first = failed(0, "127.0.0.1", 0, 0, 0, {}, ("mpirun",), "engine.log")
    outcome = Outcome(reason, [], 1.0, RankEnd(first, first.log) if reason == "failed" else None)
    lost_hosts.mark(Plan(ranks, "torch", "ssh", "log", "/", HOSTS), outcome, unreported)
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


@pytest.mark.parametrize("missing", [(1,), (1, 2)])
@pytest.mark.parametrize("reason", ["host", "daemon", "refused"])
def test_a_host_that_never_connected_and_runs_commands_is_not_replaced(
    reason: Reason, missing: tuple[int, ...]
) -> None:
    outcome = marked(reason, Unreported(missing=missing))

    assert (outcome.is_host_lost, outcome.lost_servers) == (True, ())


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
