"""Find the ranks whose value differs from that of most others: a setting of the device, or an operation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.explain.cause import Case, Cause
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.sources import named_hosts
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.notation.whole_number import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.locations import Places

_TLS_DIFFERS = "HCM215"
#: Messages with the TLS switch of the rank that wrote them, and the words for on and off.
_TLS_VALUES = ("HCM220", "HCM327", "HCM955")
#: A rank and the one at the other end have called different operations, or have different settings.
_MISMATCHES = {"HCM005", "HCM219"}
#: Devices of a list that are named.
_MOST_LISTED = 4
_STATES = {True: "on", False: "off"}
_ON = {"1": True, "ENABLE": True, "0": False, "DISABLE": False}


def unusual(values: Mapping[str, object]) -> set[str]:
    """Return the keys whose value differs from that of more than half of them; {} if no value is usual."""
    counted = Counter(values.values()).most_common(1)
    if not counted or 2 * counted[0][1] <= len(values):
        return set()
    return {key for key, value in values.items() if value != counted[0][0]}


def tls(case: Case) -> list[Cause]:
    """Return the cause if devices did not connect, and TLS is on for some of them and off for others."""
    if not any(one.event.message.limit == "connect" for one in case.events):
        return []  # A switch that differs prevents connections, and has no other effect.
    switches: dict[str, tuple[bool, Seen]] = {}
    for one in case.cluster.seen:
        value = _ON.get(one.event.fields.get("tls", ""))
        if one.event.message.id in _TLS_VALUES and value is not None:
            device = f"/{one.place.device}" if one.place.rank is None else ""
            switches[f"{one.actor}{device}"] = (value, one)
    values = {actor: value for actor, (value, _) in switches.items()}
    if len(set(values.values())) < 2:
        return []
    odd = unusual(values)
    lines = {state: [one for value, one in switches.values() if value is state] for state in (True, False)}
    where = {state: _where(case, lines[state], lines[not state]) for state in (True, False)}
    places = {state: _places(lines[state]) for state in (True, False)}
    if not odd:
        # As many devices have each value: neither side is the one at fault.
        reason = f"it is on {where[True]}, and off {where[False]}"
        both, shown = (*places[True], *places[False]), (lines[True][0], lines[False][0])
        return [Cause(messages()[_TLS_DIFFERS], "named", both, shown[0], reason, (), shown[1])]
    state = values[next(iter(odd))]
    there = "there" if places[state] else where[state]
    reason = f"it is {_STATES[state]} {there}, and {_STATES[not state]} {where[not state]}"
    first, beside = lines[state][0], lines[not state][0]
    return [Cause(messages()[_TLS_DIFFERS], "named", places[state], first, reason, (), beside)]


def _places(lines: Sequence[Seen]) -> tuple[Place, ...]:
    """Return the places of lines; () if one of them has none."""
    found = tuple(dict.fromkeys(one.place for one in lines))
    return () if any(place.rank is None and not place.host for place in found) else found


def _where(case: Case, lines: Sequence[Seen], others: Sequence[Seen]) -> str:
    """Return the places of lines in words: ranks, and their hosts if these are not those of other lines."""
    places = _places(lines)
    if not places:
        logs = dict.fromkeys(case.cluster.sources[one.event.file].shown for one in lines)
        return f"in {and_more(list(logs), _MOST_LISTED)}"
    names = named_hosts(case.cluster.sources)
    here, there = (
        {names[one.event.file] or one.place.host for one in several} for several in (lines, others)
    )
    text = ranks_text(places)
    is_whole = "" not in here and not here & there and text.startswith("rank")
    return f"for {text} ({and_more(sorted(here), _MOST_LISTED)})" if is_whole else f"for {text}"


def listed(one: Seen, places: Places) -> Cause | None:
    """Return the cause for a line that lists where a switch is on and off: the shorter list."""
    lists = {name: one.event.fields.get(name, "").replace(",", " ").split() for name in ("on", "off")}
    if not all(lists.values()):
        return None
    (state, few), (opposite, many) = sorted(lists.items(), key=lambda item: len(item[1]))
    at = [host_and_device.rpartition("/") for host_and_device in few]
    found = (Place(None, host, whole_number(device)) for host, _, device in at)
    listed_places = (place for place in found if place.device is not None)
    there = (places.at_device(place) for place in listed_places)
    known = tuple(dict.fromkeys(place for place in there if place is not None))
    reason = (
        f"it is {state} for {and_more(few, _MOST_LISTED)}, and {opposite} for {count(len(many), 'other')}"
    )
    return Cause(one.event.message, "named", known, one, reason)


def differing(group: Sequence[Seen]) -> list[Seen]:
    """Return the events of the ranks whose own value differs from that of most; all events if none does."""
    values = {one.actor: one.event.fields["local"] for one in group if "local" in one.event.fields}
    odd = unusual(values) if len(values) > 2 else set()
    return [one for one in group if one.actor in odd and "local" in one.event.fields] or list(group)


def common_peer(case: Case, one: Seen) -> Cause | None:
    """Return the rank from which several others differ by their own words, if it is one for all of them."""
    if one.event.message.id not in _MISMATCHES:
        return None
    actors = {seen.actor for seen in case.events if seen.event.message.id in _MISMATCHES}
    peers: dict[Place, list[Place]] = {}
    named = set()
    for seen in case.events:
        peer = seen.peer
        if seen.actor in actors and peer is not None and peer.rank is not None and seen.actor not in named:
            named.add(seen.actor)
            peers.setdefault(Place(peer.rank), []).append(seen.place)
    if len(peers) != 1:
        return None
    ((peer, by),) = peers.items()
    if len(by) < 2 or any(place.rank == peer.rank for place in by) or len(by) < len(actors):
        return None
    place = case.cluster.places.find(peer)
    own = next((seen for seen in case.events if seen.place.rank == peer.rank), None)
    reason = f"{ranks_text(by)} report that they differ from it"
    fields = dict(one.event.fields)
    if "local" in fields and "remote" in fields:  # The line is of another rank: what is remote there is here.
        fields["local"], fields["remote"] = fields["remote"], fields["local"]
    one = one._replace(event=one.event._replace(fields=fields))
    return Cause(one.event.message, "compared", (place,), one, reason, (place,), own)


def by_host(group: Sequence[Seen]) -> str:
    """Return which hosts or ranks have which value; "" if all have one, or too many values differ."""
    values: dict[str, list[Place]] = {}
    for one in group:
        is_same = one.event.fields.get("item") == group[0].event.fields.get("item")
        if is_same and "local" in one.event.fields and one.place.rank is not None:
            values.setdefault(one.event.fields["local"], []).append(one.place)
    if not 1 < len(values) <= _MOST_LISTED:
        return ""
    parts = []
    hosts_of = {value: {place.host for place in places} for value, places in values.items()}
    for value, places in values.items():
        others = set().union(*(hosts for other, hosts in hosts_of.items() if other != value))
        own = hosts_of[value]
        ranks = ranks_text(list(dict.fromkeys(places)))
        is_whole = "" not in own and not own & others
        parts.append(
            f"{value} on {and_more(sorted(own), _MOST_LISTED)} ({ranks})"
            if is_whole
            else f"{value} on {ranks}"
        )
    return "; ".join(parts)
