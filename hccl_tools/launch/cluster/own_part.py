"""What a host of a job may say: how its own ranks have ended, and nothing of other hosts.

Each message of an agent, of the agent of a spare, and of a launcher that was typed on its host is checked
here when it comes in, against the host and the ranks that the plan gives to its sender. What can be derived
is derived here: the exit code of the job, the names of ranks, how a rank has ended, and hints. The rest is
what that host says, and is shown with its name.
"""

from __future__ import annotations

import os
from signal import NSIG, SIGKILL, SIGTERM
from typing import TYPE_CHECKING

from hccl_tools.launch.model.outcome import Cause, RankEnd, exit_code_of
from hccl_tools.launch.model.rank_messages import Ended
from hccl_tools.launch.protocol.messages import End, Ending, Hung
from hccl_tools.launch.report import hints
from hccl_tools.processes.signals import ENDING, signal_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.launch.model.plan import Plan, RankProcess
    from hccl_tools.launch.protocol.messages import Message
    from hccl_tools.runs.ends import Reason
    from hccl_tools.runs.evidence import EvidenceNote
    from hccl_tools.runs.job_report import HungRank, RankFailure

#: A success is what the ranks of all hosts have reported, and that a host is lost is noticed by others.
_NEVER_OWN: frozenset[Reason] = frozenset({"ended", "host"})
#: The message of this reason does not name the host.
_DAEMON: Reason = "daemon"
#: The signals for which a launcher ends its job.
_SIGNALS = ENDING | {SIGKILL}
#: The number in End of a cause that no server has reported: the job hangs.
NO_SERVER = -1


class OwnPart:
    """The part of a job that one sender of messages has.

    Attributes:
        host: The name of its host in the plan.
        processes: The processes of its part.
    """

    def __init__(self, host: str, processes: Iterable[RankProcess], hosts: frozenset[str]) -> None:
        """``hosts`` are those of the whole job. Without ``processes`` it is not known who the sender is."""
        self.host, self._hosts = host, hosts
        self.processes = tuple(processes)
        self._own = {process.rank: process for process in self.processes}

    def checked(self, message: Message) -> Message:
        """Return a message with what its sender may say."""
        if isinstance(message, Ending):
            return message._replace(cause=self.cause(message.cause))
        if isinstance(message, Hung):
            return message._replace(ranks=self._hung(message.ranks))
        return self._ended(message) if isinstance(message, Ended) else message

    def _ended(self, message: Ended) -> Ended:
        is_own = self._is_own_evidence(message.evidence)
        cause = message.cause and self.cause(message.cause)
        return message._replace(
            ranks=tuple(one for one in message.ranks if one.rank in self._own),
            cause=cause if is_own else self.not_its_own(),
            hung=self._hung(message.hung),
            evidence=tuple(one._replace(host=self.host) for one in message.evidence) if is_own else (),
        )

    def cause(self, said: Cause, *, is_forwarded: bool = False) -> Cause:
        """Return the cause of an early end as this sender may state it.

        Args:
            is_forwarded: Whether rank 0's host forwards it, which notices the loss of a host.
        """
        first = said.first_failure
        never = _NEVER_OWN - {"host"} if is_forwarded else _NEVER_OWN
        is_own = (
            said.reason not in never
            and not self._is_other(said.host)
            and (first is None or self._is_own_failure(first))
            and all(one.rank in self._own for one in said.hung)
            and (bool(self._own) or said.reason == "refused")
        )
        if not is_own:
            return self.not_its_own()
        detail = said.detail
        if said.reason == _DAEMON and not detail.startswith(f"{self.host}: "):
            detail = f"{self.host}: {detail}"
        number = 0
        if said.reason == "signal":
            number = said.signal if said.signal in _SIGNALS else SIGTERM
        failure = first and self._failure(first)
        code = exit_code_of(said.reason, failure and failure.exit_code, number)
        return Cause(self.host, said.reason, code, detail, number, failure, self._hung(said.hung))

    def not_its_own(self) -> Cause:
        """Return the cause for a sender that has stated what is not its own."""
        return Cause.lost(
            self.host,
            "host",
            f"host {self.host} has sent what is not its own, which is not used: check hccl-tools there",
        )

    def _is_other(self, host: str | None) -> bool:
        """Return whether this is the name of another host of the job; a host may have several names."""
        return host != self.host and host in self._hosts

    def _is_own_failure(self, first: RankFailure) -> bool:
        return first.rank in self._own and not (self._is_other(first.host) or self._is_other(first.log_host))

    def _is_own_evidence(self, notes: Sequence[EvidenceNote]) -> bool:
        most = len(self._own)
        return not notes or (
            len(notes) == 1
            and not self._is_other(notes[0].host)
            and max(notes[0].stacks, notes[0].recorders) <= most
        )

    def _hung(self, described: Iterable[HungRank]) -> tuple[HungRank, ...]:
        """Return what is said of the sender's own ranks, each once."""
        found = {one.rank: one for one in reversed(tuple(described)) if one.rank in self._own}
        own = ((self._own[rank], one) for rank, one in reversed(found.items()))
        return tuple(one._replace(name=process.name, host=process.host) for process, one in own)

    def _failure(self, first: RankFailure) -> RankFailure:
        """Return a failure with what the plan and the exit code say about it."""
        process, code = self._own[first.rank], first.exit_code or 1
        number = code - 128
        if not 0 < number < NSIG or first.signal != signal_name(number):
            number = 0
        end = RankEnd(process, first.log, status=number or code << 8)
        killed_by_oom = first.killed_by_oom if number == SIGKILL else False
        return first._replace(
            name=process.name,
            host=process.host,
            device=process.device,
            exit_code=code,
            signal=first.signal if number else None,
            how=end.description,
            log_host=None,
            killed_by_oom=killed_by_oom,
            hints=hints.of_host(process.host, first, end, killed_by_oom=killed_by_oom),
        )


