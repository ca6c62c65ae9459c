"""An exception as bytes for the caller of ``spawn``: itself, or the nearest type that can be pickled."""

from __future__ import annotations

import pickle
from typing import Any


class _Rebuilt:
    """Replaces an exception that pickle cannot restore.

    The usual reason: the exception's ``__init__`` accepts other arguments than it passes to ``Exception``.
    """

    def __init__(self, kind: type[Exception], args: tuple[Any, ...], state: dict[str, Any]) -> None:
        self._parts = (kind, args, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, self._parts


def rebuild(kind: type[Exception], args: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    """Return an exception from its parts, without calling its ``__init__``."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


def pickled(error: Exception, text: str) -> bytes:
    """Return an exception, or its nearest base class that can be pickled, and its traceback as bytes."""
    if (data := _tried(error, text, type(error))) is not None:
        return data
    for kind in type(error).__mro__[:-2]:  # The last two are BaseException and object.
        plain = tuple(map(repr, error.args))
        for args, state in ((error.args, error.__dict__), (plain, {})):
            if (data := _tried(_Rebuilt(kind, args, state), text, kind)) is not None:
                return data
    return pickle.dumps((None, text))


def _tried(value: Any, text: str, kind: type[Exception]) -> bytes | None:
    """Return the bytes if unpickling them gives an exception of this type."""
    try:
        data = pickle.dumps((value, text))
        found = pickle.loads(data)[0]  # noqa: S301  (our own bytes)  # nosec B301
    except Exception:  # noqa: BLE001  (whatever its __reduce__ raises)
        return None
    return data if type(found) is kind else None
