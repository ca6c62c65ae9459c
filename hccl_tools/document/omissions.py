"""Recognise the marks that people, chats, editors and programs write in place of entries that they left out.

A table from which such a mark is deleted is valid JSON and lacks devices: no remedy may say to delete it.
"""

from __future__ import annotations

import re

#: What is to be done with a mark.
WRITE_THEM = (
    "write these entries in its place, or copy the complete table again; "
    "a table without them has fewer devices"
)
_NOUN = (
    r"(?:servers?|devices?|entr(?:y|ies)|ranks?|nodes?|hosts?|items?|cards?|npus?|machines?|elements?|"
    r"objects?|rows?|lines?|characters?|chars?|bytes|blocks?|instances?)"
)
#: What a line says that stands for entries, in words that no value of a table has.
WORDS = (
    r"\b(?:omit(?:ted|s)?|truncated|snip(?:ped)?|skipped|elided|abbreviated|abridged|hidden|collapsed|folded|"
    r"left out|not shown|unchanged|clipped|trimmed|for brevity|like (?:this|above|before|these))\b|"
    rf"\b\d{{1,9}}\+? (?:more|others?|further|additional|hidden)\b|"
    rf"\b(?:existing|remaining|further) {_NOUN}\b|\bEllipsis\b|(?:\.{{2}}|\u2026) ?\+?\d{{1,9}} {_NOUN}\b|"
    r"\b(?:show|view|see|expand|load) (?:more|all|full|\(?\d{1,9})\b|"
    r"\u7565|\u622a\u65ad|\u6298\u53e0|\u9690\u85cf|\u76f8\u540c|\u540c\u4e0a|\u5c55\u5f00|\u672a\u663e\u793a"
)
_SIGN = r"[\s.,:;\u2026\u22ee\u22ef\u3002\u00b7*+<>()\[\]{}\"'|~=_#/@\u2191\u2193\uff08\uff09-]"
#: Signs alone: dots, in brackets or quotes as well.
_DOTS = re.compile(
    rf"{_SIGN}{{0,40}}?(?:\.{{2,}}|\. ?\.|\u2026|\u22ee|\u22ef|\u3002{{2,}}|\u00b7{{3,}}){_SIGN}{{0,40}}"
)
#: A number of something between signs, of which one at least stands there.
_NUMBER_OF = re.compile(rf"{_SIGN}{{1,20}}\d{{1,9}}\+? {_NOUN}{_SIGN}{{0,20}}", re.IGNORECASE)
_CUT_HERE = re.compile(r"[\s<>(-]{0,20}(?:8<|>8|\u2702)[\s\u2702<>()8-]{0,40}")
_WORDS = re.compile(WORDS, re.IGNORECASE)
#: What a line of a table or log has, and a mark has not.
_OTHER = re.compile(
    r"\"[\w-]+\"\s*:|\d\d:\d\d|\b(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL)\b|"
    r"\b(?:refused|failed|denied|timed out|unreachable)\b"
)
_LONGEST = 100
#: How consoles print objects that are nested too deep.
_PRINTED = re.compile(r"\s{0,80}\[(?:Object|Array|Circular)\](?:,? ?\[(?:Object|Array)\])*[\s,\]]{0,40}")


def marks(text: str) -> bool:
    """Return whether a line, a comment or a string stands for entries that were left out."""
    if len(text) > _LONGEST or not text.strip():
        return False
    if _DOTS.fullmatch(text) or _NUMBER_OF.fullmatch(text) or _CUT_HERE.fullmatch(text):
        return True
    return _OTHER.search(text) is None and _WORDS.search(text) is not None


def is_printed(line: str) -> bool:
    """Return whether a line has what a console prints in place of an object that is nested too deep."""
    return len(line) <= _LONGEST and _PRINTED.fullmatch(line) is not None
