"""What a launcher's processes get from the shell of their host: the paths of libraries, and proxies.

The ranks of one host lack libraries because a launcher started them in another shell. A launcher asks its
master over HTTP, and a proxy gets the requests instead.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.explain.cause import Case, Cause
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.notation.phrases import and_more
from hccl_tools.notation.whole_number import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.explain.events import Seen


#: A library or a module that is found only with the variables of set_env.sh.
MISSING = {"HCM840", "HCM841", "HCM842", "HCM843"}
_STARTED, _SHELL = "HCM741", "HCM742"
_MOST_NAMED = 8
_FILES = (
    "a shell that is not interactive does not read all of the same files, such as ~/.bashrc below a line"
    " that returns:"
    " pass the variables with the command (`mpirun -x LD_LIBRARY_PATH -x PATH -x PYTHONPATH`,"
    " for each that set_env.sh sets), or source set_env.sh at the top of ~/.bashrc there"
)


def explained(case: Case, first: Cause) -> Cause:
    """Return a missing library with the host of the ranks that lack it, and why only they do."""
    if first.message.id not in MISSING or first.reason:
        return first
    ranks = {place.rank for place in first.places if place.rank is not None}
    start = next((one for one in case.cluster.seen if one.event.message.id == _STARTED), None)
    size = int(start.event.fields["size"]) if start is not None else case.cluster.size
    named = sorted({place.host for place in first.places} - {""})
    if not ranks or len(ranks) >= size or (start is None and len(named) != 1):
        return first
    hosts = _started_on(start, ranks) or named or _asked(case)
    if start is None or "LD_LIBRARY_PATH" in start.event.text:
        return first
    where = f" on {and_more(hosts, _MOST_NAMED)}" if hosts else ""
    reason = f"only {ranks_text(first.places)}{where} of {size} ranks lack it, which mpirun started: {_FILES}"
    return first._replace(reason=reason, beside=start)


def _started_on(start: Seen | None, ranks: Iterable[int]) -> list[str]:
    """Return the hosts of ranks by ``-H hosta:8,hostb:8``; [] if they do not have just these ranks."""
    hosts: list[str] = []
    wanted, first = set(ranks), 0
    for item in (start.event.fields.get("value", "") if start is not None else "").split(","):
        name, _, slots = item.partition(":")
        number = whole_number(slots)
        if not name or number is None or len(slots) > _MOST_NAMED:
            return []
        own = set(range(first, first + min(number, 1 << 17)))
        first += len(own)
        if own & wanted:
            hosts.append(name)
            wanted -= own
    return [] if wanted else hosts


def _asked(case: Case) -> list[str]:
    """Return the one host of which a screen shows the variable without a terminal."""
    found = {one.event.fields["value"] for one in case.cluster.seen if one.event.message.id == _SHELL}
    return sorted(found) if len(found) == 1 else []


#: Settings of a proxy that are looked at.
_MOST_PROXIES = 16
_NOT_READY, _PROXY, _NO_PROXY, _MASTER, _CAUSE = "HCM736", "HCM737", "HCM738", "HCM739", "HCM740"


def unreached_masters(case: Case) -> list[Cause]:
    """Return the cause if a launcher did not reach its master, and a proxy of its host gets the requests."""
    waits = [one for one in case.events if one.event.message.id == _NOT_READY]
    if len(waits) < 2:
        return []
    found = (one for one in case.cluster.seen if one.event.message.id == _PROXY)
    for proxy in islice(found, _MOST_PROXIES):
        same = [one for one in waits if _folder_of(case, one) == _folder_of(case, proxy)]
        master = _field(case, proxy, _MASTER, "address")
        if not same or _is_excepted(master, _field(case, proxy, _NO_PROXY, "value")):
            continue
        host = case.cluster.sources[proxy.event.file].host or os.path.basename(_folder_of(case, proxy))
        name = master or "the master"
        reason = f"a proxy is set there, no_proxy does not name {name}, and the launcher did not reach it"
        places = (Place(None, host),) if host else ()
        return [Cause(messages()[_CAUSE], "compared", places, proxy, reason, (), same[0])]
    return []


def _folder_of(case: Case, one: Seen) -> str:
    return os.path.dirname(case.cluster.sources[one.event.file].path)


def _field(case: Case, beside: Seen, message: str, name: str) -> str:
    """Return a field of a message in the folder of another one, "" if none is there."""
    folder = _folder_of(case, beside)
    found = (
        one
        for one in case.cluster.seen
        if one.event.message.id == message and _folder_of(case, one) == folder
    )
    return next((one.event.fields.get(name, "") for one in found), "")


def _is_excepted(master: str, no_proxy: str) -> bool:
    """Whether a list of addresses without a proxy may contain the master."""
    names = [one.lstrip("*.") for one in re.split(r"[,; ]", no_proxy.strip("\"'")) if one]
    if not master:
        return False
    is_range = any("/" in name for name in names)  # Which programs read ranges differs.
    return is_range or any(name in {"", master} or master.endswith(f".{name}") for name in names)
