"""Replace the names and addresses of hosts in texts, equal ones by equal ones: a bundle stays readable."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from hccl_tools.table.addresses import UNSET

if TYPE_CHECKING:
    from collections.abc import Iterable

_IPV4 = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)"
_IPV6 = r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])"
#: Names that say nothing about a site.
_COMMON = {"localhost", "", UNSET, "127.0.0.1"}
_SHORTEST_NAME = 3


class Anonymiser:
    """Replaces ``hosts``, and every address, by ``host1`` and addresses that belong to nobody.

    IPv4 addresses become those of 198.18.0.0/15, IPv6 addresses those of 2001:db8::/32; a table with them
    stays valid.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        names = {name for host in hosts for name in (host, host.partition(".")[0])} - _COMMON
        names = {name for name in names if len(name) >= _SHORTEST_NAME and not _is_address(name)}
        ordered = sorted(names, key=lambda name: (-len(name), name))
        words = [rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in ordered]
        self._pattern = re.compile("|".join([_IPV4, _IPV6, *words]))
        self._given: dict[str, str] = {}
        self._hosts = self._ipv4 = self._ipv6 = 0

    def text(self, text: str) -> str:
        """Return a text with all names and addresses replaced."""
        return self._pattern.sub(lambda found: self._instead(found[0]), text)

    def _instead(self, word: str) -> str:
        if word not in self._given:
            self._given[word] = self._new(word)
        return self._given[word]

    def _new(self, word: str) -> str:
        try:
            address = ip_address(word)
        except ValueError:
            if ":" in word or word[0].isdigit():  # a time, a version
                return word
            self._hosts += 1
            return f"host{self._hosts}"
        if address.is_loopback or address.is_unspecified:
            return word
        if isinstance(address, IPv6Address):
            self._ipv6 += 1
            return f"2001:db8::{self._ipv6:x}"
        self._ipv4 += 1
        number = self._ipv4
        return f"198.{18 + (number >> 16 & 1)}.{number >> 8 & 255}.{number & 255}"


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
