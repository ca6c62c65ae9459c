"""How HCCL reads a variable with words, names, an address or a path; see ``numbers`` for what a reading has.

Source: hcomm externalinput.cc, hccl_ip_address.cc (SetReadableAddress), ascend950 env_func.cc, ip_address.h.
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
