"""Rules of the products' guides that HCCL's parser does not enforce, and tables that break after it.

For a 910A the guide's rules on devices are errors: such a job starts and then runs slowly, hangs or fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.addresses import family
from hccl_tools.rules.network import hosts_set
from hccl_tools.rules.registry import Finding, Related, Subject, rule
from hccl_tools.rules.super_pods import pod_count
from hccl_tools.rules.topology import device_sets, servers_of_refused_count
from hccl_tools.table import read_integer, read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

_SERVERS = ("1.0", "1.2")
_LEGACY = (*_SERVERS, "group_list")
_GUIDE = "HCCL guide, constraints.md"


def _place(subject: Subject, name: str) -> int:
    return next(index for index, server in enumerate(subject.table.servers) if server.server_id == name)


@rule("HCC205", "ranks-across-servers", "forbidden", formats=_SERVERS, needs=("rank_id",), source="HCCL guide, rank_table_config_910.md, `rank_id`")
def ranks_across_servers(subject: Subject) -> Iterator[Finding]:
    """The ranks of a server are not consecutive: ranks of different servers are mixed.

    HCCL does not check it, and its algorithms for several servers assume blocks of ranks.

    Base: 2x8
    Example: /server_list/0/device/7/rank_id = "8"; /server_list/1/device/0/rank_id = "7"
    Instead: table
    """
    numbers = subject.table.rank_numbers
    if numbers == list(range(len(numbers))):
        return
    for index, server in enumerate(subject.table.servers):
        own = {number for row in server.rows if (number := numbers[row]) is not None}
        if own and max(own) - min(own) + 1 > len(server.rows) and len(own) == len(server.rows):
            message = f'server "{server.server_id}" has ranks {min(own)} to {max(own)}, but not all of them'
            yield Finding(message, subject.server_path(index, "device"), "number the ranks server by server")


@rule("HCC307", "devices-on-one-machine", "forbidden", formats=_LEGACY, needs=("device_id",), stage="topology", source=f"{_GUIDE}, Atlas training series")
def devices_on_one_machine(subject: Subject) -> Iterator[Finding]:
    """A 910A job on one machine has not 1, 2, 4 or 8 devices, in a way that HCCL lets pass.

    Base: 1x4
    Example: /server_list/0/server_id = " 10.0.0.1"; remove /server_list/0/device/3
    Instead: table
    """
    counts = subject.product.counts_per_server
    if counts is None or not subject.product.checks_hccs_count or servers_of_refused_count(subject):
        return
    sets = device_sets(subject)
    for name, devices in sets.items():
        if len(sets) == 1 and len(devices) not in counts:
            message = f"{len(devices)} devices on one machine; the guide allows {', '.join(map(str, counts))}"
            yield Finding(message, subject.server_path(_place(subject, name)), _other_machine(subject, "HCC307"))


@rule("HCC308", "devices-across-machines", "forbidden", formats=_LEGACY, stage="topology", source=f"{_GUIDE}, Atlas training series")
def devices_across_machines(subject: Subject) -> Iterator[Finding]:
    """A 910A job on several machines does not use all eight devices of each.

    HCCL also takes 1, 2 or 4 devices per machine if all machines have the same number.

    Base: 2x8
    Example: base 2x4
    Instead: table
    """
    wanted, sets = subject.product.cluster_count, device_sets(subject)
    if wanted is None or len(sets) == 1:
        return
    wrong = {name: devices for name, devices in sets.items() if len(devices) != wanted}
    for name, devices in wrong.items():
        message = f'server "{name}" has {len(devices)} devices; across machines the guide demands {wanted} on each'
        yield Finding(message, subject.server_path(_place(subject, name)), _other_machine(subject, "HCC308"))


@rule("HCC309", "devices-across-groups", "forbidden", formats=_LEGACY, needs=("device_id",), stage="topology", source=f"{_GUIDE}, Atlas training series")
def devices_across_groups(subject: Subject) -> Iterator[Finding]:
    """Two or four devices of a 910A are taken from both groups, 0-3 and 4-7.

    Only the devices of one group are joined by HCCS. HCCL takes any two devices, and six sets of four that
    cross the groups; the guide forbids them all.

    Example: /server_list/0/device/1/device_id = "4"
    Instead: /server_list/0/device/1/device_id = "1"
    """
    size, legal = subject.product.group_size, subject.product.four_device_sets
    if size is None:
        return
    for name, devices in device_sets(subject).items():
        crosses = len({device // size for device in devices}) > 1
        if crosses and (len(devices) == 2 or (legal is not None and devices in legal)):  # noqa: PLR2004
            shown = ",".join(map(str, devices))
            yield Finding(
                f"devices {shown} cross the groups 0-3 and 4-7",
                subject.server_path(_place(subject, name)),
                f"take devices of one group; {_other_machine(subject, 'HCC309')}",
            )


def _other_machine(subject: Subject, rule_id: str) -> str:
    return f"HCCL itself lets it pass: --ignore {rule_id}, or --product if the machine is no {subject.product.name}"


@rule("HCC310", "several-servers", "forbidden", formats=_LEGACY, stage="topology", source=f"{_GUIDE}, Atlas 300I Duo")
def several_servers(subject: Subject) -> Iterator[Finding]:
    """A 300I Duo job spans several servers, for which the product is not made.

    Base: 2x8 300i
    Example: table
    Instead: product a2
    """
    if subject.product.single_server and len(subject.table.servers) > 1:
        message = f"{len(subject.table.servers)} servers; {subject.product.title} works on one"
        yield Finding(message, ("group_list",) if subject.table.format == "group_list" else ("server_list",), "make a table for each server")


@rule("HCC411", "empty-device-ip", "fails-later", formats=_SERVERS, needs=("device_ip",), source="topoinfo_ranktableConcise.cc:533; guide, `device_ip`")
def empty_device_ip(subject: Subject) -> Iterator[Finding]:
    """A device has an empty device_ip in a job of several servers.

    The parser takes it for "no address", and linking to other servers fails. On an A3 with several super
    pods the guide demands device_ip, too.

    Base: 2x8 300i
    Example: /server_list/0/device/0/device_ip = ""; /server_list/1/device/0/device_ip = ""
    Instead: table
    """
    if len(subject.table.servers) == 1 or all(hosts_set(subject)):
        return
    a3 = subject.product.needs_device_ip == "never"
    if subject.product.needs_device_ip == "always" or (a3 and pod_count(subject) == 1):
        return
    for row, value in enumerate(subject.table.device_ips):
        if value == "" or (a3 and value is None):
            yield Finding(
                f"{subject.rank_name(row)} has no address, so links to other servers fail",
                subject.device_path(row, *(("device_ip",) if value == "" else ())),
                "`hccn_tool -i N -ip -g` shows a device's address",
            )


@rule("HCC422", "shared-host-port", "fails-later", formats=_SERVERS, source="rank_table_config_a3.md, `host_port`")
def shared_host_port(subject: Subject) -> Iterator[Finding]:
    """Two devices of one server have the same host_port, which only one of them can bind.

    Base: 1.2 1x2
    Example: /server_list/0/device/0/host_port = "60000"; /server_list/0/device/1/host_port = "60000"
    Instead: /server_list/0/device/0/host_port = "60000"; /server_list/0/device/1/host_port = "60001"
    """
    ports = subject.table.columns.get("host_port")
    for server in subject.table.servers if ports else ():
        first: dict[int | None, int] = {}
        for row in server.rows:
            number = read_uint(ports[row]) if ports and ports[row] is not None else None
            if number is not None and (seen := first.setdefault(number, row)) != row:
                related = (Related(subject.device_path(seen, "host_port"), "first used here"),)
                yield Finding(f"host_port {number} is used twice on one server", subject.device_path(row, "host_port"), "give every device its own port", related)


@rule("HCC529", "mixed-super-pods", "forbidden", formats=("1.2",), needs=("server_id",), source="rank_table_config_a3.md, note on super_pod_list")
def mixed_super_pods(subject: Subject) -> Iterator[Finding]:
    """Servers of different super pods alternate in server_list.

    Base: 1.2 4x8 pods 2
    Example: /super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.3"}]}, {"super_pod_id": "1", "server_list": [{"server_id": "10.0.0.2"}, {"server_id": "10.0.0.4"}]}]
    Instead: table
    """
    if not pod_count(subject) or subject.table.super_pods is None:
        return
    pod_of = {name: pod.super_pod_id for pod in subject.table.super_pods for name in pod.server_ids}
    done: set[str | None] = set()
    current: str | None = None
    for index, server in enumerate(subject.table.servers):
        pod = pod_of.get(server.server_id)
        if pod != current:
            if pod in done:
                message = f'server "{server.server_id}" of super pod "{pod}" stands behind servers of another'
                yield Finding(message, subject.server_path(index, "server_id"), "list the servers of a super pod together")
            done.add(current)
            current = pod


@rule("HCC530", "server-in-two-super-pods", "fails-later", formats=("1.2",), source="topoinfo_ranktableConcise.cc:978 (the last wins)")
def server_in_two_super_pods(subject: Subject) -> Iterator[Finding]:
    """A server is listed in two super pods; HCCL silently takes the last.

    Base: 1.2 2x8
    Example: /super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}, {"server_id": "10.0.0.2"}]}, {"super_pod_id": "1", "server_list": [{"server_id": "10.0.0.2"}]}]
    Instead: table
    """
    if not pod_count(subject) or subject.table.super_pods is None:
        return
    first: dict[str, tuple[int, int]] = {}
    for number, pod in enumerate(subject.table.super_pods):
        for place, name in enumerate(pod.server_ids):
            seen = first.setdefault(name, (number, place))
            if seen != (number, place):
                related = (Related(("super_pod_list", seen[0], "server_list", seen[1], "server_id"), "first listed here"),)
                yield Finding(f'server "{name}" is listed twice in super_pod_list', ("super_pod_list", number, "server_list", place, "server_id"), "list every server in one super pod", related)


@rule("HCC333", "unsorted-rank-list", "fails-later", formats=("2.0",), needs=("rank_id",), source="rank_graph_builder.cc:282")
def unsorted_rank_list(subject: Subject) -> Iterator[Finding]:
    """rank_list is not in order of rank_id.

    HCCL takes the n-th entry for rank n without sorting, so that a rank reads another one's addresses.

    Example: /rank_list/0/rank_id = 1; /rank_list/1/rank_id = 0
    Instead: table
    """
    for row, number in enumerate(subject.table.rank_numbers):
        if number is not None and number != row:
            yield Finding(f"entry {row} of rank_list is rank {number}", ("rank_list", row, "rank_id"), "sort rank_list by rank_id")
            return


@rule("HCC334", "duplicate-device", "fails-later", formats=("2.0",), needs=("device_id", "local_id"), source="hccl_rules, not checked in 2.0: local_id and device_id inside a server")
def duplicate_device(subject: Subject) -> Iterator[Finding]:
    """Two ranks of one node have the same device_id or local_id, which HCCL does not check.

    Example: /rank_list/1/device_id = 0
    Instead: /rank_list/1/device_id = 1
    """
    for key in ("local_id", "device_id"):
        numbers = [read_integer(value) for value in subject.table.column(key)]
        for server in subject.table.servers:
            if len({numbers[row] for row in server.rows}) == len(server.rows):
                continue
            first: dict[int | None, int] = {}
            for row in server.rows:
                if (seen := first.setdefault(numbers[row], row)) != row:
                    related = (Related(("rank_list", seen, key), "first used here"),)
                    yield Finding(f'{key} {numbers[row]} is used twice in node "{server.server_id}"', ("rank_list", row, key), f"give every rank of a node its own {key}", related)


@rule("HCC462", "first-layer", "forbidden", formats=("2.0",), source="rank_table_config_a5.md, `net_layer`, `net_type`")
def first_layer(subject: Subject) -> Iterator[Finding]:
    """A rank's levels do not start with layer 0 of net_type TOPO_FILE_DESC, or a layer is left out.

    Example: /rank_list/0/level_list/0/net_type = "CLOS"
    Instead: /rank_list/0/level_list/0/net_type = "TOPO_FILE_DESC"
    """
    for row, levels in enumerate(subject.table.column("level_list")):
        path = ("rank_list", row, "level_list")
        if levels and levels[0]["net_layer"] == 0 and len(levels) == 1 and levels[0].get("net_type") == "TOPO_FILE_DESC":
            continue
        if [read_integer(level["net_layer"]) for level in levels] != list(range(len(levels))):
            yield Finding("the levels are not layer 0, 1, 2 ... without a gap", path, "number the levels from 0")
        elif levels and levels[0].get("net_type") != "TOPO_FILE_DESC":
            found = levels[0].get("net_type", "CLOS by default")
            yield Finding(f"layer 0 is of net_type {found}", (*path, 0), "the guide demands TOPO_FILE_DESC on layer 0")
        elif not levels:
            yield Finding("the rank has no network level", path, "list at least layer 0")


@rule("HCC412", "host-ip-v6", "forbidden", formats=_SERVERS, needs=("host_ip",), source="rank_table_config_a3.md, `host_ip`")
def host_ip_v6(subject: Subject) -> Iterator[Finding]:
    """A host_ip is an IPv6 address, which the guide does not allow and the parser does.

    Base: 1.2 1x2
    Example: /server_list/0/host_ip = "fd00::1"
    Instead: /server_list/0/host_ip = "10.0.0.1"
    """
    for index, server in enumerate(subject.table.servers):
        if server.host_ip is not None and ":" in server.host_ip and family(server.host_ip) is not None:
            yield Finding(f'host_ip "{server.host_ip}" is IPv6; the guide allows IPv4', subject.server_path(index, "host_ip"), "write the host's IPv4 address, or --ignore HCC412")
