"""Parse device ranges such as ``"[4,8)"``, ``0-7`` or ``4,5,6,7``.

Grammar: items separated by commas. An item is a number, ``a-b`` (b is included) or ``[a,b)`` (b is not).
Blanks are allowed between the parts. The ids are in the listed order.
"""

from __future__ import annotations

import re

from hccl_tools.errors import UsageError
from hccl_tools.notation import look_alikes
from hccl_tools.notation.phrases import NAME_THE_CHIP
from hccl_tools.records import NamedTuple

_ITEM = re.compile(
    r"\s*(?:"
    r"\[\s*(?P<first>[0-9]+)\s*,\s*(?P<end>[0-9]+)\s*(?P<close>[\])])"
    r"|(?P<from>[0-9]+)\s*-\s*(?P<to>[0-9]+)"
    r"|(?P<single>[0-9]+)"
    r")\s*(?=,|$)"
)
#: The part of an unreadable text that a message shows: a whole bracket, or the text up to the next comma.
_TOKEN = re.compile(r"\s*([\[(][^\])]*[\])]?[^,]*|[^,]*)")
#: Half-open ranges in other spellings: ``0,8)``, ``[0,8``, ``[0:8)``, ``0:8``, ``range(0, 8)``, ``range(8)``.
_HALF_OPEN = r"(?:range\s*\(|\[)?\s*(?:([0-9]{1,9})\s*[,;:]\s*)?([0-9]{1,9})\s*\)?"
#: Ranges with another sign between their ends (``0..7``, ``0~7``, ``[0-8)``); lists (``[0,1,2]``, ``0 1 2``).
_OTHER_SIGN = r"\[?\s*([0-9]{1,9})\s*(?:\.\.|-|to|[~\uff5e\u301c])\s*([0-9]{1,9})\s*([\])]?)"
_LIST = r"(?:\[|\{)?\s*([0-9]{1,9}(?:(?:\s*[,;]\s*|\s+)[0-9]{1,9}){2,})\s*(?:\]|\})?"
_HOW = 'write "[4,8)" or 4-7 for devices 4 to 7, or a list such as 4,5,6,7'
#: Longer numbers are not device ids on any product and are not converted to integers.
_MOST_DIGITS = 9


class _Machine(NamedTuple):
    """What a range can have.

    Attributes:
        device_limit: Ids are below it.
        name: The name of the product for messages.
        beyond: The hint for an id above the limit.
        present: One more than the highest id on this host, if its devices are known.
    """

    device_limit: int
    name: str
    beyond: str
    present: int | None


class DeviceRange(NamedTuple):
    """A parsed range: the ids in listed order, and warnings about assumptions."""

    ids: tuple[int, ...]
    warnings: tuple[str, ...] = ()


def parse(
    text: str,
    *,
    device_limit: int,
    product: str,
    beyond: str = NAME_THE_CHIP,
    present: int | None = None,
) -> DeviceRange:
    """Parse a device range.

    Args:
        device_limit: Ids are 0 to ``device_limit - 1``.
        beyond: The hint for an id above the limit.
        present: One more than the highest id on this host; None if its devices are unknown. ``[0,8]`` can
            only mean ``[0,8)`` on a host without device 8.

    Raises:
        UsageError: The range is empty, reversed or unreadable, repeats a device, or contains a device that
            the product does not have; the message has the token.
    """
    if not text.strip():
        raise UsageError("the device range is empty", hint=_HOW)
    machine = _Machine(device_limit, product, beyond, present)
    seen: dict[int, str] = {}
    warnings: list[str] = []
    position = 0
    while True:
        match = _ITEM.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        token = _clip(match[0].strip())
        for device_id in _item_ids(match, token, machine, warnings):
            if device_id in seen:
                raise UsageError(
                    f'device {device_id} is in "{text.strip()}" twice: '
                    f'in "{seen[device_id]}" and in "{token}"',
                    hint="list every device once",
                )
            seen[device_id] = token
        if match.end() == len(text):
            return DeviceRange(tuple(seen), tuple(warnings))
        position = match.end() + 1


