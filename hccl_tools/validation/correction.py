"""Correct what has exactly one right correction in a file; its layout, order and other values stay."""

from __future__ import annotations

import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING

from hccl_tools.document import rewriting
from hccl_tools.notation import placeholders
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Report

#: A corrected value can show the next fault, such as a count that is compared only if it is a number.
_MOST_ROUNDS = 10
#: A string, and the colon after a key. One that is not closed matches too: it is searched once.
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)(?:(")(\s*:)?)?')


class Corrected(NamedTuple):
    """A corrected file.

    Attributes:
        data: The bytes to write.
        before: The file in UTF-8, for the comparison.
        encoding: The encoding of the file before.
        report: The report on ``data``.
    """

    data: bytes
    before: bytes
    encoding: str
    report: Report


def correct(data: bytes, check: Callable[[bytes], Report]) -> Corrected:
    """Return a file with all corrections that are certain.

    Args:
        data: The bytes of the file.
        check: ``checker.validate`` with its other arguments; it must keep all findings.
    """
    before, encoding = rewriting.decoded(data)
    text = rewriting.parseable(before)
    report = check(text)
    for _ in range(_MOST_ROUNDS):
        following = _with_right_values(report)
        if following is None:
            break
        text, report = following, check(following)
    return Corrected(text, before, encoding, report)


def unfilled(data: bytes) -> str | None:
    """Return the first placeholder of a template in the strings of a file, None if all were filled in."""
    texts = (one[1] for one in _STRING.finditer(data.decode(errors="replace")) if one[2] and not one[3])
    return next((found for text in texts if (found := placeholders.find(text))), None)


def _with_right_values(report: Report) -> bytes | None:
    """Return the document with the right values of the findings; None if there is nothing to correct."""
    document = report.document
    if document is None or document.problem is not None:
        return None
    right = {one.path: one.right for one in report.findings if one.right is not None}
    keys = {one.path: one.right_key for one in report.findings if one.right_key is not None}
    places = [
        (span.start, span.end, value)
        for span, value in zip(document.spans(list(right)), right.values(), strict=True)
    ]
    places += [
        (span.key_start, span.key_end, key)
        for span, key in zip(document.spans(list(keys)), keys.values(), strict=True)
        if span.key_start is not None and span.key_end is not None
    ]
    pieces, at = [], 0
    for start, end, value in sorted(places, key=itemgetter(0)):
        if start < at:
            continue  # A value inside another one is corrected in the next round.
        pieces += [document.data[at:start], json.dumps(value, ensure_ascii=False).encode()]
        at = end
    data = b"".join([*pieces, document.data[at:]])
    return data if data != document.data else None
