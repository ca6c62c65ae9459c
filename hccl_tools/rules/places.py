"""Advice on keys in the wrong object, which HCCL ignores, and on characters that no editor shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.formats.detection import detect
from hccl_tools.formats.file_kinds import RANK_TABLE
from hccl_tools.notation import invisible
from hccl_tools.rules.key_places import keys_read, kinds_with, with_other_keys
from hccl_tools.rules.misplaced_entries import is_in, misplaced_paths
from hccl_tools.rules.registry import Finding, Input, rule, shared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.key_places import Found, Kind

#: The length of the path of a server in a super pod.
_OF_POD = 4


@rule("HCC617", "misplaced-key", "advice", source="topoinfo_ranktableConcise.cc (unknown keys are ignored)")
def misplaced_key(subject: Input) -> Iterator[Finding]:
    """A key is in an object in which HCCL does not read it, so that HCCL ignores it.

    Base: 2x8
    Example: /server_list/0/device/0/host_ip = "10.0.0.1"
    Instead: /server_list/0/host_ip = "10.0.0.1"
    Hint: move it to the entry of server_list in which it is
    """
    table_format = _format(subject)
    if table_format is None:
        return
    for found in with_other_keys(subject, table_format, keys_read(table_format).__contains__):
        if is_in(found.path, misplaced_paths(subject, table_format)) or _is_another_kind(
            found, subject.value
        ):
            continue  # HCC111 or HCC521 reports that entries are in the wrong list.
        if _is_lost_server(found, subject):
            continue  # HCC524 reports a server with its devices in super_pod_list.
        for key in found.value:
            kinds = kinds_with(key, table_format) if key not in found.kind.keys else []
            if kinds:
                names = " or ".join(kind.name for kind in kinds)
                is_of_table = len(kinds) == 1 and "version" in kinds[0].keys and key not in subject.value
                lacks = f", which has no {key}" if is_of_table else ""
                yield Finding(
                    f'"{key}" is ignored here: HCCL reads it in {names}{lacks}',
                    (*found.path, key),
                    _right_place(found, key, kinds),
                    at_key=True,
                )


@shared
def _server_ids(subject: Input) -> frozenset[Any]:
    """Return the server_ids of server_list."""
    servers = subject.value.get("server_list")
    ids = [one.get("server_id") for one in servers if type(one) is dict] if type(servers) is list else []
    return frozenset(one for one in ids if type(one) is str)


def _is_lost_server(found: Found, subject: Input) -> bool:
    """Return whether an entry of a super pod has the devices of a server that is not in server_list."""
    is_of_pod = len(found.path) == _OF_POD and found.path[0] == "super_pod_list"
    name = found.value.get("server_id")
    return is_of_pod and "device" in found.value and type(name) is str and name not in _server_ids(subject)


def _is_another_kind(found: Found, table: dict[str, Any]) -> bool:
    """Return whether an object has the list of another kind in place of its own: it is an entry of that kind."""
    if "device_id" in found.value and "device" in found.kind.keys and "device" not in found.value:
        return True
    if "device" in found.value and "device" not in found.kind.keys:
        is_server = "device_id" in found.kind.keys and "device_id" not in found.value
        return is_server or "server_list" not in table
    return (
        "devices" in found.value and "instance_list" in found.kind.keys and "instance_list" not in found.value
    )


def _format(subject: Input) -> str | None:
    if not subject.is_json or subject.kind is not RANK_TABLE or not isinstance(subject.value, dict):
        return None
    found = detect(subject.value)
    return None if found.heterogeneous or "deploy_mode" in subject.value else found.format


def _right_place(found: Found, key: str, kinds: list[Kind]) -> str:
    """Return the hint on a key that is in the wrong object: where in this table it belongs."""
    if found.value[key] is None:
        return "delete it: its value is null"
    for kind, value in reversed(found.around):
        if kind in kinds and key in value and key in kind.lists and type(found.value[key]) is list:
            return f'move its entries into "{key}" of {kind.name.replace("an ", "the ", 1)} in which it is, and delete it here'
        if kind in kinds:
            where = (
                kind.name
                if kind is found.around[0][0]
                else f"{kind.name.replace('an ', 'the ', 1)} in which it is"
            )
            if key in value:
                is_table = kind is found.around[0][0]
                return f"delete it: {'the table' if is_table else where} has one of its own"
            return f"move it to {where}"
    if found.value[key] and type(found.value[key]) is list and key in ("device", "devices"):
        return "move its entries to the servers whose devices they are, and delete it here"
    inner = next((kind for kind in kinds if kind in found.kind.lists.values()), kinds[0])
    return f"write it in {inner.name.replace('an ', 'each ', 1)} with the value of that entry, and delete it here"


@rule(
    "HCC618",
    "invisible-character",
    "advice",
    source="topoinfo_ranktableConcise.cc (ids are compared as texts)",
)
def invisible_character(subject: Input) -> Iterator[Finding]:
    r"""A value or key has a character that no editor shows, such as a zero-width space from a web page.

    HCCL compares ids with it, and does not read a key with it.

    Base: 2x8
    Example: /server_list/0/server_id = "10.0.0.1\u200b"
    Instead: /server_list/0/server_id = "10.0.0.1"
    Hint: delete it: "10.0.0.1"; `validate --fix` does
    """
    document = subject.document
    if document is not None and document.data.isascii() and b"\\" not in document.data:
        return
    table_format = _format(subject)
    if table_format is None:
        return
    entries: list[tuple[Path, Any]] = [((), subject.value)]
    while entries:
        path, value = entries.pop()
        if isinstance(value, list):
            entries += [((*path, index), one) for index, one in enumerate(value) if not _is_clean(one)]
        elif isinstance(value, dict):
            for key, one in value.items():
                if not key.isascii() and (found := invisible.first(key)):
                    yield from _of_key(path, key, found, value, table_format)
                entries += [] if _is_clean(one) else [((*path, key), one)]
        elif (found := invisible.first(value)) and _is_read(path, table_format):
            right = invisible.without(value)
            yield Finding(
                f"{_name(path)} has {found.name} {found.where}", path, f"delete it: {quoted(right)}; `validate --fix` does",
                right=right,
            )  # fmt: skip


def _is_clean(value: Any) -> bool:
    """Return whether a value is not an object or list, and has ASCII characters only."""
    return value.isascii() if isinstance(value, str) else not isinstance(value, (dict, list))


def _is_read(path: Path, table_format: str) -> bool:
    key = next((one for one in reversed(path) if isinstance(one, str)), "")
    return bool(kinds_with(key, table_format))


def _name(path: Path) -> str:
    last = path[-1]
    return f'"{last}"' if isinstance(last, str) else f'entry {last + 1} of "{path[-2]}"'


def _of_key(
    path: Path, key: str, found: invisible.Invisible, beside: dict[str, Any], table_format: str
) -> Iterator[Finding]:
    right = invisible.without(key)
    if kinds_with(right, table_format):
        is_free = right not in beside
        yield Finding(
            f'the key "{right}" has {found.name} {found.where}, so that HCCL does not read it',
            (*path, key),
            f"delete it: {quoted(right)}; `validate --fix` does"
            if is_free
            else f'delete this key: "{right}" is there, too',
            at_key=True,
            right_key=right if is_free else None,
        )
