"""Recognise what a file is that does not begin with JSON: a log, a script, a list of hosts.

A path is easily mistaken for another, and a download easily saves an error page. The reader's message on the
first character of such a file does not help, and its remedy leads to the next message.
"""

from __future__ import annotations

import html
import itertools
import re
from shlex import quote

from hccl_tools.document import foreign_text, line_prefixes
from hccl_tools.document.strict_parser import Reader
from hccl_tools.document.syntax_problem import JsonError
from hccl_tools.notation.hint import FILES, file_here
from hccl_tools.notation.phrases import named
from hccl_tools.records import NamedTuple

#: The number of characters and lines at the beginning of a text that decide what it is.
_HEAD, _LINES = 8192, 40
#: The lines of a note before a table.
_MOST_OF_NOTE = 6
_GEN = "`hccl-tools gen` writes the table of a host with NPUs"
_NAME_IT = f"specify the rank table, a JSON file that begins with {{; {_GEN}"
_MARKUP = re.compile(r"<(!doctype html|html|head|body|\?xml|[a-z][\w:-]*[ >])", re.IGNORECASE)
_PYTHON = re.compile(
    r"(import|from) [\w.]+( import .*| as \w+|,.*)?$|(def|class) \w+.*:$|if __name__ *==|@\w+", re.ASCII
)
_SHELL = re.compile(
    r"(export|source|set|cd|echo|sudo|docker|kubectl|mpirun|torchrun|bash|sh|python3?) |\. |if \[|function \w"
)
_STAMP = r"\[?\(?(\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d)"
_LOG = re.compile(
    rf"{_STAMP}|\[?\(?(TRACE|DEBUG|INFO|NOTICE|EVENT|WARNING|WARN|ERROR|FATAL|CRITICAL)\b[\])]?"
    r"|[A-Z][A-Za-z]{3,}: |Traceback \(most recent call last\)|\[rank ?\d+\]|\[\d+,\d+\]<std"
)
_YAML = re.compile(r"(- )?[\w.\"'-]+:( .*)?$")
_YAML_TABLE = re.compile(r"^[\"']?(server_list|rank_list|group_list|server_count)[\"']?:", re.MULTILINE)
_HOST = re.compile(
    r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?(?::\d+)*(?: +(?:slots|max_slots|max-slots|np|cpu|ansible_\w+)=\S+)*"
    r"|[0-9a-fA-F]*:[0-9a-fA-F:]+"
)
_HOST_ENTRY = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}\s+[\w.-]+(?:\s+[\w.-]+)*")
_ADDRESSES = re.compile(r"(address|netmask|gateway|IPaddr|netdetect|send_arp_status|arp)_\d+=")
_SETTING = re.compile(r"[\w.-]+ *=")
_SECTION = re.compile(r"\[[\w. :-]+\]$")
_PROMPT = re.compile(r"\[[\w.-]{1,64}@[^\[\]\n]{1,200}\] ?[#$%>]")
_DESCRIBED = re.compile(r"Name: +\S+\s+Namespace: ")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]{24,}(?:={1,2}\s*)?")
_COMMENT = re.compile(r"(#|//)(?!!)")
_TEMPLATE = re.compile(r"\{\{(?=-?\s*[\w.$])|\{%")
_FILL_IN = f"specify the file that the program writes from it; {_GEN}"
_DATA_KEY = re.compile(r"^([\w.-]+):\n----\n", re.MULTILINE)
_FROM_YAML = (
    "python3 -I -c 'import json, sys, yaml; "
    "json.dump(yaml.load(sys.stdin, yaml.BaseLoader), sys.stdout, indent=4)'"
)
_ALIAS = re.compile(r"[\s:,\[{-]\*[^\s*,\[\]{}]")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
#: A line with its number: a file name before it, and a tab, colon, blank or bar after it.
_NUMBERED = re.compile(r"[ \t]*(?:([^\s:{}\"\[\]]+)[:-])?(\d{1,9})(\t|:|-| ?[|\u2502]|\)|\.| )", re.ASCII)
_COLOR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_DIFF = re.compile(r"diff --git |--- \S.*\n\+\+\+ |@@ -\d|Index: |\*\*\* \S.*\n--- ", re.MULTILINE)
_PERCENTS = re.compile(r"%7[bB](?:%0[aAdD]|%20|\+)*%22")
_TABLE_KEY = re.compile(r'"(server_list|rank_list|group_list|server_group_list|super_pod_list)"')
#: The same key with other quotes or none, in a damaged table that has text before it.
_ANY_KEY = re.compile(r"\b(?:server_|rank_|group_|server_group_|super_pod_)list[\"'\u201d]?\s*[:\uff1a]")


