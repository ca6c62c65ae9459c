"""Entries of lists in another form than an object: names, addresses, rows, inner lists, and JSON in a string.

This module declares no rules. The remedy for a value of the wrong type, to write an object, does not say what becomes
of the value that is there.
"""

from __future__ import annotations

import json
import re
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import as_json, quoted
from hccl_tools.document import joined_tables
from hccl_tools.document.omissions import WRITE_THEM, marks
from hccl_tools.notation.hint import FILES
from hccl_tools.rules.commands import shown_host
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from hccl_tools.formats.shapes import Violation

#: What the entries of a list are called.
_NOUNS = {
    "server_list": "server", "device": "device", "devices": "device", "rank_list": "rank", "instance_list": "instance",
    "group_list": "group", "super_pod_list": "super pod", "level_list": "layer", "rank_addr_list": "address",
}  # fmt: skip
_DEVICES = ("device", "devices")
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
#: The characters of a text, and the values of a row, that a sentence shows.
_SHOWN, _LONGEST_ROW = 60, 4
#: The characters of a text that are examined.
_LONGEST = 1 << 20
#: How programs write an object where only a text fits, and what makes each of them write JSON.
_PRINTED = (
    (
        re.compile(r"@\{\w*=|System\.(?:Object|Collections|Management)\b", re.ASCII),
        "PowerShell",
        "write the table again with ConvertTo-Json -Depth 10: by default it writes only two levels as JSON",
    ),
    (
        re.compile(r"\[object \w+\]", re.ASCII),
        "JavaScript",
        "write the whole table with one call of JSON.stringify",
    ),
    (
        re.compile(r"[\[{(]\s*(?:\{\s*)?'\w+'\s*:|<[\w.]+ object at 0x|OrderedDict\(", re.ASCII),
        "Python",
        "write the whole table with one call of json.dump, without str() for its parts",
    ),
    (re.compile(r"\[?&?map\[\w*:", re.ASCII), "Go", "write the whole table with one call of json.Marshal"),
    (
        re.compile(r"\[?\{\w+=[^\s{}\[\]\"',=]*(?:, |\})", re.ASCII),
        "Java",
        "write the whole table with one call of a JSON library",
    ),
)
_TAKE_OUT = (
    'python3 -I -c \'import json, sys; f = lambda v: json.loads(v) if isinstance(v, str) and v[:1] in ("[", "{") else v; '
    "json.dump(json.load(sys.stdin, object_hook=lambda o: {k: [f(x) for x in v] if isinstance(v, list) else f(v) "
    "for k, v in o.items()}), sys.stdout, indent=4)' < " + FILES
)


def _json_begins(found: Any) -> bool:
    """Return whether a value is a string that begins as a list or object in JSON."""
    return type(found) is str and found[:20].lstrip().startswith(("[", "{"))


def json_in_text(found: Any) -> Any:
    """Return the list or object that a string holds as JSON; None for other values."""
    if not _json_begins(found) or len(found) > _LONGEST:
        return None
    try:
        inner = json.loads(found)
    except (ValueError, RecursionError):
        return None
    return inner if type(inner) in (list, dict) else None


def of_text(found: Any) -> tuple[str, str] | None:
    """Return what a string is that holds JSON or a printed object, and the remedy; None for other values."""
    inner = json_in_text(found)
    if inner is None:
        return _of_printed(found)
    kind = "a list" if type(inner) is list else "an object"
    return (
        f"{kind} in a string",
        f"remove the double quotes around it, and each \\ before a double quote in it: {_TAKE_OUT}",
    )


def _of_printed(found: Any) -> tuple[str, str] | None:
    """Return what a string is that a program made of an object, and the remedy; None for other values."""
    if type(found) is not str:
        return None
    for printed, program, remedy in _PRINTED:
        if printed.match(found):
            return f"an object in a string, in the notation of {program}", remedy
    return None


def form_of(
    value: Any, violation: Violation, known: dict[tuple[Any, ...], tuple[str, str]]
) -> tuple[str, str] | None:
    """Return message and hint on entries of a list in another form, once for all entries of one kind.

    Args:
        known: What the first entry of each kind has set.
    """
    if violation.keyword != "type" or not violation.path:
        return None
    found = reduce(getitem, violation.path, value)
    name = next(part for part in reversed(violation.path) if type(part) is str)
    kind = ("form", name, type(violation.path[-1]), type(found), _json_begins(found))
    if kind not in known:
        said = _all_alike(value, violation)
        if said is None:
            return None
        known[kind] = said
    return known[kind]


