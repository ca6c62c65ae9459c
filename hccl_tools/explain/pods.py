"""Faults of a pod: which pod it is, by the line or the description above it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain.pod_events import pod_of
from hccl_tools.explain.reader import LogReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.sources import Source

#: Faults of a pod in lines that may not name it, and the line of ``kubectl describe`` above them that does.
_OF_POD = {"HCM750", "HCM751", "HCM752", "HCM753", "HCM754", "HCM879", "HCM900", "HCM974", "HCM992"}
_NAME = re.compile(rb"^Name: {1,40}([a-z0-9][a-z0-9.-]{0,252})[ \r]*$", re.MULTILINE)


def named(cause: Cause, sources: Sequence[Source]) -> Cause:
    """Return a cause with the pod that its line, or the description above it, names."""
    seen = cause.seen
    if seen is None or seen.event.message.id not in _OF_POD or seen.event.fields.get("pod"):
        return cause
    pod = of(seen, sources)
    if not pod:
        return cause
    event = seen.event._replace(fields={**seen.event.fields, "pod": pod})
    return cause._replace(seen=seen._replace(event=event))


def of(seen: Seen, sources: Sequence[Source]) -> str:
    """Return the pod that a line on a pod, or the description above it, names; "" if none does."""
    return pod_of(seen) or (
        _described(sources[seen.event.file], seen.event.line) if seen.event.message.id in _OF_POD else ""
    )


def _described(source: Source, line: int) -> str:
    """Return the last name of a pod above a line, in the first block of its file."""
    if not source.is_file:
        return ""
    block = next(LogReader(source.path).blocks(), None)
    above = b"\n".join(block.data.split(b"\n", line)[: line - 1]) if block is not None else b""
    found = _NAME.findall(above)
    return found[-1].decode() if found else ""
