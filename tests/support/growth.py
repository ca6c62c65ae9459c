"""How work grows with its input, on a machine that may be busy: by steps of Python, or by CPU time."""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def steps(run: Callable[[], object]) -> int:
    """Count the lines of Python that something executes: the same number on every machine, under every load.

    The time of C code (regular expressions, copies of large texts) does not count: ``least`` measures it.
    """
    count = 0

    def trace(_frame: object, event: str, _value: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(former)
    return count


def least(run: Callable[[], object], tries: int = 3) -> float:
    """Return the least CPU time of some tries, in seconds: what other programs do in between adds to it.

    Without the garbage collector, whose time depends on what the tests before have left in memory.
    """
    spent = []
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(tries):
            began = time.process_time()
            run()
            spent.append(time.process_time() - began)
    finally:
        if was_enabled:
            gc.enable()
    return min(spent)


def memory(run: Callable[[], object]) -> int:
    """Return the most memory that something takes at one time, in bytes."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
