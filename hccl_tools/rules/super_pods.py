"""Rules on super pods (version 1.2 on an A3 in super-pod mode)."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import as_json, quoted
from hccl_tools.rules import entry_forms, misplaced_in_pods
from hccl_tools.rules.commands import how_super_device, shown_host
from hccl_tools.rules.filled_columns import filled_servers, servers_filled
from hccl_tools.rules.misplaced_entries import is_in
from hccl_tools.rules.pod_copies import copied_pod, has_two_ids, named_twice, of_copied_pod
from hccl_tools.rules.pod_servers import (
    all_unknown,
    meant_servers,
    missing_server_id,
    unknown_servers,
    unplaced,
    without_server_id,
)
from hccl_tools.rules.registry import Finding, Subject, rule, shared, shared_each
from hccl_tools.rules.replaced_text import renamed_in_pods
from hccl_tools.rules.super_pod_ids import (
    SHOW_POD,
    free_pod_id,
    names_of_entry,
    not_a_string,
    on_its_host,
    pods_by_number,
)
from hccl_tools.rules.super_pod_list import (
    ListedPod,
    is_used,
    listed_entries,
    listed_pods,
    servers_of_another_kind,
)
from hccl_tools.table.hccl_numbers import byte_length

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path

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
    faults = (fault for index, entry in enumerate(entries) for fault in _entry_faults(subject, entry, index))
    if (first := next(faults, None)) is None:
        return
    yield from misplaced_in_pods.findings(subject)
    yield from (
        one for one in chain([first], faults) if not is_in(one.path, misplaced_in_pods.paths(subject))
    )


def _whole_list(subject: Subject, entries: Any) -> str:
    """Return the hint on a super_pod_list that is not a list: its form, with the names that the table has."""
    if (said := entry_forms.of_text(entries)) is not None:
        return f"it is {said[0]}: {said[1]}"
    names = [server.server_id for server in subject.table.servers]
    pod, in_pod = "0", names
    if isinstance(entries, dict) and entries and all(type(one) is list for one in entries.values()):
        pod, listed = next(iter(entries.items()))
        in_pod = [one for one in listed if isinstance(one, str)] or names
    servers = f'[{{"server_id": "{in_pod[0]}"}}, ...]' if in_pod else "[...]"
    each = "with one entry for each super pod and all its servers"
    return f'write it {each}: [{{"super_pod_id": "{pod}", "server_list": {servers}}}, ...]'


def _entry_faults(subject: Subject, entry: Any, index: int) -> Iterator[Finding]:
    path = ("super_pod_list", index)
    name = entry.get("super_pod_id") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        yield not_a_string(subject, entry, path)
        return
    if not name:
        return
    servers = entry.get("server_list")
    if not isinstance(servers, list) or not servers:
        key = ("server_list",) if "server_list" in entry else ()
        said = entry_forms.of_text(servers)
        yield Finding(
            f'super pod "{name}" has no list of servers{"" if said is None else f", but {said[0]}"}',
            (*path, *key),
            'list the servers of the super pod, each as {"server_id": "..."} with its server_id in server_list'
            if said is None
            else said[1],
        )
        return
    for number, server in enumerate(servers):
        where = (*path, "server_list", number)
        if isinstance(server, str) and (said := entry_forms.of_text(server)) is not None:
            yield Finding(
                f"a server of a super pod is {said[0]}",
                where,
                said[1],
                alike=(f"servers of super pods: each is {said[0]}", said[1]),
            )
        elif isinstance(server, str):
            right = f'{{"server_id": {as_json(server[:200])}}}'
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
            yield Finding("server_id is missing or not a string", where, missing_server_id(subject))


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


@shared
def _in_pods_without_id(subject: Subject) -> frozenset[str]:
    """Return the servers of super pods whose id is missing or not a string, which HCC521 reports."""
    entries = listed_entries(subject)
    return frozenset(
        server["server_id"]
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and not isinstance(entry.get("super_pod_id"), str)
        for server in (entry["server_list"] if isinstance(entry.get("server_list"), list) else ())
        if isinstance(server, dict) and isinstance(server.get("server_id"), str)
    )


@rule("HCC522", "empty-super-pod-id", "refused", code="EI0014", source="topoinfo_ranktableConcise.cc:903-911")
def empty_super_pod_id(subject: Subject) -> Iterator[Finding]:
    """A super_pod_id is empty, so HCCL skips the super pod and its servers.

    Base: 1.2 1x2
    Example: /super_pod_list/0/super_pod_id = ""
    Instead: /super_pod_list/0/super_pod_id = "0"
    Hint: give the super pod its id, such as "0", which is free; `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.1 shows its super pod
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
                f'give the super pod its id, such as "{free_pod_id(subject)}", which is free; {SHOW_POD}'
                f"{on_its_host(subject, names_of_entry(entry)) or ' on a host of it'} shows its super pod",
            )


@rule("HCC523", "super-pod-id", "refused", code="EI0014", source="topoinfo_ranktableConcise.cc:915")
def super_pod_id(subject: Subject) -> Iterator[Finding]:
    """A super_pod_id is longer than 127 bytes, or two super pods have the same super_pod_id.

    Base: 1.2 2x8
    Example: /super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}]}, {"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.2"}]}]
    Instead: /super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.2"}]}]
    Hint: `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.1 and on 10.0.0.2 shows the super pod of each: if it is the same, list the servers of both entries in one; if they differ, write these ids, such as "super_pod_id": "1" for one of the two
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
            if (copied := copied_pod(subject)) is not None and copied.rest and not has_two_ids(copied):
                yield of_copied_pod(subject, copied)
                continue
            related = (Related(("super_pod_list", seen, "super_pod_id"), "first used here"),)
            yield Finding(
                f'super_pod_id "{pod.super_pod_id}" is used twice{_of_two_pods(subject, pod, seen)}',
                path,
                _right_pod(subject, pod, seen),
                related,
            )


