"""Keys, lists and entries that an object has twice, of which HCCL reads only the second. No rules are declared here."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.document import joined_tables
from hccl_tools.document.strict_parser import Reader
from hccl_tools.notation.phrases import MERGE
from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.table.addresses import query

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.document.document import Document
    from hccl_tools.document.strict_parser import DuplicateKey
    from hccl_tools.rules.registry import Input

#: Keys of servers and devices that appear twice in an object that was joined from two of them.
_OF_ENTRIES = frozenset(
    {"server_id", "device", "device_id", "device_ip", "rank_id", "local_id", "level_list", "devices"}
)
#: The lists of a table that are in it once.
_LISTS = frozenset({"server_list", "rank_list", "group_list", "super_pod_list"})
#: The fewest keys that two tables in one object have twice: the list, its count, version or status.
_LEAST_OF_TABLE = 3
#: The most characters from the beginning of a key to its list.
_LONGEST_KEY = 40
#: A key and its value, or the bracket with which its value begins, in the bytes that are examined of it.
_MEMBER = rb'(?s)"(?:[^"\\]|\\.)*"\s*:\s*("(?:[^"\\]|\\.)*"|[\[{]|[^\s,}\]"]+)'
_LONGEST_MEMBER = 256


def findings(subject: Input, document: Document) -> Iterator[Finding]:
    """Yield the findings on the kept keys that an object has twice; two tables in one object are one finding."""
    of_object = Counter(duplicate.path[:-1] for duplicate in document.duplicates)
    both = tables_in_one(subject)
    if both is not None:
        yield Finding(
            f"the keys of two tables are in one object, of which HCCL reads only the second: it begins on line {both.line}",
            both.path,
            both.hint,
            at_key=True,
        )
    for duplicate in document.duplicates:
        if both is not None and len(duplicate.path) == 1:
            continue
        key, hint = duplicate.path[-1], _which_to_delete(document, duplicate)
        if of_object[duplicate.path[:-1]] > 1 and len(duplicate.path) > 1:
            hint = (
                "several keys of this object appear twice: two entries were joined, and }, { is missing between "
                "them; write it, or delete the keys of one of the two"
            )
        yield Finding(
            f'key "{key}" appears twice in one object; HCCL uses the last value',
            duplicate.path,
            hint,
            at_key=True,
        )


def _which_to_delete(document: Document, duplicate: DuplicateKey) -> str:
    """Return the hint on a key that an object has twice: both values are shown if they differ."""
    line = document.position(duplicate.first).line
    first, last = (
        None
        if (found := re.compile(_MEMBER).match(document.data, at, at + _LONGEST_MEMBER)) is None
        else found[1]
        for at in (duplicate.first, duplicate.last)
    )
    if first is None or last is None:
        return "delete one of the two keys"
    if first == last == b"[":
        if (again := stale_list(document, duplicate)) is not None:
            return again
        return (
            f"if the job uses the entries of both lists, move those of the first (line {line}) into the second one, before its "
            f"own{ranks_on(document, duplicate)}; else delete the list that is not to be used"
        )
    if first == last:
        return "delete one of the two keys" + (
            ", after a comparison of the two objects" if first == b"{" else ""
        )
    shown = [
        one.decode(errors="replace") if one not in (b"[", b"{") else "the other" for one in (first, last)
    ]
    if last == b'"completed"':
        return f"delete the first one, {shown[0]} (line {line})"
    is_entry = len(duplicate.path) > 1
    joined = "; if an entry is missing, two entries are joined here: write both whole" if is_entry else ""
    return (
        f"delete the first one (line {line}) if {shown[1]} is right, or the second one if {shown[0]} is right"
        f"{joined}"
    )


def doubled_list(subject: Input) -> tuple[str, str] | None:
    """Return what follows from a list of the table that the file has twice, and how to join the two; None if none is."""
    document = subject.document
    for duplicate in document.duplicates if document is not None else ():
        key = duplicate.path[-1]
        if key not in _LISTS or len(duplicate.path) > 1:
            continue
        first, last = (
            (document.position(at).line for at in (duplicate.first, duplicate.last)) if document else (0, 0)
        )
        hint = (
            f"move the entries of the first list (line {first}) into the second one (HCC601), before its own, and remove the "
            f"first{ranks_on(document, duplicate) if document else ''}; only if the job does not use them, remove the first and correct "
            "counts and ranks"
        )
        if (both := tables_in_one(subject)) is not None:
            hint = both.hint
        return (
            f'"{key}" appears twice, in lines {first} and {last}, of which HCCL reads only the second',
            hint,
        )
    return None


class TablesInOne(NamedTuple):
    """Two tables in one object: the list that both have, the line of the second, and what to do."""

    path: Path
    line: int
    hint: str


@shared
def tables_in_one(subject: Input) -> TablesInOne | None:
    """Return the two tables whose keys are all in one object, the second after the first; None for other duplicates."""
    document = subject.document
    outer = [one for one in document.duplicates if len(one.path) == 1] if document is not None else []
    lists = [one for one in outer if one.path[0] in _LISTS]
    begin = min((one.last for one in outer), default=0)
    if document is None or len(lists) != 1 or len(outer) < _LEAST_OF_TABLE:
        return None
    if any(one.first > begin for one in outer):
        return None
    line = document.position(begin).line
    return TablesInOne(
        lists[0].path,
        line,
        f"write }} in place of the comma before line {line} and {{ after it, and save each of the two tables in a file of its own; "
        f"{MERGE.format('A B')}",
    )


def ranks_on(document: Document, duplicate: DuplicateKey) -> str:
    """Return that the ranks of two lists of servers are to be numbered on, as the end of a hint; "" if each occurs once."""
    if duplicate.path[-1] != "server_list":
        return ""
    lists = [_entries_at(document, at) for at in (duplicate.first, duplicate.last)]
    return joined_tables.ranks_on([*lists[0], *lists[1]])


#: The lists of an entry, each with the id of its entries.
_IDS_OF_LISTS = {"device": "device_id", "devices": "device_id", "level_list": "net_layer"}


def continued(document: Document) -> str:
    """Return how to join the two parts of a list that an entry has twice; "" if the two repeat an id or none is.

    Two entries that were joined have the same ids: their devices are numbered alike.
    """
    for duplicate in document.duplicates:
        own = _IDS_OF_LISTS.get(str(duplicate.path[-1]))
        if own is None:
            continue
        lists = [_entries_at(document, at) for at in (duplicate.first, duplicate.last)]
        ids = [{str(one.get(own)) for one in each if isinstance(one, dict)} for each in lists]
        if not all(ids) or not ids[0].isdisjoint(ids[1]):
            continue
        first, last = (document.position(at).line for at in (duplicate.first, duplicate.last))
        return (
            f'an entry has "{duplicate.path[-1]}" twice, and HCCL reads only the second list: move the entries of the first one (line '
            f"{first}) into the second one (line {last}), before its own, and remove the first"
        )
    return ""


def stale_list(document: Document, duplicate: DuplicateKey) -> str | None:
    """Return which of two lists with the same devices to delete; None if the two may be parts of one list."""
    if _IDS_OF_LISTS.get(str(duplicate.path[-1])) != "device_id":
        return None
    lists = [
        {
            str(one.get("device_id")): one.get("device_ip")
            for one in _entries_at(document, at)
            if isinstance(one, dict)
        }
        for at in (duplicate.first, duplicate.last)
    ]
    common = sorted(lists[0].keys() & lists[1].keys())
    if not common:
        return None
    lines = [document.position(at).line for at in (duplicate.first, duplicate.last)]
    either = f"delete the first list (line {lines[0]}) or the second one (line {lines[1]}), with the key and the comma behind it"
    device = next(
        (one for one in common if one.isascii() and one.isdecimal() and lists[0][one] != lists[1][one]), None
    )
    if device is None:
        return f"both lists have the same devices, so that they cannot be joined: {either}"
    old, new = (quoted(str(one[device])[:_LONGEST_KEY]) for one in lists)
    return (
        f"both lists have device {device}, so that one of them is old: `hccn_tool -i {device} {query(own[device] for own in lists for device in common)}` on the host shows its address; "
        f"if it is {new}, delete the first list (line {lines[0]}), if it is {old}, the second one (line {lines[1]}), with the key "
        "and its comma"
    )


def _entries_at(document: Document, at: int) -> list[Any]:
    """Return the list under the key at an offset; empty for another value."""
    rest = document.data[at:].decode(errors="replace")
    start = rest.find("[")
    value = Reader(rest[start:], 0).read() if 0 <= start <= _LONGEST_KEY else []
    return value if isinstance(value, list) else []


def joined(subject: Input) -> str:
    """Return how to part two entries that were joined to one object, so that its keys appear twice; "" if none were."""
    document = subject.document
    if document is None or not document.duplicates:
        return ""
    lasts: dict[Path, list[int]] = {}
    for duplicate in document.duplicates:
        if duplicate.path[-1] in _OF_ENTRIES:
            lasts.setdefault(duplicate.path[:-1], []).append(duplicate.last)
    found = next((places for places in lasts.values() if len(places) > 1), None)
    if found is None and (again := continued(document)):
        return again
    if found is None and lasts:
        line = document.position(next(iter(lasts.values()))[0]).line
        return (
            f"two entries are joined, and what was between them is lost: from line {line} on they are the values of the second; "
            "write both entries whole"
        )
    if found is None:
        return ""
    line = document.position(min(found)).line
    return (
        f"two entries are joined: write }}, {{ in place of the comma before the second one, which begins on line {line}; "
        "HCCL reads only the values of the second"
    )
