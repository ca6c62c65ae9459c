"""The ids of super pods: which are free, and whose host shows them. This module declares no rules."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hccl_tools.rules.commands import shown_host
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.rules.super_pod_list import listed_entries, listed_pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.registry import Subject
    from hccl_tools.rules.super_pod_list import ListedPod

#: The command that shows the super pod of a host.
SHOW_POD = "`npu-smi info -t spod-info -i 0 -c 0`"


def own_pod_id(subject: Subject, entry: Any) -> str:
    """Return the hint on a super_pod_id: a value only if the id is there and free, or if there is one super pod."""
    value = entry.get("super_pod_id") if isinstance(entry, dict) else None
    others = _ids_of_pods(subject)
    if type(value) is int:
        text = str(value)
        if others[text] == 1:
            return f'write it as a string: "super_pod_id": "{text}"'
        other = _pods_by_id(subject).get(text)
        more = "" if other is None else on_its_host(subject, other.server_ids, before=" and")
        return (
            f'write a string, and not "{text}", which another super pod has, too: probably "super_pod_id": "{free_pod_id(subject)}"; '
            f"{SHOW_POD}{on_its_host(subject, names_of_entry(entry))}{more} shows the super pod of {'it' if not more else 'each'}"
        )
    if others.total() == 1:
        return 'write it as a string: "super_pod_id": "0"'
    if others[""] > 1:
        return (
            f"give each super pod its own id, as a string; {SHOW_POD}{on_its_host(subject, names_of_entry(entry)) or ' on a host'} "
            "shows that of its super pod"
        )
    return (
        f'give it its own id, as a string, such as "super_pod_id": "{free_pod_id(subject)}", which is free; {SHOW_POD}'
        f"{on_its_host(subject, names_of_entry(entry)) or ' on a host of it'} shows its super pod"
    )


def not_a_string(subject: Subject, entry: Any, path: Path) -> Finding:
    """Return the finding on an entry of super_pod_list whose id is missing or not a string."""
    hint = own_pod_id(subject, entry)
    if not isinstance(entry, dict) or "super_pod_id" not in entry:
        return Finding("super_pod_id is missing or not a string", path, hint)
    value = entry["super_pod_id"]
    if type(value) is not int:
        return Finding("super_pod_id is missing or not a string", (*path, "super_pod_id"), hint)
    is_free = value >= 0 and _ids_of_pods(subject)[str(value)] == 1
    return Finding(
        f"super_pod_id is the number {value}, not a string",
        (*path, "super_pod_id"),
        hint,
        right=str(value) if is_free else None,
        alike=("super_pod_ids are numbers, not strings", "write each as a string, in double quotes")
        if is_free
        else None,
    )


def names_of_entry(entry: Any) -> list[str]:
    """Return the servers that an entry of super_pod_list names."""
    listed = entry.get("server_list") if isinstance(entry, dict) else None
    found = (
        [one.get("server_id") if isinstance(one, dict) else one for one in listed]
        if isinstance(listed, list)
        else []
    )
    return [one for one in found if isinstance(one, str)]


def on_its_host(subject: Subject, names: Sequence[str], before: str = "") -> str:
    """Return the host of the first server of some, as the end of a phrase: `` on 10.0.0.1``; "" without servers."""
    return f"{before} on {shown_host(_addresses(subject).get(names[0], names[0]))}" if names else ""


@shared
def _addresses(subject: Subject) -> dict[str, str]:
    """Return the addresses of servers by their server_ids."""
    return {server.server_id: server.address for server in subject.table.servers}


@shared
def _ids_of_pods(subject: Subject) -> Counter[str]:
    """Return how often each super_pod_id occurs, also as a number; entries without one count under ""."""
    entries = listed_entries(subject)
    ids = (
        [one.get("super_pod_id") if isinstance(one, dict) else None for one in entries]
        if isinstance(entries, list)
        else []
    )
    return Counter(str(one) if type(one) in (int, str) else "" for one in ids)


@shared
def free_pod_id(subject: Subject) -> str:
    """Return the lowest number that is not the id of a super pod."""
    taken = _ids_of_pods(subject)
    return next(str(number) for number in range(len(taken) + 1) if str(number) not in taken)


@shared
def _pods_by_id(subject: Subject) -> dict[str, ListedPod]:
    """Return the super pods by their ids."""
    return {pod.super_pod_id: pod for pod in listed_pods(subject)}


@shared
def pods_by_number(subject: Subject) -> dict[int, ListedPod]:
    """Return the super pods by the numbers of their entries."""
    return {pod.number: pod for pod in listed_pods(subject)}
