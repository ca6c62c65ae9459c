"""The super pods of a table as HCCL reads them, shared by several rules. This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import shared

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject
    from hccl_tools.table.model import SuperPod

#: The most super pods of one server that are remembered.
_MOST_PODS = 4
_ABSENT: Any = object()


class ListedPod(NamedTuple):
    """A well-formed super pod with an id: HCCL skips all others."""

    number: int
    super_pod_id: str
    server_ids: list[str]


@shared
def listed_entries(subject: Subject) -> Any:
    """Return super_pod_list as in the file; ``_ABSENT`` if it is absent or the product does not read it."""
    table = subject.table
    if not subject.product.super_pods:
        return _ABSENT
    if table.super_pods is not None:
        return [_entry(pod) for pod in table.super_pods]
    return table.declared.get("super_pod_list", _ABSENT)


def _entry(pod: SuperPod) -> dict[str, Any]:
    return {"super_pod_id": pod.super_pod_id, "server_list": [{"server_id": name} for name in pod.server_ids]}


def is_used(subject: Subject) -> bool:
    """Whether HCCL reads the table's super_pod_list."""
    return listed_entries(subject) is not _ABSENT


def pod_count(subject: Subject) -> int:
    """Return the number of entries of super_pod_list, 0 if HCCL does not read it."""
    entries = listed_entries(subject) if subject.table.format == "1.2" else None
    return len(entries) if isinstance(entries, list) else 0


@shared
def listed_pods(subject: Subject) -> list[ListedPod]:
    """Return the super pods that HCCL reads: well-formed, and with an id."""
    entries, found = listed_entries(subject), []
    for index, entry in enumerate(entries) if isinstance(entries, list) else ():
        name = entry.get("super_pod_id") if isinstance(entry, dict) else None
        servers = entry.get("server_list") if isinstance(entry, dict) else None
        if isinstance(name, str) and name and isinstance(servers, list):
            names = [server.get("server_id") for server in servers if isinstance(server, dict)]
            found.append(ListedPod(index, name, [name for name in names if isinstance(name, str)]))
    return found


@shared
def same_named_pods(subject: Subject) -> dict[int, int]:
    """Return the entries of super_pod_list with the id of an earlier one, by their numbers, with that one."""
    first: dict[str, int] = {}
    return {
        pod.number: seen
        for pod in listed_pods(subject)
        if (seen := first.setdefault(pod.super_pod_id, pod.number)) != pod.number
    }


@shared
def servers_in_two_pods(subject: Subject) -> dict[str, list[str]]:
    """Return the servers that are listed in super pods with different ids, with these ids in their order."""
    first: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for pod in listed_pods(subject):
        for name in pod.server_ids:
            if (seen := first.setdefault(name, pod.super_pod_id)) != pod.super_pod_id:
                known = found.setdefault(name, [seen])
                known += (
                    [] if known[-1] == pod.super_pod_id or len(known) > _MOST_PODS else [pod.super_pod_id]
                )
    return found


@shared
def servers_of_another_kind(subject: Subject) -> tuple[int, ...]:
    """Return the servers without super_device_ids that are in no super pod, if more than half of the others have both."""
    if not is_used(subject):
        return ()
    sdids, servers = subject.table.column("super_device_id"), subject.table.servers
    placed = {name for pod in listed_pods(subject) for name in pod.server_ids}
    found = tuple(
        index
        for index, server in enumerate(servers)
        if server.server_id not in placed and all(sdids[row] is None for row in server.rows)
    )
    return found if 2 * len(found) < len(servers) else ()
