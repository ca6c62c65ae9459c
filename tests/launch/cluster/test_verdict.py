"""How a job that an engine has started has ended: what was reported decides, not the engine's exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools import codec
from hccl_tools.launch.cluster import verdict
from hccl_tools.launch.cluster.verdict import Finding, Reports, Unreported
from hccl_tools.launch.model.outcome import Cause, Outcome, RankEnd
from hccl_tools.launch.model.plan import Plan, RankProcess

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.runs.ends import Reason


def process(rank: int) -> RankProcess:
    return RankProcess(rank, f"10.0.0.{rank}", rank, 0, 0, {}, ("mpirun",), f"rank_{rank}.log")


def judged(
    folder: Path, statuses: tuple[int | None, ...], engine: int, *findings: Finding, asked: bool = False
) -> Outcome:
    """Return the outcome of a job of two hosts; a status of None is one that was not reported."""
    plan = Plan((process(0), process(1)), "torch", "ssh", str(folder), "/", 2, supervisor=("x",))
    end = RankEnd(process(0), "engine.log", pid=7, status=engine, was_terminated=asked)
    reason: Reason = "failed" if engine and not asked else "ended"
    outcome = Outcome(reason, [end], 1.0, first_failure=end if engine else None)
    reports = Reports()
    for finding in findings:
        reports.add(finding)
    for rank, status in enumerate(statuses):
        if status is not None:
            reports.ranks[rank] = RankEnd(process(rank), "log", pid=9, status=status)
    verdict.decide(plan, outcome, reports, Unreported())
    return outcome


def finding(agent: int, reason: str, code: int = 137, *, lost: bool = False) -> Finding:
    first = {"name": "rank", "how": "exit code", "rank": agent} if reason == "failed" else None
    value = {"host": "h", "reason": reason, "exit_code": code, "first_failure": first}
    cause = codec.decode(Cause, value)
    return Finding(agent, cause, lost=lost)


def test_success_needs_every_rank(tmp_path: Path) -> None:
    assert judged(tmp_path, (0, 0), 0).exit_code == 0
    for statuses in ((0, None), (None, None), (0, 9), (7 << 8, 0)):
        outcome = judged(tmp_path, statuses, 0)
        assert (outcome.reason, outcome.exit_code) == ("host", 137)
    assert "before ranks 0, 1 had exited with 0" in judged(tmp_path, (None, None), 0).detail


def test_an_engine_turns_success_into_failure_unless_it_was_ended_by_the_launcher(tmp_path: Path) -> None:
    outcome = judged(tmp_path, (0, 0), 255 << 8)
    assert outcome.exit_code == 255
    assert outcome.notes[0].startswith("every rank exited with 0, but ")
    assert judged(tmp_path, (0, 0), 15, asked=True).exit_code == 0


@pytest.mark.parametrize("engine", [0, 1 << 8])
def test_a_reported_cause_comes_before_the_exit_code_of_the_engine(tmp_path: Path, engine: int) -> None:
    assert judged(tmp_path, (0, 7 << 8), engine, finding(1, "failed", 7)).exit_code == 7


def test_what_explains_the_others_is_the_cause(tmp_path: Path) -> None:
    loss, signal = finding(0, "host", lost=True), finding(1, "signal", 143)
    failure, daemon = finding(1, "failed", 7), finding(1, "daemon")

    assert judged(tmp_path, (0, 9), 0, signal, loss).reason == "host"
    assert judged(tmp_path, (0, 9), 0, failure, loss).exit_code == 7
    assert judged(tmp_path, (0, 9), 0, loss, failure).reason == "host"
    assert judged(tmp_path, (0, 9), 0, loss, daemon).reason == "daemon"
    # That a supervisor is lost after it has told its reason says nothing against that.
    assert judged(tmp_path, (0, 9), 0, failure, finding(1, "host", lost=True)).exit_code == 7
    # A killed engine is nobody's consequence.
    assert judged(tmp_path, (0, 9), 9, loss).first_failure is not None
