"""Rules on the groups and instances of group_list tables.

Source: hcomm topoinfo_ranktableStandard.cc, cloud mode (no ``deploy_mode``).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.notation.phrases import those
from hccl_tools.rules import doubts
from hccl_tools.rules.copies import server_copies
from hccl_tools.rules.joined_groups import joined_groups, repeated_group
from hccl_tools.rules.registry import Finding, Subject, rule
from hccl_tools.table.hccl_numbers import byte_length, read_uint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.doubts import Doubt
    from hccl_tools.table.model import Group

#: GROUP_NAME_MAX_LEN, in bytes.
LONGEST_NAME = 127
_MISSING_GROUP = 'add the missing {}, or, if none is missing, write "group_count": "{}"'


@rule("HCC511", "group-count", "refused", source="topoinfo_ranktableStandard.cc:281-289, :421")
def group_count(subject: Subject) -> Iterator[Finding]:
    """group_count is not the number of groups.

    Example: /group_count = "2"
    Instead: /group_count = "1"
    Hint: add the missing group, or, if none is missing, write "group_count": "1"
    """
    groups = subject.table.groups or ()
    stated = subject.table.declared.get("group_count")
    if stated == "1" and (joined := joined_groups(subject)):
        message = f'group_count is "1", but the file lists {len(groups)}, as if tables were joined'
        yield Finding(message, ("group_count",), joined)
        return
    yield from _count(stated, len(groups), ("group_count",), lambda number: _on_groups(number, len(groups)))


@rule("HCC512", "device-or-instance-count", "refused", source="topoinfo_ranktableStandard.cc:364-371, :517")
def device_or_instance_count(subject: Subject) -> Iterator[Finding]:
    """device_count or instance_count is not the number of the group's devices or instances.

    Example: /group_list/0/device_count = "7"
    Instead: /group_list/0/device_count = "8"
    Hint: write "device_count": "8"
    """
    table = subject.table
    for index, group in enumerate(table.groups or ()):
        devices = sum(len(table.servers[server].rows) for server in group.servers)
        actual = {"instance_count": len(group.servers), "device_count": devices}
        texts = {key: stated[index] if (stated := table.declared.get(key)) else None for key in actual}
        if copied := [index for index in group.servers if index in server_copies(subject)]:
            if all(text is None or read_uint(text) == actual[key] for key, text in texts.items()):
                continue  # They count the copy, which HCC404 reports: its own devices belong in its place.
            actual["instance_count"] -= len(copied)
            actual["device_count"] -= sum(len(table.servers[index].rows) for index in copied)
        counts = {key: (read_uint(text) if text else None, actual[key]) for key, text in texts.items()}
        for key, count in actual.items():
            if key == "device_count" and _is_whole_count(subject, group, counts[key][0]):
                continue  # HCC306 reports the instances that lack devices.
            stated = counts[key][0]
            if (
                key == "device_count"
                and stated is not None
                and stated < count
                and doubts.counts_each_once(subject, group, stated)
            ):
                continue  # Another rule reports the entry that is listed twice.
            why = partial(_on_group, subject, group, counts, key)
            yield from _count(texts[key], count, ("group_list", index, key), why)


def _is_whole_count(subject: Subject, group: Group, stated: int | None) -> bool:
    """Return whether a device_count is that of whole instances, of which some lack devices and the product requires all."""
    if not subject.product.even_servers or "server_id" in subject.damaged:
        return False
    sizes = [len(subject.table.servers[index].rows) for index in group.servers]
    return (
        len({*sizes}) > 1 and stated == max(sizes) * len(sizes) and 2 * sizes.count(max(sizes)) >= len(sizes)
    )


def _on_groups(stated: int, listed: int) -> Doubt | None:
    """Return the doubt about group_list if group_count is higher."""
    missing = those(stated - listed, "group")
    return doubts.Doubt("", _MISSING_GROUP.format(missing, listed)) if stated > listed else None


def _on_group(
    subject: Subject, group: Group, counts: dict[str, tuple[int | None, int]], key: str, _stated: int
) -> Doubt | None:
    return doubts.on_group(subject, group, counts, key)


def _count(text: str | None, count: int, path: Path, why: Callable[[int], Doubt | None]) -> Iterator[Finding]:
    """Yield a finding if a declared count is wrong; a table made in memory has no declared count.

    Args:
        why: Returns for the declared number why the list may be incomplete; None if the count follows from the list.
    """
    if text is None or (stated := read_uint(text)) == count:
        return
    doubt = None if stated is None else why(stated)
    message, right = f'{path[-1]} is "{text}", but the file lists {count}', f'write "{path[-1]}": "{count}"'
    if doubt is None:
        yield Finding(message, path, right, right=str(count))
    else:
        message = f"{message}, and {doubt.reason}" if doubt.reason else message
        yield Finding(message, path, doubt.hint, doubt.related)


@rule(
    "HCC513",
    "group-name",
    "refused",
    code="EI0014",
    needs=("group_name",),
    source="topoinfo_ranktableStandard.cc:435-438",
)
def group_name(subject: Subject) -> Iterator[Finding]:
    """A group_name is longer than 127 bytes, or two groups have the same group_name.

    Example: /group_list/0/group_name = "gggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg"
    Instead: /group_list/0/group_name = "g"
    Hint: choose a shorter name
    """
    names = [group.group_name for group in subject.table.groups or ()]
    joined = joined_groups(subject)
    if joined and subject.table.declared.get("group_count") == "1":
        return  # HCC511 reports it.
    for finding in _names(names, "group", lambda index: ("group_list", index)):
        if joined and finding.related:
            message = f"{finding.message}, as if tables were joined"
            yield finding._replace(message=message, hint=joined)
            return
        yield finding


@rule(
    "HCC514",
    "pod-name",
    "refused",
    code="EI0014",
    needs=("pod_name",),
    source="topoinfo_ranktableStandard.cc:533-537",
)
def pod_name(subject: Subject) -> Iterator[Finding]:
    """A pod_name is longer than 127 bytes, or two instances have the same pod_name.

    A rank finds its entry by pod_name and device, so every instance needs its own name.

    Base: group_list 2x8
    Example: /group_list/0/instance_list/1/pod_name = "job0"
    Instead: /group_list/0/instance_list/1/pod_name = "job1"
    Hint: either instance 2 ("10.0.0.2") replaces instance 1 ("10.0.0.1"): remove the old one, and lower the counts of the group if they count it; or both are in the job: give each its own pod_name
    """
    names = [server.fields["pod_name"] for server in subject.table.servers]
    copies = server_copies(subject).keys() | repeated_group(subject)
    of_copies = {subject.server_path(index, "pod_name") for index in copies}
    hints = {
        subject.server_path(index, "pod_name"): doubts.one_of_two_pods(subject, index)
        for index in doubts.pods_again(subject)
    }
    for found in _names(names, "pod", subject.server_path):
        finding = found._replace(hint=hints.get(found.path, found.hint)) if found.related else found
        if finding.path not in of_copies:
            yield finding


def _names(names: list[str], kind: str, path_of: Callable[[int], Path]) -> Iterator[Finding]:
    key, first = f"{kind}_name", dict[str, int]()
    for index, name in enumerate(names):
        if byte_length(name) > LONGEST_NAME:
            message = f"{key} is longer than {LONGEST_NAME} bytes"
            yield Finding(message, (*path_of(index), key), "choose a shorter name")
        if (seen := first.setdefault(name, index)) != index:
            related = (Related((*path_of(seen), key), "first used here"),)
            hint = f"give every {kind} its own name"
            yield Finding(f'{key} "{name}" is used twice', (*path_of(index), key), hint, related)
