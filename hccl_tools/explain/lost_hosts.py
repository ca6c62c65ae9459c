"""Hosts that are gone with all of their ranks: what their own files and the ends of their logs say of it."""

from __future__ import annotations

import os
import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from hccl_tools.explain import heartbeats
from hccl_tools.explain.cause import Cause
from hccl_tools.explain.cluster import RanksOfFiles
from hccl_tools.explain.events import clock
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.reader import LogReader
from hccl_tools.explain.sources import named_hosts
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.notation import number_list

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hccl_tools.explain.cause import Case
    from hccl_tools.explain.events import Seen

#: Messages: the BMC recorded a power loss; the host started again; an administrator shut it down.
_SWITCHED_OFF, _STARTED, _SHUT_DOWN = "HCM911", "HCM912", "HCM928"
#: Processes lost torch's store, which is in the process of rank 0; and that process is gone.
_STORE, _STORE_GONE = "HCM668", "HCM663"
_OF_STORE = re.compile(r"\bstore->|TCPStore|c10d (?:store|key)")
_HOSTS_FILE = re.compile(r"(?:etc[_.-])?hosts(?:\.txt)?")
#: Ranks of which only others know that they are gone.
_GONE = {heartbeats.LOST, "HCM824"}
_REPORTED = {"reported", "silent"}
#: Seconds within which the logs of all ranks of a host end that stops at once, and the fewest ranks for it.
_TOGETHER, _FEWEST = 2.0, 2
#: Seconds between the end of the logs and what the BMC recorded, and until the host has started again.
_NEAR, _RESTART = 300.0, 86_400.0
#: One of several power supplies, with whose loss a host goes on.
_SUPPLY = "Power Supply AC lost"
_DAY = re.compile(r"(\d\d)/(\d\d)/(\d{2,4}) \| (\d\d):(\d\d):(\d\d)")
_MINUTE = "%b %d %H:%M %Y"


def explained(case: Case, found: Sequence[Cause]) -> list[Cause]:
    """Return the causes, of which the first says why a host is gone if its own files show it."""
    first = found[0] if found else None
    if first is None or first.message.id not in _GONE or first.confidence not in _REPORTED:
        return list(found)
    ranks = {place.rank for place in first.places if place.rank is not None}
    hosts = {place.host for place in first.places}
    if len(hosts) == 1 and not ranks and (host := hosts.pop()):
        alone = _without_ranks(case, first, host)
        return list(found) if alone is None else [alone, *found[1:]]
    if len(hosts) != 1 or not ranks:
        return list(found)
    end = _end_of_logs(case, ranks)
    lost = heartbeats.arrival(first.seen) if first.seen is not None else None
    when = end if end is not None else lost
    of_files = RanksOfFiles(case.cluster)
    own = [
        one
        for one in case.cluster.seen
        if one.event.message.id in {_SWITCHED_OFF, _STARTED, _SHUT_DOWN}
        and ranks >= of_files.ranks(one.event.file) != set()
    ]
    what = _reason(ranks, end, lost)
    if when is not None and (event := _recorded(own, when)) is not None:
        return [
            first._replace(
                message=event.event.message, confidence="order", seen=event, reason=what, beside=first.seen
            ),
            *found[1:],
        ]
    if end is None or len(ranks) < _FEWEST:
        return list(found)
    return [
        first._replace(
            reason=f"{what}, without an error: the host or its container stopped, or all were killed at once"
        ),
        *found[1:],
    ]


def of_store(case: Case) -> Cause | None:
    """Return the process of rank 0 as gone, if others lost torch's store there and no log of it was read."""
    if 0 in case.cluster.logged or any(one.place.rank == 0 for one in case.cluster.seen):
        return None
    told = [one for one in case.cluster.seen if one.event.message.id == _STORE]
    failed = [one for one in case.events if _OF_STORE.search(one.event.fields.get("reason", ""))]
    ranks = {one.place for one in (*told, *failed) if one.place.rank is not None}
    hosts = {one.event.fields["peer_address"] for one in told}
    if len(ranks) < _FEWEST or len(hosts) > 1:
        return None
    host = next(iter(hosts), "")
    if host and any(_in_path(host, source.path) for source in case.cluster.sources):
        return None
    of_host = f"no log of {host}" if host else "no log of it"
    reason = f"{ranks_text(sorted(ranks))} lost their connection to it, and {of_host} was collected"
    place = Place(0, host)
    return Cause(messages()[_STORE_GONE], "reported", (place,), (told or failed)[0], reason, (place,))


