"""How a job that an engine has started has ended: what was reported decides, not the engine's exit code."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from hccl_tools import codec
from hccl_tools.launch.cluster import verdict
from hccl_tools.launch.cluster.agents import Agents
from hccl_tools.launch.cluster.verdict import Finding, Reports, Unreported
from hccl_tools.launch.model.outcome import Cause, Outcome, RankEnd
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.model.rank_messages import RankExit
from hccl_tools.processes.procfs import Status
from hccl_tools.runs import names
from hccl_tools.runs.evidence import EvidenceNote
from hccl_tools.runs.job_report import HungRank
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.runs.ends import Reason

HERE = os.uname().nodename


def process(rank: int, host: str = "") -> RankProcess:
    """Return a rank of a host with one rank, or with two if ``host`` is given."""
    server = rank // 2 if host else rank
    return RankProcess(rank, host or f"10.0.0.{rank}", server, 0, 0, {}, ("mpirun",), f"rank_{rank}.log")


def plan_of(folder: Path, *, engine: str = "ssh", supervisor: tuple[str, ...] = ("x",)) -> Plan:
    """Return the plan of a job of two hosts with two ranks each."""
    ranks = tuple(process(rank, ("localhost", "192.0.2.7")[rank // 2]) for rank in range(4))
    return Plan(ranks, "torch", engine, str(folder), "/", 4, supervisor=supervisor)


def decided(
    plan: Plan, reports: Reports, missing: tuple[int, ...] = (), *, engine: int = 1 << 8, stuck: bool = False
) -> Outcome:
    """Return the outcome of a job whose engine has ended with a status, its scheduler with 0."""
    end = RankEnd(process(0), f"{plan.run_dir}/{names.ENGINE_LOG}", pid=7, status=engine)
    outcome = Outcome("failed", [RankEnd(process(-1), "scheduler.log", status=0), end], 1.0, end)
    if stuck:
        outcome.stuck = [Status(7, 1, "D", 0, 0)]
    verdict.decide(plan, outcome, reports, Unreported(missing=missing))
    return outcome


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


def test_no_cause_makes_a_job_a_success(tmp_path: Path) -> None:
    for statuses in ((15, 0), (15, None), (None, None)):
        outcome = judged(tmp_path, statuses, 15, finding(1, "ended", 0), asked=True)
        assert (outcome.reason, outcome.exit_code, outcome.remote_cause) == ("host", 137, None)
    zero = judged(tmp_path, (15, 1 << 8), 15, finding(1, "failed", 0), asked=True)
    assert (zero.exit_code, zero.detail) == (137, "the job was ended before ranks 0, 1 had exited with 0")


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


def test_the_ends_are_those_of_the_ranks_and_of_the_scheduler(tmp_path: Path) -> None:
    plan, reports = plan_of(tmp_path), Reports()
    reports.ranks = {rank: RankEnd(process(rank), "log", pid=9, status=7 << 8) for rank in (0, 2)}
    ends = decided(plan, reports).ends

    assert [(end.process.rank, end.description) for end in ends] == [
        (-1, "exit code 0"), (0, "exit code 7"), (1, "not reported"), (2, "exit code 7"), (3, "not reported"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("supervisor", "stuck", "missing", "ends"),
    [
        (True, False, 1, ["not reported", "not reported", "not started", "not started"]),
        (True, True, 1, ["not reported", "not reported", "not started", "not started"]),
        (False, False, 3, ["killed by SIGKILL", "killed by SIGKILL", "killed by SIGKILL", "not started"]),
        (False, True, 3, ["not reported", "not reported", "not reported", "not started"]),
    ],
)
def test_what_is_known_of_a_rank_that_nobody_has_reported(
    tmp_path: Path, supervisor: bool, stuck: bool, missing: int, ends: list[str]
) -> None:
    """A supervisor is missing by its server, a shim by its rank."""
    plan = plan_of(tmp_path, supervisor=("x",) if supervisor else ())
    found = decided(plan, Reports(), (missing,), stuck=stuck).ends[1:]

    assert [end.description for end in found] == ends
    assert all(end.is_elsewhere is supervisor for end in found)
    assert [end.was_terminated for end in found] == [
        True if text.startswith("killed") else None for text in ends
    ]
    assert found[3].log == str(tmp_path / "rank_3.log")


def test_the_hung_ranks_and_the_evidence_of_this_host_come_before_those_that_are_reported(
    tmp_path: Path,
) -> None:
    own, reported = (
        HungRank(rank, f"rank {rank}", "h", 9, True, 60.0, None, "stopped", "log") for rank in (0, 1)
    )
    notes = [EvidenceNote("here", "own", 1.0), EvidenceNote("there", "reported", 1.0)]
    for hung, of_reports, expected in (
        ([], [reported], reported),
        ([own], [], own),
        ([own], [reported], own),
    ):
        end = RankEnd(process(0), "engine.log", pid=7, status=0)
        outcome, reports = Outcome("hang", [end], 1.0, hung=hung), Reports()
        reports.hung = of_reports
        outcome.evidence, reports.evidence = notes[: len(hung)], notes[1 : 1 + len(of_reports)]
        verdict.decide(plan_of(tmp_path), outcome, reports, Unreported())

        assert outcome.hung == [expected]
        assert outcome.evidence == [notes[0] if hung else notes[1]]


@pytest.mark.parametrize("errors", [None, "", "mpirun: no slots"])
def test_an_engine_that_has_failed_is_shown_with_its_errors_if_it_has_written_some(
    tmp_path: Path, errors: str | None
) -> None:
    if errors is not None:
        (tmp_path / names.ENGINE_ERRORS).write_text(errors)
    outcome = decided(plan_of(tmp_path), Reports())

    assert outcome.first_failure is not None
    assert outcome.first_failure.log == str(tmp_path / (names.ENGINE_ERRORS if errors else names.ENGINE_LOG))


@pytest.mark.parametrize("signalled", [False, True])
def test_a_lost_host_is_due_to_slurm_if_slurm_has_ended_the_step_by_itself(
    tmp_path: Path, signalled: bool
) -> None:
    """A signal of this launcher makes srun write the same lines."""
    cancelled = (
        "slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
    )
    (tmp_path / names.ENGINE_ERRORS).write_text(cancelled)
    reports = Reports()
    reports.add(finding(1, "host", lost=True))
    if signalled:
        reports.has_signalled = True
    outcome = decided(plan_of(tmp_path, engine="slurm"), reports)

    assert outcome.reason == ("host" if signalled else "daemon")
    assert outcome.remote_cause is not None
    detail = "" if signalled else "Slurm has ended step 4.0 due to time limit"
    assert (outcome.remote_cause.host, outcome.remote_cause.detail) == ("h" if signalled else HERE, detail)


def test_a_reason_that_an_agent_tells_is_not_one_of_slurm(tmp_path: Path) -> None:
    """Slurm ends the step after the agent, which it has told to end."""
    (tmp_path / names.ENGINE_ERRORS).write_text("slurmstepd: *** STEP 4.0 ON n1 CANCELLED AT 10:00:00 ***\n")
    reports = Reports()
    reports.add(finding(1, "log-error", 125))

    assert decided(plan_of(tmp_path, engine="slurm"), reports).reason == "log-error"


def test_reports_replace_the_cause_of_another_host_but_not_one_of_this_launcher(tmp_path: Path) -> None:
    """What ended the job first may have been reported after what has followed from it."""
    reports = Reports()
    reports.add(finding(1, "daemon"))
    ends = {}
    for reason, cause in (("host", finding(0, "host", lost=True).cause), ("timeout", None)):
        end = RankEnd(process(0), "engine.log", pid=7, status=15, was_terminated=True)
        outcome = Outcome(reason, [end], 1.0, remote_cause=cause)  # type: ignore[arg-type]
        verdict.decide(plan_of(tmp_path), outcome, reports, Unreported())
        ends[reason] = outcome.reason

    assert ends == {"host": "daemon", "timeout": "timeout"}


def test_what_is_unreported_is_counted_by_its_reason(tmp_path: Path) -> None:
    """An agent without a number has no server, and a lost agent has not reported anything itself."""
    reports, agents = Reports(), Agents(plan_of(tmp_path))
    for number, reason, lost in (
        (-1, "refused", False), (0, "refused", False), (1, "daemon", False), (2, "daemon", True),
        (-1, "daemon", False), (3, "host", True),
    ):  # fmt: skip
        reports.add(finding(number, reason, lost=lost))
    agents.done, agents.gone, agents.missing = {5}, dict.fromkeys((3, 0, 5, 2)), {8, 7}

    assert reports.unreported(agents) == Unreported((0,), (1,), (3, 2), (7, 8))
    assert [reports.has(number) for number in (-1, 0, 3, 4)] == [False, True, True, False]


def test_each_loss_has_its_sentence(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    gone = "it was killed, or the host is down or unreachable"

    assert (
        verdict.launcher_loss(plan, 1) == f"lost contact with the launcher on 192.0.2.7 (ranks 2, 3): {gone}"
    )
    alone = Plan((process(0), process(1)), "torch", "ssh", "/r", "/", 2)
    assert verdict.launcher_loss(alone, 1) == f"lost contact with the launcher on 10.0.0.1 (rank 1): {gone}"
    assert verdict.supervisor_loss("a", [4]) == Cause(
        "a", "host", 137, f"lost contact with the supervisor on a (rank 4): {gone}"
    )
    assert verdict.shim_loss(3, 99) == Cause(
        HERE, "daemon", 137, "the shim of rank 3 (hccl_tools.launch.rank, pid 99) was killed"
    )


def test_another_version_is_reported_with_the_name_of_its_host(tmp_path: Path) -> None:
    found = verdict.other_versions(
        plan_of(tmp_path), {"127.0.0.1": "0.1", "192.0.2.7": "0.2", "192.0.2.9": "0.3"}
    )
    says = f"version of hccl-tools: {HERE} has {__version__}"

    assert found == [
        (0, Cause("localhost", "refused", 125, f"{says}, localhost has 0.1")),
        (1, Cause("192.0.2.7", "refused", 125, f"{says}, 192.0.2.7 has 0.2")),
        (-1, Cause("192.0.2.9", "refused", 125, f"{says}, 192.0.2.9 has 0.3")),
    ]


@pytest.mark.parametrize(("status", "code", "how"), [(0, 137, "exit code 0"), (3 << 8, 3, "exit code 3")])
def test_an_engine_that_has_ended_is_the_reason_for_the_other_hosts(status: int, code: int, how: str) -> None:
    end = RankEnd(process(0), "engine.log", pid=7, status=status)
    outcome = Outcome("failed" if status else "ended", [end], 1.0, end if status else None)

    detail = f"{end.process.name} exited before the job: {how}"
    assert verdict.reason_to_end(outcome) == Cause(HERE, "daemon", code, detail)


def test_a_known_cause_is_the_reason_for_the_other_hosts() -> None:
    end = RankEnd(process(0), "engine.log", pid=7, status=0)
    cause = Cause("b", "host", 137, "b was lost")

    assert verdict.reason_to_end(Outcome("host", [end], 1.0, remote_cause=cause)) == cause
    interrupted = Outcome("signal", [end], 1.0, signal=signal.SIGINT)
    assert verdict.reason_to_end(interrupted) == Cause(HERE, "signal", 130, signal=signal.SIGINT)


def test_a_rank_that_the_job_has_not_is_not_recorded(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    end = verdict.rank_end(plan, RankExit(3, 5, 7 << 8, 2.5, True, "r3.log"))

    assert (end.process.rank, end.log, end.pid, end.duration) == (3, "r3.log", 5, 2.5)
    assert (end.code, end.was_terminated, end.is_elsewhere) == (7, True, True)
    with pytest.raises(ValueError, match="rank=4"):
        verdict.rank_end(plan, RankExit(4, 5, 0, 2.5, None, "r4.log"))
