"""Which events of a job can be its cause: not what a rank wrote at its end, handled, or only warned of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain import pod_events, stops
from hccl_tools.explain.cause import DELAY, Case, is_before
from hccl_tools.explain.handled import is_warning, tells
from hccl_tools.explain.identities import JOINED, OF_SYSTEM
from hccl_tools.explain.knowledge.message import fault_of
from hccl_tools.explain.locations import Place
from hccl_tools.explain.outlived import is_outlived
from hccl_tools.notation import number_list

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Seen

#: A rank that raises an exception, exits or aborts after an error of HCCL only passes that error on.
FOLLOW_UP = {
    "HCM962",
    "HCM960",
    "HCM961",
    "HCM810",
    "HCM813",
    "HCM821",
    "HCM891",
    "HCM896",
    "HCM898",
    "HCM901",
    "HCM593",
    "HCM658",
    "HCM701",
    "HCM702",
    "HCM706",
    "HCM707",
    "HCM714",
    "HCM720",
    "HCM722",
    "HCM723",
    "HCM725",
    "HCM726",
    "HCM862",
    "HCM865",
}
#: What a rank itself did: its program raised an exception, exited or was killed.
_OWN_FAILURES = {
    "HCM726",
    "HCM810",
    "HCM820",
    "HCM821",
    "HCM865",
    "HCM891",
    "HCM892",
    "HCM960",
    "HCM961",
    "HCM962",
    "HCM985",
    "HCM989",
}
#: A connection that ended: an effect of what the other end did before.
LOST_CONNECTIONS = {"HCM240", "HCM292", "HCM661", "HCM662", "HCM663", "HCM664"}
#: The link between two devices failed.
LINK_ERRORS = {"HCM013", "HCM304", "HCM305", "HCM938", "HCM939", "HCM966", "HCM967"}
#: Signals to which a lost connection does not lead: they come from outside, or from a fault in a library.
_KILLS = {"SIGKILL", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"}
#: Seconds after the connections of a process were lost within which its launcher sees that it has ended.
_SEEN_AS_ENDED = 60.0
#: Codes of the runtime for a fault of the device or of a program on it, not of the device at the other end.
_DEVICE_FAULT = re.compile(r"50[57](?!05[57])\d{3}")
#: Launchers and shells say that a process ended, of which its own lines above say why.
_EXITS = {"HCM960", "HCM961"}
#: torchrun names the rank whose failure it observed first.
OBSERVED_FIRST = "HCM720"
#: Lines in the log of a launcher of ranks.
_OF_RANKS = {"HCM720", "HCM721", "HCM723", "HCM724", "HCM725", "HCM726", "HCM731", "HCM978"}
#: Faults that go away: the message that says so, and the field with what both are about.
_GONE = {"HCM815": ("HCM817", "reason"), "HCM313": ("HCM391", "device")}
#: An attempt to connect did not succeed; a process tries again, at the latest after these seconds.
ATTEMPTS = {"HCM665", "HCM666", "HCM667"}
_TRIES_AGAIN = 180.0
#: No log goes on for longer: half a year.
_LONGEST_RUN = 180 * 86_400.0
#: A process did not reach MindSpore's scheduler, and one that has joined its cluster.
_NOT_REACHED, _CLUSTER_JOINED = "HCM606", "HCM615"
#: torch's words for one attempt; its words for the last one are that the socket has timed out.
_STORE_ATTEMPT = "HCM916"
#: A failed operation of HCCL in an exception, whose reason stands below it: MindSpore's Ascend Error Message.
_OF_HCCL, _REASON_WITHIN = re.compile(r"hccl_|Hccl[A-Z]|Launch kernel failed"), 12
#: More ranks than any job has.
MOST_RANKS = 1 << 17
#: Seconds for which a program writes lines after an error that it has handled.
_GOES_ON = 30.0


def of(cluster: Cluster, ended: Collection[int], not_started: Collection[int]) -> Case:
    """Return the events that can be causes.

    Args:
        ended: The ranks that the launcher ended: what they report after that is no cause.
        not_started: The ranks that did not start because another rank failed: they cannot write a log.
    """
    events = [one for one in cluster.seen if one.event.message.kind not in {"fact", "end"}]
    failed = {one.actor for one in events if not is_warning(one)}
    events = [one for one in events if one.actor in failed and (tells(one) or not is_warning(one))]
    events = _before_their_end(events, ended)
    stopped = stops.first_of(cluster.seen)
    if stopped:
        sure = {id(stop) for stop in stopped if stops.is_sure(stop, cluster.seen)}
        events = [one for one in events if not stops.is_after(one, stopped, sure)]
    over = pod_events.over(cluster.seen)
    events = [one for one in events if id(one) not in over]
    gone = (
        *_recovered(cluster, events),
        *_reached_later(cluster, events),
        *joined_later(cluster, events),
    )
    are_gone = set(map(id, gone))
    handled = [one for one in _handled(cluster, events) if id(one) not in are_gone]
    set_aside = set(map(id, (*handled, *gone)))
    events = [one for one in events if id(one) not in set_aside]
    ended = frozenset(ended) | _ended_ranks(cluster.seen, stopped)
    stop = stopped[0] if stopped else None
    return Case(cluster, events, first_of_each(events), frozenset(not_started), ended, stop, handled)


def after(case: Case, outlived: Seen) -> Case:
    """Return a case without a failure that the job outlived, and without those above it in its log."""
    events = [
        one
        for one in case.events
        if one.event.file != outlived.event.file or one.event.line > outlived.event.line
    ]
    return case._replace(events=events, first=first_of_each(events))


def with_handled(case: Case) -> Case:
    """Return a case in which the errors count after which their process went on."""
    events = sorted(
        (*case.events, *case.handled), key=lambda one: (one.time is None, one.time or one.since or 0.0)
    )
    return case._replace(events=events, first=first_of_each(events), handled=())


def first_of_each(events: Iterable[Seen]) -> Mapping[str, Seen]:
    """Return the most telling early event of each actor."""
    first: dict[str, Seen] = {}
    for one in events:
        former = first.get(one.actor)
        if former is None or _is_more_telling(one, former):
            first[one.actor] = one
    return first


def _before_their_end(events: list[Seen], ended: Collection[int]) -> list[Seen]:
    own = [one.time for one in events if one.place.rank not in ended and one.time is not None]
    limit = min(own, default=None)
    if not ended or limit is None:
        return events
    return [
        one for one in events if one.place.rank not in ended or (one.time is not None and one.time <= limit)
    ]


def _is_more_telling(one: Seen, former: Seen) -> bool:
    """Whether a later event of the same rank says more than its first one about the same failure."""
    near = one.time is None or former.time is None or one.time - former.time <= DELAY
    if former.event.message.id in FOLLOW_UP or former.event.message.kind == "code":
        return near and one.event.message.kind != "code" and one.event.message.id not in FOLLOW_UP
    is_peer_new = former.peer is None and one.peer is not None
    if {former.event.message.id, one.event.message.id} <= LINK_ERRORS and is_peer_new:
        return True  # The driver names no other end; HCCL's heartbeat does, somewhat later.
    return near and former.event.message.kind == one.event.message.kind == "timeout" and is_peer_new


def _handled(cluster: Cluster, events: Sequence[Seen]) -> list[Seen]:
    """Return the errors of programs that went on for long after them, and of ranks that then joined."""
    actors: dict[int, set[str]] = {}
    last: dict[int, float] = {}
    for one in cluster.seen:
        actors.setdefault(one.event.file, set()).add(one.actor)
        if one.event.message.kind != "fact":
            last[one.event.file] = max(last.get(one.event.file, 0.0), one.until or one.since or 0.0)
    handled = []
    joined: dict[str, float] = {}
    for one in cluster.seen:
        if one.event.message.id == JOINED and one.time is not None:
            joined[one.actor] = max(joined.get(one.actor, 0.0), one.time)
    for one in events:
        file, until = one.event.file, one.until
        end = cluster.ends.get(file)
        has_joined = until is not None and joined.get(one.actor, 0.0) > until + DELAY
        if one.event.pid and one.event.message.kind == "cause" and has_joined:
            handled.append(one)  # The rank has made its communicator after all.
        if one.event.pid or one.event.message.id in OF_SYSTEM or end is None or until is None:
            continue
        if one.event.message.kind not in {"cause", "error"} and one.event.message.limit != "store":
            continue
        if len(actors[file]) == 1 and end - until > _GOES_ON and end - last[file] > _GOES_ON:
            handled.append(one)
    return handled


def _reached_later(cluster: Cluster, events: Sequence[Seen]) -> list[Seen]:
    """Return the attempts to connect after which the rank went on: it waited elsewhere, or wrote for long."""
    tried = [one for one in events if is_attempt(one)]
    if not tried:
        return []
    screens = {one.event.file: one for one in tried if one.place.rank is None}
    outlasted = [file for file, one in screens.items() if is_outlived(cluster, one)]
    later: dict[str, float] = {}
    actors: dict[int, set[str]] = {}
    for one in cluster.seen:
        actors.setdefault(one.event.file, set()).add(one.actor)
        if not is_attempt(one) and one.event.message.id not in FOLLOW_UP and one.since is not None:
            later[one.actor] = max(later.get(one.actor, 0.0), one.since)
    last: dict[str, float] = {}
    for one in tried:
        if one.until is not None:
            last[one.actor] = max(last.get(one.actor, 0.0), one.until)
    gone_on = set()
    for one in tried:
        tried_until = last.get(one.actor)
        if tried_until is None:
            continue
        end = cluster.ends.get(one.event.file, 0.0) if len(actors[one.event.file]) == 1 else 0.0
        end = 0.0 if end - tried_until > _LONGEST_RUN else end  # The line has no year.
        if later.get(one.actor, 0.0) > tried_until + DELAY or end > tried_until + _TRIES_AGAIN:
            gone_on.add(one.actor)
    return [one for one in tried if one.actor in gone_on or one.event.file in outlasted]


def joined_later(cluster: Cluster, events: Iterable[Seen]) -> list[Seen]:
    """Return the warnings on MindSpore's scheduler of processes that then joined its cluster."""
    joined = {
        (one.event.file, one.actor): one.event.line
        for one in cluster.seen
        if one.event.message.id == _CLUSTER_JOINED
    }
    return [
        one
        for one in events
        if one.event.message.id == _NOT_REACHED and is_warning(one)
        if one.event.line < joined.get((one.event.file, one.actor), 0)
    ]


