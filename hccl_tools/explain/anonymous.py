"""Replace the names and addresses of hosts in texts, equal ones by equal ones: a bundle stays readable.

The time is linear in the length of the text, also for many hosts.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Numbers of a list of hosts: ``node[01-04,07]``.
_NUMBERS = r"\[[0-9][0-9,-]*\]"
#: Letters and ``_`` may stand beside an address: ``hccl_8p_10.1.2.3.json``, ``ip10.1.2.3``.
_IPV4 = re.compile(rf"(?<![0-9.])(?:[0-9]{{1,3}}\.){{3}}(?:[0-9]{{1,3}}|{_NUMBERS})(?![0-9]|\.[0-9])")
#: Before it may stand an escaped newline of JSON, or the end of a color: their last sign is a letter.
_IPV6 = re.compile(
    r"(?:(?<![0-9A-Za-z:.])|(?<=\\[nrt])|(?<=[0-9;\[]m))(?:[0-9A-Fa-f]{0,4}:){2,7}"
    r"(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4})(?![0-9A-Za-z:]|\.[0-9])"
)
_MAC = re.compile("(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
#: A part of a name, and what may stand before it as above.
_PART = re.compile(r"((?:\x1b|\\u001b)\[[0-9;]{0,32}m|\\[nrt])?([A-Za-z0-9]+)")
_LIST = re.compile(_NUMBERS[2:])
#: The domain after the name of a host, as far as it is not the ending of the name of a file.
_DOMAIN = re.compile(
    r"(?:\.(?!(?:bak|c|cc|conf|cpp|csv|err|gz|h|ini|json|lock|log|old|out|pid|py|sh|so|sock|tar|tgz|tmp|toml"
    r"|txt|xz|ya?ml|zip|zst)(?![A-Za-z0-9-]))[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)
_LETTER = re.compile("[A-Za-z0-9]")
#: Names that say nothing about a site, or are words of rank tables: ``server_list``.
_COMMON = {
    "device",
    "group",
    "host",
    "level",
    "localhost",
    "node",
    "port",
    "rank",
    "server",
    "status",
    "super",
}
#: Shorter names are words of other meanings, unless they have a number: ``n1``.
_SHORTEST_NAME = 3


class Anonymiser:
    """Replaces ``hosts``, and every address, by ``host1`` and addresses that no host has.

    IPv4 addresses become those of 198.18.0.0/15, IPv6 addresses those of 2001:db8::/32, hardware addresses
    those of 02:00:00:00:00:00 and on; a table with them stays valid.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        self._names: set[str] = set()
        #: The first part of names -> their lengths.
        self._lengths: dict[str, set[int]] = {}
        for host in hosts:
            self._add(host.lower())
        self._given: dict[object, str] = {}
        self._hosts = self._ipv4 = self._ipv6 = self._macs = 0

    def text(self, text: str) -> str:
        """Return a text with all names and addresses replaced."""
        return _replaced(_IPV6, text, self._new_ipv6, self._without_ipv4)

    def _add(self, host: str) -> None:
        if _IPV4.fullmatch(host) or ":" in host:
            return
        short, _, domain = host.partition(".")
        for name in {host, short, domain if "." in domain else ""} - _COMMON:
            if (len(name) < _SHORTEST_NAME and not name[-1:].isdecimal()) or name.isdecimal():
                continue
            head = name.rstrip("0123456789")
            for known in {name, f"{head}[" if head != name else name}:
                if first := _PART.search(known):
                    self._names.add(known[first.start(2) :])
                    self._lengths.setdefault(first[2], set()).add(len(known) - first.start(2))

    def _without_ipv4(self, text: str) -> str:
        return _replaced(_IPV4, text, self._new_ipv4, self._without_names)

    def _without_names(self, text: str) -> str:
        parts, done = [], 0
        for found in _PART.finditer(text):
            if not found[1] and found[2].lower() not in self._lengths:
                continue
            starts = (found.start(2) - 1, found.start(2)) if found[1] else (found.start(2),)
            for start in starts:
                if start >= done and (end := self._end(text, start)) > start:
                    parts += [text[done:start], self._host(text[start:end].lower())]
                    done = end
        return "".join([*parts, text[done:]])

    def _end(self, text: str, start: int) -> int:
        """Return the end of the name of a host at a position, with its domain; -1 if there is none."""
        first = _PART.match(text, start)
        for length in sorted(self._lengths.get(first[2].lower(), ()) if first else (), reverse=True):
            name = text[start : start + length]
            end = start + len(name)
            if name.lower() not in self._names or (name[-1] != "[" and _LETTER.match(text, end)):
                continue
            if rest := (_LIST if name[-1] == "[" else _DOMAIN).match(text, end):
                return rest.end()
        return -1

    def _host(self, name: str) -> str:
        if name not in self._given:
            self._hosts += 1
            self._given[name] = f"host{self._hosts}"
        return self._given[name]

    def _new_ipv4(self, text: str) -> str | None:
        if text.endswith("]"):
            return self._host(text)
        numbers = [int(number) for number in text.split(".")]
        return self._address(IPv4Address(bytes(numbers))) if max(numbers) <= 255 else None

    def _new_ipv6(self, text: str) -> str | None:
        try:
            address = IPv6Address(text)
        except ValueError:
            return self._mac(text.lower()) if _MAC.fullmatch(text) else None  # None for a time.
        mapped = address.ipv4_mapped
        return f"::ffff:{self._address(mapped)}" if mapped else self._address(address)

    def _mac(self, text: str) -> str:
        if text not in self._given:
            self._macs += 1
            self._given[text] = "02:" + self._macs.to_bytes(5, "big").hex(":")
        return self._given[text]

    def _address(self, address: IPv4Address | IPv6Address) -> str:
        if address.is_loopback or address.is_unspecified:
            return str(address)
        if address not in self._given:
            self._given[address] = self._next_ipv6() if address.version == 6 else self._next_ipv4()
        return self._given[address]

    def _next_ipv6(self) -> str:
        self._ipv6 += 1
        return f"2001:db8::{self._ipv6:x}"

    def _next_ipv4(self) -> str:
        self._ipv4 += 1
        number = self._ipv4
        return f"198.{18 + (number >> 16 & 1)}.{number >> 8 & 255}.{number & 255}"


def _replaced(
    pattern: re.Pattern[str], text: str, new: Callable[[str], str | None], other: Callable[[str], str]
) -> str:
    """Return a text with what a pattern finds replaced by ``new``, and the text between by ``other``."""
    parts, done = [], 0
    for found in pattern.finditer(text):
        instead = new(found[0])
        if instead is not None:
            parts += [other(text[done : found.start()]), instead]
            done = found.end()
    return "".join([*parts, other(text[done:])])
