"""The output of ``diff``, as text or as JSON."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped, stdout_is_ascii
from hccl_tools.notation.screen import Pen, width, wrapped
from hccl_tools.table.fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.table.difference import Change, Difference, Move, ServerRanks
    from hccl_tools.table.model import RankTable

#: Increased when a key of the JSON output changes its meaning or is removed.
SCHEMA_VERSION = 1
#: Lines of each part of the text, unless the user wants all.
_MOST_LINES = 20
_STYLES = {"- ": "removed", "+ ": "added"}


def lines(
    found: Difference, files: Sequence[tuple[str, RankTable]], *, unfold: bool, color: bool = False
) -> Iterator[str]:
    """Yield the lines of text; what is gone and what is new have colours of their own."""
    pen, columns = Pen(color), width()
    for line in _lines(found, files, None if unfold else _MOST_LINES):
        shown = "\n".join(wrapped(escaped(line, ascii_only=stdout_is_ascii()), columns))
        style = _STYLES.get(line.lstrip()[:2]) or ("message" if line.endswith(":") else None)
        yield pen(style, shown) if style else shown


def _lines(found: Difference, files: Sequence[tuple[str, RankTable]], most: int | None) -> Iterator[str]:
    if found.is_empty:
        yield f"equal: fingerprint {fingerprint(files[0][1])}"
        return
    for sign, (name, table) in zip("-+", files, strict=True):
        size = f"{count(len(table.servers), 'server')}, {count(len(table), 'rank')}"
        yield f"{sign} {name}: {table.format}, {size}, fingerprint {fingerprint(table)}"
    if found.formats:
        yield f"format: {' -> '.join(found.formats)}"
    parts = {
        "servers": [*_servers("-", found.gone), *_servers("+", found.added)],
        "ranks": list(_ranks(found)),
        "values": [_change(change) for change in found.changes],
    }
    if found.reordered:
        parts["servers"].append("the servers are in another order")
    for title, part in parts.items():
        if part:
            yield f"{title}:"
            yield from (f"  {line}" for line in part[:most])
            if most is not None and len(part) > most:
                yield f"  and {len(part) - most:,} more (--all lists them)"


def _servers(sign: str, servers: Sequence[ServerRanks]) -> Iterator[str]:
    for one in servers:
        yield f"{sign} {one.server}  {_named(one.ranks)}"


def _named(ranks: Sequence[int]) -> str:
    return f"rank{'' if len(ranks) == 1 else 's'} {fold(ranks)}"


def _ranks(found: Difference) -> Iterator[str]:
    """Yield a line for each rank that moved; ranks that moved with their device ids share one."""
    if found.ranks_gone:
        yield f"- {_named(found.ranks_gone)}"
    if found.ranks_added:
        yield f"+ {_named(found.ranks_added)}"
    for (before, after, keeps), group in groupby(found.moved, key=_way):
        moves = list(group)
        if keeps:
            ranks = _named([move.rank for move in moves])
            yield f"{ranks}: {before} -> {after}, same {_devices(moves)}"
            continue
        for move in moves:
            target = f"device {move.after.device}" + ("" if before == after else f" of {after}")
            yield f"rank {move.rank}: device {move.before.device} of {before} -> {target}"


def _way(move: Move) -> tuple[str, str, bool]:
    return move.before.server, move.after.server, move.before.device == move.after.device


def _devices(moves: Sequence[Move]) -> str:
    return f"device{'' if len(moves) == 1 else 's'} {fold([move.before.device for move in moves])}"


def _change(change: Change) -> str:
    where = change.server if change.device is None else f"device {change.device} of {change.server}"
    return f"{where}: {change.key} {_shown(change.before)} -> {_shown(change.after)}"


def _shown(value: Any) -> str:
    if value is None:
        return "(absent)"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def as_json(found: Difference, files: Sequence[tuple[str, RankTable]]) -> str:
    """Return the JSON text."""
    described = [
        {
            "file": name,
            "format": table.format,
            "fingerprint": fingerprint(table),
            "server_count": len(table.servers),
            "rank_count": len(table),
        }
        for name, table in files
    ]
    value = {
        "schema_version": SCHEMA_VERSION,
        "equal": found.is_empty,
        "files": described,
        "servers": {
            "gone": [one._asdict() for one in found.gone],
            "added": [one._asdict() for one in found.added],
            "reordered": found.reordered,
        },
        "ranks": {
            "gone": found.ranks_gone,
            "added": found.ranks_added,
            "moved": [
                {"rank": move.rank, "before": move.before._asdict(), "after": move.after._asdict()}
                for move in found.moved
            ],
        },
        "values": [change._asdict() for change in found.changes],
    }
    return json.dumps(value, indent=4, default=str) + "\n"
