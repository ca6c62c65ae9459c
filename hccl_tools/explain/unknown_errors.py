"""Lines of level ERROR that no message explains: with them, a fault beside the logs is not alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain.identities import STATES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.explain.case import Cause
    from hccl_tools.explain.sources import Source

#: Logs of which the first such line is shown.
_MOST_SHOWN = 3


def weighed(
    found: Sequence[Cause], unknown: Mapping[int, tuple[int, str]], sources: Sequence[Source]
) -> tuple[list[Cause], list[str]]:
    """Return the causes, not sure of one that has no tie to an unknown error, and notes on these errors.

    Args:
        unknown: The number and the text of the first such line of a log, by the index of the log.
    """
    causes = list(found)
    is_alone = bool(causes) and causes[0].confidence == "alone" and causes[0].message.id in STATES
    if not unknown or (causes and not is_alone):
        return causes, []
    if is_alone:
        causes[0] = causes[0]._replace(
            confidence="open", reason="other errors in these logs may be the cause, see the notes"
        )
    shown = [
        f"{sources[file].shown}:{line} reports an error that has no message of its own: {text}"
        for file, (line, text) in sorted(unknown.items())[:_MOST_SHOWN]
    ]
    return causes, shown