def _all_alike(value: Any, violation: Violation) -> tuple[str, str] | None:
    """Return message and hint for all entries of a list that are not objects; None for other violations."""
    if violation.keyword != "type" or not violation.path:
        return None
    found, key = reduce(getitem, violation.path, value), violation.path[-1]
    if type(key) is str:
        said = of_text(found) if violation.wanted in (("array",), ("object",)) else None
        return None if said is None else (f'"{key}" is {said[0]}', said[1])
    name = str(violation.path[-2]) if len(violation.path) > 1 else ""
    if violation.wanted != ("object",) or name not in _NOUNS:
        return None
    noun, entries = _NOUNS[name], reduce(getitem, violation.path[:-1], value)
    if type(found) is str and marks(found):
        return f"an entry of {name} stands for {noun}s that were left out: {found}", WRITE_THEM
    if (said := of_text(found)) is not None:
        return (
            f"entries of {name} are {said[0].replace('an object', 'objects').replace('a string', 'strings')}",
            said[1],
        )
    if type(found) is list and found and all(type(one) is dict for one in found):
        hint = f"remove the inner [ and ], and keep the commas between the entries: {name} lists its {noun}s themselves"
        if name == "server_list":
            hint += joined_tables.ranks_on([one for inner in entries if type(inner) is list for one in inner])
        return f"entries of {name} are lists of {noun}s", hint
    if found is None:
        return (
            f"entries of {name} are null",
            f"delete each null with the comma before it, or write the {noun} in its place",
        )
    if name in _DEVICES:
        return _devices(value, violation, entries)
    if name == "server_list" and type(found) is str:
        are_hosts = all(type(one) is str and shown_host(one) == one for one in entries)
        hosts = ",".join(entries)[: 4 * _SHOWN] if are_hosts else "LIST"
        hint = (
            f'write each as {{"server_id": {quoted(found[:_SHOWN])}, "device": [...]}} with the devices of the host; '
            f"`hccl-tools gen --hosts {hosts}` asks the hosts and makes the whole table"
        )
        return "entries of server_list are the names of servers, without their devices", hint
    return None


def _devices(value: Any, violation: Violation, entries: list[Any]) -> tuple[str, str] | None:
    """Return message and hint for devices that are texts, numbers or rows of values."""
    name, first = violation.path[-2], entries[0]
    has_rank = name == "device"
    row = first if type(first) is list else [first]
    if not row or len(row) > _LONGEST_ROW or any(type(one) not in (str, int) for one in row):
        return None
    texts = [str(one)[:_SHOWN] for one in row]
    addresses = [one for one in texts if packed(one) is not None]
    numbers = [one for one in texts if _NUMBER.fullmatch(one)]
    if len(addresses) > 1 or len(addresses) + len(numbers) != len(texts) or len(numbers) > 1 + has_rank:
        return None
    rank = numbers[1] if len(numbers) > 1 else _rank_of_first(value, violation)
    device = numbers[0] if numbers else "0"
    parts = {"device_id": device, "device_ip": addresses[0] if addresses else "ADDRESS"}
    shown = as_json({**parts, "rank_id": str(rank)} if has_rank else parts)
    ways = []
    if not numbers:
        ways.append("the devices of each server are numbered from 0 on, if the addresses are in their order")
    if has_rank and len(numbers) < 2:
        ways.append("the ranks are numbered over all servers")
    if not addresses:
        ways.append(f"`hccn_tool -i {device} -ip -g` on the host shows the address of device {device}")
    what = "rows of values" if type(first) is list else "addresses" if addresses else "device_ids"
    rest = f"; {', and '.join(ways)}" if ways else ""
    own = as_json(row if type(first) is list else first)
    return f"entries of {name} are {what}, not objects", f"write {shown} in place of {own}, and so on{rest}"


def _rank_of_first(value: Any, violation: Violation) -> int:
    """Return the rank of the first device of a server, by the number of the devices before it."""
    servers, index = value.get("server_list"), violation.path[1]
    before = servers[: index if type(index) is int else 0] if type(servers) is list else []
    lists = [one.get("device") for one in before if type(one) is dict]
    return sum(len(one) for one in lists if type(one) is list)
