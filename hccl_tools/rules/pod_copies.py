"""Super pods whose list of servers was pasted twice (HCC523, HCC525, HCC530). This module declares no rules.

The servers of the copied list are then in two super pods, and those that belong in its place in none. This is one cause,
and the servers that are in none say what belongs there.
"""

from __future__ import annotations

from itertools import chain, groupby
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import as_json, quoted
from hccl_tools.notation.phrases import and_more, listed_parts
from hccl_tools.records import NamedTuple
from hccl_tools.rules.pod_servers import unknown_servers, unplaced
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.rules.super_pod_ids import SHOW_POD, free_pod_id, on_its_host
from hccl_tools.rules.super_pod_list import ListedPod, listed_pods, servers_of_another_kind

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject

_MOST_NAMED = 8


class CopiedPod(NamedTuple):
    """Two entries of super_pod_list with the same servers.

    Attributes:
        copy: The entry with the servers of the other one; the later one, if nothing says which of the two it is.
        first: The other one.
        is_certain: Whether the order of the servers says which of the two is the copy.
        rest: The servers that are in no super pod, as many as the entry lists; empty if each is in one.
    """

    copy: ListedPod
    first: ListedPod
    is_certain: bool
    rest: list[str]


@shared
def copied_pod(subject: Subject) -> CopiedPod | None:
    """Return the entry that lists the servers of another one; None unless this alone explains each server that is listed twice or never."""
    if not _are_repeated(subject):
        return None
    pods, rest = listed_pods(subject), unplaced(subject)
    if unknown_servers(subject) or servers_of_another_kind(subject) or len(rest) != len({*rest}):
        return None
    known: dict[tuple[str, ...], int] = {}
    pairs = [
        (seen, at)
        for at, pod in enumerate(pods)
        if (seen := known.setdefault(tuple(sorted(pod.server_ids)), at)) != at
    ]
    if len(pairs) != 1 or not pods[pairs[0][1]].server_ids:
        return None
    first, copy = pairs[0]
    names = [name for at, pod in enumerate(pods) if at != copy for name in pod.server_ids]
    if len({*names}) < len(names) or len(rest) not in (0, len(pods[copy].server_ids)):
        return None
    is_later, is_earlier = (_are_in_order(subject, pods, at, rest) for at in (copy, first))
    if rest and is_earlier and not is_later:
        first, copy = copy, first
    return CopiedPod(pods[copy], pods[first], bool(rest) and is_later != is_earlier, rest)


@shared
def _are_repeated(subject: Subject) -> bool:
    """Return whether a server is listed twice in super_pod_list."""
    names = [*chain.from_iterable(pod.server_ids for pod in listed_pods(subject))]
    return len({*names}) < len(names)


def _are_in_order(subject: Subject, pods: list[ListedPod], at: int, rest: list[str]) -> bool:
    """Return whether the super pods are in the order of their servers, if an entry lists those that are in none."""
    place = {server.server_id: index for index, server in enumerate(subject.table.servers)}
    lists = [rest if number == at else pod.server_ids for number, pod in enumerate(pods)]
    begins = [min(place[name] for name in names) for names in lists if names]
    return begins == sorted(begins)


def has_two_ids(found: CopiedPod) -> bool:
    """Return whether the two entries have different ids: HCC525 or HCC530 reports them then, and HCC523 others."""
    return found.copy.super_pod_id != found.first.super_pod_id


def of_copied_pod(subject: Subject, found: CopiedPod) -> Finding:
    """Return the finding on a super pod with the servers of another one."""
    first, second = sorted((found.first, found.copy))
    one = len(found.copy.server_ids) == 1
    ids = f"super pods {quoted(first.super_pod_id)} and {quoted(second.super_pod_id)}"
    if not has_two_ids(found):
        ids = f"two entries with super_pod_id {quoted(first.super_pod_id)}"
    message = f"{ids} list the same server{'' if one else 's'}"
    if found.rest:
        names = listed_parts([quoted(name[:64]) for name in found.rest], _MOST_NAMED)
        message += f", and {names} {'is' if one else 'are'} in none: the list of servers was probably copied"
    related = ("super_pod_list", found.first.number, "server_list")
    return Finding(
        message,
        ("super_pod_list", found.copy.number, "server_list"),
        _own_servers(subject, found) if found.rest else _one_of_two(subject, found),
        (Related(related, "the same servers here"),),
    )