def is_device_fault(one: Seen) -> bool:
    """Whether an event is a fault of the rank's own device, or of a program on it."""
    codes = (*one.event.codes, *(code.code for code in one.event.message.codes))
    return any(_DEVICE_FAULT.fullmatch(code) for code in codes)


def is_attempt(one: Seen) -> bool:
    """Whether a line says that a process did not reach an address, and may try again."""
    return one.event.message.id in ATTEMPTS or one.event.message.id == _STORE_ATTEMPT


def _recovered(cluster: Cluster, events: Sequence[Seen]) -> list[Seen]:
    """Return the faults that went away long before anything else failed."""
    others = [one.since for one in events if one.event.message.id not in _GONE and one.since is not None]
    endings = dict(_GONE.values())  # The field by the message that says that a fault went away.
    again = [one for one in cluster.seen if one.event.message.id in endings and one.time is not None]
    if not again or not others:
        return []
    longest = max(cluster.waits.values(), default=0.0)
    last: dict[tuple[str, str, int], float] = {}
    for one in again:
        ending = one.event.message.id
        key = (ending, one.event.fields.get(endings[ending], ""), one.event.file)
        last[key] = max(last.get(key, 0.0), one.time or 0.0)
    recovered = []
    for one in events:
        ending, field = _GONE.get(one.event.message.id, ("", ""))
        end = last.get((ending, one.event.fields.get(field, ""), one.event.file))
        if end is not None and (one.until or 0.0) <= end and min(others) > end + longest:
            recovered.append(one)
    return recovered


