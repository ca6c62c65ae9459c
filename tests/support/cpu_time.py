"""How much CPU time something takes, on a machine that may be busy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def least(run: Callable[[], object], tries: int = 3) -> float:
    """Return the least CPU time of some tries, in seconds: what other programs do in between adds to it."""
    spent = []
    for _ in range(tries):
        began = time.process_time()
        run()
        spent.append(time.process_time() - began)
    return min(spent)
