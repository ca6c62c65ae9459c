"""Rules on the groups of service tables, and on the servers of their instances.

Source: MindIE-Motor 5dfb024e, RankTableLoader.cpp; omni-infer c8bc2bbb, rank_table.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.likeness import is_near
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.rules.registry import Finding, Input, rule
from hccl_tools.rules.service_addresses import PORTS
from hccl_tools.rules.service_structure import service_table
from hccl_tools.table.format_names import SERVICE
from hccl_tools.table.hccl_numbers import read_int

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.service_table import ServiceTable

#: RankTableLoader.cpp:25-35: a coordinator, a controller and 96 instances; the servers of each.
_MOST_GROUPS = 98
#: The group_id of the first instance of MindIE-Motor.
_FIRST_INSTANCE = 2
#: The numbers of a group, each with an example.
_NUMBERS = (("group_id", "2"), ("deploy_server", "0"))
_MOST_SERVERS = {"instance": 96, "coordinator": 2}


@rule(
    "HCC711", "service-group-id", "refused", source="RankTableLoader.cpp:371, :405, :589; rank_table.py:173"
)
def group_id(subject: Input) -> Iterator[Finding]:
    """A group_id or a deploy_server is not a number in a string.

    Example: /server_group_list/2/group_id = "two"
    Instead: /server_group_list/2/group_id = "2"
    Hint: write a number in a string, for example "group_id": "2"
    """
    groups = service_table(subject).groups
    for key, example in _NUMBERS:
        texts = [value if isinstance(value := group.entry.get(key), str) else None for group in groups]
        wrong = {text for text in set(texts) if text is not None and not _is_number(text)}
        for index, text in enumerate(texts if wrong else ()):
            if text in wrong:
                hint = f'write a number in a string, for example "{key}": "{example}"'
                yield Finding(f'{key} "{text}" is not a number', (SERVICE, index, key), hint)


def _is_number(text: str) -> bool:
    number = read_int(text)
    return number is not None and number >= 0


@rule("HCC712", "duplicate-group-id", "fails-later", source="RankTableLoader.cpp:351-361, :656-661")
def duplicate_group_id(subject: Input) -> Iterator[Finding]:
    """Two groups have the same group_id.

    For the coordinator, and where instances are single servers, MindIE-Motor reads only the first of them.

    Example: /server_group_list/0/group_id = "2"
    Instead: /server_group_list/0/group_id = "0"
    Hint: write "group_id": "0" in the group without devices, a number that no group has
    """
    table = service_table(subject)
    misnamed = _instance_without_number(table)
    for index, seen in _repeated(table).items():
        if index != misnamed:  # HCC713 reports it.
            yield _repeated_id(table, index, seen, f'group_id "{table.groups[index].name}" is used twice')


def _repeated(table: ServiceTable) -> dict[int, int]:
    """Return the groups with the group_id of an earlier group, by index, with that group."""
    first, found = dict[int, int](), dict[int, int]()
    for index, group in enumerate(table.groups):
        if group.number is not None and (seen := first.setdefault(group.number, index)) != index:
            found[index] = seen
    return found


def _repeated_id(table: ServiceTable, index: int, seen: int, message: str) -> Finding:
    """Return the finding on a group with the group_id of an earlier one; its hint names a free number."""
    number = table.groups[index].number or 0
    both = [_has_devices(table, one) for one in (index, seen)]
    least, which = number + 1, "one of the two"
    if table.reader == "MindIE-Motor" and both[0] != both[1]:
        has_devices = number < _FIRST_INSTANCE  # The group that is wrong: that of a coordinator has none.
        least = _FIRST_INSTANCE if has_devices else 0
        which = f"the group {'with' if has_devices else 'without'} devices"
    if (placed := _by_place(table, index, seen)) is not None:
        line, free = placed
        which = f"the {'second' if line == index else 'first'} of the two, which has this number by the order of the groups"
        hint = f'write "group_id": "{free}" in {which}'
        return Finding(
            message,
            (SERVICE, index, "group_id"),
            hint,
            (Related((SERVICE, seen, "group_id"), "first used here"),),
        )
    free = table.free_numbers.get(least, least)
    return Finding(
        message,
        (SERVICE, index, "group_id"),
        f'write "group_id": "{free}" in {which}, a number that no group has',
        (Related((SERVICE, seen, "group_id"), "first used here"),),
    )


def _by_place(table: ServiceTable, index: int, seen: int) -> tuple[int, int] | None:
    """Return which of two groups with one group_id has its place as number, if all others do; None if it is unknown."""
    if table.reader == "MindIE-Motor" and _has_devices(table, index) != _has_devices(table, seen):
        return None
    wrong = table.misplaced_groups
    return (wrong[0], wrong[0]) if len(wrong) == 1 and wrong[0] in (index, seen) else None


def _has_devices(table: ServiceTable, index: int) -> bool:
    return bool(table.rows(table.groups[index].servers))


def _instance_without_number(table: ServiceTable) -> int | None:
    """Return the group that is the only instance and has the group_id of another group; None if there is none."""
    if table.reader != "MindIE-Motor" or any(group.role == "instance" for group in table.groups):
        return None
    return next((index for index in _repeated(table) if _has_devices(table, index)), None)


@rule("HCC713", "service-without-group", "refused", source="RankTableLoader.cpp:601, :642")
def without_group(subject: Input) -> Iterator[Finding]:
    """A table of MindIE-Motor has no coordinator (group 0) or no instance (group 2 or above).

    A table of omni-infer needs neither: there, group 0 can be an instance.

    Example: remove /server_group_list/0
    Instead: table
    Hint: add the group of the coordinator, with "group_id": "0"
    """
    table = service_table(subject)
    if table.reader != "MindIE-Motor" or not table.groups or any(one.number is None for one in table.groups):
        return  # HCC701 or HCC711 reports a group without a number: it is perhaps the one that is missing.
    roles = {group.role for group in table.groups}
    if "coordinator" not in roles:
        hint = 'add the group of the coordinator, with "group_id": "0"'
        yield Finding("no group has the coordinator (group_id 0)", (SERVICE,), hint)
    if (misnamed := _instance_without_number(table)) is not None:
        message = (
            f'group_id "{table.groups[misnamed].name}" is used twice, and the second one has devices: no group has an instance '
            "(group_id 2 or above)"
        )
        yield _repeated_id(table, misnamed, _repeated(table)[misnamed], message)
    elif "instance" not in roles:
        hint = 'add the instances, with "group_id": "2" and above'
        yield Finding("no group has an instance (group_id 2 or above)", (SERVICE,), hint)


@rule("HCC714", "service-too-large", "refused", source="RankTableLoader.cpp:25-35, :593, :634, :765")
def too_large(subject: Input) -> Iterator[Finding]:
    """A table has more groups or servers than MindIE-Motor reads.

    It reads 98 groups (coordinator, controller and 96 instances), 96 servers of an instance and 2
    coordinators.

    Example: /server_group_list/0/server_list = [{"server_ip": "10.1.0.1"}, {"server_ip": "10.1.0.2"}, {"server_ip": "10.1.0.3"}]
    Instead: table
    Hint: leave 2 servers in the group
    """
    table = service_table(subject)
    if table.reader != "MindIE-Motor":
        return
    if len(table.groups) > _MOST_GROUPS:
        message = f"{len(table.groups):,} groups; MindIE-Motor reads {_MOST_GROUPS}"
        yield Finding(message, (SERVICE,), "split the service")
    for index, group in enumerate(table.groups):
        most = _MOST_SERVERS.get(group.role)
        if most is not None and len(group.servers) > most:
            message = f"{group.role} group {group.name} has {len(group.servers):,} servers; MindIE-Motor reads {most}"
            yield Finding(message, (SERVICE, index, "server_list"), f"leave {most} servers in the group")


@rule(
    "HCC715",
    "incomplete-instance",
    "refused",
    source="RankTableLoader.cpp:475, :525, :548; rank_table.py:178",
)
def incomplete_instance(subject: Input) -> Iterator[Finding]:
    """A server of an instance lacks its server_id or devices, or a device lacks device_logical_id.

    Only MindIE-Motor requires device_logical_id, the index of the device in its pod.

    Example: remove /server_group_list/2/server_list/0/device/0/device_logical_id
    Instead: table
    Hint: add the index of the device in its pod: "device_logical_id": "0"
    """
    table = service_table(subject)
    for instance in table.instances:
        is_known = table.groups[instance.group].number is not None
        for server in instance.servers:
            entry = table.servers[server].entry
            path = table.server_path(server)
            if not is_known and not {"server_id", "device"} & entry.keys():
                continue  # A group without a number may be the coordinator, whose servers have neither.
            if "server_id" not in entry:
                hint = 'add the address of the host as "server_id"'
                yield Finding("a server of an instance has no server_id", path, hint)
            if "device" not in entry:
                yield _without_devices(entry, path)
    if table.reader == "MindIE-Motor" and None in table.column("device_logical_id"):
        yield from _without_logical_id(table)


def _without_devices(entry: dict[str, Any], path: Path) -> Finding:
    """Return the finding on a server without "device", at a key that resembles it if there is one."""
    message, alike = (
        "a server of an instance has no device list",
        [key for key in entry if is_near(key.lower(), "device")],
    )
    if not alike:
        return Finding(message, path, 'list its devices under "device"')
    return Finding(
        f"{message}, but {quoted(alike[0])}", (*path, alike[0]), 'rename it to "device"', at_key=True
    )


def _without_logical_id(table: ServiceTable) -> Iterator[Finding]:
    lacking = [row for row, device in enumerate(table.devices) if "device_logical_id" not in device]
    hint = "number the devices of each pod from 0 in device_logical_id, in the order of the file"
    alike = ("devices have no device_logical_id", f'{hint}: the first of a pod is "0"')
    if len(lacking) == len(table.devices):
        alike = ("no device has a device_logical_id", alike[1])
    for row in lacking:
        *_, place = path = table.device_path(row)
        own = f'add the index of the device in its pod: "device_logical_id": "{place}"'
        yield Finding("a device has no device_logical_id", path, own, alike=alike)


@rule("HCC716", "duplicate-service-server", "refused", source="RankTableLoader.cpp:51-57, :330, :426")
def duplicate_server(subject: Input) -> Iterator[Finding]:
    """Two servers of instances have the same server_ip and mgmt_port.

    MindIE-Motor identifies a server by these two values, and reports "Non-unique node ID".

    Example: /server_group_list/3/server_list/0/server_ip = "192.168.3.1"
    Instead: /server_group_list/3/server_list/0/server_ip = "192.168.3.2"
    Hint: their server_ids differ, so one of the two has the address of the other, perhaps by a copy: write the address of its own pod (`kubectl get pod -o wide` shows it)
    """
    table = service_table(subject)
    nodes = list(zip(table.server_column("server_ip"), table.server_column("mgmt_port"), strict=True))
    first: dict[tuple[str, str | None], int] = {}
    for instance in table.instances if len(set(nodes)) < len(nodes) else ():
        for server in instance.servers:
            address, port = nodes[server]
            if address is None or (seen := first.setdefault((address, port), server)) == server:
                continue
            related = (Related(table.server_path(seen, "server_ip"), "first used here"),)
            with_port = "" if port is None else f" with mgmt_port {port}"
            hint = _one_address_each(table, seen, server)
            message = f'server_ip "{address}"{with_port} is used twice'
            yield Finding(message, table.server_path(server, "server_ip"), hint, related)


def _one_address_each(table: ServiceTable, seen: int, server: int) -> str:
    """Return the hint on two servers with one address; on two hosts no pod has the address of the other."""
    hosts = {table.server_column("server_id")[one] for one in (seen, server)}
    if len(hosts) > 1 and None not in hosts:
        return (
            "their server_ids differ, so one of the two has the address of the other, perhaps by a copy: write the address of its own pod "
            "(`kubectl get pod -o wide` shows it)"
        )
    return f"give the servers different addresses, or different values of {_equal_ports(table, seen, server)}"


def _equal_ports(table: ServiceTable, seen: int, server: int) -> str:
    """Return the keys of the ports that two servers have in common, as a phrase."""
    own, other = table.servers[server], table.servers[seen]
    equal = [key for key in PORTS if (port := own.text(key)) is not None and port == other.text(key)]
    if not equal[1:]:
        return "mgmt_port"
    return f"all ports that are equal in both ({and_more(equal)}): only one program can bind a port of an address"


@rule(
    "HCC741", "service-super-pods", "fails-later", source="RankTableLoader.cpp:279-288; clusterd, version 1.2"
)
def super_pods(subject: Input) -> Iterator[Finding]:
    """The super_pod_list of a group contradicts its servers, or is missing in version 1.2.

    Every server of the group must be in one super pod, every server in the list must be in the group, and in
    version 1.2 every device must have a super_device_id.

    Example: /server_group_list/2/super_pod_list = [{"super_pod_id": "0", "server_list": []}]
    Instead: /server_group_list/2/super_pod_list = [{"super_pod_id": "0", "server_list": [{"server_id": "10.0.0.1"}]}]
    Hint: add every server of the group to a super pod
    """
    table = service_table(subject)
    for index, group in enumerate(table.groups):
        if group.role != "instance":
            continue
        if "super_pod_list" in group.entry:
            yield from _super_pods_of(table, index)
        elif table.fields.get("version") == "1.2":
            hint = "add the super pods of its servers as super_pod_list"
            yield Finding(f"group {group.name} has no super_pod_list", (SERVICE, index), hint)
    if table.fields.get("version") == "1.2":
        for row, device in enumerate(table.devices):
            if "super_device_id" not in device:
                hint = "add its SDID; `npu-smi info -t spod-info -i NPU -c CHIP` shows it"
                yield Finding("a device has no super_device_id", table.device_path(row), hint)


def _not_in_group(table: ServiceTable, index: int, member: dict[str, Any], path: Path) -> Finding:
    """Return the finding on a server of a super pod that is not in the group."""
    name = member["server_id"]
    if "device" not in member:
        hint = "list the servers of the group, with their server_id"
        return Finding(f'super_pod_list has server "{name}", which is not in the group', path, hint)
    return Finding(
        f'super_pod_list has server "{name}" with its devices, and the server_list of the group has not',
        path,
        f'move it into the "server_list" of group {quoted(table.groups[index].name)}, and leave {{"server_id": {quoted(name)}}} in its place',
    )


def _super_pods_of(table: ServiceTable, index: int) -> Iterator[Finding]:
    group = table.groups[index]
    own = {table.servers[server].text("server_id") for server in group.servers}
    pods = group.entry["super_pod_list"]
    first: dict[str, tuple[str | int, ...]] = {}
    for number, pod in enumerate(pods if type(pods) is list else ()):
        members = pod.get("server_list") if type(pod) is dict else None
        for place, member in enumerate(members if type(members) is list else ()):
            name = member.get("server_id") if type(member) is dict else None
            path = (SERVICE, index, "super_pod_list", number, "server_list", place, "server_id")
            if not isinstance(name, str):
                continue
            if name not in own:
                yield _not_in_group(table, index, member, path)
            elif (seen := first.setdefault(name, path)) != path:
                related = (Related(seen, "first used here"),)
                yield Finding(
                    f'server "{name}" is in two super pods', path, "leave it in one of them", related
                )
    missing = [name for name in own if name is not None and name not in first]
    if missing:
        message = f'{count(len(missing), "server")} of group {group.name} in no super pod: "{min(missing)}"'
        yield Finding(
            message, (SERVICE, index, "super_pod_list"), "add every server of the group to a super pod"
        )
