"""Servers that stand elsewhere than in the server_list of a table. This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.records import NamedTuple
from hccl_tools.rules.registry import shared

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.registry import Input

_DEVICES = ("device", "devices")
#: The levels of a table that are searched: a server in a device of a server, with a level around each.
_DEEPEST = 12


class Stray(NamedTuple):
    """A server that is not an entry of server_list.

    Attributes:
        path: Its place.
        server_id: Its server_id, "" if it has none.
        where: Its place as a phrase.
        is_of_group: Whether it has the keys of an instance of a group_list.
    """

    path: Path
    server_id: str
    where: str
    is_of_group: bool


@shared
def servers(subject: Input) -> list[Stray]:
    """Return the objects of a table with devices that are not entries of server_list, in file order."""
    found: list[Stray] = []
    waiting: list[tuple[Path, Any]] = [((), subject.value)]
    while waiting:
        path, value = waiting.pop()
        if type(value) is dict:
            if path and not _is_listed(path) and (devices := _devices(value)):
                name = value.get("server_id")
                where = _where(path, subject.value)
                found.append(
                    Stray(path, name if isinstance(name, str) else "", where, devices == _DEVICES[1])
                )
            below: list[tuple[Path, Any]] = [((*path, key), one) for key, one in value.items()]
        else:
            below = [((*path, index), one) for index, one in enumerate(value)]
        if len(path) < _DEEPEST:
            waiting += reversed([(place, one) for place, one in below if type(one) in (dict, list)])
    return found


def _is_listed(path: Path) -> bool:
    return len(path) == 2 and path[0] == "server_list"


def _devices(value: dict[str, Any]) -> str:
    """Return the key under which an object has devices, "" if it has none."""
    for key in _DEVICES:
        entries = value.get(key)
        if type(entries) is list and entries and type(entries[0]) is dict:
            return key
    return ""


def _where(path: Path, table: dict[str, Any]) -> str:
    if path[0] == "server_list":
        around = table["server_list"][path[1]]
        name = around.get("server_id") if isinstance(around, dict) else None
        return f"inside server {quoted(name)}" if isinstance(name, str) else "inside another server"
    return f'in "{path[0]}"' if len(path) > 1 else f'under the key "{path[0]}", beside server_list'
