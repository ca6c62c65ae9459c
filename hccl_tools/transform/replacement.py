"""Give a spare server the ranks of a failed server by editing the table's text.

Only values that differ are replaced. Ranks, the order of devices and all other entries keep their bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.document.document import Document
from hccl_tools.errors import TableError
from hccl_tools.host.recognition import listed_addresses
from hccl_tools.notation.phrases import operand
from hccl_tools.transform.spare import (
    Pair,
    check_kind,
    check_super_pod,
    index_of,
    network_warning,
    pair_with_spare,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.model import RankTable

#: Keys that depend on the hardware: the spare must have them if the table does.
_OF_DEVICE = ("device_id", "device_ip", "super_device_id", "backup_device_ip", "dpu_ip")
_OF_DEVICE_2_0 = ("device_id", "local_id", "level_list", "control_plane")
_OF_SERVER = ("container_ip", "pod_ip", "pod_name", "server_ip")

Edit = tuple["Path", Any]


@dataclass(frozen=True)
class Replacement:
    """The new text, its table, and the changes, one line each."""

    data: bytes
    table: RankTable
    changes: list[str]


def replace_server(document: Document, server_id: str, spare: RankTable) -> Replacement:
    """Give the only server of a spare table the ranks of a server.

    Args:
        document: A readable table.
        spare: A table of the same format with one server. Its n-th device by id replaces the
            n-th of the failed server.

    Raises:
        TableError: The server does not exist, or the spare differs in format, device count, product, super
            pod or address family.
    """
    table = formats.read(document.value)
    pair = pair_with_spare(table, index_of(table, server_id), spare)
    check_kind(pair)
    check_super_pod(pair)
    edits = list(_device_edits(pair)) + list(_server_edits(pair)) + _reference_edits(document.value, pair)
    data = apply_edits(document, edits)
    changed = formats.read(Document.parse(data, document.name).value)
    if changed.rank_numbers != table.rank_numbers:
        raise TableError(
            f"ranks would change: HCCL numbers a group_list by server_id, and {pair.new.server_id} "
            "is elsewhere in that order",
            hint=f"convert the table to 1.0 first: `hccl-tools convert {operand(document.name)} --to 1.0`",
        )
    return Replacement(data, changed, list(_summary(pair, changed)))


def _device_edits(pair: Pair) -> Iterator[Edit]:
    table, spare = pair.table, pair.spare
    module = formats.module(table.format)
    needed = _OF_DEVICE_2_0 if table.format == "2.0" else _OF_DEVICE
    for row, other in pair.rows:
        for key, column in table.columns.items():
            old, new = column[row], spare.column(key)[other]
            if key == "rank_id" or old is None:
                continue
            if new is None and key in needed:
                raise TableError(
                    f"the spare's table has no {key} for device {spare.device_ids[other]}",
                    hint=f"the table has {key} for every device: add it to the spare's table",
                )
            if new is not None and key in needed:
                yield from differences((*module.device_path(table, row), key), old, new)


def _server_edits(pair: Pair) -> Iterator[Edit]:
    if pair.table.format == "2.0":  # no server entries: a server is named after the network of its devices
        return
    path = formats.module(pair.table.format).server_path(pair.table, pair.index)
    yield from differences((*path, "server_id"), pair.old.server_id, pair.new.server_id)
    values = [("host_ip", pair.old.host_ip, pair.new.host_ip)]
    values += [(key, pair.old.fields.get(key), pair.new.fields.get(key)) for key in _OF_SERVER]
    for key, old, new in values:
        if old is None:
            continue
        if new is None and old == pair.old.server_id:
            new = pair.new.server_id  # noqa: PLW2901  (the same kind of name)
        if new is None:
            raise TableError(
                f"the spare's table has no {key} for {pair.new.server_id}",
                hint=f"the table has {key} for {pair.old.server_id}: add it to the spare's table",
            )
        yield from differences((*path, key), old, new)


def _reference_edits(value: dict[str, Any], pair: Pair) -> list[Edit]:
    edits: list[Edit] = []
    for key in ("super_pod_list", "cluster_list"):
        for number, holder in _objects(value.get(key)):
            for place, entry in _objects(holder.get("server_list")):
                if entry.get("server_id") == pair.old.server_id:
                    path = (key, number, "server_list", place, "server_id")
                    edits += differences(path, pair.old.server_id, pair.new.server_id)
    return edits


def _objects(entries: Any) -> list[tuple[int, dict[str, Any]]]:
    found = enumerate(entries) if isinstance(entries, list) else ()
    return [(index, entry) for index, entry in found if isinstance(entry, dict)]


def differences(path: Path, old: Any, new: Any) -> Iterator[Edit]:
    """Yield the smallest values that differ, each with its path, or the whole value if the shape differs."""
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        for key in old:
            yield from differences((*path, key), old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from differences((*path, index), *pair)
    elif old != new or type(old) is not type(new):
        yield path, new


def apply_edits(document: Document, edits: Sequence[Edit]) -> bytes:
    """Return a document's bytes with new values at some paths; all other bytes stay."""
    spans = document.spans([path for path, _ in edits])
    data = document.data
    for span, value in sorted(
        zip(spans, (value for _, value in edits), strict=True), key=lambda one: -one[0].start
    ):
        data = data[: span.start] + json.dumps(value, ensure_ascii=False).encode() + data[span.end :]
    return data


def _summary(pair: Pair, changed: RankTable) -> Iterator[str]:
    ranks = pair.table.rank_numbers
    own = sorted(ranks[row] or 0 for row in pair.old.rows)
    yield f"{pair.old.server_id} becomes {pair.new.server_id}: ranks {own[0]} to {own[-1]}"
    for row, _ in sorted(pair.rows, key=lambda one: ranks[one[0]] or 0):
        yield f"rank {ranks[row]}: {_device(pair.table, row)} becomes {_device(changed, row)}"
    if warning := network_warning(pair):
        yield f"warning: {warning}"


def _device(table: RankTable, row: int) -> str:
    addresses = [text for _, text in listed_addresses(table, row)]
    shown = ",".join(addresses[:1] if table.format == "2.0" else addresses)
    return f"device {table.device_ids[row]} {shown}".rstrip()
