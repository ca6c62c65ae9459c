"""Whether a program handled an exception, or took it lightly.

It says that it skips a sample or tries again, and went on; or it wrote the line at the level of a warning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain import screens, sieve
from hccl_tools.explain.identities import OF_SYSTEM
from hccl_tools.explain.tracebacks import TRACEBACK

if TYPE_CHECKING:
    from hccl_tools.explain.events import Seen

#: The message that replaces such an exception.
HANDLED = "HCM899"
_SAYS = re.compile(
    # ``number of skipped iterations:   0`` is a counter in the lines of each step.
    rb"\b(?:(?<!number of )skipp(?:ed|ing)(?!(?: \w{1,16}){0,2} ?[:=] {0,12}\d)"
    rb"|skip(?:s)? (?:this|the|it|sample|file|record|batch)"
    rb"|ignor(?:ed|ing)(?!(?: \w{1,16}){0,2} ?[:=] {0,12}\d)|will (?:be )?(?:skip|ignore|retr)\w{0,5}"
    rb"|retry(?:ing)?\b(?! (?:limit|failed))|try(?:ing)? again|fall(?:ing|s)? ?back"
    rb"|continu(?:e|es|ing) (?:with|without|training|anyway)"
    rb"|(?:is|are) (?:disabled|unavailable|not (?:usable|available))|disabling"
    rb"|using (?:the )?default|not fatal|non-fatal|dropp(?:ed|ing) (?:the )?(?:sample|record|batch|file|it))",
    re.IGNORECASE,
)
#: Words of a program that has given up all the same.
_GAVE_UP = re.compile(
    rb"giv(?:e|ing) up|exceed|exhaust|abort|exit(?:ing|s)?\b"
    rb"|fatal(?<!not fatal)(?<!non-fatal)|no more retr|(?<!\d)(\d{1,9})/\1\b",
    re.IGNORECASE,
)
#: A line of a job that goes on: a step, a progress bar, values of the training, or another INFO line.
_GOES_ON = re.compile(
    rb"\b(?:step|iter(?:ation)?|epoch|batch)\w{0,3}\b[\]'\": =/#\[]{1,4}\d"
    rb"|\d%\||'?loss'?[:= ]{1,3}\d|\bINFO\b",
    re.IGNORECASE,
)
#: Python's words above an exception after which it goes on, as a rule at the end of a program.
_IGNORED = b"Exception ignored in"
#: A level of a line, in its first characters, that a healthy job writes too, for example at each connect.
_WARNING = re.compile(
    r"\bWARN(?:ING)?\b|\bWarning: |\[W\d{0,4} ?[\w.]{0,80}:?\d{0,6}\]|^\S{0,20}W\d{4} \d\d:"
)
#: Programs write such lines about what they have handled; CANN's own lines of this level are about the job.
_QUIET = re.compile(r"\b(?:INFO|DEBUG)\b")
_LEVEL_WITHIN = 60
#: Bytes before an exception in which its traceback begins, and lines after it in which the job goes on.
_TRACEBACK_WITHIN, _LINES_WITHIN = 16_384, 40
_LONGEST = 4096


def is_handled(data: bytes, start: int) -> bool:
    """Return whether the program says beside an exception that it went on, and did; Python does after some.

    Args:
        data: A block of a log.
        start: Where the line with the exception begins.
    """
    begin = data.rfind(TRACEBACK, max(0, start - _TRACEBACK_WITHIN), start)
    first = sieve.begin_of_line(data, begin if begin >= 0 else start)
    before = data[sieve.begin_of_line(data, max(first - 1, 0)) : first]
    if before[screens.prefix(before).length :].startswith(_IGNORED):
        return True
    lines = _following(data, start)
    after = lines[0] if lines else b""
    said = [line for line in (before, after) if _SAYS.search(line[:_LONGEST])]
    if not said or any(_GAVE_UP.search(line[:_LONGEST]) for line in said):
        return False
    for line in lines:
        if line.startswith(TRACEBACK):
            return False  # The next exception may be what ended it.
        if _GOES_ON.search(line[:_LONGEST]):
            return True
    return False


def says_handled(line: bytes) -> bool:
    """Return whether a line with a failure says itself that the program went on without what failed."""
    return bool(_SAYS.search(line)) and not _GAVE_UP.search(line)


def _following(data: bytes, start: int) -> list[bytes]:
    """Return the next lines without prefixes, of which empty ones are left out."""
    found, end = [], sieve.end_of_line(data, start, _LONGEST)
    for _ in range(_LINES_WITHIN):
        at = data.find(b"\n", end) + 1
        if not 0 < at < len(data):
            break
        end = sieve.end_of_line(data, at, _LONGEST)
        line = data[at:end]
        if (
            text := line[screens.prefix(line).length :].strip() or line.strip()
        ):  # A progress bar is all prefix.
            found.append(text)
    return found


def is_warning(one: Seen) -> bool:
    """Whether a program wrote a line at a level that a healthy job has too."""
    head = one.event.text[:_LEVEL_WITHIN]
    if one.event.message.limit == "store" or one.event.message.id in OF_SYSTEM:
        return False  # torch writes the end of such a wait at this level, and the kernel what is blocked.
    return bool(_WARNING.search(head)) or (not one.event.pid and bool(_QUIET.search(head)))


def tells(one: Seen) -> bool:
    """Whether a warning tells of a failure: programs write the message so, or it is one attempt of a wait."""
    return one.event.message.kind == "timeout" or bool(
        _WARNING.search(one.event.message.example[:_LEVEL_WITHIN])
    )
