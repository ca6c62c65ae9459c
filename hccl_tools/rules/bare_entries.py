"""Entries of a table without the table around them: a list of servers, JSON Lines, rows of a spreadsheet, one server.

This module declares no rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.formats.detection import detect
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.document.document import Document

#: Makes a list of objects that stand one after the other, with or without commas and brackets around them.
_READ = 'import json, re, sys; r = json.loads("[" + re.sub(r"}\\s*,?\\s*{", "},{", sys.stdin.read().strip().strip("[]")) + "]")'
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


def _is_server(value: dict[str, Any]) -> bool:
    return "server_id" in value and type(value.get("device")) is list and detect(value).format is None


def _is_row(value: dict[str, Any]) -> bool:
    return "server_id" in value and "device_id" in value and "device" not in value


def _version(device: Any) -> str:
    return "1.2" if type(device) is dict and "super_device_id" in device else "1.0"


def _servers(first: dict[str, Any], what: str) -> BareEntries:
    device = first["device"][0] if first["device"] else None
    table = f't = {{"version": "{_version(device)}", {_SERVERS}}}'
    return BareEntries(
        what, f"make the table of them: python3 -c '{_READ}; {table}; {_WRITE}' < OLD > NEW{_then(device)}"
    )


def _rows(first: dict[str, Any], what: str) -> BareEntries:
    table = f't = {{"version": "{_version(first)}", {_SERVERS}}}'
    return BareEntries(
        what,
        f"make the table of them: python3 -c '{_READ}; {_ROWS}; {table}; {_WRITE}' < OLD > NEW{_then(first)}",
    )


def _then(device: Any) -> str:
    """Return what is left to do: a table of version 1.2 also lists super pods."""
    return '; then add "super_pod_list"' if _version(device) == "1.2" else ""


def of_wrapped(value: Any) -> tuple[str, BareEntries] | None:
    """Return the only key of an object with several keys whose value is a table, with what to do."""
    if type(value) is not dict:
        return None
    own = [key for key, inner in value.items() if type(inner) is dict and detect(inner).format is not None]
    if len(own) != 1:
        return None
    shown = own[0][:40]
    if not shown.replace("_", "").replace("-", "").replace(".", "").isalnum():
        return own[0], BareEntries(f'the table is the value of "{shown}"', "save that value alone in a file")
    take = f"python3 -c 'import json, sys; json.dump(json.load(sys.stdin)[\"{own[0]}\"], sys.stdout, indent=4)' < OLD > NEW"
    return own[0], BareEntries(
        f'the table is the value of "{shown}"', f"save that value alone in a file: {take}"
    )
