"""Entries of a table without the table around them: a list of servers, JSON Lines, rows of a spreadsheet, one server.

This module declares no rules.
"""

from __future__ import annotations

from itertools import islice
from json import loads
from typing import TYPE_CHECKING, Any

from hccl_tools.document import joined_tables
from hccl_tools.formats.detection import detect
from hccl_tools.notation.hint import FILES
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.document.document import Document

#: The deepest level of a table inside other values, the most values of a level, and the longest text, that are examined.
_DEEPEST, _MOST_INSIDE, _LONGEST_TEXT = 5, 1000, 1 << 24
#: Makes a list of objects that stand one after the other, with or without commas and brackets around them.
_READ = 'import json, re, sys; r = json.loads("[" + re.sub(r"}\\s*,?\\s*{", "},{", sys.stdin.read().strip().strip("[]")) + "]")'
#: The same for lists of them that stand one after the other.
_READ_LISTS = 'import json, re, sys; r = json.loads("[" + re.sub(r"]\\s*,?\\s*\\[", ",", sys.stdin.read().strip().strip("[]")) + "]")'
_WRITE = "json.dump(t, sys.stdout, indent=4)"
_SERVERS = '"server_count": str(len(r)), "server_list": r, "status": "completed"'
_ROWS = (
    'n = {x["server_id"]: [] for x in r}; [n[x.pop("server_id")].append(x) for x in r]; '
    'r = [{"server_id": k, "device": v} for k, v in n.items()]'
)


class BareEntries(NamedTuple):
    """What entries without a table are, as a sentence, and what to do."""

    message: str
    hint: str


def of_entries(value: Any, document: Document | None) -> BareEntries | None:
    """Return what the entries are that a document has in place of a table; None for other documents.

    Args:
        value: The list of the document, or its first object.
    """
    if type(value) is dict:
        return _of_objects(value, document)
    if type(value) is not list or not value or not all(type(one) is dict for one in value):
        return None
    first = value[0]
    if (several := _several_lists(document)) is not None and all(map(_is_server, several)):
        number = count(len(several), "server")
        return _servers(
            first, f"these are lists of servers one after the other ({number})", _READ_LISTS, several
        )
    if all(_is_server(one) for one in value):
        return _servers(first, f"it is a list of {count(len(value), 'server')}")
    if all(_is_row(one) for one in value):
        return _rows(first, f"it is a list of {count(len(value), 'device')} with their server_ids")
    if all("rank_id" in one and "level_list" in one for one in value):
        what = f"it is a list of {count(len(value), 'rank')}, the value of rank_list alone"
        head = f'{{"version": "2.0", "status": "completed", "rank_count": {len(value)}, "rank_list":'
        return BareEntries(what, f"write {head} before it, and }} after it")
    return None


def _of_objects(value: dict[str, Any], document: Document | None) -> BareEntries | None:
    if (columns := _columns(value)) is not None:
        return columns
    trailing = None if document is None else document.trailing
    is_several = (
        document is not None and trailing is not None and document.data[trailing : trailing + 1] in b"{,"
    )
    if _is_server(value):
        what = "these are servers one after the other" if is_several else "it is one server"
        return _servers(value, f"{what}, without the table around {'them' if is_several else 'it'}")
    if _is_row(value):
        return (
            _rows(value, "these are devices one after the other with their server_ids")
            if is_several
            else None
        )
    return None


def _columns(value: dict[str, Any]) -> BareEntries | None:
    """Return that an object has a list, or an object by row, for each column; None for other objects."""
    sizes = {len(one) if type(one) in (list, dict) else 0 for one in value.values()}
    if (
        "device_id" not in value
        or not {"rank_id", "device_ip"} & value.keys()
        or len(sizes) != 1
        or 0 in sizes
    ):
        return None
    what = f"it has the values of {count(sizes.pop(), 'device')} in columns, as pandas writes a table of rows"
    if "server_id" not in value:
        return BareEntries(
            what,
            "add the server_id of each device as a column, and write entries in place of columns, "
            'to_json(orient="records"): `hccl-tools validate` then shows how to make the table of them',
        )
    first = dict.fromkeys(value)
    table = f't = {{"version": "{_version(first)}", {_SERVERS}}}'
    read = (
        "import json, sys; d = json.load(sys.stdin); c = [list(v.values()) if isinstance(v, dict) else v for v in d.values()]; "
        "r = [dict(zip(d, map(str, x))) for x in zip(*c)]"
    )
    return BareEntries(
        what,
        f"make the table of them: python3 -I -c '{read}; {_ROWS}; {table}; {_WRITE}' < {FILES}{_then(first)}",
    )


