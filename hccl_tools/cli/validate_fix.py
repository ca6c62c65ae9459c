"""``hccl-tools validate --fix``: show the corrections of a file as a diff, and write them."""

from __future__ import annotations

import re
import sys
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.placing import place
from hccl_tools.diagnostics.wording import conclusion
from hccl_tools.document.document import Document
from hccl_tools.document.reading import is_stream, read_file
from hccl_tools.document.rewriting import decoded
from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import InputError
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.notation.phrases import count, operand
from hccl_tools.notation.printable import escaped, stdout_is_ascii, tell
from hccl_tools.validation.correction import correct, unfilled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Report
    from hccl_tools.validation.correction import Corrected

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
#: Lines that are shown before and after a change.
_CONTEXT = 3
#: The kinds of findings that are listed.
_MOST_KINDS = 8
_SEVERAL = "the file does not tell which value is right"
#: What a finding says of the right value, as most values of the table have an order.
_BY_ORDER = re.compile(r"by the order of the others,? [^;]{1,300}")
#: The beginning of a hint that states one edit, without an alternative or a condition.
_EDIT = re.compile(
    r"(?:write|rename|remove|move|exchange|add) (?:(?!,? or | if |,? or,|the right one)[^;]){1,300}(?=;|$)"
    r"(?!; (?:or|if|only))"
)
_NOT_READABLE = "the file cannot be read beyond this place"
_NO_END = "\\ No newline at end of file\n"


def diff_of(
    file: str,
    *,
    check: Callable[[str | bytes], Report],
    judge: Callable[[Report, bool], None],
    write: bool,
    product: str | None = None,
) -> Iterator[str]:
    """Yield the unified diff of a file and its corrections; say on stderr what remains.

    Args:
        check: ``checker.validate`` with its other arguments; it must keep all findings.
        product: The product that the user named, for the next command.
        judge: Called with the report on the corrected file, and whether a placeholder of a template is left.

    Raises:
        InputError: The file cannot be read, is a stream, or is a Kubernetes object.
        WriteError: The file cannot be written; it is unchanged.
    """
    data = _bytes_of(file)
    corrected = correct(data, check)
    if corrected.data != data:
        yield from _diff(file, corrected)
        if write:
            write_atomically(file, [corrected.data], read=data)
    is_current = write or corrected.data == data
    report = check(file) if is_current else corrected.report
    left = unfilled(corrected.data)
    judge(report, left is not None)
    sys.stdout.flush()  # The lines on stderr refer to the diff above them, also if both go to one file.
    tell(f"{file}: {_done(report, corrected.data != data, write=write)} {_rest(report)}")
    tell(*_why_left(report))
    if report.counts or not is_current:
        named = f"--product {operand(product)} " if product else ""
        tell(f"next: hccl-tools validate {named}{'' if is_current else '--fix --write '}{operand(file)}")
    if left is not None:
        tell(f"{file}: a placeholder of a template is not filled in: {escaped(left)}")


def _why_left(report: Report) -> Iterator[str]:
    """Yield for each kind of finding that remains why no correction is certain."""
    kinds: dict[str, list[Diagnostic]] = {}
    for one in sorted(report.findings, key=lambda one: one.rule.severity):
        kinds.setdefault(one.rule.id, []).append(one)
    for identifier, found in [*kinds.items()][:_MOST_KINDS]:
        times = f" ({len(found)} times)" if len(found) > 1 else ""
        why = _NOT_READABLE if found[0].offset is not None else _probable(found[0]) or _SEVERAL
        yield f"  {identifier}{times}{_line(report, found[0])}: {found[0].message}: {why}"
    if len(kinds) > _MOST_KINDS:
        yield f"  and {len(kinds) - _MOST_KINDS} more kinds"


def _line(report: Report, found: Diagnostic) -> str:
    """Return the line of a finding, which is to be edited by hand; "" if it is not known."""
    (placed,) = place(report, [found], whole=False)
    return f", line {placed.place.start.line}" if placed.place is not None else ""


def _probable(found: Diagnostic) -> str:
    """Return the value or the edit that `validate` states, "" if it states none or leaves the choice."""
    hint = found.hint or ""
    if probable := _BY_ORDER.search(hint):
        return f"{probable[0].strip()}: this is probable, not certain"
    stated = _EDIT.match(hint)
    return f"{stated[0].strip()}: to be done by hand" if stated else ""


def _bytes_of(file: str) -> bytes:
    path, key = config_maps.split(file)
    if is_stream(path):
        raise InputError(
            "--fix changes files, and standard input is not a file", hint="name the table's file"
        )
    data = read_file(path)
    if key is not None or config_maps.is_wrapper(Document.parse(decoded(data).data, path)):
        raise InputError(
            f"--fix does not change Kubernetes objects such as {path}",
            hint="extract the table to a file, correct it, and make the ConfigMap again from that file: "
            f"{config_maps.extraction(data)}",
        )
    return data


def _diff(file: str, corrected: Corrected) -> Iterator[str]:
    before, after = (data.decode(errors="replace") for data in (corrected.before, corrected.data))
    dates = (f"\t{corrected.encoding}", "\tUTF-8") if corrected.encoding != "UTF-8" else ("", "")
    ascii_only = stdout_is_ascii()
    head = (f"--- {file}{dates[0]}\n", f"+++ {file}{dates[1]}\n")
    for line in (*head, *_hunks(_LINE.findall(before), _LINE.findall(after))):
        text = line.rstrip("\r\n")
        yield escaped(text, keep="\t", ascii_only=ascii_only) + (line[len(text) :] or f"\n{_NO_END}")


def _range(start: int, lines: int) -> str:
    """Return a range of lines of a unified diff: ``3,2``, ``3``, and ``2,0`` for none."""
    if lines == 1:
        return f"{start + 1}"
    return f"{start + bool(lines)},{lines}"


def _hunks(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the hunks of a unified diff in linear time: no correction adds or removes a line.

    Only the last line can have become empty, where it had no newline.
    """
    pairs = list(zip_longest(before, after, fillvalue=""))
    changed = [place for place, (old, new) in enumerate(pairs) if old != new]
    at = 0
    while at < len(changed):
        last = at
        while last + 1 < len(changed) and changed[last + 1] - changed[last] <= 2 * _CONTEXT + 1:
            last += 1
        start, end = max(0, changed[at] - _CONTEXT), min(len(pairs), changed[last] + _CONTEXT + 1)
        left = end - start - (not pairs[end - 1][1])
        yield f"@@ -{_range(start, end - start)} +{_range(start, left)} @@\n"
        for differs, some in groupby(pairs[start:end], lambda pair: pair[0] != pair[1]):
            run = list(some)
            if differs:
                yield from (f"-{old}" for old, _ in run)
                yield from (f"+{new}" for _, new in run if new)
            else:
                yield from (f" {old}" for old, _ in run)
        at = last + 1


def _done(report: Report, changed: bool, *, write: bool) -> str:
    if not changed:
        return "no correction is certain;" if report.counts else "nothing to fix;"
    return "corrected; now" if write else "not written (add --write); with these corrections,"


def _rest(report: Report) -> str:
    errors = sum(number for rule, number in report.counts.items() if rule.severity == "error")
    warnings = sum(report.counts.values()) - errors
    counted = [count(number, noun) for number, noun in ((errors, "error"), (warnings, "warning")) if number]
    return conclusion(report, ", ".join(counted))
