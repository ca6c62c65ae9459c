"""The exception that ends a traceback of Python, whatever its class is called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain import screens, sieve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TRACEBACK = b"Traceback (most recent call last)"
#: A traceback has fewer lines; lines of other ranks may stand between them.
_MOST_LINES = 200
_LONGEST_LINE = 4096
#: The class of an exception, and its text.
_RAISED = re.compile(rb"[A-Za-z_][\w.]{0,200}(?::(?: .*)?)?\s*")


#: The text of an exception whose reason is on the next line: ``Error(s) in loading state_dict for Model:``.
_HEAD = re.compile(r":$|\b\d{1,6} validation errors? for \S{1,200}$")
#: Lines after a head in which its reason is looked for: some are empty.
_REASON_WITHIN = 3
#: The title of a block that MindSpore writes between lines of dashes.
_TITLE = re.compile(rb"- ?(?P<title>[A-Z][\w+' -]{2,80}?):? ?(?:\([^)\n]{1,60}\))?")
_DASHES = re.compile(rb"-{8,}")
#: Lines of blocks below an exception, and of one block, that are read.
_BLOCKS_WITHIN, _MOST_OF_BLOCK = 160, 60
#: Bytes below an exception in which the first dashes of a block are searched for: a log can repeat it.
_DASHES_WITHIN = 1 << 15
#: Lines that may stand between an exception and its first block.
_BEFORE_BLOCKS = 4
#: The same if the text only names the block: the traceback of the exception stands between.
_BELOW_TRACEBACK = 120
#: The text of an exception that only names the block with the reason, or a step that failed.
_REFERS = re.compile(
    r"[Rr]efer to|Exception thrown from|details|error!|[Uu]nexpected|[Ee]xec(?:ute)? graph"
    r"|[Cc]ompil\w{1,10} graph|Launch kernel failed|[Cc]all \S{1,200} failed|[Ii]nit\w{0,20} .{0,40}failed"
    r"|^\w+: .{0,60}\bfailed\b[^:]{0,40}$"
)
_ONLY_REFERS = re.compile(r"[Rr]efer to|Exception thrown from")
#: Words that only lead to another block, or that stand in every block.
_LEADS = re.compile(
    rb"check '|[Pp]lease |Inner Error!?\s*$|Inner [Ee]rror, |^Traceback|TraceBack \(most|caused by framework"
)
#: A place in the program: ``# 0 In file /code/model.py:88``.
_IN_FILE = re.compile(rb"In file (?P<file>[^\s:]{1,300}:\d{1,7})")
#: Between two exceptions, of which the second followed from the first.
_CHAINED = (
    b"The above exception was the direct cause of the following exception",
    b"During handling of the above exception, another exception occurred",
)
_MOST_CHAINED, _CHAINED_WITHIN = 4, 6
_LONGEST_REASON = 1000


def with_reason(text: str, data: bytes, end: int) -> str:
    """Return the text of an exception with the reason below it: on its next line, in a block, or after it.

    Args:
        data: A block of a log.
        end: Where the line with the exception ends in it.
    """
    if _HEAD.search(text) and (reason := _next_line(data, end)):
        text = f"{text} {reason}"
    before = _BELOW_TRACEBACK if _ONLY_REFERS.search(text) else _BEFORE_BLOCKS
    said, place = _of_blocks(_blocks(data, end, before))
    if said and said not in text:
        text = _joined(text, said)
    if place:
        text = f"{text} (in {place})"
    if not said and not place and (last := _last_of_chain(data, end)) and last != text:
        text = f"{text}, and then {last}"
    return text


def _joined(text: str, said: str) -> str:
    """Return an exception with the reason of its block: first, if the text says no more than where it is."""
    name, _, rest = text.partition(": ")
    if not rest or not _REFERS.search(text):
        return f"{text} {said}" if text and not _ONLY_REFERS.search(text) else said
    return f"{name}: {said}" if _ONLY_REFERS.search(rest) else f"{name}: {said} ({rest.rstrip('. ')})"


def _lines_after(data: bytes, end: int, most: int) -> Iterator[bytes]:
    """Yield the next lines, without prefixes."""
    for _ in range(most):
        at = data.find(b"\n", end) + 1
        if not 0 < at < len(data):
            return
        end = sieve.end_of_line(data, at, _LONGEST_LINE)
        line = data[at:end]
        yield line[screens.prefix(line).length :]


def _next_line(data: bytes, end: int) -> str:
    for line in _lines_after(data, end, _REASON_WITHIN):
        if reason := line.strip():
            return "" if _DASHES.fullmatch(reason.rstrip()) else reason.decode(errors="replace")
    return ""


def _blocks(data: bytes, end: int, most_before: int) -> Mapping[str, list[bytes]]:
    """Return the lines of the blocks below an exception that belong to it, by their titles.

    Args:
        most_before: Lines that may stand between the exception and its first block.
    """
    found: dict[str, list[bytes]] = {}
    if data.find(b"--------", end, end + _DASHES_WITHIN) < 0:
        return found
    lines: list[bytes] | None = None
    before, is_after_dashes = 0, False
    for line in _lines_after(data, end, _BLOCKS_WITHIN):
        text = line.strip()
        if _DASHES.fullmatch(text):
            is_after_dashes = True
            continue
        title = _TITLE.fullmatch(text) if is_after_dashes else None
        is_after_dashes = is_after_dashes and not text
        if title is not None:
            lines = found.setdefault(title["title"].decode(errors="replace").strip(), [])
        elif lines is None:
            before += bool(text)
            if before > most_before:
                break
        elif text.startswith(TRACEBACK) and "Python" not in next(reversed(found)):
            break  # The next exception.
        elif text and len(lines) < _MOST_OF_BLOCK:
            lines.append(text)
    return found


def _of_blocks(blocks: Mapping[str, list[bytes]]) -> tuple[str, str]:
    """Return the reason in blocks, and the place in the program; "" for what they do not have."""
    said = place = b""
    for title, lines in blocks.items():
        if "Call Stack" in title and "C++" not in title and "Function" not in title:
            said = next((line for line in reversed(lines) if _RAISED.fullmatch(line)), said)
        elif "Construct Code" in title or "Function Call Stack" in title:
            named = [found["file"] for line in lines if (found := _IN_FILE.search(line))]
            place = place or (named[-1] if named else b"")
    for title, lines in blocks.items():
        if title.endswith("Message") and not said:
            said = next((line for line in lines if not _LEADS.search(line)), b"")
    said = said.removeprefix(b"[ERROR] ")[:_LONGEST_REASON]
    return said.decode(errors="replace").strip(), place.decode(errors="replace")


def _last_of_chain(data: bytes, end: int) -> str:
    """Return the last exception that followed from one, "" if none did."""
    last = ""
    for _ in range(_MOST_CHAINED):
        at = _next_of_chain(data, end)
        found = raised(data, at) if at >= 0 else None
        if found is None:
            break
        end = sieve.end_of_line(data, found[0], _LONGEST_LINE)
        last = found[1].decode(errors="replace").strip()
    return last


def _next_of_chain(data: bytes, end: int) -> int:
    """Return where the traceback of the exception begins that followed from one; -1 if none did."""
    is_chained = False
    for _ in range(_CHAINED_WITHIN):
        at = data.find(b"\n", end) + 1
        if not 0 < at < len(data):
            return -1
        end = sieve.end_of_line(data, at, _LONGEST_LINE)
        line = data[at:end]
        text = line[screens.prefix(line).length :]
        if is_chained and text.startswith(TRACEBACK):
            return at
        is_chained = is_chained or text.startswith(_CHAINED)
    return -1


def raised(data: bytes, begin: int) -> tuple[int, bytes] | None:
    """Return where the line is that ends a traceback, and its text without prefixes; None if it is not there.

    Args:
        data: A block of a log.
        begin: The beginning of the line with ``TRACEBACK``.
    """
    first = data[begin : sieve.end_of_line(data, begin, _LONGEST_LINE)]
    prefix = screens.prefix(first)
    if not first[prefix.length :].startswith(TRACEBACK):
        return None  # It is a word in a sentence, or in a line that names the file and the level.
    writer = prefix[1:]
    at = begin
    for _ in range(_MOST_LINES):
        at = data.find(b"\n", at) + 1
        if not 0 < at < len(data):
            return None
        line = data[at : sieve.end_of_line(data, at, _LONGEST_LINE)]
        prefix = screens.prefix(line)
        text = line[prefix.length :]
        if prefix[1:] != writer or not text.strip() or text[:1] in b" \t":
            continue
        return (at, text) if _RAISED.fullmatch(text) and not text.startswith(TRACEBACK) else None
    return None
