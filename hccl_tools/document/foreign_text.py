"""Recognise text in a table that is not part of it, at the place where the parser stops.

Such text is a line of a log or of ssh between the lines of the table, the signs of a diff, HTML, a
placeholder of a template, or a comment that stands for entries. The parser takes it for a key or a value, and
its remedy, to quote or to remove a word, leads to the next word.
"""

from __future__ import annotations

import re

from hccl_tools.document import commented_entries
from hccl_tools.document.omissions import WORDS, WRITE_THEM, is_printed, marks
from hccl_tools.document.one_edit import is_valid
from hccl_tools.document.strict_parser import Reader
from hccl_tools.document.syntax_problem import JsonError
from hccl_tools.notation import placeholders
from hccl_tools.notation.hint import FILES
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.records import NamedTuple

#: The lines that are taken away one after another, and the characters that all trials together may parse.
_MOST_LINES, _MOST_PARSED = 60, 1 << 26
#: The characters of a line that a message shows, and those of the longest line that is examined.
_SHOWN, _LONGEST_LINE = 80, 2000
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_HTML = re.compile(r"&(?:#\d{1,6}|#[xX][0-9a-fA-F]{1,5}|[A-Za-z]{2,8});", re.ASCII)
_UNESCAPE = (
    "python3 -I -c 'import html, sys; "
    "print(html.unescape(sys.stdin.read()).replace(chr(160), chr(32)))' < " + FILES
)
_TAG = re.compile(
    r"</?(?:a|b|body|br|code|div|em|font|hr|html|i|li|ol|p|pre|span|strong|table|tbody|td|th|tr|ul)\b[^<>\n]{0,200}>",
    re.IGNORECASE,
)
#: A line without comment signs that stands for entries; a log has many of the words above.
_LINE_FOR = re.compile(
    r"^\W*(?:\d+\s+)?(?:more|and so on|etc|(?:and )?(?:the )?(?:rest|others?|remaining)|same|repeat\w*|"
    r"similar\w*|omitted|continue\w*|likewise|as above|so forth)\b|"
    r"\b(?:more|other|remaining) (?:servers?|devices?|entries|ranks?|nodes?|hosts?)\b|"
    r"\u7701\u7565|\u540c\u4e0a|\u5176\u4ed6|\u5176\u5b83|\u5176\u4f59|\u5269\u4f59|\u4ee5\u6b64\u7c7b\u63a8|\u7c7b\u4f3c",
    re.IGNORECASE,
)
_COMMENT_SIGNS = ("//", "/*", "#", "<!--")
_COMMENT = re.compile(
    rf"{_STRING}?|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z)|\#[^\n]*|<!--.*?(?:-->|\Z))", re.DOTALL
)
#: A range: behind a value it is a date, or says which devices the entry has.
_RANGE = r"\d\s{0,9}(?:-|~|to|through|until|\u5230|\u81f3)\s{0,9}\d"
#: What a comment says that stands for entries: dots, a range, or a word for the rest.
_STANDS_FOR = re.compile(
    rf"\.\.|\u2026|{_RANGE}|"
    r"\b(?:repeat\w{0,9}|same|similar\w{0,9}|likewise|remaining|the rest|others?|omitted|etc|and so on|"
    r"continue\w{0,9}|as above|so forth|"
    r"more (?:servers?|devices?|entries|ranks?|nodes?|hosts?)|add (?:the|all|more|your)|"
    r"all (?:other|servers?|devices?))\b|"
    r"\u7701\u7565|\u540c\u4e0a|\u5176\u4ed6|\u5176\u5b83|\u5176\u4f59|\u5269\u4f59|\u4ee5\u6b64\u7c7b\u63a8|\u7c7b\u4f3c|\u540c\u7406|"
    rf"\u4ee5\u4e0b|\u66f4\u591a|\u91cd\u590d|\u4f9d\u6b21|{WORDS}",
    re.IGNORECASE,
)
#: What a comment has that cannot go without a loss: what stands for entries, an entry, another value, or that
#: a value is still to be written.
_MEANS_MORE = re.compile(
    rf'{_STANDS_FOR.pattern}|{_LINE_FOR.pattern}|[{{}}\[\]"]|\d\.\d|^\W*\d[\W\d]*$|'
    r"\b(?:todo|fixme|xxx|tbd|fill|replace\w{0,9}|change\w{0,9}|your|example|placeholder|instead|wrong|old|new|was)"
    r"\b|\u66ff\u6362|\u4fee\u6539|\u586b\u5199|\u793a\u4f8b",
    re.IGNORECASE,
)
#: The signs of JSON after which a comment can begin; in ``http://`` none does.
_BEFORE_COMMENT = ' \t\r\n{}[],:"*/>'
#: Statements and comments of Jinja, Go and ERB, those of a line from first to last, the beginning of a loop.
_ONE_STATEMENT = (
    r"\{%[^%\n]*%\}|\{#[^#\n]*#\}|<%[^%\n]*%>|"
    r"\{\{-?\s*(?:range|if|else|end|with|define|template|include|block|/\*)\b[^{}\n]*\}\}"
)
_STATEMENT = re.compile(_ONE_STATEMENT)
_LINE_OF_STATEMENTS = re.compile(rf"(?:{_ONE_STATEMENT})(?:[^\n{{}}<>\"]*(?:{_ONE_STATEMENT}))*")
_LAST_COMMA = re.compile(r",(?=\s*[\]}])")
_LOOP = re.compile(r"\{%-?\s*for\b|\{\{-?\s*range\b|<%[^%\n]*\b(?:each|for|times)\b")
#: A line of a diff: its first sign, and text as a table has it, or nothing.
_DIFF_LINE = re.compile(r"[+-](?=[ \t]*(?:[\"{}\[\],]|$))|@@ -\d", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d", re.MULTILINE)
_DIFF_REMOVED = re.compile(r"(?:diff |index |---|\+\+\+ |@@ |-|\\ ).*\n?|(?:---|-)\n?")
_KEEP_NEW = r"sed -E '/^(diff |index |-|\+\+\+ |@@ |\\ )/d; s/^[+ ]//' " + FILES
#: What a line of a table can have outside its strings.
_TABLE_SIGN = re.compile(r"-?\b\d[\w.+-]*|true|false|null|[\s{}\[\],:]", re.ASCII)
_MEMBER = re.compile(r'\s*"?[\w-]+"?\s*[:=]\s*(?:[^\s,]*|"[^"]*"?)\s*[,{\[]?\s*')
_KEY = re.compile(r'[\s{}\[\],]*"[^"\n]*"?\s*:')
#: Two words in a row, a prompt, a time, or a rule of signs.
_PROSE = re.compile(
    r"[A-Za-z]{2,40}[:,.;]?[ \t]+[A-Za-z(\"']|"
    r"^[ \t\f]*(?:[Pp]age )?\d{1,5} (?:/|of) \d{1,5}\s*$|"
    r"\blines \d{1,6}-\d{1,6}|[$#>]\s|\d\d:\d\d|\d{4}-\d\d-\d\d|([-=*#_~])\1{2}|"
    r"^\s*\[?[A-Za-z]+[:\].]*\s*$|^\s*--[A-Za-z]|[\u4e00-\u9fff]{2}"
)
#: The number of a page beside the words of its head or foot.
_NUMBER_OF_PAGE = re.compile(
    r"[ \t\f]*(?:[Pp]age )?[-\u2013\u2014]? ?\d{1,5} ?(?:(?:/|of|[-\u2013\u2014]) ?(?:\d{1,5})?)?[ \t\r]*|"
    r"[ \t\f]*\u7b2c ?\d{1,5} ?\u9875[ ,/\uff0c]?(?: ?\u5171 ?\d{1,5} ?\u9875)?[ \t\r]*"
)
#: The lines of the table that the parser reads behind lines that are not part of it.
_LEAST_READ = 3
#: What a pager shows in its last line.
_PAGER = re.compile(r"--More--|\(END\)", re.IGNORECASE)
_OF_SSH = re.compile(
    r"^ssh: |refused|no route|timed out|permission denied|could not resolve|unreachable|closed by|not found|"
    r"no such file",
    re.IGNORECASE,
)


class Foreign(NamedTuple):
    """What is in a table that is not part of it, as a sentence, what to do, and the offset.

    ``left`` is the text with empty lines in their place, if the table has another fault behind them.
    """

    message: str
    hint: str
    at: int
    left: str = ""


class Stop(NamedTuple):
    """A text, and the offset at which the parser stops in it."""

    text: str
    at: int

    @property
    def line(self) -> tuple[int, int]:
        """The bounds of the line of the stop."""
        return _line_at(self.text, self.at)


def find(text: str, at: int) -> Foreign | None:
    """Return what is not part of a table where the parser stops, None for faults of the table itself."""
    stop = Stop(text, at)
    if text.startswith(_COMMENT_SIGNS, at):
        return _statement(stop) or _left_out(stop)
    kinds = (_omission, _html, _markdown, _diff, _statement, _placeholder, _tag, _lines)
    return next((found for kind in kinds if (found := kind(stop)) is not None), None)


def _omission(stop: Stop) -> Foreign | None:
    """Recognise a line that stands for entries; dots alone have a hint that names the devices."""
    text, (start, end) = stop.text, stop.line
    before = text[:start].rstrip()
    if text[start : stop.at].strip() == "" and before.endswith('"'):
        start, end = _line_at(text, len(before) - 1)  # A string without a comma behind it.
    line = text[start:end]
    if is_printed(line):
        return Foreign(
            f"a console printed {line.strip().rstrip(',')} in place of what is nested there",
            "print the table with JSON.stringify(table, null, 4), or copy the file itself",
            start,
        )
    if text.startswith(("...", "\u2026"), stop.at) and not any(sign.isalnum() for sign in line):
        return None
    return _standing_for(text, line, _number(text, start)) if marks(line) else None


def _line_at(text: str, at: int) -> tuple[int, int]:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def _number(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _html(stop: Stop) -> Foreign | None:
    found = _HTML.match(stop.text, stop.at)
    if found is None:
        return None
    message = f"the text is escaped for HTML: it has {found[0]} in place of the sign itself"
    return Foreign(message, f"write the signs themselves: {_UNESCAPE}", stop.at)


def _markdown(stop: Stop) -> Foreign | None:
    """Recognise the signs of bold text, as chats and pages in Markdown show it."""
    if not stop.text.startswith("**", stop.at):
        return None
    hint = "copy the table as plain text, or remove the signs: sed 's/[*][*]//g' " + FILES
    return Foreign("the table was copied with signs of Markdown: **", hint, stop.at)


def _tag(stop: Stop) -> Foreign | None:
    found = _TAG.match(stop.text, stop.at)
    if found is None:
        return None
    hint = "copy the table as plain text, or remove the tags: sed -E 's/<[^<>]*>//g' " + FILES
    return Foreign(f"the table was copied with its HTML tags: {found[0][:_SHOWN]}", hint, stop.at)


def _diff(stop: Stop) -> Foreign | None:
    start, end = stop.line
    if _DIFF_LINE.match(stop.text, start, end) is None:
        return None
    return of_diff(stop.text, start)


def of_diff(text: str, at: int) -> Foreign:
    """Return that a text is a diff, with the command that keeps its new side if that is a table."""
    sign = text[at]
    message = f"these are lines of a diff: line {_number(text, at)} begins with {sign}"
    if is_valid(_new_side(text)):
        return Foreign(message, f"keep only its new side, the whole table: {_KEEP_NEW}", at)
    apply = "apply the diff to its table: patch TABLE.json < FILE"
    other = "; or delete the lines that begin with -, and the + at the beginning of the others"
    return Foreign(message, apply if _HUNK.search(text) else f"{apply}{other}", at)


def _new_side(text: str) -> str:
    kept = (line for line in text.splitlines(keepends=True) if not _DIFF_REMOVED.match(line))
    return "".join(line[1:] if line[:1] in ("+", " ") else line for line in kept)


def _statement(stop: Stop) -> Foreign | None:
    """Recognise a statement of a template, such as the beginning or end of a loop, or a comment of it."""
    text, at = stop.text, stop.at
    found = next(
        (one for start in (at - 1, at) if start >= 0 and (one := _STATEMENT.match(text, start))), None
    )
    if found is None:
        return None
    end = _line_at(text, found.start())[1]
    last = [one.end() for one in _STATEMENT.finditer(text, found.start(), end)][-1]
    shown, again = (
        text[found.start() : last],
        "make the file again with the program that fills in the template",
    )
    others = len(_LINE_OF_STATEMENTS.findall(text)) - 1
    hint = again
    without = _LINE_OF_STATEMENTS.sub("", text)
    if not _LOOP.search(text) and (is_valid(without) or is_valid(_LAST_COMMA.sub("", without))):
        comma = "" if is_valid(without) else ", and the comma before it"
        rest = f", and the {count(others, 'other')} in the same way" if others > 0 else ""
        hint = f"delete {_shown(shown)}{comma}{rest}; or {again}"
    elif _LOOP.search(text):
        hint = f"{again}: its loop stands for several entries"
    return Foreign(f"a statement of a template was left in the file: {_shown(shown)}", hint, found.start())


def _placeholder(stop: Stop) -> Foreign | None:
    text, at = stop.text, stop.at
    for start in (at - 1, at):
        if (
            0 <= start < len(text)
            and text[start] in "{$<%@_"
            and (found := placeholders.at(text, start)) is not None
        ):
            if _TAG.fullmatch(found):
                return None
            return Foreign(
                f"a placeholder of a template was not filled in: {found}",
                "write the value in its place, or make the file again with the program that fills in the "
                "template",
                start,
            )
    return None


def _left_out(stop: Stop) -> Foreign | None:
    """Recognise comments, of which one stands for entries."""
    comments = [found for found in _COMMENT.finditer(stop.text, stop.at) if found["comment"]]
    for found in comments:
        says = re.sub(_RANGE, "", found[0]) if _is_behind_value(stop.text, found.start()) else found[0]
        if _STANDS_FOR.search(says):
            return Foreign(
                f"a comment stands for entries that were left out: {_shown(found[0])}",
                WRITE_THEM,
                found.start(),
            )
    if (entry := commented_entries.find(stop.text, comments)) is not None:
        shown = f", {entry.shown}" if entry.shown else ""
        is_one = entry.first == entry.last
        lines = f"line {entry.first}" if is_one else f"lines {entry.first}-{entry.last}"
        return Foreign(
            f"an entry is commented out: {lines}{shown}",
            f"remove the signs of the comment from {lines} if the job uses the entry, "
            f"else delete {'the line' if is_one else 'these lines'}",
            entry.start,
        )
    if len(comments) < 2:
        return None
    message = (
        f"comments are not allowed in JSON: {_shown(comments[0][0])}, and {count(len(comments) - 1, 'other')}"
    )
    return Foreign(message, f"remove {'both' if len(comments) == 2 else 'all'} comments", stop.at)


def _is_behind_value(text: str, start: int) -> bool:
    """Return whether a value precedes a comment on its line."""
    before = text[text.rfind("\n", 0, start) + 1 : start].rstrip(" \t,")
    return before[-1:] not in ("", "[", "]", "{", "}", ":")


def without_comments(text: str, at: int) -> str | None:
    """Return a text without its comments from an offset on; ``None`` if one may stand for what is missing.

    None of them may stand for entries, contain one, or say that a value is still to be written. The lines
    stay: each comment of several lines leaves its line breaks.
    """
    pieces, end = list[str](), 0
    for found in _COMMENT.finditer(text, at):
        comment, start = found["comment"], found.start()
        if not comment:
            continue
        if _MEANS_MORE.search(comment) or text[max(0, start - 1) : start].strip(_BEFORE_COMMENT):
            return None
        closing = "*/" if comment.startswith("/*") else "-->" if comment.startswith("<!--") else ""
        if closing and not comment.endswith(closing, len(closing)):
            return None
        pieces += [text[end:start], "\n" * comment.count("\n")]
        end = found.end()
        if text[end : end + 1] in {"", "\n", "\r"}:
            pieces[-2] = pieces[-2].rstrip(" \t")
    without = "".join([*pieces, text[end:]])
    return without if end > at else None


def _shown(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def _lines(stop: Stop) -> Foreign | None:
    """Recognise lines of another program, without which the table is valid."""
    rest, at, found, has_words = stop.text, stop.at, list[int](), False
    for _ in range(min(_MOST_LINES, _MOST_PARSED // max(1, len(rest)))):
        start, end = _line_at(rest, at)
        is_page = _NUMBER_OF_PAGE.fullmatch(rest, start, end) is not None
        if not is_page and not _is_foreign(rest[start:end]):
            return _with_other_fault(stop, found, rest, at) if found and has_words else None
        if (_LINE_FOR.search(rest[start:end]) or marks(rest[start:end])) and not _PAGER.match(
            rest[start:end].strip()
        ):
            return _standing_for(stop.text, rest[start:end], _number(rest, start) + len(found))
        has_words = has_words or not is_page
        found.append(_number(rest, start) + len(found))
        rest = rest[:start] + rest[end + 1 :]
        following = stop_of(rest)
        if following is None:
            return _of_lines(stop.text, stop.line, [*found, *_lines_after(rest, len(found))])
        at = following
    return None


def _with_other_fault(stop: Stop, found: list[int], rest: str, at: int) -> Foreign | None:
    """Return lines that are not part of a table with another fault behind them; None if they may be it.

    Args:
        rest: The text without these lines, and ``at`` where the parser stops in it.
    """
    if not found or _number(rest, at) + len(found) < found[-1] + _LEAST_READ:
        return None
    taken = {number - 1 for number in found}
    lines = stop.text.split("\n")
    left = "\n".join("" if place in taken else line for place, line in enumerate(lines))
    return _of_lines(stop.text, stop.line, found)._replace(left=left)


def _lines_after(rest: str, taken: int) -> list[int]:
    """Return the numbers of the lines after a table, which the parser does not read, such as a prompt.

    Args:
        rest: The text without the lines before and in the table.
        taken: How many these were.
    """
    reader = Reader(rest, 0)
    reader.read()
    first = _number(rest, reader.end) + 1
    after = rest[reader.end :].splitlines()
    if not after or after[0].strip():
        return []  # The text begins on the line on which the table ends.
    return [first + taken + place for place, line in enumerate(after[1:]) if line.strip()][:_MOST_LINES]


def _standing_for(text: str, line: str, number: int) -> Foreign:
    """Return that a line of words stands for entries."""
    at = sum(map(len, text.splitlines(keepends=True)[: number - 1]))
    message = f"line {number} stands for entries that were left out: {_shown(line)}"
    return Foreign(message, WRITE_THEM, at)


def stop_of(text: str) -> int | None:
    """Return where the parser stops in a text; None if the text is valid."""
    try:
        reader = Reader(text, 0)
        reader.read()
    except JsonError as error:
        at = error.problem.offset
        if error.problem.kind == "missing comma":
            at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n"))
        return min(at, len(text))
    return None


def _of_lines(text: str, first: tuple[int, int], found: list[int]) -> Foreign:
    shown = _shown(text[slice(*first)])
    one = len(found) == 1
    which = f"line {found[0]}" if one else f"lines {and_more([str(number) for number in found], 12)}"
    message = f"{which} {'is' if one else 'are'} not part of the table: {shown}"
    lost = "; the command failed there, so that the part of this host is probably missing"
    hint = f"delete {'it' if one else 'these lines'}{lost if _OF_SSH.search(shown) else ''}"
    return Foreign(message, hint, first[0])


def _is_foreign(line: str) -> bool:
    """Return whether a line has words as no line of a table has them."""
    if len(line) > _LONGEST_LINE or _KEY.match(line) or not line.strip():
        return False
    bare = re.sub(_STRING, '""', line)
    if not _TABLE_SIGN.sub("", bare.replace('""', "")):
        return False
    if _MEMBER.fullmatch(" ".join(line.split())) and not line.rstrip().endswith(":"):
        return False
    return _PROSE.search(bare) is not None


#: The longest text that is examined.
_LONGEST_SHORTENED = 1 << 24
_SOFT_BREAK = re.compile(r"=[ \t]{0,9}\r?\n")
_ENCODED = re.compile(r"=([0-9A-F]{2})")
_DECODE = (
    f"decode it, so that the lines are joined without these signs: python3 -I -m quopri -d < {FILES}; "
    "or send the table as an attachment"
)
#: The last line of a text that a chat program, a terminal or a log has shortened.
_MARKER = re.compile(
    r"\W*(?:message |text |output |content |log )?(?:was |is |has been )?"
    r"(?:truncated|shortened|cut(?: off)?)\b.{0,60}|"
    r"\W*\+?\d{1,9} (?:more )?(?:characters?|chars?|bytes|lines)\b.{0,60}|"
    r"\W*(?:show|see|read|view|load) (?:more|all|full)\b.{0,40}|"
    r"(?:\.{3}|\u2026)|"
    r"\W*(?:\u5df2?\u622a\u65ad|\u622a\u65ad|\u5c55\u5f00\u5168\u6587|\u67e5\u770b\u66f4\u591a|\u663e\u793a\u5168\u90e8).{0,40}",
    re.IGNORECASE,
)


class Shortened(NamedTuple):
    """A text without its end: what is left of it, and the line that says so."""

    left: str
    line: str


def quoted_printable(text: str) -> Foreign | None:
    """Return that a text is quoted-printable, as in mails, if the parser comes farther in it when decoded."""
    breaks = (
        [found.start() for found in _SOFT_BREAK.finditer(text)] if len(text) <= _LONGEST_SHORTENED else []
    )
    if not breaks:
        return None
    decoded = _ENCODED.sub(lambda one: chr(int(one[1], 16)), _SOFT_BREAK.sub("", text))
    stop, before = stop_of(decoded), stop_of(text)
    if before is None or (stop is not None and stop <= before):
        return None
    lines = f"{count(len(breaks), 'line')} end{'s' if len(breaks) == 1 else ''} in ="
    return Foreign(f"the text is quoted-printable, as a mail is sent: {lines}", _DECODE, breaks[0])


def without_end(text: str) -> Shortened | None:
    """Return what is left of a table whose last line says that the rest was left out; None for others."""
    rest = text.rstrip()
    left, _, last = rest.rpartition("\n")
    if (
        not left.strip()
        or len(text) > _LONGEST_SHORTENED
        or not (_MARKER.fullmatch(last.strip()) or marks(last))
    ):
        return None
    left = left.rstrip()
    return Shortened(left, last.strip()) if stop_of(left) == len(left) else None