def _item_ids(match: re.Match[str], token: str, machine: _Machine, warnings: list[str]) -> range:
    if match["single"] is not None:
        first = last = _number(match["single"], token)
        if last == machine.device_limit and match[0] == match.string:  # probably a count instead of an id
            count = f'for {last} devices type "[0,{last})"'
            machine = machine._replace(beyond=f"{count}; otherwise {machine.beyond}")
    elif match["from"] is not None:
        first, last = (_number(match[part], token) for part in ("from", "to"))
        _check_limit(first, token, machine)
        if last < first:
            raise _reversed(token)
    elif match["close"] == "]":
        first, last = _closed_bracket(match, token, machine, warnings)
    else:
        first, last = _number(match["first"], token), _number(match["end"], token) - 1
        if last < first:
            raise _empty(token, first) if last == first - 1 else _reversed(token)
    _check_limit(last, token, machine)
    return range(first, last + 1)


def _closed_bracket(
    match: re.Match[str], token: str, machine: _Machine, warnings: list[str]
) -> tuple[int, int]:
    """Read ``[a,b]``, which guides also use for ``[a,b)``, if only one reading is possible."""
    first, end = _number(match["first"], token), _number(match["end"], token)
    if end < first:
        raise _reversed(token)
    if end in (machine.device_limit, machine.present) and first < end:
        name = machine.name if end == machine.device_limit else "this host"
        warnings.append(
            f'"{token}" read as "[{first},{end})", {_description(first, end - 1)}: {name} has no device {end}'
        )
        return first, end - 1
    _check_limit(end, token, machine)
    ways = [(first, end), (first, end - 1)] if end > first else [(first, end)]
    raise UsageError(
        f'"{token}" is ambiguous: is {end} included?',
        hint=f"type {', or '.join(f'{_typed(*way)} for {_description(*way)}' for way in ways)}",
    )


def _number(digits: str, token: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > _MOST_DIGITS:
        raise UsageError(f'"{token}" contains device {_clip(digits)}, which no product has', hint=_HOW)
    return int(significant)


def _check_limit(device_id: int, token: str, machine: _Machine) -> None:
    if device_id >= machine.device_limit:
        raise UsageError(
            f'"{token}" contains device {device_id}, which {machine.name} does not have: '
            f"its device ids are 0 to {machine.device_limit - 1}",
            hint=machine.beyond,
        )


def _reversed(token: str) -> UsageError:
    return UsageError(f'"{token}" is in descending order', hint="write the lower device id first")


def _empty(token: str, first: int) -> UsageError:
    return UsageError(
        f'"{token}" is empty: the number before ")" is not included',
        hint=f'type "[{first},{first + 1})" for device {first} alone',
    )


def _unreadable(text: str, position: int) -> UsageError:
    whole = _clip(text.strip())
    if meant := _meant(text.strip()):
        return UsageError(f'cannot read "{whole}" as a device range', hint=meant)
    if typed := look_alikes.mistyped(text):
        return UsageError(typed[0], hint=typed[1])
    token = _token(text, position)
    if not token:
        where = "at the end" if position >= len(text.rstrip()) else "between two commas"
        return UsageError(f'a device id is missing {where} of "{whole}"', hint=_HOW)
    part = f' in "{whole}"' if token != text.strip() else ""
    return UsageError(f'cannot read "{_clip(token)}"{part} as a device range', hint=_HOW)


def _meant(text: str) -> str:
    """Return a hint with the range or list that is probably meant; "" if none is."""
    if text.lower() == "all":
        return "leave the option out: without it all devices are used"
    if found := re.fullmatch(_HALF_OPEN, text):
        return f'did you mean "[{int(found[1] or 0)},{int(found[2])})"?'
    if found := re.fullmatch(_OTHER_SIGN, text):
        first, last = int(found[1]), int(found[2])
        return f'did you mean "[{first},{last})"?' if found[3] == ")" else f'did you mean "{first}-{last}"?'
    if found := re.fullmatch(_LIST, text):
        return f'did you mean "{_clip(",".join(re.findall("[0-9]+", found[1])))}"?'
    return ""


def _token(text: str, position: int) -> str:
    found = _TOKEN.match(text, position)
    return found[1].strip() if found else text[position:].strip()


def _description(first: int, last: int) -> str:
    if last < first:
        return "no device"
    return f"device {first}" if first == last else f"devices {first} to {last}"


def _typed(first: int, last: int) -> str:
    return f'"{first}"' if first == last else f'"{first}-{last}"'


def _clip(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