def _in_path(host: str, path: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", path) is not None


def _without_ranks(case: Case, first: Cause, host: str) -> Cause | None:
    """Return a lost host, of which only the address is known, with what the files of the host say.

    It is the one that started again after the loss, and none of whose logs goes on after it.
    """
    lost = heartbeats.arrival(first.seen) if first.seen is not None else None
    if lost is None:
        return None
    names = named_hosts(case.cluster.sources)
    told = _named_in_hosts_file(case, host)
    reporting = {names[one.event.file] for one in case.events if one.since is not None}
    ends: dict[str, float] = {}
    for file, end in case.cluster.ends.items():
        if case.cluster.sources[file].is_program_log:
            ends[names[file]] = max(ends.get(names[file], 0.0), end)
    found: dict[str, Seen] = {}
    for name in set(names) - reporting - {""}:
        if (told and name != told) or ends.get(name, 0.0) > lost + _TOGETHER:
            continue
        own = [
            one
            for one in case.cluster.seen
            if one.event.message.id in {_SWITCHED_OFF, _STARTED, _SHUT_DOWN} and names[one.event.file] == name
        ]
        if (event := _recorded(own, lost)) is not None:
            found[name] = event
    if len(found) != 1:
        return None
    ((name, event),) = found.items()
    parts = [f"its logs end at {clock(ends[name])[:19]}"] if name in ends else []
    parts.append(f"HCCL's heartbeat lost {host} at {clock(lost)[:19]}")
    if not told:
        parts.append("no other host started again then")
    when = event.event.fields.get("moment", "")
    parts.append(f"the record is of {when}" if when else "")
    reason = ", ".join(filter(None, parts))
    places = (Place(None, name),)
    return first._replace(
        message=event.event.message,
        confidence="order",
        places=places,
        seen=event,
        reason=reason,
        beside=first.seen,
    )


def _named_in_hosts_file(case: Case, address: str) -> str:
    """Return the name of an address in a copy of /etc/hosts, "" if there is none."""
    for source in case.cluster.sources:
        if source.is_file and _HOSTS_FILE.fullmatch(os.path.basename(source.path)):
            block = next(LogReader(source.path).blocks(), None)
            row = rb"^\s*" + re.escape(address).encode() + rb"[ \t]{1,40}([\w.-]{1,255})"
            if block is not None and (found := re.search(row, block.data, re.MULTILINE)) is not None:
                return found[1].decode()
    return ""


def _reason(ranks: Collection[int], end: float | None, lost: float | None) -> str:
    parts = []
    if end is not None:
        parts.append(f"the logs of ranks {number_list.fold(sorted(ranks))} end together at {clock(end)[:19]}")
    if lost is not None:
        parts.append(f"HCCL's heartbeat lost it at {clock(lost)[:19]}")
    return ", and ".join(parts)


def _end_of_logs(case: Case, ranks: Collection[int]) -> float | None:
    """Return when the logs of all programs of some ranks end, if they end together and none has an error."""
    if any(one.place.rank in ranks for one in case.events):
        return None
    ends: dict[int, float] = {}
    for file, source in enumerate(case.cluster.sources):
        rank = source.rank
        if rank is not None and rank in ranks and source.is_program_log and file in case.cluster.ends:
            ends[rank] = max(ends.get(rank, 0.0), case.cluster.ends[file])
    if ends.keys() != set(ranks) or max(ends.values()) - min(ends.values()) > _TOGETHER:
        return None
    return max(ends.values())


def _recorded(own: Sequence[Seen], when: float) -> Seen | None:
    """Return what the BMC recorded at about a time, or that the host started again after it."""
    near = [
        one
        for one in own
        if one.event.message.id == _SWITCHED_OFF
        if (time := _time(one, when)) is not None and abs(time - when) <= _NEAR
    ]
    of_host = [one for one in near if _SUPPLY not in one.event.fields["reason"]]
    if of_host or len({one.event.fields["reason"] for one in near}) > 1:
        return (of_host or near)[0]
    for one in own:
        if one.event.message.id == _SHUT_DOWN and abs((_time(one, when) or 0.0) - when) <= _NEAR:
            return one
    later = [
        (time, one)
        for one in own
        if one.event.message.id == _STARTED
        if (time := _time(one, when)) is not None and -60.0 <= time - when <= _RESTART
    ]
    return min(later, default=(0.0, None), key=lambda item: item[0])[1]


def _time(one: Seen, near: float) -> float | None:
    """Return the time in a line of the BMC or of ``last -x``, which may have no year."""
    text = one.event.fields.get("moment", "")
    if (found := _DAY.match(text)) is not None:
        month, day, year, *clock_ = map(int, found.groups())
        year += 2000 if year < 100 else 0
        return _seconds(year, month, day, *clock_)
    words = " ".join(text.split()[-3:])
    year = datetime.fromtimestamp(near, tz=timezone.utc).year
    try:
        return datetime.strptime(f"{words} {year}", _MINUTE).replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def _seconds(*parts: int) -> float | None:
    try:
        return datetime(*parts, tzinfo=timezone.utc).timestamp()  # type: ignore[misc,arg-type]
    except ValueError:
        return None
