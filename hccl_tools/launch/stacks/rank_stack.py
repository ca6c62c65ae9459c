"""What one rank of a running job does: its state and its Python stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.records import Count, Index, OsText


class RankStack(NamedTuple):
    """What one rank does.

    Attributes:
        pid: Its process id on its host, 0 if it has no process there.
        doing: Its state: ``sleeping in recvfrom() on a socket``, ``stopped``; "" without a process.
        stack: The lines of its Python stack, the innermost frame first.
        source: Where the stack comes from: ``faulthandler``, ``py-spy``, or "" without a stack.
        problem: Why there is no stack, "" with one.
        ended: Whether it has no process while its launcher still runs the job: it has done its work.
    """

    rank: Index
    host: str
    pid: Count = 0
    doing: OsText = ""
    stack: tuple[OsText, ...] = ()
    source: str = ""
    problem: OsText = ""
    ended: bool = False
