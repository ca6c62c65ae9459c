"""Determine the outcome of a job that an engine (mpirun, srun) started, from the reports of its agents.

A job has succeeded only if every rank was reported to have exited with 0. The engine's own exit code can turn
success into failure, never failure into success: mpirun of Open MPI 5 exits with 0 after the loss of a host.
The end of a rank and the loss of a host, as they are reported, stand here as well.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from hccl_tools.launch import engines
from hccl_tools.launch.cluster.credentials import version_conflict
from hccl_tools.launch.logs import excerpt
from hccl_tools.launch.model.outcome import Cause, RankEnd
from hccl_tools.notation.named_lines import OURS
from hccl_tools.notation.phrases import and_more
from hccl_tools.processes import run_files
from hccl_tools.programs import resolving
from hccl_tools.records import NamedTuple
from hccl_tools.runs import names
from hccl_tools.runs.ends import NOT_REPORTED, NOT_STARTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.cluster.agents import Agents
    from hccl_tools.launch.model.outcome import Outcome
    from hccl_tools.launch.model.plan import Plan, RankProcess
    from hccl_tools.launch.model.rank_messages import RankExit
    from hccl_tools.runs.ends import Reason
    from hccl_tools.runs.evidence import EvidenceNote
    from hccl_tools.runs.job_report import HungRank

_MOST_RANKS = 8


class Finding(NamedTuple):
    """The cause of an early end of an agent's part of the job.

    Attributes:
        agent: The agent's server index or rank; -1 before the agent has identified itself.
        cause: The reason, reported by the agent or derived from the end of its connection.
        end: How the failed rank ended, if it ran on the host of the agent.
        lost: Whether the agent itself was lost.
    """

    agent: int
    cause: Cause
    end: RankEnd | None = None
    lost: bool = False


class Unreported(NamedTuple):
    """The servers whose agent has not reported how its ranks exited, or has reported that it cannot continue.

    Attributes:
        refused: The servers whose agent has refused to start its ranks.
        without_daemon: The servers whose agent has lost the engine's daemon, in order of time.
        lost: The servers whose agent's connection has closed, in order of time.
        missing: The servers whose agent has not connected.
    """

    refused: tuple[int, ...] = ()
    without_daemon: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()


class Reports:
    """The reports of one start of a job: findings in order of arrival, ends by rank.

    Attributes:
        has_signalled: Whether this launcher has ended the engine with a signal.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        #: The index of each agent's finding.
        self._of_agent: dict[int, int] = {}
        self.ranks: dict[int, RankEnd] = {}
        self.hung: list[HungRank] = []
        self.evidence: list[EvidenceNote] = []
        self.has_signalled = False

    def add(self, finding: Finding) -> None:
        """Add a finding; except for a loss, it replaces an earlier finding of the same agent."""
        index = self._of_agent.get(finding.agent)
        if index is None:
            if finding.agent >= 0:
                self._of_agent[finding.agent] = len(self.findings)
            self.findings.append(finding)
        elif not finding.lost:
            self.findings[index] = finding

    def has(self, agent: int) -> bool:
        """Return whether an agent has a finding."""
        return agent in self._of_agent

    def unreported(self, agents: Agents) -> Unreported:
        """Return the servers whose agent has not reported how its ranks exited, or cannot continue."""
        refused = self._of_reason("refused")
        known = agents.done.union(refused)
        lost = [one for one in agents.gone if one not in known]
        return Unreported(refused, self._of_reason("daemon"), tuple(lost), tuple(sorted(agents.missing)))

    def _of_reason(self, reason: Reason) -> tuple[int, ...]:
        found = (one for one in self.findings if one.cause.reason == reason)
        return tuple(one.agent for one in found if one.agent >= 0 and not one.lost)

    def first(self) -> Finding | None:
        """Return the finding that explains the others.

        The loss of an engine's process has precedence over all other findings, since it ends everything that
        the process has started. A signal to an agent comes last: an engine signals all agents to end a job.
        """
        return min(self.findings, key=_order, default=None)


def _order(finding: Finding) -> int:
    return 1 if finding.lost else {"daemon": 0, "signal": 2}.get(finding.cause.reason, 1)


def decide(plan: Plan, outcome: Outcome, reports: Reports, unreported: Unreported) -> None:
    """Replace the engine in an outcome with its ranks, and the exit code with the verdict."""
    engine = _engine(outcome)
    scheduler = [end for end in outcome.ends if end is not engine]
    decided = outcome.remote_cause is None and outcome.reason not in {"failed", "ended"}
    if not decided:
        _judge(plan, outcome, reports, engine)
    if outcome.first_failure is engine:
        errors = os.path.join(plan.run_dir, names.ENGINE_ERRORS)
        about = run_files.status(errors)
        if about and about.st_size:
            engine.log = errors
    outcome.hung = outcome.hung or reports.hung
    outcome.evidence = outcome.evidence or reports.evidence
    missing = frozenset(unreported.missing)
    outcome.ends = scheduler + [
        reports.ranks.get(process.rank) or _without_report(plan, process, missing, outcome)
        for process in plan.ranks
    ]
    if outcome.exit_code == 0 and (left := _unreported(plan, reports)):
        # Whatever a host has sent: no cause makes a job a success.
        outcome.reason, outcome.remote_cause, outcome.first_failure = "host", None, None
        outcome.detail = f"the job was ended before {ranks_text(left)} had exited with 0"


