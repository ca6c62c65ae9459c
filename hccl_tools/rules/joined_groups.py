"""Groups of several tables in one group_list, as of two ConfigMaps that were joined. This module declares no rules.

HCCL reads the addresses of a group with one instance only if it is the only group of the job, so that a higher
group_count and other names are not enough.
"""

from __future__ import annotations

from hccl_tools.rules.copies import instances_of_other_hosts, server_copies
from hccl_tools.rules.registry import Subject, shared


def _has_equal_names(subject: Subject) -> bool:
    names = [group.group_name for group in subject.table.groups or ()]
    return "group_name" not in subject.damaged and len(set(names)) < len(names)


@shared
def repeated_group(subject: Subject) -> frozenset[int]:
    """Return the instances of the last group, if it lists those of the first one again under its name."""
    groups = subject.table.groups or ()
    if len(groups) != 2 or not _has_equal_names(subject) or not groups[1].servers:
        return frozenset()
    copies = server_copies(subject).keys() | instances_of_other_hosts(subject).keys()
    ips = subject.table.device_ips
    first = {ips[row] for index in groups[0].servers for row in subject.table.servers[index].rows}
    own = {ips[row] for index in groups[1].servers for row in subject.table.servers[index].rows}
    is_again = own == first and copies.issuperset(groups[1].servers)
    return frozenset(groups[1].servers) if is_again else frozenset()


@shared
def joined_groups(subject: Subject) -> str:
    """Return how to make one group of those of several tables; "" if they are not of several tables."""
    table = subject.table
    groups, stated = table.groups or (), table.declared.get("group_count")
    is_single = stated == "1" and any(len(group.servers) == 1 for group in groups)
    if len(groups) < 2 or not (is_single or _has_equal_names(subject)):
        return ""
    change = "" if stated == "1" else ', and write "group_count": "1"'
    if repeated_group(subject):
        return f"remove the second group, which lists the instances of the first again{change}"
    if server_copies(subject) or instances_of_other_hosts(subject):
        return ""
    instances = len(table.servers)
    return (
        f'move the instances of all groups into the instance_list of the first one, with "instance_count": "{instances}" and '
        f'"device_count": "{len(table)}", and remove the other groups{change}'
    )