class OtherContent(NamedTuple):
    """What a file is, as a sentence, and what to do."""

    message: str
    hint: str


def _other(what: str, hint: str = _NAME_IT) -> OtherContent:
    return OtherContent(f"this is {what}, not a rank table", hint)


class _Head(NamedTuple):
    """A text, its beginning, the first lines without blanks, and those of them that are not comments."""

    whole: str
    text: str
    lines: list[str]
    told: list[str]


def _head(text: str) -> _Head:
    lines = [line for line in map(str.strip, text[:_HEAD].lstrip("\ufeff").splitlines()[:_LINES]) if line]
    return _Head(text, text[:_HEAD], lines, [line for line in lines if not _COMMENT.match(line)])


def recognise(text: str) -> OtherContent | None:
    """Return what a text is that begins as no table does; None if it begins as JSON does."""
    head = _head(text)
    lines, told = head.lines, head.told
    dressed = next(
        filter(None, (kind(text) for kind in (numbered, _prefixed, _continued, _logged, _coloured))), None
    )
    if dressed is not None:
        return dressed
    if lines and (mark := _TEMPLATE.match(lines[0])) is not None:
        return _other(f"a template: {mark[0]} stands for text that a program fills in", _FILL_IN)
    if (
        lines
        and lines[0].startswith('"')
        and (columns := _columns(head)) is not None
        and _MAKE in columns.hint
    ):
        return columns
    if not lines or _begins_json((told or lines)[0]):
        return None
    if not told:
        return _other("a text of comments alone")
    return next((found for kind in _KINDS if (found := kind(head)) is not None), None)


def _begins_json(line: str) -> bool:
    """Whether a line can be the first one of JSON; a log or a prompt may begin with words in brackets."""
    if line[0] in "{\"'\u201c\uff5b\u3010":
        return not line.startswith(('"""', "'''"))
    return line[0] == "[" and not (_LOG.match(line) or _SECTION.match(line) or _PROMPT.match(line))


#: A key of a table in a web page: its quotes are escaped for HTML, or for a script of the page.
_SHOWN_KEY = re.compile(
    r"(?:&(?:quot|#34|#[xX]22|ldquo);|\\?[\"\u201c])(?:server_list|rank_list|group_list|server_group_list|server_count|rank_count)"
    r"(?:&(?:quot|#34|#[xX]22|rdquo);|\\?[\"\u201d])"
)
#: A command that takes a table out of the text of a page, and the length of the longest page that is tried.
_FROM_PAGE = (
    "python3 -I -c 'import html, re, sys; "
    'text = html.unescape(re.sub("<[^<>]*>", "", sys.stdin.read())).replace(chr(160), chr(32)); '
    "print(text[text.index(chr(123)):text.rindex(chr(125)) + 1])' < " + FILES
)
_LONGEST_PAGE = 1 << 22
_TAGS = re.compile(r"<[^<>]{0,4000}>")


def _page(head: _Head) -> OtherContent | None:
    found = _MARKUP.match(head.lines[0])
    if found is None:
        return None
    if _SHOWN_KEY.search(head.whole) is not None:
        raw = (
            "download the file itself, which the page links as Raw (on most servers its address has /raw/ in "
            "place of /blob/)"
        )
        hint = (
            f"{raw}, or take the table out of the page: {_FROM_PAGE}"
            if _has_only_a_table(head.whole)
            else raw
        )
        return OtherContent("this is a web page (HTML) that shows a rank table, not the table itself", hint)
    if found[1].lower() == "?xml" or "html" not in " ".join(head.lines).lower():
        return _other("an XML file")
    hint = (
        "open its address in a browser: the server sent an error or login page, or a page about the file; "
        "then download the file itself (a server of repositories links it as Raw)"
    )
    return _other("a web page (HTML)", hint)


