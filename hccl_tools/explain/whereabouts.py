"""Where a cause is whose line names no rank: by the launcher's words below it, or by the name of its log."""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING

from hccl_tools.explain.identities import OF_SYSTEM
from hccl_tools.explain.places import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.explain.case import Cause
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.sources import Source

#: torchrun names the rank that failed first.
_FAILED_RANK, _SIGNAL = "HCM720", "HCM726"
#: Python's words when a signal ends it.
_CRASHES = {"HCM853", "HCM854", "HCM985", "HCM989"}
#: What whole jobs and launchers do, of which no rank is the place.
_OF_JOB = {"HCM713", "HCM716", "HCM723", "HCM725", "HCM731", "HCM970", "HCM978"}
#: Names that people give to folders and logs of hosts, of which several differ in a number or letter.
_HOST = re.compile(
    r"(?:(?:host|node|server|machine|box|npu|gpu|cn|hpc|compute|master|worker|pod)[-_.]?[a-z]?\d{0,5}(?:[-_.]\w{1,8}){0,2}"
    r"|(?!run|log|job|try|out|err|exp|std|tmp)[a-z]{1,3}\d{1,4})",
    re.IGNORECASE,
)
_ENDINGS = re.compile(r"(?:\.(?:log|txt|out|err))?(?:\.gz)?$")
_VARIES = re.compile(r"\d+|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|(?<=[a-z])[A-Z](?![a-z])")


def named(causes: Sequence[Cause], cluster: Cluster) -> list[Cause]:
    """Return the causes, each with its rank or host if other lines or the names of the logs show it."""
    names = hosts(cluster.sources)
    return [_named(cause, cluster, names) for cause in causes]


def _named(cause: Cause, cluster: Cluster, names: Sequence[str]) -> Cause:
    seen = cause.seen
    if seen is None or cause.message is not seen.event.message or cause.message.id in _OF_JOB:
        return cause
    if any(place.rank is not None or place.host for place in cause.places):
        return cause
    source = cluster.sources[seen.event.file]
    if source.is_run or (own := cause.places[0] if cause.places else Place()).device is not None:
        return cause
    is_own = cause.message.id not in OF_SYSTEM and source.is_program_log
    rank = _of_launcher(cluster, seen) if is_own and not _has_several(cluster, seen) else None
    if rank is not None:
        return cause._replace(places=(cluster.places.find(Place(rank)).merged(own),))
    host = names[seen.event.file]
    return cause._replace(places=(own._replace(host=host),)) if host else cause


def _has_several(cluster: Cluster, seen: Seen) -> bool:
    """Whether several processes say the same in one log, so that a whole host has the fault."""
    event = seen.event
    same = (
        one
        for one in cluster.seen
        if one.event.file == event.file and one.event.message is event.message and one is not seen
    )
    return any(one.event.text == event.text and one.place.rank is None for one in same)


def _of_launcher(cluster: Cluster, seen: Seen) -> int | None:
    """Return the only rank that torchrun names as failed below a line; None if it names none or several.

    Of a crash it is the only one that a signal ended.
    """
    below = [
        one
        for one in cluster.seen
        if one.event.file == seen.event.file and one.event.line > seen.event.line
        if one.place.rank is not None
    ]
    ranks = {one.place.rank for one in below if one.event.message.id == _FAILED_RANK}
    if len(ranks) > 1 and seen.event.message.id in _CRASHES:
        ranks = {one.place.rank for one in below if one.event.message.id == _SIGNAL}
    return ranks.pop() if len(ranks) == 1 else None


def hosts(sources: Sequence[Source]) -> list[str]:
    """Return the host of each log by the first name in its path in which the logs differ, "" if it is none.

    Such names are those of several hosts: ``node-a`` and ``node-b``, ``w1.log`` and ``w2.log``.
    """
    paths = [one.path.split(os.sep) if one.path else [] for one in sources]
    files = [path for path, one in zip(paths, sources, strict=True) if one.is_file]
    levels = zip(*files, strict=False)
    level = sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, levels))
    names = [_ENDINGS.sub("", path[level]) if len(path) > level else "" for path in paths]
    shapes = [_VARIES.sub("0", name) if _HOST.fullmatch(name) else "" for name in names]
    different = Counter(shape for _, shape in set(zip(names, shapes, strict=True)))
    return [name if shape and different[shape] > 1 else "" for name, shape in zip(names, shapes, strict=True)]
