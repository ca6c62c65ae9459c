"""The messages with which the shim of a rank talks to the launcher; the agents of hosts send them as well.

``hccl_tools.launch.protocol.messages`` has the other messages, and decodes all of them.
"""

from __future__ import annotations

import os

from hccl_tools.records import Count, Index, NamedTuple, OsText, Seconds

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from hccl_tools.launch.model.outcome import Cause, RankEnd
    from hccl_tools.runs.evidence import EvidenceNote
    from hccl_tools.runs.job_report import HungRank


class Join(NamedTuple):
    """Agent: this host, or this rank's shim, is there.

    Attributes:
        number: The index of the host's server, or the rank of the shim.
        parent: Host and process id of the agent's parent.
        node: The host's name in Slurm, else its own.
        run_dir: The host's run directory; its path may differ between hosts.
        output: A random token, if this host sends the output of its ranks that are shown over a connection
            of its own. That connection names the token, so that no other host can write in its place.
    """

    number: Index
    pid: Count
    parent: tuple[str, Count]
    node: str = ""
    run_dir: OsText = ""
    output: str = ""


class EndedByEngine(NamedTuple):
    """Agent: the engine has requested the end of this host's part."""


class Ended(NamedTuple):
    """Either side: every process of this host's part has exited.

    Attributes:
        cause: The cause of an early end that began on this host.
        hung: What the ranks of this host did when another host reported that the job hangs.
        evidence: What this host has taken before the end of its ranks.
    """

    ranks: tuple[RankExit, ...] = ()
    cause: Cause | None = None
    hung: tuple[HungRank, ...] = ()
    restart: Count = 0
    evidence: tuple[EvidenceNote, ...] = ()


def __getattr__(name: str) -> object:
    """Return a record for the decoder; a shim, which decodes nothing, does not import it."""
    if name not in {"Cause", "EvidenceNote", "HungRank", "RankExit"}:
        raise AttributeError(name)
    from hccl_tools.launch.model import outcome  # noqa: PLC0415
    from hccl_tools.runs import evidence, job_report  # noqa: PLC0415

    return {
        "Cause": outcome.Cause,
        "EvidenceNote": evidence.EvidenceNote,
        "HungRank": job_report.HungRank,
        "RankExit": RankExit,
    }[name]


class RankExit(NamedTuple):
    """The exit of one rank.

    ``status`` is the raw wait status (``None`` while the rank runs), ``duration`` is in seconds, ``log``
    the path of the log on the rank's host. ``was_terminated`` tells whether the rank was terminated, or is
    ``None`` if unknown, as for a shim.
    """

    rank: Count
    pid: Count
    status: Count | None
    duration: Seconds
    was_terminated: bool | None
    log: OsText

    @classmethod
    def of(cls, end: RankEnd) -> RankExit:
        """Return the record of a rank's end."""
        duration = round(end.duration, 3)
        return cls(end.process.rank, end.pid, end.status, duration, end.was_terminated, end.log)

    def check(self) -> str:
        """Return why the number is not a wait status, "" if it is one."""
        try:
            os.waitstatus_to_exitcode(self.status or 0)
        except ValueError:
            return f"{self.status} is not a wait status"
        return ""
