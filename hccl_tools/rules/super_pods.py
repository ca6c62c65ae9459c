"""Rules on super pods (version 1.2 on an A3 in super-pod mode)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.rules.super_pod_list import is_used, listed_entries, listed_pods
from hccl_tools.table.hccl_values import byte_length

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_POD_ID = 127


@rule(
    "HCC521", "super-pod-structure", "refused", code="EI0014", source="topoinfo_ranktableConcise.cc:879-972"
)
def super_pod_structure(subject: Subject) -> Iterator[Finding]:
    """super_pod_list, a super pod or its server_list is empty, incomplete or has the wrong type.

    Base: 1.2 1x2
    Example: /super_pod_list/0/super_pod_id = 0
    Instead: /super_pod_list/0/super_pod_id = "0"
    Hint: write it as a string: "super_pod_id": "0"
    """
    if not is_used(subject):
        return
    entries = listed_entries(subject)
    if not isinstance(entries, list) or not entries:
        yield Finding(
            "super_pod_list is not a list with entries",
            ("super_pod_list",),
            _whole_list(subject, entries),
        )
        return
    for index, entry in enumerate(entries):
        yield from _entry_faults(entry, index, len(entries))


def _whole_list(subject: Subject, entries: Any) -> str:
    """Return the hint on a super_pod_list that is not a list: its form, with the names that the table has."""
    names = [server.server_id for server in subject.table.servers]
    pod, in_pod = "0", names
    if isinstance(entries, dict) and entries and all(type(one) is list for one in entries.values()):
        pod, listed = next(iter(entries.items()))
        in_pod = [one for one in listed if isinstance(one, str)] or names
    servers = f'[{{"server_id": "{in_pod[0]}"}}, ...]' if in_pod else "[...]"
    each = "with one entry for each super pod and all its servers"
    return f'write it {each}: [{{"super_pod_id": "{pod}", "server_list": {servers}}}, ...]'


def _entry_faults(entry: Any, index: int, count: int) -> Iterator[Finding]:
    path = ("super_pod_list", index)
    name = entry.get("super_pod_id") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        key = ("super_pod_id",) if isinstance(entry, dict) and "super_pod_id" in entry else ()
        yield Finding(
            "super_pod_id is missing or not a string",
            (*path, *key),
            _own_pod_id(entry.get("super_pod_id") if isinstance(entry, dict) else None, count),
        )
        return
    if not name:
        return
    servers = entry.get("server_list")
    if not isinstance(servers, list) or not servers:
        key = ("server_list",) if "server_list" in entry else ()
        yield Finding(
            f'super pod "{name}" has no list of servers',
            (*path, *key),
            'list the servers of the super pod, each as {"server_id": "..."} with its server_id in server_list',
        )
        return
    for number, server in enumerate(servers):
        where = (*path, "server_list", number)
        if isinstance(server, str):
            right = f'{{"server_id": {json.dumps(server[:200], ensure_ascii=False)}}}'
            yield Finding(
                f"a server of a super pod is the string {quoted(server)}, not an object with server_id",
                where,
                f"write an object in place of the string: {right}",
                alike=(
                    "servers of super pods are strings, not objects with server_id",
                    'write {"server_id": ...} around each string',
                ),
            )
        elif not isinstance(server, dict) or not isinstance(server.get("server_id"), str):
            yield Finding(
                "server_id is missing or not a string",
                where,
                "write the server_id that the server has in server_list, as a string",
            )


def _own_pod_id(value: Any, count: int) -> str:
    """Return the hint on a super_pod_id: a value only if the id is there, or if there is one super pod."""
    if type(value) is int:
        return f'write it as a string: "super_pod_id": "{value}"'
    if count == 1:
        return 'write it as a string: "super_pod_id": "0"'
    return "give each super pod its own id, as a string; `npu-smi info -t spod-info -i 0 -c 0` on a host shows that of its super pod"


@shared
def _as_strings(subject: Subject) -> frozenset[str]:
    """Return the servers that a super pod lists as strings, which HCC521 reports."""
    entries = listed_entries(subject)
    lists = [
        entry["server_list"]
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("server_list"), list)
    ]
    return frozenset(one for servers in lists for one in servers if isinstance(one, str))


@rule("HCC522", "empty-super-pod-id", "refused", code="EI0014", source="topoinfo_ranktableConcise.cc:903-911")
def empty_super_pod_id(subject: Subject) -> Iterator[Finding]:
    """A super_pod_id is empty, so HCCL skips the super pod and its servers.

    Base: 1.2 1x2
    Example: /super_pod_list/0/super_pod_id = ""
    Instead: /super_pod_list/0/super_pod_id = "0"
    Hint: give the super pod its id
    """
    if not is_used(subject) or not isinstance(entries := listed_entries(subject), list):
        return
    placed = {name for pod in listed_pods(subject) for name in pod.server_ids}
    if all(server.server_id in placed for server in subject.table.servers):
        return
    for index, entry in enumerate(entries):
        if isinstance(entry, dict) and entry.get("super_pod_id") == "":
            yield Finding(
                "super_pod_id is empty",
                ("super_pod_list", index, "super_pod_id"),
                "give the super pod its id",
            )


@rule("HCC523", "super-pod-id", "refused", code="EI0014", source="topoinfo_ranktableConcise.cc:915")
def super_pod_id(subject: Subject) -> Iterator[Finding]:
    """A super_pod_id is longer than 127 bytes, or two super pods have the same super_pod_id.

    Base: 1.2 2x8
    Example: /super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}]}, {"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.2"}]}]
    Instead: /super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.2"}]}]
    Hint: list the servers of one super pod in one entry
    """
    first: dict[str, int] = {}
    for pod in listed_pods(subject):
        path = ("super_pod_list", pod.number, "super_pod_id")
        if byte_length(pod.super_pod_id) > _LONGEST_POD_ID:
            yield Finding(
                f"super_pod_id is longer than {_LONGEST_POD_ID} bytes",
                path,
                "give the super pod a shorter id",
            )
        if (seen := first.setdefault(pod.super_pod_id, pod.number)) != pod.number:
            related = (Related(("super_pod_list", seen, "super_pod_id"), "first used here"),)
            yield Finding(
                f'super_pod_id "{pod.super_pod_id}" is used twice',
                path,
                "list the servers of one super pod in one entry",
                related,
            )


@rule(
    "HCC524",
    "unknown-super-pod-server",
    "refused",
    code="EI0014",
    needs=("server_id",),
    source="topoinfo_ranktableConcise.cc:949-972",
)
def unknown_super_pod_server(subject: Subject) -> Iterator[Finding]:
    """A super pod has a server that is not in server_list.

    Base: 1.2 1x2
    Example: /super_pod_list/0/server_list = [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.9"}]
    Instead: /super_pod_list/0/server_list = [{"server_id": "10.0.0.1"}]
    Hint: write the server_id as in server_list, or add the server there if it is missing
    """
    servers = subject.table.servers
    known = {server.server_id for server in servers}
    meant = _meant_servers(subject, known)
    for pod in listed_pods(subject):
        for number, name in enumerate(pod.server_ids):
            if name not in known:
                path = ("super_pod_list", pod.number, "server_list", number, "server_id")
                yield Finding(
                    f'super pod {quoted(pod.super_pod_id)} has server "{name}", which is not in server_list',
                    path,
                    meant.get(
                        name,
                        "write the server_id as in server_list, or add the server there if it is missing",
                    ),
                )


def _meant_servers(subject: Subject, known: set[str]) -> dict[str, str]:
    """Return the hints on unknown servers of super pods of which it is certain which server is meant."""
    listed = [name for pod in listed_pods(subject) for name in pod.server_ids]
    unknown = [name for name in dict.fromkeys(listed) if name not in known]
    placed = set(listed)
    rest = [server for server in subject.table.servers if server.server_id not in placed]
    found = {
        server.host_ip: f'write "{server.server_id}", the server_id of the server with this host_ip'
        for server in rest
        if isinstance(server.host_ip, str)
    }
    if len(unknown) == len(rest) == 1:
        found[unknown[0]] = (
            f'write "{rest[0].server_id}", the only server of server_list that is in no super pod'
        )
    return found


@rule(
    "HCC525",
    "server-without-super-pod",
    "refused",
    needs=("server_id",),
    stage="check",
    source="topoinfo_ranktableConcise.cc:1003",
)
def server_without_super_pod(subject: Subject) -> Iterator[Finding]:
    """A server is not in any super pod, although the table has super pods.

    Base: 1.2 2x8
    Example: /super_pod_list/0/server_list = [{"server_id": "10.0.0.1"}]
    Instead: /super_pod_list/0/server_list = [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.2"}]
    Hint: add the server to a super pod's server_list
    """
    if not is_used(subject):
        return
    placed = {name for pod in listed_pods(subject) for name in pod.server_ids} | _as_strings(subject)
    entries = listed_entries(subject)
    if not isinstance(entries, list) or not entries:
        return  # HCC521 reports it, and the list has no place for a server.
    known = {server.server_id for server in subject.table.servers}
    for pod in listed_pods(subject):
        if any(name not in known for name in pod.server_ids):
            hint = "write its server_id in place of the unknown one in super_pod_list, or add it to its super pod"
            break
    else:
        hint = "add the server to a super pod's server_list"
    for index, server in enumerate(subject.table.servers):
        if server.server_id not in placed:
            message = f'server "{server.server_id}" is not in any super pod'
            yield Finding(
                message, subject.server_path(index, "server_id"), hint,
                alike=("servers are not in any super pod", hint.replace("the server ", "each server ")),
            )  # fmt: skip