def _own_servers(subject: Subject, found: CopiedPod) -> str:
    """Return the hint on the servers that belong in the place of the copied list."""
    entries = and_more([as_json({"server_id": name[:64]}) for name in found.rest], _MOST_NAMED)
    which = f"in the entry of super pod {quoted(found.copy.super_pod_id)}"
    if not has_two_ids(found):
        which = f'in entry {found.copy.number + 1} of super_pod_list, with its own id, such as "super_pod_id": "{free_pod_id(subject)}"'
    elif not found.is_certain:
        which = "in the entry of their super pod"
    return (
        f"write {entries} {which}, in place of the servers there: {SHOW_POD}{on_its_host(subject, found.rest[:1])} and"
        f"{on_its_host(subject, found.first.server_ids[:1])} shows the super pod of each"
    )


def _one_of_two(subject: Subject, found: CopiedPod) -> str:
    return f"{SHOW_POD}{on_its_host(subject, found.first.server_ids[:1])} shows the super pod: remove the entry with the other super_pod_id"


@shared
def named_twice(subject: Subject) -> Finding | None:
    """Return the finding on the only server that is listed twice in super_pod_list, if one server is in no super pod."""
    if not _are_repeated(subject):
        return None
    rest, again = unplaced(subject), list[tuple[ListedPod, int]]()
    if len(rest) != 1 or unknown_servers(subject) or servers_of_another_kind(subject):
        return None
    first: dict[str, tuple[ListedPod, int]] = {}
    for pod in listed_pods(subject):
        for place, name in enumerate(pod.server_ids):
            if first.setdefault(name, (pod, place)) != (pod, place):
                again.append((pod, place))
    if len(again) != 1:
        return None
    ((pod, place),) = again
    name = pod.server_ids[place]
    before, seen = first[name]
    own, twice, ids = (
        quoted(rest[0][:64]),
        quoted(name[:64]),
        [quoted(before.super_pod_id), quoted(pod.super_pod_id)],
    )
    show, listed = f"{SHOW_POD}{on_its_host(subject, rest)}", "first listed here"
    if before.super_pod_id == pod.super_pod_id:
        message = f"super pod {ids[0]} lists server {twice} twice, and server {own} is not in any super pod"
        hint = f"write {own} in place of the second one: {show} shows its super pod; if it is another one, remove the second entry here, and list the server there"
    else:
        message = f"server {twice} is listed in super pods {ids[0]} and {ids[1]}, and server {own} is not in any super pod"
        which = f"one of the two {twice}"
        if (right := _by_order(subject, rest[0], name, (before, pod))) is not None:
            which = f"{twice} in super pod {quoted(right.super_pod_id)}"
        hint = f"{show} and{on_its_host(subject, [name])} shows the super pod of each: list each in that one alone (probably {own} in place of {which})"
        if right == before:  # The entry to change is the first one.
            (pod, place), (before, seen) = (before, seen), (pod, place)
            listed = "and listed here"
    return Finding(
        message,
        ("super_pod_list", pod.number, "server_list", place, "server_id"),
        hint,
        (Related(("super_pod_list", before.number, "server_list", seen, "server_id"), listed),),
    )


def _by_order(subject: Subject, lost: str, name: str, pods: tuple[ListedPod, ListedPod]) -> ListedPod | None:
    """Return the one of two super pods in which a server belongs in place of another; None if both may be it.

    The servers of a super pod are listed together in server_list (HCC529).
    """
    pod_of = {server: pod.number for pod in listed_pods(subject) for server in pod.server_ids}
    found = list[ListedPod]()
    for own, other in (pods, pods[::-1]):
        placed = {**pod_of, lost: own.number, name: other.number}
        blocks = [pod for pod, _ in groupby(placed.get(server.server_id) for server in subject.table.servers)]
        found += [own] if len(blocks) == len({*blocks}) else []
    return found[0] if len(found) == 1 else None