class JobParts:
    """The parts of all senders of a job, by the numbers of their agents."""

    def __init__(self, plan: Plan) -> None:
        self._hosts = frozenset(plan.hosts)
        # Without an engine on other hosts, each agent is the shim of a rank on this one.
        is_by_rank = not plan.supervisor and plan.rendezvous is None
        own: dict[int, list[RankProcess]] = {}
        for process in plan.processes:
            own.setdefault(process.rank if is_by_rank else process.server_index, []).append(process)
        here = os.uname().nodename
        self._of = {
            number: OwnPart(here if is_by_rank else processes[-1].host, processes, self._hosts)
            for number, processes in own.items()
        }

    def of(self, number: int, address: str = "") -> OwnPart:
        """Return the part of a sender; one that has not joined is known by its ``address`` alone."""
        return self._of[number] if number >= 0 else OwnPart(address, (), self._hosts)

    def forwarded(self, message: End, leader: int, own: int) -> End:
        """Return the end of a job that rank 0's host announces to the host ``own``.

        Rank 0's host is trusted with what it forwards of a third host, as far as that host may state it.
        """
        cause, number = message.cause, message.number
        if number == own:  # The host keeps its own cause.
            return message
        if number == NO_SERVER:
            is_known = cause.reason == "hang" and cause.host in self._hosts
            return message._replace(cause=self._hang(cause) if is_known else self._of[leader].not_its_own())
        part = self._of.get(number)
        found = None if part is None else part.cause(cause, is_forwarded=True)
        if part is None or found is None or (found == part.not_its_own() != cause):
            return message._replace(cause=self._of[leader].not_its_own())
        return message._replace(cause=found)

    def _hang(self, cause: Cause) -> Cause:
        """Return the cause of a job that hangs, which compares the ranks of all hosts."""
        processes = [process for part in self._of.values() for process in part.processes]
        return OwnPart(cause.host, processes, self._hosts).cause(cause)
