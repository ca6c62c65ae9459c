"""The text of a device range, ``"[4,8)"``, ``0-7`` or ``4,5,6,7``, as device ids.

Grammar: items with commas between them; an item is a number, ``a-b`` (b included) or ``[a,b)`` (b left out);
blanks may stand anywhere between the parts. Ids come out in the order they are listed, ranges ascend.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hccl_tools.errors import UsageError

_ITEM = re.compile(
    r"\s*(?:"
    r"\[\s*(?P<first>[0-9]+)\s*,\s*(?P<end>[0-9]+)\s*(?P<close>[\])])"
    r"|(?P<from>[0-9]+)\s*-\s*(?P<to>[0-9]+)"
    r"|(?P<single>[0-9]+)"
    r")\s*(?=,|$)"
)
#: What is shown of a token that cannot be read: a whole bracket, or everything up to the next comma.
_TOKEN = re.compile(r"\s*([\[(][^\])]*[\])]?[^,]*|[^,]*)")
_HOW = 'write "[4,8)" or 4-7 for devices 4 to 7, or a list such as 4,5,6,7'
#: Longer numbers are no device ids on any product and are not worth turning into integers.
_MOST_DIGITS = 9


class DeviceRange(NamedTuple):
    """A range as it was understood: the ids in listed order, and what had to be assumed."""

    ids: tuple[int, ...]
    warnings: tuple[str, ...] = ()


def parse(text: str, *, device_limit: int, product: str) -> DeviceRange:
    """Return the device ids that a range text names.

    Args:
        text: What the user typed.
        device_limit: Ids are 0 to ``device_limit - 1``.
        product: The product's name, for messages.

    Raises:
        UsageError: The range is empty, reversed, unreadable, names a device twice or one that the product
            does not have; the message holds the token.
    """
    if not text.strip():
        raise UsageError("the device range is empty", hint=_HOW)
    seen: dict[int, str] = {}
    warnings: list[str] = []
    position = 0
    while True:
        match = _ITEM.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        token = _clip(match[0].strip())
        ids = _item_ids(match, token, device_limit, product, warnings)
        for device_id in ids:
            if device_id in seen:
                raise UsageError(
                    f'device {device_id} is named twice in "{text.strip()}": '
                    f'by "{seen[device_id]}" and by "{token}"',
                    hint="name every device once",
                )
            seen[device_id] = token
        if match.end() == len(text):
            return DeviceRange(tuple(seen), tuple(warnings))
        position = match.end() + 1


def _item_ids(
    match: re.Match[str], token: str, device_limit: int, product: str, warnings: list[str]
) -> range:
    if match["single"] is not None:
        first = last = _number(match["single"], token, device_limit, product)
    elif match["from"] is not None:
        first, last = (_number(match[part], token, device_limit, product) for part in ("from", "to"))
        if last < first:
            raise _reversed(token)
    elif match["close"] == "]":
        first, last = _closed_bracket(match, token, device_limit, product, warnings)
    else:
        first = _number(match["first"], token, None, product)
        last = _number(match["end"], token, None, product) - 1
        if last < first:
            raise _empty(token, first) if last == first - 1 else _reversed(token)
        _check_limit(last, token, device_limit, product)
    _check_limit(last, token, device_limit, product)
    return range(first, last + 1)


def _closed_bracket(
    match: re.Match[str], token: str, device_limit: int, product: str, warnings: list[str]
) -> tuple[int, int]:
    """Read ``[a,b]``, which guides use for ``[a,b)`` too: only where one reading alone is possible."""
    first = _number(match["first"], token, None, product)
    end = _number(match["end"], token, None, product)
    if end < first:
        raise _reversed(token)
    if end == device_limit and first < end:
        warnings.append(
            f'"{token}" read as "[{first},{end})", {_spoken(first, end - 1)}: {product} has no device {end}'
        )
        return first, end - 1
    _check_limit(end, token, device_limit, product)
    half_open = _typed(first, end - 1) if end > first else None
    raise UsageError(
        f'"{token}" can be read in two ways: {_spoken(first, end)} (b included) or '
        f"{_spoken(first, end - 1)} (b left out)",
        hint=f"type {_typed(first, end)}" + (f" or {half_open}" if half_open else ""),
    )


def _number(digits: str, token: str, device_limit: int | None, product: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > _MOST_DIGITS:
        raise UsageError(f'"{token}" names device {_clip(digits)}, which no product has', hint=_HOW)
    value = int(significant)
    if device_limit is not None:
        _check_limit(value, token, device_limit, product)
    return value


def _check_limit(device_id: int, token: str, device_limit: int, product: str) -> None:
    if device_id >= device_limit:
        raise UsageError(
            f'"{token}" names device {device_id}, which {product} does not have: '
            f"its device ids are 0 to {device_limit - 1}",
            hint="for a machine of another kind name it with --product",
        )


def _reversed(token: str) -> UsageError:
    return UsageError(f'"{token}" runs backwards', hint="put the lower device id first")


def _empty(token: str, first: int) -> UsageError:
    return UsageError(
        f'"{token}" is empty: the end of a range in round brackets is left out',
        hint=f'type "[{first},{first + 1})" for device {first} alone',
    )


def _unreadable(text: str, position: int) -> UsageError:
    found = _TOKEN.match(text, position)
    token = found[1].strip() if found else text[position:].strip()
    if not token:
        where = "at the end" if position >= len(text.rstrip()) else "between two commas"
        return UsageError(f'a device id is missing {where} of "{_clip(text.strip())}"', hint=_HOW)
    return UsageError(f'cannot read "{_clip(token)}" as a device range', hint=_HOW)


def _spoken(first: int, last: int) -> str:
    if last < first:
        return "no device at all"
    return f"device {first}" if first == last else f"devices {first} to {last}"


def _typed(first: int, last: int) -> str:
    return f'"{first}"' if first == last else f'"{first}-{last}"'


def _clip(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
