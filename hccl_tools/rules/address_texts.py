"""What is wrong with a text that is refused as an address: what is superfluous or missing, and the right text."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import is_private, packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# The patterns are texts, which `re` compiles at their first use: most tables need none.
LEADING_ZEROS = "leading zeros"
_BLANKS, _QUOTES, _BRACKETS = "blanks", "quotes", "square brackets"
_MASK, _SCHEME_NAME, _END = "the netmask", "the scheme", "the end"
_NAME, _PORT_NAME, _USER_NAME, _OTHER_TEXT = "the name", "the port", "the user", "the text"
#: The beginning of a fault whose digits may be those of the address.
_TEXT_WITH_DIGITS = "text with digits,"
#: The beginnings of faults of which the right text is certain; a letter may hide another mistake.
_CERTAIN = (
    LEADING_ZEROS, _BLANKS, _QUOTES, _BRACKETS, _MASK, _SCHEME_NAME, _END, _NAME, _PORT_NAME, _USER_NAME,
    _OTHER_TEXT,
)  # fmt: skip
#: The longest text that is examined; the longest address with all that can be around it is shorter.
_LONGEST = 120
_QUOTED = r"(?s)([\"'\u2018\u2019\u201c\u201d])(.*)[\"'\u2018\u2019\u201c\u201d]"
_SCHEME = r"(?s)([A-Za-z][A-Za-z0-9+.-]*://)(.*)"
_NAMED = r"(?s)([A-Za-z_]{2,}\s*[=:]\s*)([0-9\[].*)"
_WITH_MASK = r"(?si)([0-9.]+)(\s+(?:net)?mask\W.*|/[0-9]{1,2}\s+brd\s.*)"
_USER = r"(?a)([A-Za-z_][A-Za-z0-9_.-]{0,31}@)(.+)"
_IN_BRACKETS = r"(?a)\[([^\[\]]*)\](:[0-9]{1,5})?"
#: A link as chats write it for an address: [10.0.0.1](http://10.0.0.1), <http://10.0.0.1|10.0.0.1>.
_LINK = r"\[([^\[\]]+)\]\([^()\s]*\)|<[^<>|\s]*\|([^<>|]+)>"
_ZONE = r"(?s)([^%]+)(%.+)"
_PATH = r"(?as)([^/]+)(/(?![0-9]).*)"
_NETMASK = r"(?as)(.*)(/(?:[0-9]{1,3}|255(?:\.[0-9]{1,3}){3}))"
_PORT = r"(?a)([0-9.]+)(:[0-9]{1,5})"
_ENDING = r"(?s)(.*[0-9a-fA-F])([.,;:]+)"
_ZEROS = r"(?a)\b0+(?=[0-9])"
_DOTTED = r"(?a)(?<![0-9])[0-9]{1,20}(?:\.[0-9]{1,20}){3}"
#: An address with words around it: a letter, a digit or a dot beside its numbers may belong to them.
_ALONE = (
    r"(?a)(?<![0-9A-Za-z])(?<![0-9A-Za-z]\.)[0-9]{1,20}(?:\.[0-9]{1,20}){3}(?!\.?[0-9A-Za-z]|[\s-]+[0-9])"
)
#: An address, and a number that may be a port or the end of its last number.
_NUMBER_AFTER = r"(?a)\s*([0-9]{1,3}(?:\.[0-9]{1,3}){3})\s+([0-9]{1,5})\s*"
#: A number of its own beside an address, with no word between them.
_DIGITS_BEFORE, _DIGITS_AFTER = r"(?a)(?<!\w)[0-9]+[^A-Za-z]*$", r"(?a)[^A-Za-z]*[0-9]"
_DOUBLE_DOTS = r"(?a)[0-9]{1,3}(?:\.{1,3}[0-9]{1,3}){3}"
#: Four short parts, of which some may be the numbers of an address.
FOUR_PARTS = r"(?a)[0-9A-Za-z_-]{1,4}(?:\.[0-9A-Za-z_-]{1,4}){3}"
_ANY_FOUR_PARTS = r"[^.\s]{1,4}(?:\.[^.\s]{1,4}){3}"
_FOUR_NUMBERS = r"(?a)[0-9]{1,4}(?:\.[0-9]{1,4}){3}"
_NUMBERS = r"(?a)[0-9]+(?:\.+[0-9]+)*\.?"
_DASHED = r"(?a)[0-9]{1,3}(?:[-_ ,][0-9]{1,3}){3}"
_LETTERS = str.maketrans("OolI", "0011")
_SEPARATORS = r"[:\-\s_.]"
_HEX = r"[0-9A-Fa-f]*"
#: A hexadecimal number as programs write it, with at least eight and fewer digits than an EID.
_HEX_NUMBER = r"(?a)0[xX]([1-9a-fA-F][0-9a-fA-F]{7,30})"
#: The number of an address, and the output of hccn_tool.
_AS_NUMBER = r"(?a)[1-9]\d{7,9}|0[xX][0-9a-fA-F]{7,8}"
_PRINTED = r"(?a)ipaddr:\s*([\d.]+)\s+netmask:"
_EID_LENGTH, _HIGHEST_OCTET, _OCTETS = 32, 255, 4


class Corrected(NamedTuple):
    """What a text has too much or wrong, as phrases, and the text without it."""

    faults: list[str]
    right: str


def is_certain(faults: list[str]) -> bool:
    """Return whether the right text without these faults is certain."""
    return all(fault.startswith(_CERTAIN) for fault in faults)


def has_other_digits(faults: list[str]) -> bool:
    """Return whether digits beside an address are perhaps a part of it, so that the right text is not known."""
    return any(fault.startswith(_TEXT_WITH_DIGITS) for fault in faults)


def corrected(text: str, accepts: Callable[[str], bool]) -> Corrected | None:
    """Return what is superfluous in a text, if it is accepted without it."""
    faults: list[str] = []
    if len(text) > _LONGEST:
        return None
    for step in _STEPS:
        if accepts(text):
            break
        fault, text = step(text)
        if fault:
            faults.append(fault)
    return Corrected(faults, text) if faults and accepts(text) else None


def _blanks(text: str) -> tuple[str, str]:
    return ("blanks at its ends" if text != text.strip() else ""), text.strip()


def _without(pattern: str, what: str, keep: int, name: int | None) -> Callable[[str], tuple[str, str]]:
    """Return a step that keeps a group of a pattern and names another one."""

    def step(text: str) -> tuple[str, str]:
        found = re.fullmatch(pattern, text)
        if found is None:
            return "", text
        return (what if name is None else f'{what} "{found[name].strip()}"'), found[keep]

    return step


def _link(text: str) -> tuple[str, str]:
    """Keep the text of a link in Markdown, as chats write an address."""
    found = re.fullmatch(_LINK, text)
    return ("", text) if found is None else ("the form of a link, as a chat writes it", found[1] or found[2])


def _brackets(text: str) -> tuple[str, str]:
    found = re.fullmatch(_IN_BRACKETS, text)
    if found is None:
        return "", text
    return (f'{_BRACKETS} and the port "{found[2]}"' if found[2] else _BRACKETS), found[1]


class NumberAfter(NamedTuple):
    """A text with a blank in its last number, or with a number such as a port after an address.

    Attributes:
        alone: The address before the blank.
        joined: The address without the blank.
        number: What stands after the blank.
    """

    alone: str
    joined: str
    number: str


def number_after(text: Any, accepts: Callable[[str], bool]) -> NumberAfter | None:
    """Return the two addresses that a text with a number after an address can stand for; None if it is one at most."""
    found = re.fullmatch(_NUMBER_AFTER, text) if type(text) is str and len(text) <= _LONGEST else None
    if found is None:
        return None
    both = NumberAfter(found[1], found[1] + found[2], found[2])
    return both if accepts(both.alone) and accepts(both.joined) else None


def after_address(texts: Iterable[Any], accepts: Callable[[str], bool]) -> Counter[str]:
    """Return how many texts have each number after a blank and an address: several have it if it is a port."""
    found = (
        re.fullmatch(_NUMBER_AFTER, text) for text in texts if type(text) is str and len(text) <= _LONGEST
    )
    return Counter(one[2] for one in found if one is not None and accepts(one[1]))


def _inner_blanks(text: str) -> tuple[str, str]:
    without = "".join(text.split())
    return ("blanks in it" if without != text else ""), without


def _zeros(text: str) -> tuple[str, str]:
    if re.fullmatch(_DOTTED, text) and re.search(_ZEROS, text):
        return LEADING_ZEROS, re.sub(_ZEROS, "", text)
    return "", text


def _dashes(text: str) -> tuple[str, str]:
    if not re.fullmatch(_DASHED, text):
        return "", text
    return "other signs in place of dots", re.sub(r"[-_ ,]", ".", text)


def _letters(text: str) -> tuple[str, str]:
    right = text.translate(_LETTERS)
    if right == text or not (re.fullmatch(_DOTTED, right) or re.fullmatch(_HEX, right)):
        return "", text
    letter = next(one for one, other in zip(text, right, strict=True) if one != other)
    return f'the letter "{letter}" in place of a digit', right


def _surroundings(text: str) -> tuple[str, str]:
    """Keep the only IPv4 address of a text with words around it."""
    found = list(re.finditer(_ALONE, text))
    if not found or len({one[0] for one in found}) > 1:
        return "", text
    before, after = text[: found[0].start()].strip(), text[found[-1].end() :].strip()
    around = [
        f"{quoted(what)} {where} the address"
        for what, where in ((before, "before"), (after, "after"))
        if what
    ]
    what = (
        _TEXT_WITH_DIGITS
        if re.search(_DIGITS_BEFORE, before) or re.match(_DIGITS_AFTER, after)
        else _OTHER_TEXT
    )
    return (f"{what} {' and '.join(around)}", found[0][0]) if around else ("", text)


def _other_number(text: str) -> tuple[str, str]:
    """Keep the address before a number that cannot be the end of its last one."""
    found = re.fullmatch(_NUMBER_AFTER, text)
    if found is None or int(found[1].rpartition(".")[2] + found[2]) <= _HIGHEST_OCTET:
        return "", text
    return f"{_OTHER_TEXT} {quoted(found[2])} after the address", found[1]


def _double_dots(text: str) -> tuple[str, str]:
    right = re.sub(r"\.+", ".", text)
    return (
        ("two dots in place of one", right)
        if right != text and re.fullmatch(_DOUBLE_DOTS, text)
        else ("", text)
    )


def of_number(value: Any) -> str | None:
    """Return the private IPv4 address whose number a value is, decimal or hexadecimal; None for other values."""
    if type(value) is str:
        if not re.fullmatch(_AS_NUMBER, value):
            return None
        value = int(value, 16 if value[:2] in ("0x", "0X") else 10)
    if type(value) is not int or not 0 <= value < 1 << 32:
        return None
    parts = value.to_bytes(_OCTETS, "big")
    return ".".join(map(str, parts)) if is_private(parts) else None


def _number(text: str) -> tuple[str, str]:
    right = of_number(text)
    return ("", text) if right is None else ("the address as one number", right)


def _of_hccn_tool(text: str) -> tuple[str, str]:
    """Keep the address of what ``hccn_tool -ip -g`` prints, a line with the address and one with the netmask."""
    found = re.match(_PRINTED, text)
    return ("", text) if found is None else ("all that hccn_tool prints", found[1])


_STEPS: tuple[Callable[[str], tuple[str, str]], ...] = (
    _blanks, _link, _of_hccn_tool, _without(_QUOTED, _QUOTES, 2, None), _without(_SCHEME, _SCHEME_NAME, 2, 1),
    _without(_USER, _USER_NAME, 2, 1),
    _without(_WITH_MASK, _MASK, 1, 2), _without(_NAMED, _NAME, 2, 1),
    _without(_PATH, _END, 1, 2), _without(_ZONE, "the interface", 1, 2), _brackets, _without(_NETMASK, _MASK, 1, 2),
    _without(_PORT, _PORT_NAME, 1, 2), _without(_ENDING, _END, 1, 2), _dashes, _double_dots, _surroundings, _other_number,
    _inner_blanks, _letters, _zeros, _number,
)  # fmt: skip


def why_no_address(text: str) -> str:
    """Return why a text is not an IP address, as a phrase; "" if it looks like none."""
    if len(text) > _LONGEST:
        return ""
    if text.count(":") > 1:
        return _why_no_ipv6(text)
    if not re.fullmatch(_NUMBERS, text):
        return _why_no_numbers(text)
    if ".." in text or text.endswith("."):
        return "a number is missing between its dots"
    numbers = text.split(".")
    if len(numbers) == 1 and _OCTETS <= len(text) <= 3 * _OCTETS:
        return "it has no dots, an address has 3"
    if len(numbers) != _OCTETS:
        return f"it has {count(len(numbers), 'number')}, an address has 4"
    high = next((one for one in numbers if int(one) > _HIGHEST_OCTET), None)
    return f"{high} is above 255" if high else ""


def _why_no_numbers(text: str) -> str:
    """Return why a text is not an address of numbers: which character is not a digit, or that it is a word."""
    if not any(one.isdigit() for one in text) or "." not in text:
        return "it is a name or word"
    other = next((one for one in text if one not in "0123456789."), "")
    return f'"{other}" is not a digit' if re.fullmatch(_ANY_FOUR_PARTS, text) else ""


#: The texts before and after an address that are looked at: each address above 255 asks.
_MOST_COUNTED = 64


def counted_past(texts: Sequence[Any], at: int) -> range:
    """Return the texts around a text with a number above 255 that count up to it and on, by one each, as a spreadsheet fills a column.

    The result is empty if the text is not such an address, or no text beside it continues the count.
    """
    parts = _octets(texts[at])
    high = [place for place, one in enumerate(parts) if one > _HIGHEST_OCTET]
    if len(high) != 1:
        return range(0)
    (place,) = high

    def follows(other: int) -> bool:
        right = [*parts]
        right[place] += other - at
        return _octets(texts[other]) == right

    first = last = at
    while first > max(0, at - _MOST_COUNTED) and follows(first - 1):
        first -= 1
    while last + 1 < min(len(texts), at + _MOST_COUNTED) and follows(last + 1):
        last += 1
    begins_below = parts[place] - (at - first) <= _HIGHEST_OCTET + 1
    return range(first, last + 1) if first < last and begins_below else range(0)


def _octets(text: Any) -> list[int]:
    """Return the numbers of an IPv4 address, which may be too high; empty for other texts."""
    return [*map(int, text.split("."))] if type(text) is str and re.fullmatch(_FOUR_NUMBERS, text) else []


def _why_no_ipv6(text: str) -> str:
    if ":::" in text or text.count("::") > 1:
        return '"::" occurs more than once'
    wrong = next((one for one in text if one not in "0123456789abcdefABCDEF:.%"), None)
    if wrong is not None:
        return f'"{wrong}" is not a hexadecimal digit'
    parts = [one for one in text.split(":") if one]
    if "::" not in text and len(parts) != 8:
        return f"it has {count(len(parts), 'part')}, an address has 8, or :: for those that are zero"
    return "a part has more than four digits" if any(len(one) > 4 for one in parts) else ""


def corrected_eid(text: str, accepts: Callable[[str], bool]) -> Corrected | None:
    """Return what is superfluous in an EID, if it is one without it."""
    inner = text.strip().strip("[]\"'")
    plain = inner[2:] if inner[:2] in ("0x", "0X") else inner
    right = re.sub(_SEPARATORS, "", plain)
    faults = [
        what
        for what, is_there in (
            ("blanks at its ends", text != text.strip()),
            (_BRACKETS, text.strip().startswith("[")),
            ('"0x" before it', plain != inner),
            ("separators between its digits", right != plain),
        )
        if is_there
    ]
    if not accepts(right):
        fault, right = _letters(right)
        faults += [fault] if fault else []
    return Corrected(faults, right) if len(text) <= _LONGEST and faults and accepts(right) else None


def padded_eid(text: str) -> str | None:
    """Return the EID that a program wrote as a hexadecimal number, without its leading zeros; None for others."""
    found = re.fullmatch(_HEX_NUMBER, text)
    return None if found is None else found[1].lower().zfill(_EID_LENGTH)


def why_no_eid(text: str) -> str:
    """Return why a text is not an EID, as a phrase."""
    digits = re.sub(_SEPARATORS, "", text)
    wrong = next((one for one in digits if not re.fullmatch(_HEX, one)), None)
    if wrong is not None:
        return f'an EID has 32 hexadecimal digits, and "{wrong}" is not one'
    short = _EID_LENGTH - len(digits)
    what = f"{abs(short)} too few" if short > 0 else f"{abs(short)} too many"
    return f"it has {len(digits)} digits, {what}: an EID has {_EID_LENGTH}"


#: Signs that stand in place of a dot of an address, and the number of its dots.
_BETWEEN, _NO_COMMA = r"[\s,;|]+", r"[\s;|]"
_IN_PLACE_OF_DOTS, _DOTS = r"[,;:/_ -]", 3
_SEPARATOR = r"[\s,;|:/_-]"
#: What stands between all addresses of a host, and the longest text with them that is examined.
_BETWEEN_NAMES, _LONGEST_NAMES = r"[\s,;|/]+", 400


def parts(text: str) -> list[str]:
    """Return the parts of a text between blanks, commas, semicolons and bars."""
    return re.split(_BETWEEN, text.strip()) if len(text) <= _LONGEST else [text]


def joined_names(text: str) -> list[str]:
    """Return the addresses of a text with several, as ``hostname -I`` prints them; empty for others."""
    named = re.split(_BETWEEN_NAMES, text.strip()[:_LONGEST_NAMES])
    return named if len(named) > 1 and all(packed(part) is not None for part in named) else []


def are_separated(texts: Iterable[Any]) -> bool:
    """Return whether one of many texts has a sign that may stand between two of its parts."""
    return re.search(_SEPARATOR, "".join(text for text in texts if type(text) is str)) is not None


def with_dots(text: Any, accepts: Callable[[str], bool]) -> tuple[str, str] | None:
    """Return what separates the parts of a text that are wrongly separated, as a phrase, and the right text."""
    if type(text) is not str or len(text) > _LONGEST or re.search(_SEPARATOR, text) is None:
        return None
    signs = re.findall(_IN_PLACE_OF_DOTS, text)
    is_one = 0 < len(signs) < _DOTS or signs in ([","] * _DOTS, [":"] * _DOTS)
    if is_one and accepts(dotted := re.sub(_IN_PLACE_OF_DOTS, ".", text)) and dotted.count(".") == _DOTS:
        name = {",": "comma", " ": "blank"}.get(signs[0], f'"{signs[0]}"')
        if len(signs) == 1:
            return f"{'a ' if name.isalpha() else ''}{name} in place of a dot", dotted
        return (f"{name}s" if name.isalpha() else "other signs") + " in place of dots", dotted
    found = re.search(_NO_COMMA, text)
    if found is not None and len(addresses := parts(text)) > 1 and all(map(accepts, addresses)):
        sign = found[0]
        number = "two" if len(addresses) == 2 else len(addresses)
        return (
            f'"{" " if sign.isspace() else sign}" in place of a comma between {number} addresses',
            ",".join(addresses),
        )
    return None
