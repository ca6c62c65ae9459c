"""A line on the terminal that counts the hosts that have answered, while many are asked."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hccl_tools.notation import host_list, screen
from hccl_tools.notation.printable import show_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: So many hosts that have not answered are named.
_MOST_NAMED = 4


@contextmanager
def counted(hosts: Sequence[str]) -> Iterator[Callable[[str], None]]:
    """Yield the function to call with each host that has answered; the line goes when all is done.

    There is a line only on a terminal, and only for several hosts. Threads may call the function.
    """
    if len(hosts) < 2 or not sys.stderr.isatty():
        yield lambda _host: None
        return
    pending = dict.fromkeys(hosts)
    began = time.monotonic()

    def show(host: str = "") -> None:
        pending.pop(host, None)
        text = line(list(pending), len(hosts), time.monotonic() - began)
        columns = (screen.width(2) or screen.STANDARD) - 1
        show_status(screen.cut(text, columns))

    show()
    try:
        yield show
    finally:
        show_status("")


def line(pending: Sequence[str], number: int, seconds: float) -> str:
    """Return the line: how many of ``number`` hosts have answered, and the last that have not.

    >>> line(["10.0.0.3", "10.0.0.4"], 16, 2.4)
    '14 of 16 hosts have answered, 2 s; waiting for 10.0.0.[3-4]'
    """
    text = f"{number - len(pending):,} of {number:,} hosts have answered, {seconds:.0f} s"
    return f"{text}; waiting for {host_list.fold(pending)}" if 0 < len(pending) <= _MOST_NAMED else text
