"""Logs whose last loss is not a number: the job has not failed, and yet its result is of no use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain.last_lines import texts_from_end
from hccl_tools.explain.reader import STDIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.explain.sources import Source

#: The value of a loss: ``loss: 2.31``, ``lm loss: nan``, ``'loss': inf``, ``loss is nan``.
_LOSS = re.compile(
    rb"loss['\"]?(?: is |[ =:(\[]{1,4})['\"]?([-+]?(?:nan|inf(?:inity)?)\b|[-+]?\d)", re.IGNORECASE
)
_NUMBER = re.compile(rb"[-+]?\d")
#: Logs whose ends are read, and the bytes of an end.
_MOST_LOGS, _MOST_BYTES = 64, 1 << 16
#: Characters of a line in which the loss is looked for.
_LONGEST = 1000


def notes(sources: Sequence[Source]) -> list[str]:
    """Return a sentence on the first log whose last loss is NaN or infinite; [] if none is."""
    programs = [one for one in sources if one.path not in ("", STDIN) and not one.pid]
    for source in programs[:_MOST_LOGS]:
        first = 0
        value = b""
        for number, text in texts_from_end(source, _MOST_BYTES):
            found = _LOSS.search(text[:_LONGEST])
            if found is None:
                continue
            if _NUMBER.match(found[1]):
                break
            first, value = number, value or found[1]
        if first:
            shown = f"{source.shown}:{first}"
            return [f"the loss is {value.decode().lower()} at the end of a log, from {shown} on"]
    return []
