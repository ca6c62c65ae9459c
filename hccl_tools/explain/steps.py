"""The steps of a training in its log, each of which has a number and usually a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain.events import time_in
from hccl_tools.explain.screens import texts_from_end

if TYPE_CHECKING:
    from hccl_tools.explain.sources import Source

#: The number of a step, in a line that a training writes for each of them.
STEP = re.compile(
    rb"\b(?:step|iter(?:ation)?|batch)s?['\"]?[ =:#\[\]]{1,14}(\d{1,9})\b(?! ?(?:ms|s)\b)", re.IGNORECASE
)


def at_the_end(source: Source, most: int) -> dict[int, float]:
    """Return the times of the steps in the end of a log whose lines have one."""
    found: dict[int, float] = {}
    for _, text in texts_from_end(source, most):
        if (step := STEP.search(text)) is not None and (time := time_in(text[: step.start()])) is not None:
            found[int(step[1])] = time
    return found
