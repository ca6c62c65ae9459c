"""Get the Python stacks of the ranks of a job that hangs, before the job is ended."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.launch.model.hang import odd_ones_first
from hccl_tools.processes import run_files
from hccl_tools.processes.stack_dump import StackDump, Target, writes_stacks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hccl_tools.launch.model.hang import HungRank
    from hccl_tools.launch.supervise.attempt import Attempt
    from hccl_tools.processes.stack_dump import Stack

#: Seconds between two checks whether the stacks have been written.
_INTERVAL = 0.01
#: The maximum number of ranks for which py-spy runs.
_MOST_SPIES = 4


class HungStacks:
    """Waits for the stacks of the ranks, then calls ``finish`` with the ranks and their stacks.

    The ranks that stopped first are asked in any case, the others if they write their stacks themselves.
    """

    def __init__(
        self, attempt: Attempt, hung: Sequence[HungRank], finish: Callable[[list[HungRank]], None]
    ) -> None:
        self._attempt, self._hung, self._finish = attempt, hung, finish
        first = [one for one in hung if one.is_first][:_MOST_SPIES]
        asked = [one for one in hung if one in first or writes_stacks(one.pid)]
        self._dump = StackDump([_target(one) for one in asked], wake=True)
        attempt.helpers += self._dump.helpers
        self._deadline = time.monotonic() + self._dump.seconds
        self._check()

    def _check(self) -> None:
        if not self._dump.is_complete and time.monotonic() < self._deadline:
            self._attempt.call_later("stacks of a hang", _INTERVAL, self._check)
            return
        found = self._dump.finish()
        for target, stack in found.items():
            if stack.source == "py-spy":
                _append(target.log, stack)
        first = {_target(one) for one in self._hung if one.is_first}
        for problem in sorted({stack.problem for target, stack in found.items() if target in first} - {""}):
            self._attempt.say(f"no Python stack of the rank that stopped first: {problem}")
        ranks = {_target(one): one.rank for one in self._hung}
        self._attempt.stacks |= {ranks[target]: stack for target, stack in found.items()}
        stacks = {target: list(stack.lines) for target, stack in found.items()}
        self._finish(odd_ones_first([one._replace(stack=stacks.get(_target(one), [])) for one in self._hung]))


def _target(one: HungRank) -> Target:
    return Target(one.pid, one.log)


def _append(log: str, stack: Stack) -> None:
    """Add the stack of py-spy to the log of its rank."""
    text = "\n".join(("hccl-tools: the Python stack when the job was ended (py-spy):", *stack.lines, ""))
    with suppress(OSError):
        descriptor = run_files.open_append(log, create=False)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
