"""What entries and lists of a table are called in sentences on misplaced entries. This module declares no rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import and_more, count

if TYPE_CHECKING:
    from hccl_tools.rules.key_places import Kind
    from hccl_tools.rules.misplaced_entries import Place

#: The characters of an id that a sentence shows, and the digits of a number.
_SHOWN, _LONGEST_NUMBER = 64, 9
#: Objects whose ids are numbers, which are shown without quotes.
_NUMBERED = frozenset({"device", "rank", "layer"})


def one_of(noun: str) -> str:
    """Return a noun with its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def plural(noun: str) -> str:
    """Return the plural of a noun, such as "servers of a super pod"."""
    head, of, rest = noun.partition(" of ")
    return f"{head}{'es' if head.endswith('s') else 's'}{of}{rest}"


def titled(key: str) -> str:
    """Return the name of a list: its key, with the word if the key does not say it."""
    return f'"{key}"' if key.endswith("list") else f'"{key}" list'


def list_of(holder: Place, key: str) -> str:
    """Return the name of a list of a table, with the object that it is in."""
    return f"the {titled(key)} of {name_of(holder)}" if holder.path else key


def name_of(place: Place) -> str:
    """Return the name of an object of a table; layers have the same names in all ranks."""
    outer = f" of {name_of(place.around[-1])}" if place.kind.noun == "layer" else ""
    return f"{named(place.kind, [place.value])}{outer}"


def id_of(kind: Kind, entry: Any) -> str:
    """Return the id of an entry as text; "" if it has none."""
    for key in (kind.own_id, "server_id", "server_ip"):
        value = entry.get(key) if type(entry) is dict and key in kind.keys else None
        if type(value) in (str, int) and value != "":
            return str(value)[:_SHOWN]
    return ""


def named(kind: Kind, entries: list[Any]) -> str:
    """Return the names of entries of a kind as a phrase, such as ``devices 0-3`` or ``server "10.0.0.1"``."""
    names = [id_of(kind, entry) for entry in entries]
    different = list(dict.fromkeys(names))
    if not all(names):
        return one_of(kind.noun) if len(names) == 1 else count(len(names), kind.noun, plural(kind.noun))
    noun = kind.noun if len(names) == 1 else plural(kind.noun)
    shown = and_more([quoted(one) for one in different])
    if kind.noun in _NUMBERED and all(one.isdecimal() and len(one) < _LONGEST_NUMBER for one in names):
        shown = fold(sorted(map(int, different)))
    return (
        f"{noun} {shown}" if len(different) == len(names) else f"{len(names)} {noun} ({kind.own_id} {shown})"
    )
