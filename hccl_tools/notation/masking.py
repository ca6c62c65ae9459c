"""Mask secrets in the variables and arguments of a plan that is printed or written, and in whole texts.

A masked plan is never used to start ranks. Secrets are found by name, by shape, as the options of well-known
programs, and as private keys. A text is masked as a whole, since a secret may have several lines. The time is
linear in its length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from hccl_tools.notation import secret_options
from hccl_tools.notation.secret_names import is_plain, is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_MASK = "***"
#: Most patterns are for few texts, and compiled for the first of these: all take 3 ms.
_compiled = lru_cache(maxsize=None)(re.compile)
#: A text without one of these has no private key.
_KEY_HINTS = ("KEY", "Private-", "b3BlbnNzaC1rZXkt", " key V")
#: Texts up to this length are kept in the cache of masked ones.
_SHORT = 4096
#: The beginnings of tokens of well-known services; one must be present, which is faster to check.
_BEGINNINGS = tuple(
    """
    earer asic gh github_pat_ glpat- glrt- gldt- hf_ sk- sk_ rk_ AKIA ASIA LTAI AIza xox xapp- eyJ npm_ pypi-
    dckr_pat_ SG. ya29. AGE-SECRET LS0tLS1C dop_v1_ hvs. password
    """.split()  # noqa: SIM905  (a table of words)
)
_SHAPES = (
    r"\b[Bb](?:earer|asic)\s+(?P<auth>[\w.~+/=-]{6,})"
    r"|(?:(?<![A-Za-z0-9])(?:gh[pousr]_\w{16,}|github_pat_\w{16,}|gl(?:pat|rt|dt)-[\w.-]{16,}|hf_\w{16,}"
    r"|[sr]k[-_][\w-]{16,}|A(?:KIA|SIA)\w{12,}|LTAI\w{12,}|AIza[\w-]{30,}|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}"
    r"|npm_\w{30,}|pypi-[\w-]{30,}|dckr_pat_[\w-]{16,}|SG\.[\w.-]{30,}|ya29\.[\w.-]{20,}|dop_v1_\w{30,}"
    r"|hvs\.[\w-]{20,}|AGE-SECRET-KEY-1\w{20,}|eyJ[\w-]{10,}(?:\.[\w-]*){0,4}"
    # A private key block in base64, as in a secret of Kubernetes; DRVJU stands for a certificate.
    r"|LS0tLS1C(?!RUdJTiBDRVJU)[A-Za-z0-9+/=\\]{16,}))"
    r"|\blogin\s{1,64}\S{1,256}\s{1,64}password\s{1,64}(?P<netrc>[^\s\"']+)"
)
#: A name and the separator before its value: ``token=``, ``"token":``, ``--token``, ``"--token",``, ``<x>``.
_NAMED = (
    r"(?<![\w.-])(?P<mark>--?(?=[A-Za-z])|<|)(?P<name>[A-Za-z][\w.-]*)"
    r"(?P<between>\\*[\"']?\s*(?:=>|[:=])[ \t]*|(?:\s|\\\n)+|\\*[\"']\s*,\s*(?=\\*[\"'])|>)"
)
#: A name whose value stands apart: ``name: X`` and ``value: Y`` of Kubernetes, ``setenv X Y`` of shells.
_APART = (
    r"\bname\\*[\"']?\s{0,9}[:=]\s{0,9}\\*[\"']?(?P<name>[A-Za-z_][\w.-]{0,255})\\*[\"']?(?:,\s{0,64}|\s{1,64})"
    r"\\*[\"']?value\\*[\"']?\s{0,9}(?P<between>[:=][ \t]{0,9})"
    r"|\b(?:setenv|ENV|set\s{1,9}-\w{1,9})[ \t]{1,9}(?P<variable>[A-Za-z_]\w{0,255})[ \t]{1,9}(?![=:])"
)
_IDENTIFIER = re.compile(r"-{0,2}[A-Za-z_][\w.-]*")
#: One quote, three quotes of Python and TOML, or the two of a quote in CSV.
_OPENING = r"[bBrRuUfF]{0,2}(?P<quote>(\\*)([\"'])(?:\2\3\2\3|\2\3(?=\w))?)"
#: An unquoted value; a comma or semicolon ends it before a blank or the next name.
_VALUE = r"(?:[^\s\"',;&|}]|[,;](?![\s\"'}]|[\w.-]+[\"']?\s*[=:]|\Z))*"
#: The beginning of a text in YAML that has the next lines, as far as they are indented.
_BLOCK = r"[|>][+-]?\d?[ \t]*\n"
#: The end of a line before a value; a line with a name and a colon has values of its own.
_NEXT_LINE = r"\r?\n(?=[ \t]*\S)(?![ \t]*(?:- +)?[\"']?[\w.-]{1,256}[\"']?\s?:\s)"
_INDENT = r"[ \t]*(?:- +)*"
_ITEM = r"""(?s:([\"'])(.*?)\1|[^\s,\"']+)"""
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_REST = r"[^\n\"']*"
#: The most letters of a quoted value that goes on after its line, or of a list.
_LONGEST = 4096
_PUNCTUATION = "[](){},'\"` \t\r\\"
_AUTHORITY = r"[^\s\"'<>`]*"
_PORT = r"\d{1,5}[/?#]"
#: The fewest letters of a token before the host of a URL; a shorter text is the name of a user.
_SHORTEST_TOKEN = 16
_LOGIN = r"(?<![^\s\"'=(\[,])[A-Za-z][\w.+-]{0,63}:(?!\d+@)([^\s/@:\"'<>]{1,128})@(?=[\w\[])"
#: A sequence that controls a terminal, raw or escaped: it may stand inside a secret.
_ESCAPE = (
    r"(?:\x1b|(?<!\\)\\+(?:u001[bB]|x1[bB]|033))"
    r"(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\))"
)


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables with masked secrets."""
    return {
        name: _MASK if is_secret(name) and not is_plain(name, value) else text(value)
        for name, value in environment.items()
    }


def arguments(argv: Sequence[str]) -> list[str]:
    """Return a command line with masked secrets: ``--token X``, ``--password=X``, ``sshpass -p X``."""
    shown: list[str] = []
    words = secret_options.Words()
    option = ""
    for word in argv:
        at = words.secret_at(word)
        name, equals, value = word.partition("=")
        is_named = bool(_IDENTIFIER.fullmatch(name)) and is_secret(name)
        if option and not _is_option(word):
            shown.append(word if is_plain(option, word) else _MASK)
        elif 0 <= at < len(word):
            shown.append(word[:at] + _MASK)
        elif is_named and equals and not is_plain(name, value):
            shown.append(f"{name}={_MASK}")
        else:
            shown.append(text(word))
        option = name if is_named and word.startswith("-") and not equals else ""
    return shown


def text(value: str) -> str:
    """Return a text with masked secrets: values of the names of secrets, and secrets by shape.

    A private key is masked from its first line to its last one.
    """
    if value.isdecimal():
        return value
    return _masked_short(value) if len(value) <= _SHORT else _masked(value)


def _is_option(word: str) -> bool:
    """Return whether a word after an option is another option, ``-n`` or ``--name``, and no value."""
    return len(word) > 1 and word[0] == "-" and (word[1] == "-" or len(word) == 2)


def _masked(value: str) -> str:
    clean, cuts = _without_escapes(value)
    spans = _joined(_found(clean))
    parts, done = [], 0
    for start, end in spans:
        if cuts:
            start, end = _original(start, cuts), _original(end - 1, cuts) + 1  # noqa: PLW2901
        parts += [value[done:start], _MASK]
        done = end
    return "".join([*parts, value[done:]]) if parts else value


_masked_short = lru_cache(maxsize=1024)(_masked)


def _found(value: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of all secrets of a text; they may overlap."""
    if any(hint in value for hint in _KEY_HINTS):
        from hccl_tools.notation import key_blocks  # noqa: PLC0415  (0.8 ms; few texts have a key)

        yield from key_blocks.find(value)
    if any(beginning in value for beginning in _BEGINNINGS):
        for match in _compiled(_SHAPES).finditer(value):
            yield match.span(match.lastgroup or 0)
    yield from _in_urls(value)
    yield from secret_options.find(value)
    if any(mark in value for mark in "=:->"):
        yield from _named(value)
    if "value" in value or "set" in value or "ENV" in value:
        yield from _apart(value)


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start = end = -1
    for begin, stop in sorted(spans):
        if begin > end:
            if end > start:
                yield start, end
            start = begin
        end = max(end, stop)
    if end > start:
        yield start, end


def _without_escapes(value: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text without sequences for terminals, and the original positions of what follows them."""
    parts: list[str] = []
    cuts: list[tuple[int, int]] = []
    done = size = 0
    if "\x1b" not in value and "\\" not in value:
        return value, cuts
    for match in _compiled(_ESCAPE).finditer(value):
        parts.append(value[done : match.start()])
        size += len(parts[-1])
        done = match.end()
        cuts.append((size, done))
    return ("".join([*parts, value[done:]]) if cuts else value), cuts


def _original(position: int, cuts: list[tuple[int, int]]) -> int:
    number = bisect_right(cuts, position, key=lambda cut: cut[0]) - 1
    return position if number < 0 else cuts[number][1] + position - cuts[number][0]


def _in_urls(value: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of passwords and tokens before the host of a URL."""
    if "@" not in value:
        return
    for match in _compiled(_LOGIN).finditer(value):
        yield match.span(1)
    start = value.find("://")
    while start >= 0:
        following = value.find("://", start + 3)
        authority = _compiled(_AUTHORITY).match(value, start + 3, following if following >= 0 else len(value))
        yield from _in_user_info(value, start + 3, authority.end() if authority else start)
        start = following


def _in_user_info(value: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = value.rfind("@", start, end)
    colon, slash = value.find(":", start, at), value.find("/", start, at)
    if at < 0 or value.startswith("[", start):
        return
    if colon >= 0 and (slash < 0 or colon < slash) and not _compiled(_PORT).match(value, colon + 1, at):
        yield colon + 1, at
    elif colon < 0 and slash < 0 and at - start >= _SHORTEST_TOKEN:
        yield start, at


def _named(value: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of values that follow the name of a secret."""
    done = 0
    for match in _compiled(_NAMED).finditer(value):
        mark, name, between = match.groups()
        is_option = mark.startswith("-")
        needs_option = between.isspace() or "," in between or "\\\n" in between
        if match.end() < done or (needs_option and not is_option) or (mark == "<") != (between == ">"):
            continue
        is_user = mark + name in secret_options.USERS
        if not is_user and not is_secret(name):
            continue
        for start, end in _values(value, match):
            begin = secret_options.after_user(value[start:end]) if is_user else 0
            if begin >= 0 and end > start and (is_user or not is_plain(name, value[start:end])):
                yield start + begin, end
            done = end


def _apart(value: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of the values of secrets that stand apart from their names."""
    done = 0
    for match in _compiled(_APART).finditer(value):
        name = match["name"] or match["variable"]
        if match.end() < done or not is_secret(name):
            continue
        for start, end in _values(value, match):
            if not is_plain(name, value[start:end]):
                yield start, end
            done = end


def _values(value: str, match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of the value of a name: several for a list."""
    start, between = match.end(), match["between"] or " "
    if opening := _compiled(_OPENING).match(value, start):
        yield opening.end(), _closing(value, opening.end(), opening["quote"])
    elif value.startswith("[", start):
        for item in _compiled(_ITEM).finditer(value, start + 1, _end_of_list(value, start)):
            yield item.span(2 if item[1] else 0)
    elif between == ">":
        yield start, _end(value, "<", start)
    elif block := _compiled(_BLOCK).match(value, start) or _next_line(value, match):
        yield block.end(), _indented(value, match.start(), block.end())
    elif ":" in between and _begins_line(value, match.start()):
        yield start, start + len(value[start : _end(value, "\n", start)].rstrip(_PUNCTUATION))
    elif ":" in between and match["name"].lower() in _HEADERS:
        yield start, _end_of_rest(value, start)
    elif not (between.isspace() and value.startswith("--", start)) and (
        found := _compiled(_VALUE).match(value, start)
    ):
        yield found.span()


def _end_of_rest(value: str, start: int) -> int:
    """Return the end of the line, or of the quoted text, in which a header is."""
    rest = _compiled(_REST).match(value, start)
    return rest.end() if rest else start


def _closing(value: str, start: int, opening: str) -> int:
    """Return the end of a quoted value; without the same quotes again it is the end of the line."""
    quote = opening.lstrip("\\")[0]
    backslashes = opening.index(quote)
    # A quote with more backslashes than the first one is part of the value.
    before = r"(?<!\\)" if backslashes else r"(?<!\\)(?:\\\\)*"
    found, end_of_line = _near(value, re.compile(f"{before}(?P<end>{re.escape(opening)})"), start)
    return found.start("end") if found else end_of_line


def _end_of_list(value: str, start: int) -> int:
    found, end_of_line = _near(value, _compiled(r"\]"), start)
    return found.start() if found else end_of_line


def _near(value: str, pattern: re.Pattern[str], start: int) -> tuple[re.Match[str] | None, int]:
    """Return what a pattern finds up to some letters after the line, or else the end of the line.

    The end of a line is searched only if there is nothing near: a line may have many values.
    """
    if found := pattern.search(value, start, start + _LONGEST):
        return found, start
    end_of_line = _end(value, "\n", start)
    return pattern.search(value, start, end_of_line + _LONGEST), end_of_line


def _end(value: str, mark: str, start: int) -> int:
    at = value.find(mark, start)
    return at if at >= 0 else len(value)


def _begins_line(value: str, start: int, quotes: str = "") -> bool:
    before = value[max(0, start - _LONGEST) : start].rpartition("\n")[2]
    return not before.strip(f" \t-{quotes}")


def _next_line(value: str, match: re.Match[str]) -> re.Match[str] | None:
    """Return the end of the line of a name without a value in YAML or INI: the next lines may have it."""
    has_mark = match["between"] and not match["between"].isspace() and "," not in match["between"]
    is_first = has_mark and _begins_line(value, match.start(), "\"'")
    return _compiled(_NEXT_LINE).match(value, match.end()) if is_first else None


def _indented(value: str, name: int, start: int) -> int:
    """Return the end of the lines that are indented more than the line of a name, or are items of it."""
    line = value.rfind("\n", max(0, name - _LONGEST), name) + 1
    indent = _compiled(_INDENT).match(value, line)
    size = indent.end() - line if indent else 0
    while start < len(value):
        end = _end(value, "\n", start)
        content = value[start:end]
        indented = len(content) - len(content.lstrip(" \t"))
        if content.strip() and indented <= size and not (indented == size and content.startswith("- ", size)):
            break
        start = min(end + 1, len(value))
    return start
