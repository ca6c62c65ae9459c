"""The lines of a Python stack, as faulthandler and py-spy write them, the innermost call first."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: ``File "/home/me/train.py", line 11 in step`` and ``step (/home/me/train.py:11)``.
_FAULTHANDLER = re.compile(r'\s*File "([^"]+)", line (\d+)(?: in (.*))?')
_PY_SPY = re.compile(r"\s*(\S+) \(([^()]+):(\d+)\)")
#: The folders of Python and of what is installed into it, which is not the user's program.
_NOT_OF_USER = re.compile(r"/lib(?:64)?/python\d|/(?:site|dist)-packages/|^<|python\d+\.zip/")
#: Characters of a path that is shown whole.
_LONGEST_PATH = 36
_KEPT_FOLDERS = 1


def users_line(stack: Sequence[str]) -> str:
    """Return the innermost line of the user's code, ``/home/me/train.py:11 in step``; "" without one.

    >>> users_line(['  File "/usr/lib/python3.11/threading.py", line 3 in w', '  File "/t.py", line 11 in f'])
    '/t.py:11 in f'
    """
    for line in stack:
        if found := _FAULTHANDLER.match(line):
            path, number, function = found[1], found[2], found[3] or "<module>"
        elif found := _PY_SPY.match(line):
            function, path, number = found[1], found[2], found[3]
        else:
            continue
        if not _NOT_OF_USER.search(path):
            return f"{path}:{number} in {function}"
    return ""


def shortened(line: str) -> str:
    """Return a line of a stack with a long path cut at its beginning, so that its number is on the screen.

    >>> shortened('  File "/root/.pyenv/versions/3.11.7/lib/python3.11/threading.py", line 327 in wait')
    '  File ".../python3.11/threading.py", line 327 in wait'
    """
    found = _FAULTHANDLER.match(line)
    if found is None or len(found[1]) <= _LONGEST_PATH:
        return line
    end = found[1].split("/")[-1 - _KEPT_FOLDERS :]
    return line.replace(found[1], "/".join(["...", *end]), 1)
