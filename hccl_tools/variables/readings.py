"""How HCCL reads a variable: one class for each way of reading.

A reading has ``accepts``, a phrase for messages ("HCCL accepts ..."), and ``refuses(text)``.

Sources: hcomm externalinput.cc (CheckEnvLen, ParseRetryEnable, ParseRetryParams), sal.cc (IsAllDigit,
SalStrToULong), env_config.cc (SetSocketPortRange, ParseDFSConfig), alg_env_config.cc, hccl_ip_address.cc
(SetReadableAddress); ascend950 env_func.h (Str2T), env_func.cc (CastDfsConfig), ip_address.h.
"""

from __future__ import annotations

import re

from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import packed

#: The mark before a list that is excluded, and the mark before exact names.
_MARK, _MARKS = r"\A\^", r"\A\^?=?"


class Words(NamedTuple):
    """One of several words; ``any_case`` tells whether upper and lower case are the same."""

    words: tuple[str, ...]
    any_case: bool = False

    @property
    def accepts(self) -> str:
        """The words, as a phrase."""
        return one_of(self.words)

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        if self.any_case:
            return not text.isascii() or text.lower() not in self.words
        return text not in self.words


class Flags(NamedTuple):
    """A list of words in any case, or after ``^`` of all others; empty parts are left out."""

    words: tuple[str, ...]

    @property
    def accepts(self) -> str:
        """The list, as a phrase."""
        return f"a list of {', '.join(self.words)}, separated by commas, with an optional ^ before it"

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        known = {"", *(word.lower() for word in self.words)}
        listed = re.sub(_MARK, "", text, count=1).split(",")
        return not text.isascii() or any(part.lower() not in known for part in listed)


class Interfaces(NamedTuple):
    """Names of network interfaces; ``may_have_gaps`` tells whether names after the first may be empty."""

    may_have_gaps: bool = False

    @property
    def accepts(self) -> str:
        """The list, as a phrase."""
        return 'names or prefixes of interfaces ("eth0,eth1"), with ^, = or ^= before the first'

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        names = re.sub(_MARKS, "", text, count=1).split(",")
        return not names[0] or (not self.may_have_gaps and not all(names))


class Address(NamedTuple):
    """An address; ``takes_interface`` tells whether ``%interface`` may follow it (reader of 910 to A3)."""

    takes_interface: bool = True

    @property
    def accepts(self) -> str:
        """The addresses, as a phrase."""
        return "an IPv4 or IPv6 address" + (", also with %INTERFACE" if self.takes_interface else "")

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        return packed(text) is None or ("%" in text and not self.takes_interface)


class Text(NamedTuple):
    """Any text of some length, in bytes; ``what`` describes it."""

    what: str
    least: int
    most: int

    @property
    def accepts(self) -> str:
        """The text, as a phrase."""
        return f"{self.what} of {self.least} to {self.most} bytes"

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        return not self.least <= len(text.encode(errors="surrogateescape")) <= self.most