def _without_report(plan: Plan, process: RankProcess, missing: frozenset[int], outcome: Outcome) -> RankEnd:
    """Return what is known of a rank that no agent has reported; ``missing`` agents have not connected."""
    log = os.path.join(plan.run_dir, names.generation(process.log, outcome.restarts))
    end = RankEnd(process, log, is_elsewhere=bool(plan.supervisor))
    if (process.server_index if plan.supervisor else process.rank) in missing:
        end.unreported = NOT_STARTED
    elif plan.supervisor or outcome.stuck:
        end.unreported = NOT_REPORTED
    else:  # Its shim was on this host, where no process of the job is left.
        end.status, end.was_terminated = int(signal.SIGKILL), True
    return end


def _judge(plan: Plan, outcome: Outcome, reports: Reports, engine: RankEnd) -> None:
    first, name, own = reports.first(), engine.process.name, outcome.first_failure
    stopped = bool(engine.was_terminated)  # By this launcher: the engine's exit code then has no meaning.
    outcome.remote_cause, outcome.first_failure = None, None
    if engine.signal and not stopped:
        outcome.reason, outcome.first_failure = "failed", engine
    elif first is not None and first.end is not None:
        outcome.reason, outcome.first_failure = "failed", first.end
    elif first is not None:
        cause = first.cause
        # If this launcher has signalled the engine, the scheduler speaks of that.
        is_from_outside = first.lost and not reports.has_signalled
        if is_from_outside and (why := engines.of(plan).why_ended(_said(plan, engine))):
            cause = Cause.lost(os.uname().nodename, "daemon", why)
        outcome.reason, outcome.remote_cause = cause.reason, cause
    elif own is not None and own is not engine:
        outcome.reason, outcome.first_failure = "failed", own  # The scheduler, on this host.
    elif engine.code and not stopped:
        outcome.reason, outcome.first_failure = "failed", engine
        if not _unreported(plan, reports):
            outcome.notes.append(f"every rank exited with 0, but {name} exited with {engine.code}")
    elif missing := _unreported(plan, reports):
        outcome.reason = "host"
        outcome.detail = f"{name} ended the job before {ranks_text(missing)} had exited with 0"
    else:
        outcome.reason = "ended"


def _said(plan: Plan, engine: RankEnd) -> list[str]:
    """Return the last lines of an engine, as it has written them."""
    said = [line.removeprefix(OURS.decode()) for line in excerpt.log_end(engine.log)]
    return excerpt.log_end(os.path.join(plan.run_dir, names.ENGINE_ERRORS)) + said


def _unreported(plan: Plan, reports: Reports) -> list[int]:
    ends = reports.ranks
    return [rank for rank in range(plan.world_size) if rank not in ends or ends[rank].status != 0]


def reason_to_end(outcome: Outcome) -> Cause:
    """Return the known cause of a job's end, for the other hosts of the job."""
    if outcome.remote_cause is not None:
        return outcome.remote_cause
    host = os.uname().nodename
    if outcome.reason not in {"ended", "failed"}:
        return outcome.cause(host)
    engine = _engine(outcome)
    cause = Cause.lost(host, "daemon", f"{engine.process.name} exited before the job: {engine.description}")
    return cause._replace(exit_code=outcome.exit_code or cause.exit_code)


def _engine(outcome: Outcome) -> RankEnd:
    return next(end for end in outcome.ends if end.process.rank >= 0)


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks with their noun: ``rank 3``, ``ranks 0, 1, 2``."""
    return f"rank{'s' if len(ranks) > 1 else ''} {and_more(list(map(str, ranks)), _MOST_RANKS)}"


def server_at(plan: Plan, address: str) -> int:
    """Return the index of the server with an address, -1 if there is none."""
    servers = {process.host: process.server_index for process in plan.ranks}
    found = resolving.looked_up(servers)
    return next((index for host, index in servers.items() if address in found.get(host, ())), -1)


def rank_end(plan: Plan, reported: RankExit) -> RankEnd:
    """Return the end of a rank from the report of an agent.

    Raises:
        ValueError: The job has no such rank.
    """
    if reported.rank >= plan.world_size:
        raise ValueError(reported)
    return RankEnd(
        process=plan.rank(reported.rank),
        log=reported.log,
        pid=reported.pid,
        ended=reported.duration,
        status=reported.status,
        was_terminated=reported.was_terminated,
        is_elsewhere=bool(plan.supervisor),
    )


def supervisor_loss(host: str, ranks: Sequence[int]) -> Cause:
    """Return the cause of an end after the loss of the supervisor on a host."""
    return Cause.lost(host, "host", describe_loss("supervisor", host, ranks))


def shim_loss(number: int, pid: int) -> Cause:
    """Return the cause of an end after the loss of a rank's shim on this host."""
    what = f"the shim of rank {number} (hccl_tools.launch.rank, pid {pid}) was killed"
    return Cause.lost(os.uname().nodename, "daemon", what)


def launcher_loss(plan: Plan, index: int) -> str:
    """Describe the loss of the launcher of a server."""
    own = [each for each in plan.ranks if each.server_index == index]
    return describe_loss("launcher", own[0].host, [each.rank for each in own])


def describe_loss(process: str, host: str, ranks: Sequence[int]) -> str:
    """Describe the loss of a host's ``process``, whose connection has closed."""
    return (
        f"lost contact with the {process} on {host} ({ranks_text(ranks)}): it was killed, "
        "or the host is down or unreachable"
    )


def other_versions(plan: Plan, versions: Mapping[str, str]) -> list[tuple[int, Cause]]:
    """Return the servers, by their addresses, whose version of hccl-tools differs, with what to report.

    The index of a server is -1 if no host of the job has the address.
    """
    here, found = os.uname().nodename, list[tuple[int, Cause]]()
    for address, version in versions.items():
        index = server_at(plan, address)
        host = address if index < 0 else next(one.host for one in plan.ranks if one.server_index == index)
        found.append((index, Cause.lost(host, "refused", version_conflict(here, host, version))))
    return found
