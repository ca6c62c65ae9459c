"""Entries of super_pod_list that belong elsewhere, and servers with their devices in it. This module declares no rules.

The reader of a table does not judge super_pod_list, so that such a table has no violation of a schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules import misplaced_findings, strays
from hccl_tools.rules.misplaced_targets import groups
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.rules.super_pod_list import is_used, listed_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.misplaced_targets import Group
    from hccl_tools.rules.registry import Subject

#: The length of the path of an entry of super_pod_list, and of a server in it.
_POD, _SERVER = 2, 4


@shared
def in_pods(subject: Subject) -> list[Group]:
    """Return the misplaced entries of super_pod_list, which HCC521 reports."""
    if subject.table.format != "1.2" or subject.is_version_1_1 or not is_used(subject):
        return []
    return [group for group in groups(subject, "1.2") if group.place.path[0] == "super_pod_list"]


def findings(subject: Subject) -> Iterator[Finding]:
    """Yield the findings on these entries."""
    return map(misplaced_findings.finding, in_pods(subject))


@shared
def paths(subject: Subject) -> frozenset[Path]:
    """Return the paths of these entries."""
    return frozenset[Any]().union(*(group.paths for group in in_pods(subject)))


@shared
def servers_with_devices(subject: Subject) -> dict[Path, str]:
    """Return the servers of super pods that have their devices there and are not in server_list, by their paths."""
    known, pods = (
        {one.server_id for one in subject.table.servers},
        {one.number for one in listed_pods(subject)},
    )
    return {
        one.path: one.server_id
        for one in strays.servers(subject)
        if len(one.path) == _SERVER and one.path[0] == "super_pod_list" and one.path[1] in pods
        and one.server_id and one.server_id not in known
    }  # fmt: skip


def finding(subject: Subject, path: Path, pod: str) -> Finding:
    """Return the finding on such a server."""
    found = servers_with_devices(subject)
    name = quoted(found[path][:64])
    total = str(len(subject.table.servers) + len(found))
    right = "; server_count is then right" if subject.table.declared.get("server_count") == total else ""
    return Finding(
        f"super pod {quoted(pod)} has server {name} with its devices, and server_list has not",
        path,
        f'move it to server_list, and leave {{"server_id": {name}}} in its place{right}',
    )


def explains_count(subject: Subject, stated: int) -> bool:
    """Return whether the servers that server_list lacks by server_count are all in super_pod_list, as other rules report."""
    if subject.table.format != "1.2" or not is_used(subject):
        return False
    told = paths(subject)
    found = [one.path for one in strays.servers(subject)]
    are_told = all(
        path in servers_with_devices(subject) or (len(path) == _POD and path in told) for path in found
    )
    return bool(found) and are_told and stated == len(subject.table.servers) + len(found)
