"""Advice on container_ip: HCCL does not read it, MindIE recognises its own server by it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.rules.right_texts import address_in
from hccl_tools.rules.server_names import wrong_names
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = "MindIE-LLM ranktable_config.cpp"


@shared
def _container_ips(subject: Subject) -> list[tuple[int, str]]:
    """Return the container_ips of a table, each with the index of its server."""
    servers = subject.table.servers
    if "container_ip" not in set().union(*map(attrgetter("fields"), servers)):
        return []  # Without a step in Python for each server.
    texts = ((index, one.fields.get("container_ip")) for index, one in enumerate(servers))
    return [(index, text) for index, text in texts if type(text) is str and text]


@rule(
    "HCC682",
    "mindie-shared-container-ip",
    "advice",
    source=f"{_SOURCE}, GetServerNode (the first server with the address of MIES_CONTAINER_IP)",
)
def shared_container_ip(subject: Subject) -> Iterator[Finding]:
    """Two servers have one container_ip, by which MindIE recognises its own server: one of the two takes the other for itself.

    Base: 1.0 2x2
    Example: /server_list/0/container_ip = "10.0.0.1"; /server_list/1/container_ip = "10.0.0.1"
    Instead: /server_list/0/container_ip = "10.0.0.1"; /server_list/1/container_ip = "10.0.0.2"
    Hint: write the address that MIES_CONTAINER_IP has on each server: run `echo $MIES_CONTAINER_IP` or `hostname -i` in the container; if MindIE runs in the network of the host, that of server "10.0.0.2" is "10.0.0.2"
    """
    servers, first = subject.table.servers, dict[str, int]()
    for index, own in _container_ips(subject):
        seen = first.setdefault(own, index)
        names = servers[seen].server_id, servers[index].server_id
        if names[0] == names[1]:
            continue  # It is the same server, or one that is listed twice.
        wrong = seen if own == names[1] else index
        name = servers[wrong].server_id
        of_host = (
            f"; if MindIE runs in the network of the host, that of server {quoted(name)} is {quoted(name)}"
        )
        yield Finding(
            f"servers {seen + 1} and {index + 1} have one container_ip, {quoted(own)}: MindIE recognises its own server by it",
            subject.server_path(wrong, "container_ip"),
            "write the address that MIES_CONTAINER_IP has on each server: run `echo $MIES_CONTAINER_IP` or `hostname -i` in the container"
            + (of_host if own in names else ""),
            (
                Related(
                    subject.server_path(seen if wrong == index else index, "container_ip"),
                    "the same address here",
                ),
            ),
        )


@rule(
    "HCC683",
    "mindie-container-ip-form",
    "advice",
    source=f"{_SOURCE}, GetServerNode (compares the text with MIES_CONTAINER_IP)",
)
def container_ip_form(subject: Subject) -> Iterator[Finding]:
    """A container_ip is not an IP address: MindIE compares the text with MIES_CONTAINER_IP, and finds no server of its own.

    Base: 1.0 2x2
    Example: /server_list/0/container_ip = "10.0.0.1 "; /server_list/1/container_ip = "10.0.0.2"
    Instead: /server_list/0/container_ip = "10.0.0.1"; /server_list/1/container_ip = "10.0.0.2"
    Hint: write "10.0.0.1", if MIES_CONTAINER_IP has this value on that server: run `echo $MIES_CONTAINER_IP` in the container
    """
    ask = "if MIES_CONTAINER_IP has this value on that server: run `echo $MIES_CONTAINER_IP` in the container"
    alike: dict[bool, tuple[str, str]] = {}
    for index, own in _container_ips(subject):
        if packed(own) is not None:
            continue
        if own == subject.table.servers[index].server_id and index in wrong_names(subject):
            continue  # HCC619 names both places of the text.
        right = address_in(own)
        hint = f"write the address that MIES_CONTAINER_IP has on that server{ask[ask.index(':') :]}"
        why = "MindIE compares the text with MIES_CONTAINER_IP"
        same = f"in place of {quoted(own)}, and the others in the same way"
        each = f'write "{right}" {same}, {ask}' if right else hint
        yield Finding(
            f"container_ip {quoted(own)} is not an IP address: {why}",
            subject.server_path(index, "container_ip"),
            f'write "{right}", {ask}' if right else hint,
            alike=alike.setdefault(bool(right), (f"container_ips are not IP addresses: {why}", each)),
        )