def _has_only_a_table(page: str) -> bool:
    """Return whether the text of a page from its first to its last brace is a table."""
    if len(page) > _LONGEST_PAGE:
        return False
    text = html.unescape(_TAGS.sub("", page)).replace("\u00a0", " ")
    start, end = text.find("{"), text.rfind("}") + 1
    try:
        value = Reader(text[start:end], 0).read() if 0 <= start < end else None
    except JsonError:
        return False
    return isinstance(value, dict) and any(_TABLE_KEY.fullmatch(f'"{key}"') for key in value)


def _described(head: _Head) -> OtherContent | None:
    text = head.text
    if not _DESCRIBED.match(text.lstrip()):
        return None
    keys = _DATA_KEY.findall(text)
    name, space = (re.search(rf"^{field}: +(\S+)", text, re.MULTILINE) for field in ("Name", "Namespace"))
    key = next((key for key in keys if "hccl" in key or "rank" in key), keys[0] if keys else "hccl.json")
    where, who = named(space[1] if space else "", "NAMESPACE"), named(name[1] if name else "", "NAME")
    value = quote("{.data." + key.replace(".", "\\.") + "}")
    command = f"kubectl get configmap -n {where} {who} -o jsonpath={value} > {file_here(key, 'hccl.json')}"
    return _other("what `kubectl describe` prints", f"extract the table: {command}")


class Around(NamedTuple):
    """A table with other text before it.

    Attributes:
        line: The line on which it begins.
        start: The offset of its first character.
        end: The offset after it, as far as that is clear.
        delete: What to delete, as a phrase.
    """

    line: int
    start: int
    end: int
    delete: str


def around_table(text: str) -> Around | None:
    """Return where a table is that has other text before it: a prompt, a note, or a name and an equals sign.

    The table itself may be damaged if a line begins with its first bracket.
    """
    found, head = _ANY_KEY.search(text), _head(text)
    start = -1 if found is None else text.find("{", 0, found.start())
    if start <= 0 or not head.lines or _begins_json((head.told or head.lines)[0]):
        return None
    if _described(head) is not None or _diff_file(head) is not None:
        return None
    own = text[:start].rpartition("\n")[2]
    reader = Reader(text[start:], 0)
    try:
        if not isinstance(reader.read(), dict):
            return None
        end = start + reader.end
    except JsonError:
        if own.strip() or not _is_note(text[:start], head) or numbered(text) is not None:
            return None
        fence = _FENCE.search(text, start)
        end = len(text) if fence is None else fence.start()
        end = text.rfind("}", start, end) + 1 or end
    line = text.count("\n", 0, start) + 1
    if own.strip():
        before = f"everything before the {{ {'of' if line == 1 else 'on'} line {line}"
    else:
        before = "line 1" if line == 2 else f"lines 1 to {line - 1}"
    return Around(line, start, end, f"{before}{_rest_after(text, end)}")


def _is_note(before: str, head: _Head) -> bool:
    """Return whether the text before a damaged table is a note, and not the beginning of a script or log."""
    is_short = len(before.strip().splitlines()) <= _MOST_OF_NOTE
    is_other = _page(head) or _script(head) or _log(head)
    return _FENCE.search(before) is not None or (is_short and is_other is None)


def numbered(text: str) -> OtherContent | None:
    """Recognise a table with the number of each line before it, as ``cat -n`` and ``grep -n`` print it."""
    lines = text[:_HEAD].lstrip("\ufeff").splitlines()[:_LINES]
    found = [_NUMBERED.match(line) for line in lines if line.strip()]
    if len(found) < 3:
        return None
    known = [one for one in found[:-1] if one is not None]  # The last line may be cut.
    if len(known) < len(found) - 1 or len({(one[1], one[3].replace("-", ":")) for one in known}) > 1:
        return None
    numbers = [int(one[2]) for one in known]
    if any(number - before != 1 for before, number in itertools.pairwise(numbers)):
        return None
    first = lines[0][known[0].end() :].lstrip()
    if not first.startswith(("{", "[")):
        return None
    name, mark = known[0][1], known[0][3]
    if name:
        what, command = (
            "its file name and line number, as `grep -n` prints it",
            r"sed -E 's/^[^:]*:[0-9]+[:-]//'",
        )
    elif mark in (":", "-"):
        what, command = "its line number, as `grep -n` prints it", "sed -E 's/^[0-9]+[:-]//'"
    elif mark == "\t":
        what, command = "its line number, as `cat -n` prints it", "cut -f2-"
    else:
        what, command = "its line number", f"sed -E 's/^ *[0-9]+ ?[{mark if mark.strip() else ' '}]//'"
    return OtherContent(f"each line begins with {what}", f"remove the numbers: {command} {FILES}")


