"""Signals that end this process: what it has started on other hosts is ended first."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Raise SystemExit on SIGTERM and SIGHUP, as Ctrl-C raises KeyboardInterrupt.

    A signal that is ignored (nohup), or has a handler of the caller, stays as it is. So do all signals in a
    thread, which cannot set handlers.
    """
    changed = [one for one in _changeable() if signal.getsignal(one) is signal.SIG_DFL]
    for one in changed:
        signal.signal(one, _exit)
    try:
        yield
    finally:
        for one in changed:
            signal.signal(one, signal.SIG_DFL)


@contextmanager
def postponed() -> Iterator[None]:
    """Deliver signals after the body: a child that it starts is known by then, and can be ended."""
    arrived: list[int] = []
    handlers = {one: handler for one in _changeable() if callable(handler := signal.getsignal(one))}
    for one in handlers:
        signal.signal(one, lambda number, _frame: arrived.append(number))
    try:
        yield
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
    if arrived:
        signal.raise_signal(arrived[0])


def _changeable() -> tuple[signal.Signals, ...]:
    return _SIGNALS if threading.current_thread() is threading.main_thread() else ()


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
