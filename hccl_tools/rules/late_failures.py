"""Rules on addresses, ports and super pods that HCCL accepts, but that fail later or violate a guide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules import pod_order
from hccl_tools.rules.address_columns import hosts_set
from hccl_tools.rules.commands import how, how_super_device
from hccl_tools.rules.pod_copies import copied_pod, has_two_ids, named_twice, of_copied_pod
from hccl_tools.rules.pod_servers import unplaced
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.rules.replaced_text import renamed_in_pods
from hccl_tools.rules.super_pod_list import is_used, listed_pods, pod_count, servers_in_two_pods
from hccl_tools.table.addresses import family
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule(
    "HCC411",
    "empty-device-ip",
    "fails-later",
    needs=("device_ip",),
    source="topoinfo_ranktableConcise.cc:533; guide, `device_ip`",
)
def empty_device_ip(subject: Subject) -> Iterator[Finding]:
    """A device has an empty device_ip in a job of several servers.

    The parser reads an empty text as "no address", and connections to other servers fail. On an A3 with several super
    pods the guide requires device_ip.

    Base: 2x8 300i
    Example: /server_list/0/device/0/device_ip = ""; /server_list/1/device/0/device_ip = ""
    Instead: table
    Hint: `hccn_tool -i 0 -ip -g` on 10.0.0.1 shows the address of device 0
    """
    if len(subject.table.servers) == 1 or all(hosts_set(subject)):
        return
    optional = subject.product.needs_device_ip == "never"
    if subject.product.needs_device_ip == "always" or (optional and pod_count(subject) == 1):
        return
    ips = subject.table.device_ips
    if "" not in ips and not (optional and None in ips):
        return
    for row, value in enumerate(ips):
        if value == "" or (optional and value is None):
            yield Finding(
                f"{subject.rank_name(row)} has no address, so connections to other servers fail",
                subject.device_path(row, *(("device_ip",) if value == "" else ())),
                how(subject, row),
            )


@rule("HCC422", "shared-host-port", "fails-later", source="rank_table_config_a3.md, `host_port`")
def shared_host_port(subject: Subject) -> Iterator[Finding]:
    """Two devices of one server have the same host_port, which only one of them can bind.

    Base: 1.2 1x2
    Example: /server_list/0/device/0/host_port = "60000"; /server_list/0/device/1/host_port = "60000"
    Instead: /server_list/0/device/0/host_port = "60000"; /server_list/0/device/1/host_port = "60001"
    Hint: give every device its own port
    """
    ports = subject.table.columns.get("host_port")
    for server in subject.table.servers if ports else ():
        first: dict[int | None, int] = {}
        for row in server.rows:
            number = read_uint(ports[row]) if ports and ports[row] is not None else None
            if number is not None and (seen := first.setdefault(number, row)) != row:
                related = (Related(subject.device_path(seen, "host_port"), "first used here"),)
                yield Finding(
                    f"host_port {number} is used twice on one server",
                    subject.device_path(row, "host_port"),
                    "give every device its own port",
                    related,
                )


@rule(
    "HCC529",
    "mixed-super-pods",
    "forbidden",
    formats=("1.2",),
    needs=("server_id",),
    source="rank_table_config_a3.md, note on super_pod_list",
)
def mixed_super_pods(subject: Subject) -> Iterator[Finding]:
    """Servers of different super pods alternate in server_list.

    Base: 1.2 4x8 pods 2
    Example: /super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.3"}]}, {"super_pod_id": "1", "server_list": [{"server_id": "10.0.0.2"}, {"server_id": "10.0.0.4"}]}]
    Instead: table
    Hint: `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.2 and on 10.0.0.3 shows the super pod of each: if these are "0" and "1", exchange the two in super_pod_list; if super_pod_list is right, list the servers of a super pod together in server_list, and number the ranks in that order
    """
    if not pod_count(subject) or subject.table.super_pods is None:
        return
    if servers_in_two_pods(subject):
        return  # HCC530 or HCC528 reports the cause.
    yield from pod_order.mixed(subject)


@rule(
    "HCC530",
    "server-in-two-super-pods",
    "fails-later",
    formats=("1.2",),
    source="topoinfo_ranktableConcise.cc:978 (the last entry is used)",
)
def server_in_two_super_pods(subject: Subject) -> Iterator[Finding]:
    """A server is listed in two super pods; HCCL silently uses the last entry.

    Base: 1.2 2x8
    Example: /super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.2"}]}, {"super_pod_id": "1", "server_list": [{"server_id": "10.0.0.2"}]}]
    Instead: table
    Hint: remove it from super pod "1": the servers beside it in server_list are in super pod "0"; `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.2 shows the super pod and the SDID of device 0
    """
    if not pod_count(subject) or subject.table.super_pods is None:
        return
    if (copied := copied_pod(subject)) is not None and has_two_ids(copied):
        if not copied.rest:  # Else HCC525 reports it.
            yield of_copied_pod(subject, copied)
        return
    if named_twice(subject) is not None:
        return  # HCC525 reports it.
    pods = subject.table.super_pods
    first: dict[str, tuple[int, int]] = {}
    for number, pod in enumerate(pods):
        for place, name in enumerate(pod.server_ids):
            seen = first.setdefault(name, (number, place))
            if seen == (number, place) or name in renamed_in_pods(subject):
                continue  # HCC503 reports a replacement in both lists.
            related = (
                Related(
                    ("super_pod_list", seen[0], "server_list", seen[1], "server_id"), "first listed here"
                ),
            )
            path = ("super_pod_list", number, "server_list", place, "server_id")
            same = pods[seen[0]].super_pod_id == pod.super_pod_id
            message = f'server "{name}" is listed twice in super_pod_list'
            if same and number != seen[0] and set(pod.server_ids) <= set(pods[seen[0]].server_ids):
                break  # HCC523 says to remove the whole entry.
            if same:
                pod_id = quoted(pod.super_pod_id)
                yield Finding(
                    message, path, f"remove the second entry{_instead(subject)}", related,
                    alike=(f"servers are listed twice in super pod {pod_id}", "remove the second entry of each"),
                )  # fmt: skip
            else:
                ids = (pods[seen[0]].super_pod_id, pod.super_pod_id)
                yield Finding(
                    f"{message}, in super pods {' and '.join(map(quoted, ids))}",
                    path,
                    _right_of_two_pods(subject, name),
                    related,
                )


@shared
def _places_of_servers(subject: Subject) -> dict[str, int]:
    """Return the index of the last entry of each server_id."""
    return {server.server_id: index for index, server in enumerate(subject.table.servers)}


@shared
def _pods_of_servers(subject: Subject) -> dict[str, str]:
    """Return the super_pod_id of each server that is in one super pod."""
    twice = servers_in_two_pods(subject)
    return {
        name: pod.super_pod_id for pod in listed_pods(subject) for name in pod.server_ids if name not in twice
    }


def _right_of_two_pods(subject: Subject, name: str) -> str:
    """Return the hint on a server of two super pods: in which of them the servers beside it are."""
    servers, twice = subject.table.servers, servers_in_two_pods(subject)
    pods = _pods_of_servers(subject)
    index, ids = _places_of_servers(subject).get(name, 0), twice.get(name, [])
    beside = {
        pods[one.server_id]
        for one in (servers[max(0, index - 1)], *servers[index + 1 : index + 2])
        if one.server_id in pods
    }
    how = (
        how_super_device(subject, servers[index].rows[0]).replace("the SDID", "the super pod and the SDID")
        if servers[index].rows
        else ""
    )
    if len(beside) == 1 and (own := beside.pop()) in ids:
        wrong = next(one for one in ids if one != own)
        return (
            f"remove it from super pod {quoted(wrong)}: the servers beside it in server_list are in super pod {quoted(own)}"
            f"{_instead(subject)}; {how}"
        )
    return f"remove it from the wrong one of the two{_instead(subject)}: {how}"


def _instead(subject: Subject) -> str:
    """Return which server is probably meant in place of one that is listed twice: the only one that is in no super pod."""
    rest = unplaced(subject)
    return (
        f", or write {quoted(rest[0])} there, the only server that is in no super pod"
        if len(rest) == 1
        else ""
    )


@rule("HCC412", "host-ip-v6", "forbidden", needs=("host_ip",), source="rank_table_config_a3.md, `host_ip`")
def host_ip_v6(subject: Subject) -> Iterator[Finding]:
    """A host_ip is an IPv6 address, which the parser accepts but the guide forbids.

    Base: 1.2 1x2
    Example: /server_list/0/host_ip = "fd00::1"
    Instead: /server_list/0/host_ip = "10.0.0.1"
    Hint: write the host's IPv4 address; to allow IPv6: --ignore HCC412
    """
    for index, server in enumerate(subject.table.servers):
        if server.host_ip is not None and ":" in server.host_ip and family(server.host_ip) is not None:
            yield Finding(
                f'host_ip "{server.host_ip}" is IPv6; the guide allows only IPv4',
                subject.server_path(index, "host_ip"),
                "write the host's IPv4 address; to allow IPv6: --ignore HCC412",
            )


def _version_without_content(subject: Subject) -> Iterator[Finding]:
    """Yield the finding on version 1.2 of a product without super pods, if the table has nothing of 1.2."""
    sdids, servers = subject.table.columns.get("super_device_id"), subject.table.servers
    if (sdids is None or not any(sdids)) and not any("super_pod_list" in one.fields for one in servers):
        yield Finding(
            f"version is 1.2, the one of super pods, and the table has no super_pod_list and no super_device_id; {subject.product.title} has no "
            "super pods",
            ("version",),
            'write "version": "1.0"; if the machine is an A3, check the table with --product a3',
        )


def _without_content(subject: Subject) -> Iterator[Finding]:
    """Yield the finding on a table for a product of super pods that has nothing of super pods."""
    version = subject.table.format
    if any("super_pod_list" in one.fields for one in subject.table.servers):
        return  # HCC617 reports the list in another place.
    right = 'write "version": "1.0"' if version == "1.2" else "check the table with --product a3-server"
    also = "" if version == "1.2" else ' and write "version": "1.2"'
    yield Finding(
        f"version is {version}, and the table has no super_pod_list and no super_device_id: HCCL uses no super pod",
        ("version",),
        f"on an A3 in super pods add both{also}: `hccl-tools gen` on each host prints its super_device_ids; else {right}",
    )


@rule(
    "HCC638",
    "no-super-pods",
    "advice",
    needs=("super_device_id", "server_id"),
    source="rank_table_config_a3.md, `super_pod_list`; topoinfo_ranktableConcise.cc:866-876 (without it, no super pods)",
)
def no_super_pods(subject: Subject) -> Iterator[Finding]:
    """The version is 1.2 or the devices have super_device_ids, and no super_pod_list makes a super pod of the servers.

    Servers of one super pod then communicate by RoCE as separate machines.

    Base: 1.2 2x8
    Example: remove /super_pod_list
    Instead: table
    Hint: add "super_pod_list": [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}, ...]}], with an entry for each super pod
    """
    sdids = subject.table.columns.get("super_device_id")
    has_list = isinstance(subject.value, dict) and "super_pod_list" in subject.value
    if not subject.product.super_pods and isinstance(subject.value, dict) and not has_list:
        if subject.table.format == "1.2":
            yield from _version_without_content(subject)
        return
    if is_used(subject) or has_list or not subject.product.super_pods or len(subject.table.servers) == 1:
        return
    if sdids is None or not any(sdids):
        yield from _without_content(subject)
        return
    known = [sdid for sdid in sdids if sdid not in (None, "")]
    if len(known) < len(sdids) or any("super_pod_list" in server.fields for server in subject.table.servers):
        return  # Not all devices are in a super pod; or HCC617 reports a list in another place.
    like = _like_super_pods(subject.value)
    if like is not None:
        yield Finding(
            f"HCCL does not read the key {quoted(like)}, whose value is a list of super pods",
            (like,),
            'rename it to "super_pod_list"',
            at_key=True,
        )
        return
    message = "the devices have super_device_ids, but the table has no super_pod_list: HCCL uses no super pod"
    first = subject.table.servers[0].server_id
    version = "" if subject.table.format == "1.2" else 'write "version": "1.2", and '
    hint = f'{version}add "super_pod_list": [{{"super_pod_id": "0", "server_list": [{{"server_id": {quoted(first[:64])}}}, ...]}}], with an entry for each super pod'
    if (number := len(known) - len(set(known))) > 0:
        message += f", and {number} of them occur twice, so the servers are in several super pods"
        hint += "; `npu-smi info -t spod-info -i 0 -c 0` on each host shows its super pod"
    yield Finding(message, (), hint)


def _like_super_pods(value: Any) -> str | None:
    """Return the key of a table whose value has the form of a super_pod_list."""
    for key, one in value.items() if isinstance(value, dict) else ():
        if (
            key != "super_pod_list"
            and isinstance(one, list)
            and one
            and isinstance(one[0], dict)
            and "super_pod_id" in one[0]
        ):
            return str(key)
    return None
