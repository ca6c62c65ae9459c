"""Signal names in reports: ``SIGKILL``, and ``signal 35`` for a signal without a name."""

from __future__ import annotations

import signal

_NAMELESS = "signal "


def signal_name(number: int) -> str:
    """Return ``SIGKILL`` for 9, ``signal 35`` for a number without a name in Python."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"{_NAMELESS}{number}"


def signal_number(name: str) -> int:
    """Return the number for a result of ``signal_name``.

    Raises:
        ValueError: ``name`` is not the name of a signal.
    """
    if name.startswith(_NAMELESS):
        return int(name.removeprefix(_NAMELESS))
    if name not in signal.Signals.__members__:
        raise ValueError(f"not the name of a signal: {name}")
    return signal.Signals[name].value