def _prefixed(text: str) -> OtherContent | None:
    """Recognise a table with the same text before each line, such as the > of a mail or a host name."""
    found = line_prefixes.equal(text, _first_lines(text))
    return None if found is None else OtherContent(*found)


def _first_lines(text: str) -> list[str]:
    return [line for line in text[:_HEAD].lstrip("\ufeff").splitlines()[:_LINES] if line.strip()]


def _continued(text: str) -> OtherContent | None:
    """Recognise a table with a backslash at the end of each line, as in a command of a shell."""
    lines = [line.rstrip() for line in text[:_HEAD].splitlines()[:_LINES] if line.strip()]
    if len(lines) < 3 or not all(line.endswith("\\") for line in lines[:-1]):
        return None
    message = (
        "each line ends with a backslash, as in a command of several lines, which is not part of the table"
    )
    return OtherContent(message, r"remove it: sed -E 's/\\[ \t\r]*$//' " + FILES)


def _logged(text: str) -> OtherContent | None:
    """Recognise a table that a program logged: only the numbers differ in the prefixes of its lines."""
    lines = _first_lines(text)
    if len(lines) <= 2 or not _LOG.match(lines[0]) or _TABLE_KEY.search(text) is None:
        return None
    found = line_prefixes.of_log(lines)
    return None if found is None else OtherContent(*found)


def _coloured(text: str) -> OtherContent | None:
    """Recognise a table with the signs that set the colors of a terminal."""
    if _COLOR.search(text[:_HEAD]) is None:
        return None
    program = r'import re, sys; print(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sys.stdin.read()))'
    return OtherContent(
        "the text has the signs that set the colors of a terminal, which are not part of the table",
        f"remove them: python3 -I -c '{program}' < {FILES}",
    )


def _diff_file(head: _Head) -> OtherContent | None:
    if not _DIFF.match(head.text.lstrip("\ufeff")):
        return None
    found = foreign_text.of_diff(head.text, 0)
    return OtherContent("this is a diff, not a rank table", found.hint)


def _in_percents(head: _Head) -> OtherContent | None:
    if not _PERCENTS.match(head.text.lstrip()):
        return None
    unquote = "import sys, urllib.parse; print(urllib.parse.unquote(sys.stdin.read()))"
    return OtherContent(
        "the text is escaped for a web address: it has % and two digits in place of signs",
        f"write the signs themselves: python3 -I -c '{unquote}' < {FILES}",
    )


def _rest_after(text: str, end: int) -> str:
    if not text[end:].strip():
        return ""
    line = text.count("\n", 0, end) + 1
    return f", and everything after the last }} on line {line}"


def _script(head: _Head) -> OtherContent | None:
    first = head.lines[0]
    if first.startswith("#!"):
        words = first.removeprefix("#!").split()
        program = words[-1] if words else "a shell"
        return _other(f"a script for {program.rpartition('/')[2]}")
    if head.told[0].startswith(('"""', "'''")) or any(map(_PYTHON.match, head.told[:8])):
        return _other("a Python script")
    return _other("a shell script") if _SHELL.match(head.told[0]) else None


def _log(head: _Head) -> OtherContent | None:
    if not any(map(_LOG.match, head.told[:4])):
        return None
    return _other("a log", f"`hccl-tools explain FILE` reads logs; {_NAME_IT}")


def _addresses(head: _Head) -> OtherContent | None:
    if not _ADDRESSES.match(head.told[0]):
        return None
    hint = "`hccl-tools gen --hccn-conf FILE` makes the table from it on its host"
    return _other("an hccn.conf, the addresses of a host's devices", hint)