def one_of(words: tuple[str, ...]) -> str:
    """Return words as a phrase: ``A, B or C``."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


#: HCCL refuses longer numbers (MAX_LEN_OF_DIGIT_ENV), in bytes.
LONGEST_NUMBER = 10
#: IsAllDigit takes one minus, and std::stoull takes ``-0``. Other negative numbers are out of range.
_DIGITS = r"-?[0-9]+"
#: std::stoull and std::stoi stop at the first character that is not part of a number.
_NUMBER_FIRST = r"[ \t-\r]*([-+]?[0-9]+)"
_SECONDS = r"([0-9]+)(?:\.([0-9]{1,2}))?"
#: The most digits of a number that is converted, after leading zeros; longer ones are out of every range.
_MOST_DIGITS = 20


class Whole(NamedTuple):
    """A whole number within a range.

    Attributes:
        first: The smallest number.
        last: The largest number.
        step: The number is a multiple of it.
        unit: The unit of the number, for messages.
        takes_minus: Whether ``-0`` is a number (reader of 910 to A3).
        may_have_more: Whether HCCL ignores blanks before the number and any text after it.
    """

    first: int
    last: int
    step: int = 1
    unit: str = ""
    takes_minus: bool = True
    may_have_more: bool = False

    @property
    def accepts(self) -> str:
        """The numbers, as a phrase."""
        span = (
            f"{self.first} or {self.last}" if self.last - self.first == 1 else f"{self.first} to {self.last}"
        )
        unit = f" {self.unit}" if self.unit else ""
        return f"{span}{unit}" + (f", a multiple of {self.step}" if self.step > 1 else "")

    def value(self, text: str) -> int | None:
        """Return the number that HCCL reads, or ``None`` if it refuses the text."""
        if len(text.encode(errors="surrogateescape")) > LONGEST_NUMBER:
            return None
        found = leading_number(text) if self.may_have_more else all_digits(text, minus=self.takes_minus)
        if found is None or not self.first <= found <= self.last or found % self.step:
            return None
        return found

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        return self.value(text) is None


class Seconds(NamedTuple):
    """Seconds with up to two decimals.

    Attributes:
        last: The largest number of seconds.
        takes_zero: Whether 0 is accepted.
        longest: The largest length of the text, or ``None`` for any.
    """

    last: int
    takes_zero: bool
    longest: int | None = LONGEST_NUMBER

    @property
    def accepts(self) -> str:
        """The seconds, as a phrase."""
        span = f"0 to {self.last}" if self.takes_zero else f"more than 0 and up to {self.last}"
        return f"{span} seconds with up to two decimals"

    def value(self, text: str) -> float | None:
        """Return the seconds, or ``None`` if HCCL refuses the text."""
        found = re.fullmatch(_SECONDS, text)
        if found is None or (self.longest is not None and len(text) > self.longest):
            return None
        whole = bounded(found[1])
        if whole is None or whole > self.last:
            return None
        seconds = whole + int((found[2] or "0").ljust(2, "0")) / 100
        # Without a limit of its length, a text is read up to the point (reader of Ascend 950).
        if (self.longest is not None and seconds > self.last) or (not seconds and not self.takes_zero):
            return None
        return seconds

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        return self.value(text) is None


def all_digits(text: str, *, minus: bool = True) -> int | None:
    """Return the number of a text that has only digits, after an optional minus."""
    if re.fullmatch(_DIGITS, text) is None or (text[0] == "-" and not minus):
        return None
    return bounded(text)


def leading_number(text: str) -> int | None:
    """Return the number at the start of a text, as std::stoi reads it; ``None`` without one."""
    found = re.match(_NUMBER_FIRST, text)
    return None if found is None else bounded(found[1])


def bounded(digits: str) -> int | None:
    """Return the number of some digits with an optional sign; ``None`` if it is out of every range."""
    sign, plain = digits[:1] == "-", digits.lstrip("+-").lstrip("0")
    if len(plain) > _MOST_DIGITS:
        return None
    number = int(plain or "0")
    return -number if sign else number


_LAST_PORT = 65535
_BLANKS = r"[ \t-\r]*"


class Ports(NamedTuple):
    """Ports and ranges of ports that do not overlap; ``auto``, or only spaces, mean that there are none."""

    @property
    def accepts(self) -> str:
        """The list, as a phrase."""
        return f'ports 1 to {_LAST_PORT} and ranges without overlaps ("60000-60015,60020"), or auto'

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        listed = text.replace(" ", "")
        if text == "auto" or not listed:
            return False
        ranges = []
        for part in listed.split(","):
            least, dash, most = part.partition("-")
            first, last = all_digits(least), all_digits(most if dash else least)
            if first is None or last is None or not 1 <= first <= last <= _LAST_PORT:
                return True
            ranges.append((first, last))
        ranges.sort()
        return any(ranges[place - 1][1] >= ranges[place][0] for place in range(1, len(ranges)))


class Pairs(NamedTuple):
    """A list of ``KEY:WORD``; spaces are ignored, and an empty list is accepted.

    Attributes:
        words: The words of each key.
        separator: What separates the pairs.
        example: A value, for messages.
        once: Whether a key may occur only once.
    """

    words: dict[str, tuple[str, ...]]
    separator: str
    example: str
    once: bool = True

    @property
    def accepts(self) -> str:
        """The list, as a phrase."""
        sets = list(dict.fromkeys(self.words.values()))
        if len(sets) == 1:
            return f'a list such as "{self.example}" of {", ".join(self.words)} with {one_of(sets[0])}'
        pairs = ", ".join(f"{key}:{'/'.join(words)}" for key, words in self.words.items())
        return f'a list such as "{self.example}" of {pairs}'

    def values(self, text: str) -> dict[str, str] | None:
        """Return the word of each key, or ``None`` if HCCL refuses the text."""
        text = text.replace(" ", "")
        found: dict[str, str] = {}
        for part in text.split(self.separator) if text else ():
            key, _, word = part.partition(":")
            if word not in self.words.get(key, ()) or (self.once and key in found):
                return None
            found[key] = word
        return found

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        return self.values(text) is None


class Algorithms(NamedTuple):
    """Algorithms by level, for all operations or for named ones; spaces are ignored.

    Attributes:
        levels: The list of levels.
        operations: The operations that can be named.
        not_first: The word that the level ``first`` of a named operation cannot have.
        first: This level.
    """

    levels: Pairs
    operations: tuple[str, ...]
    first: str
    not_first: str

    @property
    def accepts(self) -> str:
        """The value, as a phrase."""
        each = f"{self.operations[0]}={self.levels.example}"
        return f'{self.levels.accepts}; or such a list for each operation, separated by / ("{each}")'

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        text = text.replace(" ", "")
        if "=" not in text:
            return self.levels.refuses(text)
        for part in text.split("/"):
            operation, _, levels = part.partition("=")
            found = self.levels.values(levels) if levels else None
            if operation not in self.operations or found is None or found.get(self.first) == self.not_first:
                return True
        return False


class Numbered(NamedTuple):
    """Several ``KEY:NUMBER`` in a fixed order, as sscanf reads them: HCCL ignores what follows.

    ``ranges`` are the first and the last number of each key.
    """

    ranges: dict[str, tuple[int, int]]

    @property
    def accepts(self) -> str:
        """The value, as a phrase."""
        named = ",".join(f"{key}:N" for key in self.ranges)
        spans = ", ".join(f"{key} {first} to {last}" for key, (first, last) in self.ranges.items())
        return f'"{named}" with {spans}'

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        fields = (f"{key}:{_BLANKS}([-+]?[0-9]+)" for key in self.ranges)
        found = re.match(f",{_BLANKS}".join(fields), text)
        if found is None:
            return True
        for digits, (first, last) in zip(found.groups(), self.ranges.values()):  # noqa: B905  (Python 3.8)
            number = bounded(digits)
            if number is None or not first <= number <= last:
                return True
        return False


class Searched(NamedTuple):
    """Numbers that HCCL searches for in a text, each after its key; it ignores everything else.

    Attributes:
        ranges: The first and the last number of each key; 0 and no number are accepted too.
    """

    ranges: dict[str, tuple[int, int]]

    @property
    def accepts(self) -> str:
        """The numbers, as a phrase."""
        return " and ".join(
            f"{key}:N with N {'0 or ' if first > 1 else ''}{first if first > 1 else 0} to {last}"
            for key, (first, last) in self.ranges.items()
        )

    def refuses(self, text: str) -> bool:
        """Return whether HCCL refuses the text."""
        text = text.replace(" ", "").lower()
        for key, (first, last) in self.ranges.items():
            written = text.partition(f"{key}:")[2].partition(",")[0]
            if not written:
                continue
            number = leading_number(written)
            if number is None or (number and not first <= number <= last):
                return True
        return False
