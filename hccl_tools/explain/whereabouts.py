"""Where a cause is whose line names no rank: by the launcher's words below it, or by the name of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain import pods
from hccl_tools.explain.identities import OF_SYSTEM
from hccl_tools.explain.locations import Place
from hccl_tools.explain.sources import named_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Seen

#: torchrun names the rank that failed first.
_FAILED_RANK, _SIGNAL = "HCM720", "HCM726"
#: DeepSpeed names the local rank; its lines begin with a bracket if pdsh has not put the host before them.
_DEEPSPEED = "HCM960"
#: Python's words when a signal ends it.
_CRASHES = {"HCM853", "HCM854", "HCM962", "HCM985", "HCM989"}
#: What whole jobs and launchers do, of which no rank is the place.
_OF_JOB = {
    *("HCM711", "HCM713", "HCM716", "HCM723", "HCM725", "HCM731", "HCM915", "HCM919", "HCM925", "HCM926"),
    *("HCM970", "HCM978"),
}


def named(causes: Sequence[Cause], cluster: Cluster) -> list[Cause]:
    """Return the causes, each with its rank or host if other lines or the names of the logs show it."""
    names = named_hosts(cluster.sources)
    return [_named(pods.named(cause, cluster.sources), cluster, names) for cause in causes]


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
    if not ranks and sum(1 for source in cluster.sources if source.is_program_log) == 1:
        ranks = set(_of_deepspeed(cluster, seen))
    if len(ranks) > 1 and seen.event.message.id in _CRASHES:
        ranks = {one.place.rank for one in below if one.event.message.id == _SIGNAL}
    return ranks.pop() if len(ranks) == 1 else None


def _of_deepspeed(cluster: Cluster, seen: Seen) -> Iterator[int]:
    """Yield the local ranks that DeepSpeed names as failed: the ranks, if there is one log of one host."""
    for one in cluster.seen:
        is_own = one.event.message.id == _DEEPSPEED and one.event.text.startswith("[")
        if is_own and one.event.line >= seen.event.line and "logical" in one.event.fields:
            yield int(one.event.fields["logical"])
