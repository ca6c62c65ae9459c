"""Lengths of time as people write them: ``90``, ``40 h``, ``2.50d``, ``1 d 4 h``, ``1:30:00``."""

from __future__ import annotations

import re

#: Seconds of each unit, by its abbreviation.
UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_NAMES = {
    "ms": ("ms", "msec", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
}
_UNIT_OF = {name: unit for unit, names in _NAMES.items() for name in names}
_PART = r"(?a)\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]{1,3})?|[0-9]+\.)\s*([a-z]*)\.?\s*"
#: ``[[D-]H:]MM:SS``, as Slurm prints it.
_CLOCK = r"(?a)(?:([0-9]+)-)?(?:([0-9]+):)?([0-9]+):([0-9]+(?:\.[0-9]*)?)"


def unit_named(name: str) -> str | None:
    """Return the unit with a name, such as ``h`` for ``Hours``; ``None`` if it is not a unit of time."""
    return _UNIT_OF.get(name.strip().lower())


def parse(text: str, unit: str = "s") -> tuple[float, str]:
    """Return a length of time in seconds, and its first unit; a bare number is in ``unit``.

    Raises:
        ValueError: The text is not a length of time.

    >>> parse("1 d 4 h"), parse("2.5", "h"), parse("1:30:00")
    ((100800.0, 'd'), (9000.0, 'h'), (5400.0, 's'))
    """
    text = text.strip().lower()
    if text.isascii() and text.replace(".", "", 1).isdecimal():  # The patterns take 0.3 ms to compile.
        return float(text) * UNITS[unit], unit
    if found := re.fullmatch(_CLOCK, text):
        days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds, "s"
    parts, end = [], 0
    while end < len(text):
        match = re.compile(_PART).match(text, end)
        if match is None or (match[2] and match[2] not in _UNIT_OF):
            raise ValueError(f'"{text}" is not a length of time')
        parts.append((float(match[1]), _UNIT_OF.get(match[2], "")))
        end = match.end()
    units = [name for _, name in parts]
    if not parts or (len(parts) > 1 and ("" in units or not _descends(units))):
        raise ValueError(f'"{text}" is not a length of time')
    return sum(number * UNITS[name or unit] for number, name in parts), units[0] or unit


def _descends(units: list[str]) -> bool:
    sizes = [UNITS[name] for name in units]
    return sizes == sorted(set(sizes), reverse=True)
