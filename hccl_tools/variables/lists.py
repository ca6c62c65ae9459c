"""How HCCL reads a variable with several settings; see ``numbers`` for what a reading has.

Source: hcomm externalinput.cc (ParseRetryEnable, ParseRetryParams), env_config.cc (SetSocketPortRange,
ParseDFSConfig), alg_env_config.cc, ascend950 env_func.cc (CastDfsConfig).
"""

from __future__ import annotations

import re

from hccl_tools.records import NamedTuple
from hccl_tools.variables.numbers import all_digits, bounded, leading_number
from hccl_tools.variables.texts import one_of

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
