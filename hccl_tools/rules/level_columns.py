"""The levels and addresses of a 2.0 table, shared by several rules. This module declares no rules."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools.rules.registry import shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.registry import Subject

#: The greatest lengths of strings, in bytes.
LONGEST = {"net_instance_id": 1024, "plane_id": 1024, "addr": 256, "port": 32}
Entry = dict[str, Any]


@shared
def all_levels(subject: Subject) -> list[Entry]:
    """Return the levels of all ranks, in file order."""
    return list(chain.from_iterable(subject.table.column("level_list")))


@shared
def level_addresses(subject: Subject) -> list[Entry]:
    """Return every address of every level, in file order."""
    return list(chain.from_iterable(level["rank_addr_list"] for level in all_levels(subject)))


def each_level(subject: Subject) -> Iterator[tuple[Path, Entry]]:
    """Yield every level with its path."""
    for row, levels in enumerate(subject.table.column("level_list")):
        for index, level in enumerate(levels):
            yield ("rank_list", row, "level_list", index), level


def each_address(subject: Subject) -> Iterator[tuple[Path, Entry]]:
    """Yield every address with its path."""
    for path, level in each_level(subject):
        for index, address in enumerate(level["rank_addr_list"]):
            yield (*path, "rank_addr_list", index), address


def all_pass(entries: list[Entry], key: str, passes: Callable[[Any], bool], default: Any = None) -> bool:
    """Whether all values of a key pass a check, which is called once per different value."""
    values = {entry.get(key, default) for entry in entries}
    return all(value is default or passes(value) for value in values)