def _ended_ranks(seen: Iterable[Seen], stopped: Sequence[Seen]) -> frozenset[int]:
    """Return the ranks that were ended from outside, by their own lines or by those of the launcher."""
    found: set[int] = set()
    for one in seen:
        is_end = one.event.message.kind == "end"
        if is_end and one.place.rank is not None:
            found.add(one.place.rank)
        if "ended" in one.event.fields and (is_end or stops.is_after(one, stopped)):
            found |= number_list.distinct(one.event.fields["ended"], MOST_RANKS)
    return frozenset(found)


def failures_of_ranks(case: Case) -> list[Seen]:
    """Return the exceptions, exits and signals of ranks that do not only pass a failure of HCCL on."""
    follow_ups = passed_on(case)
    found = [
        one for one in case.events if one.event.message.id in _OWN_FAILURES and id(one) not in follow_ups
    ]
    # The exceptions of other programs, such as that of a monitor, do not end a rank.
    files = {one.event.file for one in case.cluster.seen if one.event.message.id in _OF_RANKS}
    own = [one for one in found if one.place.rank is not None or one.event.file in files] or found
    said = {one.event.file for one in own if one.event.message.id not in _EXITS}
    return [one for one in own if one.event.message.id not in _EXITS or one.event.file not in said]


def observed_first(case: Case, failures: Sequence[Seen], first: Seen) -> Seen:
    """Return the failure of the rank that torchrun observed first, unless another is known to be earlier."""
    named = {one.place.rank for one in case.cluster.seen if one.event.message.id == OBSERVED_FIRST}
    own = [one for one in failures if one.place.rank is not None and one.place.rank in named]
    observed = min(own, key=lambda one: one.since or float("inf"), default=None) if len(named) == 1 else None
    return first if observed is None or is_before(first, observed) else observed


