"""Whether the list of a table may be incomplete, shared by the rules on counts. This module declares no rules.

A count that differs from a list is wrong, or the list has lost an entry. ``validate --fix`` corrects the count
only if nothing else in the table says that an entry is missing.
"""

from __future__ import annotations

import re
from os.path import basename
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.rules.copies import absent_ranks, server_copies
from hccl_tools.rules.super_pod_list import listed_pods

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.registry import Subject
    from hccl_tools.table.model import Group

#: Keys of servers and devices that appear twice in an object that was joined from two of them.
_OF_ENTRIES = frozenset(
    {"server_id", "device", "device_id", "device_ip", "rank_id", "local_id", "level_list", "devices"}
)
#: The number of servers and ranks in a file name of hccl-tools: ``hccl_2s_16p.json``.
_NAME = re.compile(r"(?:^|_)([0-9]{1,5})s_([0-9]{1,6})p")


def on_servers(subject: Subject, stated: int) -> str:
    """Return why server_list may be the wrong one of count and list, as a phrase; "" if nothing says so.

    Args:
        stated: The server_count of the file.
    """
    table = subject.table
    if joined(subject):
        return "two entries are joined"
    if stated < len(table.servers) and stated == len({server.server_id for server in table.servers}):
        return f"{count(stated, 'server_id')} {'is' if stated == 1 else 'are'} different"
    if server_copies(subject):
        return "a server of it is a copy"
    known = {server.server_id for server in table.servers}
    named = [name for pod in listed_pods(subject) for name in pod.server_ids] if table.format == "1.2" else []
    if other := [
        quoted(name) for name in dict.fromkeys([*named, *_of_clusters(subject)]) if name not in known
    ]:
        return f"other lists of the table name {and_more(other)}"
    return _of_ranks(subject) or _of_name(subject, stated)


def joined(subject: Subject) -> str:
    """Return how to part two entries that were joined to one object, so that its keys appear twice; "" if none were."""
    document = subject.document
    if document is None or not document.duplicates:
        return ""
    lasts: dict[Path, list[int]] = {}
    for duplicate in document.duplicates:
        if duplicate.path[-1] in _OF_ENTRIES:
            lasts.setdefault(duplicate.path[:-1], []).append(duplicate.last)
    found = next((places for places in lasts.values() if len(places) > 1), None)
    if found is None:
        return ""
    line = document.position(min(found)).line
    return (
        f"two entries are joined: write }}, {{ in place of the comma before the second one on line {line}, of which "
        "HCCL reads the values alone"
    )


def _of_clusters(subject: Subject) -> list[str]:
    from hccl_tools.rules.clusters import listed_servers  # noqa: PLC0415  (few tables have clusters)

    return listed_servers(subject) if "cluster_list" in subject.table.fields else []


def _of_ranks(subject: Subject) -> str:
    if "rank_id" in subject.damaged:
        return ""
    numbers, absent = subject.table.rank_numbers, absent_ranks(subject)
    if all((number or 0) < len(numbers) for number in numbers):
        return ""  # A rank that occurs twice does not show that an entry is lost.
    return f"no device has {rank_list(absent)}" if absent else ""


def _of_name(subject: Subject, stated: int) -> str:
    found = _NAME.search(basename(subject.path or ""))  # noqa: PTH119  (the name alone)
    if found is None or int(found[1]) != stated:
        return ""
    return f"the file name says {count(stated, 'server')}"


def on_ranks(subject: Subject) -> str:
    """Return why rank_list may be incomplete, as a phrase; "" if nothing says so."""
    if joined(subject):
        return "two entries are joined"
    return _of_ranks(subject)


def on_group(subject: Subject, group: Group, counts: dict[str, tuple[int | None, int]]) -> str:
    """Return why a group may be incomplete, as a phrase; "" if nothing says so.

    Args:
        counts: For each count of the group its stated and its actual number.
    """
    lower = [key for key, (stated, actual) in counts.items() if stated is not None and stated > actual]
    if len(lower) == len(counts):
        return "both counts of the group say that one is missing"
    sizes = {len(subject.table.servers[index].rows) for index in group.servers}
    if "device_count" in lower and len(sizes) > 1:
        return f"its instances have {' and '.join(map(str, sorted(sizes)))} devices"
    return ""
