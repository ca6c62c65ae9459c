"""Which logs would say more about a cause, with the commands that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain.locations import without_marks
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.notation.phrases import operand

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.locations import Place
    from hccl_tools.explain.sources import Source

_MOST_LOGS_TO_FETCH = 4
#: The most logs of one rank: of its program, and of CANN.
_MOST_OF_RANK = 2
#: What may say more if no log does.
PLOGS = "the plog of each rank, by default in ~/ascend/log: `hccl-tools explain ~/ascend/log` on each host"
#: The same if what was read is such a folder.
OTHER_HOSTS = "the log of the program, and ~/ascend/log of the other hosts; ASCEND_PROCESS_LOG_PATH moves it"
#: The most ranks that a pattern of ``grep`` lists; for more, all logs of their hosts are named.
_MOST_IN_PATTERN = 16


def lines(
    cause: Cause, cluster: Cluster, sources: Sequence[Source], run: str, *, has_plogs: bool
) -> list[str]:
    """Return what to look at, as objects of a sentence: one per log at hand, one per host for the others.

    Args:
        run: The run that is explained, as the user named it; "" for files.
        has_plogs: Whether the ranks write plogs; those of a rehearsal on the CPU do not.
    """
    found: list[str] = []
    at_hand = _logs_of({place.rank for place in cause.fetch} - {None}, cluster, sources) if not run else {}
    elsewhere: dict[str, list[Place]] = {}
    for place in cause.fetch:
        if run and place.rank is not None:
            plog = ", and its plog" if has_plogs else ""
            found.append(f"`hccl-tools logs {operand(run)} --rank {place.rank}`{plog}")
        elif here := at_hand.get(place.rank):
            found.append(" and ".join(here[:_MOST_OF_RANK]))
        else:
            elsewhere.setdefault(place.host, []).append(place)
    found = [*found[:_MOST_LOGS_TO_FETCH], *(_of_host(*item) for item in elsewhere.items())]
    if not cause.fetch and cause.confidence == "open" and has_plogs:
        found.append(PLOGS)
    return found[:_MOST_LOGS_TO_FETCH]


def _logs_of(
    ranks: Collection[int | None], cluster: Cluster, sources: Sequence[Source]
) -> Mapping[int | None, Sequence[str]]:
    """Return the logs that were read, by the rank that wrote them: what is on the screen first."""
    found: dict[int | None, dict[str, None]] = {}
    for source in sources:
        if source.rank in ranks:
            found.setdefault(source.rank, {})[source.shown] = None
    for one in cluster.seen:
        source = sources[one.event.file]
        if one.place.rank in ranks and source.pid and source.has_errors:
            found.setdefault(one.place.rank, {})[source.shown] = None
    return {rank: list(logs) for rank, logs in found.items()}


def _of_host(host: str, places: Sequence[Place]) -> str:
    ranks, host = sorted({place.rank for place in places if place.rank is not None}), without_marks(host)
    what = ranks_text(places) if ranks else places[0].name or "the rank"
    where = f" on {host}" if host and ranks else ""
    logs = "logs" if len(ranks) > 1 else "log"
    if len(ranks) > _MOST_IN_PATTERN:
        return f"the {logs} of {what}{where}: explain ~/ascend/log of {host or 'each of their hosts'} too"
    named = "|".join(map(str, ranks))
    if not ranks:
        pattern = "ERROR"
    elif len(ranks) == 1:
        pattern = f"'rank\\[{named}\\]\\|userRank\\[{named}\\]'"
    else:
        pattern = f"-E '(rank|userRank)\\[({named})\\]'"
    return f"the {logs} of {what}{where}: `grep -rl {pattern} ~/ascend/log`, then explain those files too"