@shared
def _servers_of_pods(subject: Subject) -> dict[int, set[str]]:
    """Return the servers of each entry of super_pod_list."""
    return {pod.number: set(pod.server_ids) for pod in listed_pods(subject)}


@shared
def _sdids_of_servers(subject: Subject) -> dict[str, set[Any]]:
    """Return the super_device_ids of each server_id."""
    found: dict[str, set[Any]] = {}
    sdids = subject.table.column("super_device_id")
    for server in subject.table.servers:
        found.setdefault(server.server_id, set()).update(sdids[row] for row in server.rows)
    return found


@shared_each
def _sdids_of_pod(subject: Subject, number: int) -> set[Any]:
    """Return the super_device_ids of the servers of an entry of super_pod_list."""
    of_server, names = _sdids_of_servers(subject), _servers_of_pods(subject)[number]
    return set().union(*(of_server.get(name, set()) for name in names)) - {None}


def _repeat_sdids(subject: Subject, pod: ListedPod, seen: int) -> bool:
    """Whether the servers of two entries have the same super_device_ids, which one super pod has each once."""
    of_server, known = _sdids_of_servers(subject), _sdids_of_pod(subject, seen)
    own = set(pod.server_ids) - _servers_of_pods(subject)[seen]
    return any(not known.isdisjoint(of_server.get(name, ())) for name in own)


def _of_two_pods(subject: Subject, pod: ListedPod, seen: int) -> str:
    if set(pod.server_ids) <= _servers_of_pods(subject)[seen]:
        return ", and the second entry lists the same servers"
    if _repeat_sdids(subject, pod, seen):
        return ", and the servers of both entries have the same super_device_ids: they are two super pods"
    return ""


