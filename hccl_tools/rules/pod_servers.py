"""The servers of super_pod_list beside those of server_list: which of the two is meant by the other. No rules are declared here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.likeness import is_near
from hccl_tools.notation.phrases import and_more
from hccl_tools.rules.address_order import usual_name
from hccl_tools.rules.address_texts import joined_names
from hccl_tools.rules.commands import host_of, shown_host
from hccl_tools.rules.registry import shared
from hccl_tools.rules.super_pod_list import listed_entries, listed_pods
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Subject


@shared
def unplaced(subject: Subject) -> list[str]:
    """Return the server_ids of server_list that are in no super pod."""
    placed = {name for pod in listed_pods(subject) for name in pod.server_ids}
    return [server.server_id for server in subject.table.servers if server.server_id not in placed]


@shared
def unknown_servers(subject: Subject) -> list[str]:
    """Return the servers of super pods that are not in server_list, each once."""
    known = {server.server_id for server in subject.table.servers}
    return list(
        dict.fromkeys(name for pod in listed_pods(subject) for name in pod.server_ids if name not in known)
    )


def meant_servers(subject: Subject) -> dict[str, str]:
    """Return the hints on unknown servers of super pods of which it is certain which server is meant."""
    unknown, placed = unknown_servers(subject), set(unplaced(subject))
    rest = [server for server in subject.table.servers if server.server_id in placed]
    folded = {server.server_id.casefold().strip(): server.server_id for server in rest}
    found = {
        server.host_ip: f'write "{server.server_id}", the server_id of the server with this host_ip'
        for server in rest
        if isinstance(server.host_ip, str)
    }
    for name in unknown:
        if (right := folded.get(name.casefold().strip())) is not None:
            found[name] = f'write "{right}", as in server_list'
    if len(unknown) == len(rest) == 1:
        found[unknown[0]] = _only_server(subject, unknown[0])
    return found


def _only_server(subject: Subject, unknown: str) -> str:
    """Return the hint on the only unknown server of the super pods, if one server of server_list is in none.

    One of the two server_ids is wrong. That of server_list is, if it is no address, or the addresses of its devices say so.
    """
    index = next(
        number
        for number, server in enumerate(subject.table.servers)
        if server.server_id == unplaced(subject)[0]
    )
    own = subject.table.servers[index].server_id
    is_damaged = packed(own.strip()) is None and packed(unknown) is not None
    if (
        unknown in joined_names(own)
        or (is_damaged and (is_near(own, unknown) or host_of(own) == unknown))
        or usual_name(subject, index) == unknown
    ):
        hint = f'write "server_id": {quoted(unknown)} in server {index + 1} of server_list, which has {quoted(own)}'
        if packed(own.strip()) is None:
            return hint
        return (
            f"if {quoted(own)} replaces {quoted(unknown)} in the job, write {quoted(own)} here; if {quoted(own)} was mistyped (`hostname -I` on the host prints its "
            f"addresses), {hint}"
        )
    hint = f"write {quoted(own)}, the only server of server_list that is in no super pod"
    if packed(own) is None or packed(unknown) is None:
        are_names = packed(own) is None and packed(unknown) is None and bool(own.strip() and unknown.strip())
        return either_list(index, own, unknown) if are_names else hint
    return either_list(index, own, unknown)


def either_list(index: int, own: str, unknown: str) -> str:
    """Return the hint on a server of super_pod_list that server_list has under another server_id: one of the two is old or mistyped."""
    return (
        f"server {index + 1} of server_list has {quoted(own)}, which is in no super pod: if this is the host of the job, write "
        f"{quoted(own)} here; if {quoted(unknown)} is, write {quoted(unknown)} in server {index + 1}, and if it replaced {quoted(own)}, also "
        f"its device_ips and super_device_ids there (`hccl-tools gen` on {shown_host(unknown)} prints them)"
    )


def all_unknown(subject: Subject, hint: str) -> tuple[str, str]:
    """Return message and hint on several unknown servers of super pods."""
    unknown, rest = unknown_servers(subject), unplaced(subject)
    message = "servers of super pods are not in server_list"
    folded = {name.casefold().strip(): name for name in rest}
    if unknown and all(name.casefold().strip() in folded for name in unknown):
        first = unknown[0]
        return (
            f"{message} in this spelling",
            f'write each as in server_list: "{first}" as "{folded[first.casefold().strip()]}"',
        )
    if unknown and rest and all(map(packed, unknown)) and not any(map(packed, rest)):
        return (
            f"{message}, which has other texts that are not IP addresses",
            f'write the server_ids of these servers in server_list as here, such as "{unknown[0]}", if they are right here',
        )
    if len(unknown) == len(rest) > 1:
        shown = and_more([f'"{name}"' for name in rest], 8)
        return message, (
            f"server_list has {shown} in their place, which are in no super pod: if these are the hosts of the job, write them here; if those "
            "of super_pod_list are, write these in server_list, and if they replaced the others, also their device_ips and super_device_ids "
            "(`hccl-tools gen` on each prints them)"
        )
    return message, hint.replace(" it ", " each ", 1)


def has_server_id(server: Any) -> bool:
    """Return whether an entry of the server_list of a super pod has a server_id that HCCL reads."""
    return isinstance(server, dict) and isinstance(server.get("server_id"), str)


@shared
def without_server_id(subject: Subject) -> int:
    """Return how many servers of super pods have no server_id, which HCC521 reports."""
    entries = listed_entries(subject)
    lists = (
        [one.get("server_list") for one in entries if isinstance(one, dict)]
        if isinstance(entries, list)
        else []
    )
    return sum(
        not isinstance(one, str) and not has_server_id(one)
        for own in lists
        if isinstance(own, list)
        for one in own
    )


def missing_server_id(subject: Subject) -> str:
    """Return the hint on a server of a super pod without server_id: that of the only server that is in none."""
    rest = unplaced(subject)
    if len(rest) == without_server_id(subject) == 1:
        return f'write "server_id": {quoted(rest[0])}, the only server of server_list that is in no super pod'
    return "write the server_id that the server has in server_list, as a string"