def passed_on(case: Case) -> set[int]:
    """Return the ids of the exceptions and exits that follow a failure of HCCL in the same process or log."""
    by_actor: dict[str, Seen] = {}
    by_file: dict[int, Seen] = {}
    for one in case.events:
        if one.event.message.id not in FOLLOW_UP:
            by_actor.setdefault(one.actor, one)
            former = by_file.setdefault(one.event.file, one)
            if one.event.line < former.event.line:
                by_file[one.event.file] = one
    return {
        id(one)
        for one in case.events
        if one.event.message.id in FOLLOW_UP
        if _follows(one, by_actor.get(one.actor)) or _follows(one, by_file.get(one.event.file))
    }


def _follows(one: Seen, former: Seen | None) -> bool:
    if former is None or (one.event.rank is not None and former.actor != one.actor):
        return False
    if is_lost_with(former, one):
        return False
    if one.event.file == former.event.file:
        below = _REASON_WITHIN if _OF_HCCL.search(one.event.text) else 0
        return former.event.line < one.event.line + below
    return not is_before(one, former)


def is_lost_with(lost: Seen, killed: Seen) -> bool:
    """Whether a rank lost a connection as a signal killed another one: that does not explain the signal."""
    if lost.event.message.id not in LOST_CONNECTIONS or lost.actor == killed.actor:
        return False
    if killed.place.rank is None or killed.event.fields.get("signal") not in _KILLS:
        return False
    until, since = lost.until, killed.since
    return until is None or since is None or since - until <= _SEEN_AS_ENDED


def is_same_fault(group: Sequence[Seen], other: Sequence[Seen]) -> bool:
    """Whether two groups of lines are about one fault, of which another program tells no other rank."""
    if fault_of(group[0].event.message.id) != fault_of(other[0].event.message.id):
        return False
    ranks = [{one.place.rank for one in several} - {None} for several in (group, other)]
    return not ranks[0] or not ranks[1] or bool(ranks[0] & ranks[1])


def is_one_failure(one: Seen, other: Seen) -> bool:
    """Whether two lines are of one rank or host, and neither is known to be earlier."""
    return one.actor == other.actor and not is_before(one, other) and not is_before(other, one)


def says_more(one: Seen, other: Seen) -> bool:
    """Whether two messages of a rank are about one failure, and the first has more details."""
    codes = [{code.code for code in seen.event.message.codes} for seen in (one, other)]
    is_known = Place() not in {one.place, other.place}
    is_same = not is_before(one, other) and not is_before(other, one)
    is_same = is_same and (one.actor == other.actor or not is_known)
    return bool(codes[0] & codes[1]) and is_same and len(one.event.fields) > len(other.event.fields)
