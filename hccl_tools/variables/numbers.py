"""How HCCL reads a variable with a number: one class for each way of reading.

A reading has ``accepts``, a phrase for messages ("HCCL accepts ..."), and ``refuses(text)``.

Source: hcomm externalinput.cc (CheckEnvLen), sal.cc (IsAllDigit, SalStrToULong), env_func.h (Str2T).
"""

from __future__ import annotations

import re

from hccl_tools.records import NamedTuple

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
