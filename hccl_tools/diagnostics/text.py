"""The text output: each finding with its source line, HCCL's reaction and a hint."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.hint_files import with_files
from hccl_tools.diagnostics.placing import ReportOptions, place
from hccl_tools.diagnostics.wording import conclusion, reaction, reference
from hccl_tools.document.reading import is_stream
from hccl_tools.notation.phrases import and_more, count, operand
from hccl_tools.notation.printable import escaped
from hccl_tools.notation.screen import Pen, cells, cut, wrapped
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Path, Report
    from hccl_tools.diagnostics.placing import Placed, SourceRange
    from hccl_tools.document.document import Document

#: The width of the list of places in a file, in characters.
_WIDTH = 96
#: What may stand before a place or a source line: the number of a line, a bar or a mark, spaces.
_MARGIN = 12

#: The number of characters to show of the line; a table without line breaks may have millions.
_WINDOW = 110
_BYTES_A_CHARACTER = 4
_CUT = "..."
_CONTINUATION = bytes(range(0x80, 0xC0))


class _Pen(Pen):
    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options.color)
        self._ascii, self._width = options.ascii_only, options.width

    def fitted(self, line: str, indent: str = "  ") -> str:
        """Break a line between words, if the output goes to a screen."""
        return "\n".join(wrapped(line, self._width, indent))

    def safe(self, text: str) -> str:
        """Escape text that comes from the table."""
        return escaped(text, ascii_only=self._ascii)


def render(reports: Iterable[Report], options: ReportOptions) -> Iterator[str]:
    """Yield the output of each report as it arrives."""
    pen = _Pen(options)
    verdicts: Counter[str] = Counter()
    for report in reports:
        if verdicts:
            yield "\n"
        verdicts[report.verdict] += 1
        yield from _report(report, options, pen)
    if (files := verdicts.total()) > 1:
        parts = ", ".join(f"{number:,} {name}" for name, number in verdicts.items())
        yield f"\n{count(files, 'file')}: {parts}\n"


def _report(report: Report, options: ReportOptions, pen: _Pen) -> Iterator[str]:
    yield pen("quiet", pen.fitted(_heading(report, pen))) + "\n"
    groups, folded = options.groups(report)
    shown = [group[: options.limit] for group in groups]
    placed = iter(place(report, [one for group in shown for one in group], whole=False))
    said: dict[str, str] = {}
    of_keys: dict[tuple[Path, ...], str] = {}
    for group, some in zip(groups, shown, strict=True):
        first, *others = [next(placed) for _ in some]
        if others and group[0].alike is not None:
            message, hint = group[0].alike
            first = first._replace(finding=group[0]._replace(message=message, hint=hint))
        else:
            message = f"{first.finding.message} {first.finding.path}"
        if (former := said.setdefault(message, group[0].rule.id)) != group[0].rule.id:
            yield f"{group[0].rule.id} says the same as {former}, of {count(len(group), 'place')}\n"
            continue
        if others and group[0].at_key:
            places = tuple(one.path for one in group)
            if (former := of_keys.setdefault(places, group[0].rule.id)) != group[0].rule.id:
                yield f"{group[0].rule.id} names the same keys as {former}, in {count(len(group), 'place')}\n"
                continue
        yield "\n" + _block(report, first, options, pen, _places([first, *others], len(group), options))
    if folded:
        yield "\n"
    for rule, number in folded.items():
        yield f"... and {number:,} more {rule.id} {rule.name} (`--all`)\n"
    counts = options.counts(report)
    errors = sum(number for rule, number in counts.items() if rule.severity == "error")
    counted = [count(errors, "error")] if errors else []
    if warnings := sum(counts.values()) - errors:
        counted.append(count(warnings, "warning"))
    style = "error" if errors else "warning" if warnings else "good"
    yield (("\n" if counts else "") + pen(style, pen.fitted(conclusion(report, ", ".join(counted)))) + "\n")
    if report.origin is not None and report.origin.extract and report.errors:
        yield (
            f"to correct the table, take it out: {pen.safe(report.origin.extract)}\n"
            "`hccl-tools validate --fix` works on that file, not on the ConfigMap\n"
        )
    elif report.origin is not None and report.origin.extract:
        extract = pen.safe(report.origin.extract)
        only = f"{report.reader} reads only a file with the table alone"
        yield f"{only}; take it out of the ConfigMap: {extract}\n"
    if _is_correctable(report):
        told = f"`hccl-tools validate --fix {operand(report.file)}` shows the corrections that are certain"
        yield f"{pen.fitted(pen.safe(told))}\n"


#: The number of a line of the table in a hint, and the most that are explained.
_LINE, _MOST_LINES = re.compile(r"\blines? (\d{1,7})\b"), 4


def _outer_lines(hint: str, report: Report) -> list[str]:
    """Return where the lines of a hint are in the file that has the table in it, which the reader edits.

    The hint itself stays as it is: it may have a text of the table in a command.
    """
    origin = report.origin
    if origin is None or origin.one_line:
        return []
    return [
        f"line {number} of the table is line {origin.line_of(int(number))} of {origin.file}"
        for number in list(dict.fromkeys(_LINE.findall(hint)))[:_MOST_LINES]
    ]


def _is_correctable(report: Report) -> bool:
    """Whether ``validate --fix`` can correct something in the file; it reads files alone."""
    document = report.document
    if document is None or report.origin is not None or report.file.startswith("<") or is_stream(report.file):
        return False
    if document.problem is None:
        return any(one.right is not None or one.right_key is not None for one in report.findings)
    from hccl_tools.document.rewriting import is_correctable  # noqa: PLC0415  (14 ms; only for broken files)

    return is_correctable(document.data)


def _heading(report: Report, pen: _Pen) -> str:
    if report.format is None:
        what = "" if report.verdict == "accepted" else "not a rank table: "
        return f"{pen.safe(report.file)}: {what}{pen.safe(report.format_reason)}"
    if report.is_service:
        return f"{pen.safe(report.file)}: service table, as {report.reader} reads it"
    return (
        f"{pen.safe(report.file)}: format {report.format} ({pen.safe(report.format_reason)}), "
        f"product {report.product} ({pen.safe(report.product_reason)})"
    )


def _places(shown: Sequence[Placed], number: int, options: ReportOptions) -> list[str]:
    """Return the lines that list the places of several equal findings; none for a single finding."""
    if number == 1:
        return []
    places = [
        f"{one.place.start.line}:{one.place.start.column}" if one.place else one.finding.pointer or "/"
        for one in shown
    ]
    listed = and_more(places, len(places), unlisted=number - len(places))
    more = " (`--all`)" if number > len(places) else ""
    room = _WIDTH if options.width is None else min(_WIDTH, options.width - _MARGIN)
    return textwrap.wrap(f"in {number:,} places: {listed}{more}", room, subsequent_indent="  ")


#: The fewest places without words of their own that are listed together.
_LEAST_PLACES = 3


def _repeated_places(placed: Placed, options: ReportOptions) -> list[str]:
    """Return the lines that list the places of a finding, if the others have no words of their own."""
    related = placed.finding.related
    if len(related) < _LEAST_PLACES or any(one.message != "and here" for one in related):
        return []
    pairs = zip(related, placed.related, strict=True)
    found = [
        placed._replace(finding=placed.finding._replace(path=one.path), place=at, related=())
        for one, at in pairs
    ]
    return _places([placed, *found], 1 + len(found), options)


def _block(
    report: Report, placed: Placed, options: ReportOptions, pen: _Pen, places: Sequence[str] = ()
) -> str:
    finding, where, _ = placed
    severity = finding.rule.severity
    head = f"{severity}[{finding.rule.id}]"
    file = pen.safe(report.file)
    pointer = pen.safe(finding.pointer)
    lines = [pen.fitted(f"{pen(severity, head)}{pen('message', ': ' + pen.safe(finding.message))}")]
    if where is None or report.document is None:
        margin = ""
        lines.append(pen.fitted(f" {pen('frame', '-->')} {file}  ({pointer or '/'})", "     "))
    else:
        margin = " " * len(str(where.start.line))
        suffix = f"  ({pointer})" if pointer else ""
        if report.origin is not None:
            outer = f"{report.origin.file}:{report.origin.line_of(where.start.line)}"
            suffix = f", in {pen.safe(outer)}{suffix}"
        room = None if options.width is None else options.width - len(margin) - len(" | ")
        source = snippet(report.document, where, ascii_only=options.ascii_only, room=room)
        bar = pen("frame", f"{margin} |")
        at = f"{margin}{pen('frame', '-->')} {file}:{where.start.line}:{where.start.column}{suffix}"
        lines.append(pen.fitted(at, f"{margin}    "))
        if source is not None:
            lines.append(bar)
            lines.append(f"{pen('frame', f'{where.start.line} |')} {source.source}")
            lines.append(f"{bar} {pen(severity, source.marker)}")
    mark = f"{margin or ' '} {pen('frame', '=')}"
    indent = " " * len(margin or " ") + "   "
    lines += [f"{mark if index == 0 else indent} {pen.safe(text)}" for index, text in enumerate(places)]
    several = _repeated_places(placed, options)
    lines += [f"{mark if index == 0 else indent} {pen.safe(text)}" for index, text in enumerate(several)]
    for related, other in () if several else zip(finding.related, placed.related, strict=True):
        lines.append(pen.fitted(f"{mark} {pen.safe(reference(related, report.file, other))}", indent + "  "))
    lines.append(pen.fitted(f"{mark} {reaction(finding)}", indent + "  "))
    if finding.hint:
        hint = pen.safe(with_files(finding.hint, report))
        lines.append(pen.fitted(f"{mark} {pen('help', 'help')}: {hint}", indent + "  "))
        lines += [
            pen.fitted(f"{mark} {pen.safe(line)}", indent + "  ")
            for line in _outer_lines(finding.hint, report)
        ]
    if options.chinese and (line := options.chinese(finding.rule.id)):
        lines.append(pen.fitted(f"{mark} {pen('help', '中文')}: {line}", indent + "  "))
    return "\n".join(lines) + "\n"


class Snippet(NamedTuple):
    """A source line and the line of carets below it."""

    source: str
    marker: str


def snippet(
    document: Document, place: SourceRange, *, ascii_only: bool = False, room: int | None = None
) -> Snippet | None:
    """Return the line in which a source range begins; the marker ends with that line.

    Args:
        room: The columns of the screen beside the number of the line; ``None`` without a screen.

    Returns:
        ``None`` if the line is blank or has NUL bytes.
    """
    start, end = document.line_bounds(place.begin)
    begin = min(place.begin, end)
    stop = max(begin, min(place.stop, end))
    window = _WINDOW if room is None else max(1, min(_WINDOW, room - 2 * len(_CUT)))
    around = document.data[max(start, begin - _WINDOW) : min(end, begin + _WINDOW)]
    if b"\0" in around or not around.strip():
        return None
    whole = end - start <= window
    before, cut_left = _last(document.data, start, begin, window if whole else window * 5 // 11)
    marked, cut_right = _first(document.data, begin, stop, window if whole else window * 4 // 11)
    after = ""
    if not cut_right:
        after, cut_right = _first(
            document.data, stop, end, window if whole else window - len(before + marked)
        )
    before, marked, after = (
        escaped(part.replace("\t", "    "), ascii_only=ascii_only) for part in (before, marked, after)
    )
    left = (_CUT if cut_left else "") + before
    source = cut(left + marked + after + (_CUT if cut_right else ""), room)
    return Snippet(source, " " * cells(left) + "^" * max(1, cells(marked)))


def _last(data: bytes, start: int, end: int, room: int) -> tuple[str, bool]:
    near = max(start, end - _BYTES_A_CHARACTER * room)
    part = data[near:end]
    text = (part.lstrip(_CONTINUATION) if near > start else part).decode(errors="replace")
    return text[-room:], near > start or len(text) > room


def _first(data: bytes, start: int, end: int, room: int) -> tuple[str, bool]:
    near = min(end, start + _BYTES_A_CHARACTER * room)
    text = data[start:near].decode(errors="replace")
    return text[:room], near < end or len(text) > room
