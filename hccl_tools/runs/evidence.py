"""What was found of the ranks of a host before its part of the job was ended; a file of the run has this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.records import Count, Index, OsText, Seconds


class RankEvidence(NamedTuple):
    """What one rank did.

    Attributes:
        pid: Its process, 0 if it had ended.
        doing: Its state: ``sleeping in recvfrom() on a socket``, ``stopped``; "" without a process.
        stack: The lines of its Python stack, the innermost frame first.
        source: Where the stack comes from: ``faulthandler``, ``py-spy``, or "" without a stack.
        problem: Why there is no stack, "" with one.
        last_lines: The last lines of its log.
        recorder: The file with the dump of its flight recorder in the run directory, "" without one.
        recorder_problem: Why there is no dump, "" with one or without ``--flight-recorder``.
    """

    rank: Index
    pid: Count = 0
    doing: OsText = ""
    stack: tuple[OsText, ...] = ()
    source: str = ""
    problem: OsText = ""
    last_lines: tuple[OsText, ...] = ()
    recorder: OsText = ""
    recorder_problem: OsText = ""


class HostEvidence(NamedTuple):
    """What was found on one host.

    Attributes:
        reason: Why the job was ended: ``failed``, ``hang`` or ``timeout``.
        taken: When, with the offset of the host's time zone.
        seconds: For how long this has postponed the end.
        ranks: The ranks of the host.
        devices: What ``npu-smi info`` printed, [] without an answer.
        problems: What is missing beside that, and why.
    """

    host: str
    reason: str
    taken: str
    seconds: Seconds
    ranks: tuple[RankEvidence, ...] = ()
    devices: tuple[OsText, ...] = ()
    problems: tuple[OsText, ...] = ()


class EvidenceNote(NamedTuple):
    """What report.json says about the evidence of a host.

    Attributes:
        file: Its path on the host; "" if it could not be written.
        stacks: The number of ranks with a stack.
        recorders: The number of ranks with a dump of their flight recorder.
        problems: What is missing, and why.
    """

    host: str
    file: OsText
    seconds: Seconds
    stacks: Count = 0
    recorders: Count = 0
    problems: tuple[OsText, ...] = ()