def _right_pod(subject: Subject, pod: ListedPod, seen: int) -> str:
    if set(pod.server_ids) <= _servers_of_pods(subject)[seen]:
        return "remove this entry"
    first = pods_by_number(subject)[seen].server_ids
    hosts = on_its_host(subject, first) + on_its_host(subject, pod.server_ids, " and" if first else "")
    own = f'"super_pod_id": "{free_pod_id(subject)}"'
    if _repeat_sdids(subject, pod, seen):
        return f"{SHOW_POD}{hosts} shows the super pod of each: write these ids, such as {own} for one of the two"
    return (
        f"{SHOW_POD}{hosts} shows the super pod of each: if it is the same, list the servers of both entries in one; if they differ, "
        f"write these ids, such as {own} for one of the two"
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
    Hint: remove it here if it has left the job, or add it to server_list with its devices if it belongs to the job
    """
    known = {server.server_id for server in subject.table.servers}
    meant, rest = meant_servers(subject), unplaced(subject)
    hint = "write the server_id as in server_list, or add the server there if it is missing"
    if not rest:
        hint = "remove it here if it has left the job, or add it to server_list with its devices if it belongs to the job"
    alike = None
    if unknown_servers(subject):
        known = known | renamed_in_pods(subject)  # HCC503 reports the replacement.
    for pod in listed_pods(subject):
        for number, name in enumerate(pod.server_ids):
            if name not in known:
                if misplaced_in_pods.in_pods(subject):
                    return  # HCC521 reports that entries are in the wrong list.
                place: Path = ("super_pod_list", pod.number, "server_list", number)
                if place in misplaced_in_pods.servers_with_devices(subject):
                    yield misplaced_in_pods.finding(subject, place, pod.super_pod_id)
                    continue
                path = (*place, "server_id")
                alike = alike or all_unknown(subject, hint)
                is_by_host = meant.get(name, "").endswith("with this host_ip")
                yield Finding(
                    f'super pod {quoted(pod.super_pod_id)} has server "{name}", which is not in server_list',
                    path,
                    meant.get(name, hint),
                    alike=None if is_by_host else alike,
                )


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
    Hint: add {"server_id": "10.0.0.2"} to the server_list of its super pod: `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.2 shows it
    """
    if not is_used(subject):
        return
    placed = {name for pod in listed_pods(subject) for name in pod.server_ids} | _as_strings(subject)
    placed |= _in_pods_without_id(subject)
    if any(entry_forms.of_text(name) is not None for name in _as_strings(subject)):
        return  # HCC521 reports that a program printed the servers as text.
    entries = listed_entries(subject)
    if not isinstance(entries, list) or not entries:
        return  # HCC521 reports it, and the list has no place for a server.
    if unplaced(subject) and misplaced_in_pods.in_pods(subject):
        return  # HCC521 reports that entries are in the wrong list.
    if (copied := copied_pod(subject)) is not None and copied.rest:
        if has_two_ids(copied):  # Else HCC523 reports it.
            yield of_copied_pod(subject, copied)
        return
    if (twice := named_twice(subject)) is not None:
        yield twice
        return
    if len(unknown_servers(subject)) >= len(unplaced(subject)) > 0:
        return  # HCC524 names the servers that are meant.
    if len(unplaced(subject)) == 1 == without_server_id(subject):
        return  # HCC521 names the server that is meant.
    others = servers_of_another_kind(subject)
    yield from _of_another_kind(subject, others)
    renamed, alike = "", None
    if unknown_servers(subject):
        renamed = (
            "write its server_id in place of the unknown one in super_pod_list, or add it to its super pod"
        )
    for index, server in enumerate(subject.table.servers):
        if server.server_id not in placed and index not in others:
            message = f'server "{server.server_id}" is not in any super pod'
            hint = renamed or _its_pod(subject, index)
            if filled := filled_servers(subject):
                message, hint = servers_filled(subject, filled, hint)
                yield Finding(message, subject.server_path(index, "server_id"), hint)
                return
            of_each = hint.replace("its super pod", "the super pod of each")
            alike = alike or ("servers are not in any super pod", of_each)
            yield Finding(message, subject.server_path(index, "server_id"), hint, alike=alike)


def _its_pod(subject: Subject, index: int) -> str:
    """Return the hint on a server that is in no super pod, with the command that shows its own."""
    server = subject.table.servers[index]
    entry = as_json({"server_id": server.server_id[:64]})
    return (
        f"add {entry} to the server_list of its super pod: `npu-smi info -t spod-info -i 0 -c 0` on "
        f"{shown_host(server.address)} shows it{_or_new_pod(subject)}"
    )


@shared
def _or_new_pod(subject: Subject) -> str:
    """Return what to do if the super pod of a server is not listed; "" if the super pods of the table say nothing of it."""
    if len(unplaced(subject)) < 2:
        return ""
    own = f'{{"super_pod_id": "{free_pod_id(subject)}", "server_list": [...]}}'
    return f"; if the table does not list this super pod, add an entry for it with its id, such as {own}"


def _of_another_kind(subject: Subject, others: tuple[int, ...]) -> Iterator[Finding]:
    """Yield the servers that are probably machines of another generation."""
    servers = subject.table.servers
    usual = Counter(len(server.rows) for index, server in enumerate(servers) if index not in others)
    for index in others:
        size, most = len(servers[index].rows), usual.most_common(1)[0][0]
        message = f"server {quoted(servers[index].server_id)} has no super_device_ids and is in no super pod, unlike all others"
        if size != most:
            message += f", and {size} devices where they have {most}"
        yield Finding(
            f"{message}: it is probably a machine of another generation",
            subject.server_path(index, "server_id"),
            "remove it if it is not an A3, correct server_count and number the ranks again without a gap; if it is an A3, list it in its super pod, with "
            f"the SDIDs of its devices: {how_super_device(subject, servers[index].rows[0])}",
        )
