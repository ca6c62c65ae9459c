"""The Chinese line of a rule, a check of ``doctor`` or a message of a log, by id.

The texts are in ``rules.txt``, ``checks.txt`` and ``messages.txt`` beside this module: one line per id, with
a title (what it is) and a remedy (what to do; none where nothing is to be done), separated by `` | ``. They
are general: the English finding beside them has the values. ``glossary.txt`` has the word for each term.
"""

from __future__ import annotations

import os
import sys
from codecs import lookup
from functools import cache
from pkgutil import get_data

from hccl_tools.notation.printable import tell
from hccl_tools.records import NamedTuple

#: The files with the texts.
FILES = ("rules", "checks", "messages")
_SEPARATOR = " | "
#: The variables that state the encoding of the terminal: the first one that is set decides (POSIX).
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
#: The variables by which a user tells Python the encoding of the output, whatever the locale.
_OF_PYTHON = ("PYTHONIOENCODING", "PYTHONUTF8")


class Text(NamedTuple):
    """The Chinese text of one id: what it is, and what to do, which may be empty."""

    title: str
    remedy: str = ""

    @property
    def line(self) -> str:
        """Title and remedy as one line."""
        return f"{self.title}。处理: {self.remedy}。" if self.remedy else f"{self.title}。"


@cache
def texts() -> dict[str, Text]:
    """Return the texts of all ids, in the order of the files."""
    found: dict[str, Text] = {}
    for name in FILES:
        for line in _read(f"{name}.txt"):
            identifier, _, text = line.partition(" ")
            found[identifier] = Text(*text.split(_SEPARATOR))
    return found


def glossary() -> dict[str, tuple[str, ...]]:
    """Return each word that the texts use for a term, with the words that they do not use for it."""
    rows = (line.split(_SEPARATOR) for line in _read("glossary.txt"))
    return {word: tuple(others.split("、")) for _term, word, others in rows}


def line_of(identifier: str) -> str:
    """Return the Chinese line of an id; "" if it has none, or standard output cannot show it."""
    text = texts().get(identifier)
    if text is None:
        return ""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        text.line.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        reason = f"the encoding of the output ({encoding}) has no Chinese characters"
        _tell(reason, "utf-8 if the terminal shows UTF-8, or gbk if it shows GBK")
        return ""
    if other := _encoding_of_another_locale(encoding):
        variable, stated = other
        reason = f"the output is {encoding}, because this host does not have the locale of {variable}"
        _tell(reason, f"{stated} if the terminal shows that, or utf-8")
        return ""
    return text.line


def has_all(identifier: str, words: list[str]) -> bool:
    """Return whether the text of an id has all words, in lower case."""
    text = texts().get(identifier)
    return text is not None and all(word in text.line.lower() for word in words)


def _encoding_of_another_locale(used: str) -> tuple[str, str] | None:
    """Return the variable and the encoding that it states, if Python uses another one.

    Python writes UTF-8 if the locale is not installed, as ``zh_CN.GBK`` in most containers; the terminal may
    show GBK nevertheless.
    """
    if any(os.environ.get(name) for name in _OF_PYTHON):
        return None
    variable = next((name for name in _LOCALE if os.environ.get(name)), "")
    stated = os.environ.get(variable, "").partition("@")[0].partition(".")[2]
    try:
        return (variable, stated.lower()) if stated and lookup(stated).name != lookup(used).name else None
    except LookupError:
        return None


@cache
def _tell(reason: str, encodings: str) -> None:
    tell(f"note: the Chinese lines are left out: {reason}; set PYTHONIOENCODING={encodings}")


def _read(name: str) -> list[str]:
    # importlib.resources would take twice as long as everything else here.
    data = get_data("hccl_tools.zh", name) or b""
    return [line for line in data.decode().splitlines() if line and not line.startswith("#")]