def _is_server(value: dict[str, Any]) -> bool:
    return "server_id" in value and type(value.get("device")) is list and detect(value).format is None


def _is_row(value: dict[str, Any]) -> bool:
    return "server_id" in value and "device_id" in value and "device" not in value


def _version(device: Any) -> str:
    return "1.2" if type(device) is dict and "super_device_id" in device else "1.0"


def _several_lists(document: Document | None) -> list[Any] | None:
    """Return the entries of all lists of a document with several of them; None for other documents."""
    if document is None or document.trailing is None or document.text is None:
        return None
    rest = document.data[document.trailing :].lstrip(b", \t\r\n")
    entries = joined_tables.entries_of(document.text) if rest.startswith(b"[") else None
    return entries if entries and all(type(one) is dict for one in entries) else None


def _servers(
    first: dict[str, Any], what: str, read: str = _READ, entries: list[Any] | None = None
) -> BareEntries:
    device = first["device"][0] if first["device"] else None
    table = f't = {{"version": "{_version(device)}", {_SERVERS}}}'
    return BareEntries(
        what,
        f"make the table of them: python3 -I -c '{read}; {table}; {_WRITE}' < {FILES}{_then(device)}"
        f"{joined_tables.ranks_on(entries)}",
    )


def _rows(first: dict[str, Any], what: str) -> BareEntries:
    table = f't = {{"version": "{_version(first)}", {_SERVERS}}}'
    return BareEntries(
        what,
        f"make the table of them: python3 -I -c '{_READ}; {_ROWS}; {table}; {_WRITE}' < {FILES}{_then(first)}",
    )


def _then(device: Any) -> str:
    """Return what is left to do: a table of version 1.2 also lists super pods."""
    return '; then add "super_pod_list"' if _version(device) == "1.2" else ""


def of_wrapped(value: Any) -> tuple[Path, BareEntries] | None:
    """Return the path of the only table inside other values, such as the answer of a service, with what to do."""
    found = _tables_inside(value)
    if len(found) != 1 or (type(value) is list and len(found[0][0]) == 1):
        return None  # The list of a table or of tables is told by itself.
    (path, is_text), *_ = found
    shown = "".join(f"[{key}]" if type(key) is int else f".{str(key)[:40]}" for key in path).removeprefix(".")
    message = f'the table is the value of "{shown}"' + (", in a string" if is_text else "")
    keys = [str(key) for key in path if type(key) is not int]
    if not all(key.replace("_", "").replace("-", "").replace(".", "").isalnum() for key in keys):
        return path, BareEntries(message, "save that value alone in a file")
    part = "json.load(sys.stdin)" + "".join(f"[{key}]" if type(key) is int else f'["{key}"]' for key in path)
    program = f"print({part})" if is_text else f"json.dump({part}, sys.stdout, indent=4)"
    take = f"python3 -I -c 'import json, sys; {program}' < {FILES}"
    return path, BareEntries(message, f"save that value alone in a file: {take}")


def _tables_inside(value: Any) -> list[tuple[Path, bool]]:
    """Return the paths of the first two tables below a value, nearest first, and whether each is in a string."""
    found: list[tuple[Path, bool]] = []
    level: list[tuple[Path, Any]] = [((), value)]
    for depth in range(_DEEPEST + 1):
        below: list[tuple[Path, Any]] = []
        for path, one in level:
            inner = _in_text(one) if type(one) is str else one
            if depth and type(inner) is dict and detect(inner).format is not None:
                found.append((path, type(one) is str))
                continue
            parts = one.items() if type(one) is dict else enumerate(one) if type(one) is list else ()
            below += [((*path, key), part) for key, part in islice(parts, _MOST_INSIDE - len(below))]
        if found:
            return found[:2]
        level = below
    return found


def _in_text(text: str) -> Any:
    """Return the value that a text has as JSON; None for other texts."""
    if text.lstrip()[:1] != "{" or len(text) > _LONGEST_TEXT:
        return None
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None