def _lfs(head: _Head) -> OtherContent | None:
    if not head.lines[0].startswith("version https://git-lfs"):
        return None
    # No `git lfs pull`: the author of an unpacked archive has chosen what its .git/config runs.
    return _other("a pointer of Git LFS", "fetch the file itself from its repository")


def _host_list(head: _Head) -> OtherContent | None:
    listed = [line for one in head.told if not _SECTION.match(line := one.partition("#")[0].strip())]
    if not listed or not all(map(_HOST.fullmatch, listed)):
        return None
    if not any(re.search(r"[\d.:=]", line) for line in listed):
        return None
    hint = "`hccl-tools gen --hostfile FILE` asks these hosts and makes their table"
    return _other("a list of hosts (hostfile)", hint)


def _etc_hosts(head: _Head) -> OtherContent | None:
    if not all(_HOST_ENTRY.fullmatch(line.partition("#")[0].strip()) for line in head.told):
        return None
    return _other("a list of addresses and host names, such as /etc/hosts")


def _settings(head: _Head) -> OtherContent | None:
    if not _SECTION.match(head.told[0]) and not all(map(_SETTING.match, head.told)):
        return None
    return _other("a file of settings (NAME=VALUE)")


def _yaml(head: _Head) -> OtherContent | None:
    first = head.told[1:2] if head.told[0].startswith("---") else head.told[:1]
    if not first or not _YAML.match(first[0]):
        return None
    if not _YAML_TABLE.search(head.text):
        return _other("a YAML file")
    hint = f"convert it to JSON: {_FROM_YAML} < {FILES}"
    if _ALIAS.search(head.whole):  # Aliases of aliases stand for a text of any length.
        hint = "convert it to JSON, with the values in the places of its aliases (*NAME)"
    return OtherContent("this is a rank table in YAML; HCCL reads only JSON", hint)


def _base64(head: _Head) -> OtherContent | None:
    if not head.lines[0].startswith(("ey", "ew")) or not _BASE64.fullmatch(head.text[:_HEAD]):
        return None
    return _other("text in base64", "decode it: base64 -d " + FILES)


_MAKE = "make the table of its rows"
#: The columns of a table of devices from which a rank table follows.
_ROW_KEYS = frozenset({"server_id", "device_id", "device_ip", "rank_id"})


def _from_rows(mark: str) -> str:
    """Return the command that makes a rank table of rows with these columns."""
    split = {",": "", "\t": ", delimiter=chr(9)", ";": ', delimiter=";"'}[mark]
    return (
        "python3 -I -c 'import csv, json, sys; "
        f"r = list(csv.DictReader(sys.stdin{split}, skipinitialspace=True)); "
        'n = {x["server_id"]: [] for x in r}; [n[x.pop("server_id")].append(x) for x in r]; '
        'r = [{"server_id": k, "device": v} for k, v in n.items()]; json.dump({"version": '
        '"1.2" if "super_device_id" in r[0]["device"][0] else "1.0", "server_count": str(len(r)), '
        '"server_list": r, "status": "completed"}, sys.stdout, indent=4)\' < ' + FILES
    )


def _columns(head: _Head) -> OtherContent | None:
    told = head.told[:-1] or head.told
    for mark, name in ((",", "commas"), ("\t", "tabs"), (";", "semicolons")):
        if len(told) > 1 and told[0].count(mark) and len({line.count(mark) for line in told}) == 1:
            columns = {one.strip().strip('"') for one in told[0].split(mark)}
            hint = f"{_MAKE}: {_from_rows(mark)}" if columns >= _ROW_KEYS else _NAME_IT
            return _other(f"a file of columns with {name} between them", hint)
    return None


def _text(head: _Head) -> OtherContent:
    line = head.told[0]
    return _other(f'a text that begins with "{line if len(line) <= 40 else line[:40] + "..."}"')


#: The order matters: the first function that recognises the text decides.
_KINDS = (
    _page, _lfs, _described, _diff_file, _in_percents, _script, _log, _addresses, _base64, _host_list,
    _etc_hosts, _settings, _yaml, _columns, _text,
)  # fmt: skip
