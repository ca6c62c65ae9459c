"""Servers of different super pods that alternate in server_list (HCC529). This module declares no rules.

Either super_pod_list names the wrong super pod of a server, or server_list has another order. What is in the file does not
say which of two servers is wrong: the remedy asks the hosts of all that may be.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.records import NamedTuple
from hccl_tools.rules.copies import server_copies, servers_again
from hccl_tools.rules.registry import Finding
from hccl_tools.rules.replaced_text import renamed_in_pods
from hccl_tools.rules.super_pod_ids import SHOW_POD, on_its_host

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.rules.registry import Subject

_TOGETHER = "list the servers of a super pod together in server_list, and number the ranks in that order"


class Placed(NamedTuple):
    """A server with its super pod.

    Attributes:
        place: The index of the server.
        pod: The super_pod_id.
    """

    place: int
    pod: str


def mixed(subject: Subject) -> Iterator[Finding]:
    """Yield the findings on servers of different super pods that alternate: one if few servers explain it."""
    pods = subject.table.super_pods or ()
    pod_of = {name: pod.super_pod_id for pod in pods for name in pod.server_ids}
    of_each = [pod_of.get(server.server_id) for server in subject.table.servers]
    blocks = [pod for pod, _ in groupby(of_each) if pod is not None]
    if len(blocks) == len({*blocks}):
        return
    for index in server_copies(subject).keys() | servers_again(subject).keys():
        of_each[index] = None  # HCC503 reports it.
    # HCC525 names a server without a super pod.
    renamed = renamed_in_pods(subject)  # HCC503 reports these.
    placed = [
        Placed(place, pod)
        for place, pod in enumerate(of_each)
        if pod is not None and subject.table.servers[place].server_id not in renamed
    ]
    broken = _after_another(placed)
    if not broken:
        return
    exchanged = _exchanged(placed, list(dict.fromkeys(pod.super_pod_id for pod in pods)))
    alone = _alone(placed)
    sizes = Counter(one.pod for one in placed)
    equal = [one for one, pod in alone if _are_equal_then(sizes, one.pod, pod)]
    if exchanged and (len(set(sizes.values())) == 1 or not alone):
        yield _of_an_exchange(subject, exchanged)
    elif alone:
        yield _of_one(subject, sorted(alone, key=lambda pair: pair[0] not in equal))
    else:
        yield from (_of_any(subject, placed, place) for place in broken)


def _after_another(placed: Sequence[Placed]) -> list[int]:
    """Return the places at which a super pod begins that has ended before."""
    done, current, found = set[str](), "", list[int]()
    for place, one in enumerate(placed):
        if place and one.pod == current:
            continue
        found += [place] if one.pod in done else []
        done.add(one.pod)
        current = one.pod
    return found


def _exchanged(placed: Sequence[Placed], order: Sequence[str]) -> list[Placed]:
    """Return two servers with which the super pods are one block each if they are exchanged; none if there are no such."""
    sizes = Counter(one.pod for one in placed)
    by_place = sorted(sizes, key=[one.pod for one in placed].index) if len(sizes) <= _MOST_SORTED else []
    for pods in (order, by_place):
        right = [pod for pod in pods for _ in range(sizes[pod])]
        other = [one for one, pod in zip(placed, right, strict=False) if one.pod != pod]
        if len(other) == len(_PAIR) and len(right) == len(placed):
            return other
    return []


_PAIR = ("one", "other")
#: The most super pods whose first places are searched for, one after the other.
_MOST_SORTED = 64
#: The most servers that a hint asks.
_MOST_ASKED = 4


def _alone(placed: Sequence[Placed]) -> list[tuple[Placed, str]]:
    """Return the servers that stand alone beside those of one other super pod, with it, if in it all pods are one block each."""
    starts = [place for place, one in enumerate(placed) if not place or one.pod != placed[place - 1].pod]
    ends, found = [*starts[1:], len(placed)], list[tuple[Placed, str]]()
    sizes = Counter(one.pod for one in placed)
    for start, end in zip(starts, ends, strict=True):
        beside = [placed[at].pod for at in (start - 1, end) if 0 <= at < len(placed)]
        one = placed[start]
        if (
            end - start == 1 < sizes[one.pod]
            and len({*beside}) == 1
            and len(starts) - len(beside) == len(sizes)
        ):
            found.append((one, beside[0]))
    return found


def _are_equal_then(sizes: Counter[str], source: str, target: str) -> bool:
    """Whether all super pods have the same number of servers if one of a super pod is in another one."""
    return len({number + (pod == target) - (pod == source) for pod, number in sizes.items()}) == 1


def _of_an_exchange(subject: Subject, pair: Sequence[Placed]) -> Finding:
    first, second = pair
    names = [subject.table.servers[one.place].server_id for one in pair]
    own, other = (
        f"server {quoted(name)} of super pod {quoted(one.pod)}" for name, one in zip(names, pair, strict=True)
    )
    return Finding(
        f"{own} is listed before servers of another super pod, and {other} after them: the two are probably exchanged in super_pod_list",
        subject.server_path(second.place, "server_id"),
        f"{SHOW_POD}{on_its_host(subject, names[:1])}{on_its_host(subject, names[1:], ' and')} shows the super pod of each: if these are "
        f"{quoted(second.pod)} and {quoted(first.pod)}, exchange the two in super_pod_list; if super_pod_list is right, {_TOGETHER}",
        (Related(subject.server_path(first.place, "server_id"), "the other server"),),
    )


def _of_one(subject: Subject, alone: Sequence[tuple[Placed, str]]) -> Finding:
    """Return the finding on a server in the wrong super pod; the likeliest of those that it may be is first."""
    (first, around), rest = alone[0], alone[1:_MOST_ASKED]
    names = [subject.table.servers[one.place].server_id for one, _ in (alone[0], *rest)]
    message = f"server {quoted(names[0])} of super pod {quoted(first.pod)} is listed among servers of super pod {quoted(around)}"
    for name, (one, pod) in zip(names[1:], rest, strict=True):
        message += f", and server {quoted(name)} of {quoted(one.pod)} among those of {quoted(pod)}"
    hosts = on_its_host(subject, names[:1]) + "".join(
        on_its_host(subject, [name], " and") for name in names[1:]
    )
    one_of = (
        "the super pod of each: list each server in that one"
        if rest
        else "its super pod: list the server in that one"
    )
    return Finding(
        message,
        subject.server_path(first.place, "server_id"),
        f"{SHOW_POD}{hosts} shows {one_of} in super_pod_list; if super_pod_list is right, {_TOGETHER}",
        tuple(Related(subject.server_path(one.place, "server_id"), "and here") for one, _ in rest),
    )


def _of_any(subject: Subject, placed: Sequence[Placed], place: int) -> Finding:
    """Return the finding on one of many servers that alternate."""
    one = placed[place]
    name = subject.table.servers[one.place].server_id
    hint = f"{SHOW_POD} on each host shows its super pod: correct super_pod_list where it has another one; if it is right, {_TOGETHER}"
    return Finding(
        f"server {quoted(name)} of super pod {quoted(one.pod)} is listed after servers of another super pod",
        subject.server_path(one.place, "server_id"),
        hint,
        alike=("servers of different super pods alternate in server_list", hint),
    )
