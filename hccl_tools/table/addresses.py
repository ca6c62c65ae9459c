"""Addresses as HCCL reads them.

Source: hcomm hccl_ip_address.cc: ``inet_pton`` on the text before an optional ``%interface``; two or
more colons mean IPv6. ``0.0.0.0`` means that there is no address.
"""

from __future__ import annotations

import re

# Not ``socket``, which imports selectors and creates enums, and so adds 2 ms to each job start.
from _socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from functools import lru_cache
from itertools import islice, repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AF_INET",
    "AF_INET6",
    "FAMILIES",
    "QUERIES",
    "SIMULATED_NETWORK",
    "UNSET",
    "V2_CHECKS",
    "family",
    "inet_ntop",
    "inet_pton",
    "is_eid",
    "is_host",
    "is_link_local",
    "is_loopback",
    "is_netmask",
    "is_set",
    "is_simulated",
    "is_unset",
    "is_v2_ipv4",
    "is_v2_ipv6",
    "joined_ipv4",
    "packed",
    "query",
]  # fmt: skip

_OCTET = r"(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_EID = r"[0-9A-Fa-f]{32}"
_IPV6_COLONS = 2
#: The address that HCCL treats as missing.
UNSET = "0.0.0.0"  # noqa: S104  (compared, never bound)  # nosec B104
#: The first three numbers of the addresses of simulated hosts: RFC 5737 reserves them, no host has one.
SIMULATED_NETWORK = "192.0.2."
#: The families of addresses by their number of bytes.
FAMILIES = {4: AF_INET, 16: AF_INET6}
_LOOPBACK_IPV6 = b"\0" * 15 + b"\1"


def packed(text: str) -> bytes | None:
    """Return an address in network order (4 or 16 bytes), or ``None`` if HCCL does not accept the text."""
    address, mark, zone = text.partition("%")
    if mark and not (address and zone):
        return None
    address = address.partition("\0")[0]
    try:
        return inet_pton(AF_INET6 if address.count(":") >= _IPV6_COLONS else AF_INET, address)
    except (OSError, UnicodeEncodeError):
        return None


def joined_ipv4(texts: Iterable[str]) -> bytes | None:
    """Return the four bytes of each text, joined; ``None`` if one is not an IPv4 address.

    It takes a fraction of the time of ``packed`` for each.
    """
    try:
        return b"".join(map(inet_pton, repeat(AF_INET), texts))
    except (OSError, ValueError):  # ValueError: a NUL or a lone surrogate
        return None


def family(text: str) -> int | None:
    """Return AF_INET or AF_INET6, or ``None`` if HCCL does not accept the text as an address."""
    address = packed(text)
    return None if address is None else FAMILIES[len(address)]


def is_unset(text: str) -> bool:
    """Whether HCCL treats a valid address as missing: ``0.0.0.0``, with or without an interface."""
    return text.partition("%")[0].partition("\0")[0] == UNSET


def is_set(text: str) -> bool:
    """Whether a text is an address other than all zeros, which a device has before its address is set."""
    return any(packed(text) or b"")


def is_loopback(text: str) -> bool:
    """Whether an address or name refers to the machine itself: 127.0.0.0/8, ``::1`` or localhost."""
    is_ipv6 = ":" in text and packed(text) == _LOOPBACK_IPV6
    return is_ipv6 or text == "localhost" or text.startswith("127.")


def is_simulated(text: str) -> bool:
    """Whether a name is the address of a host of a simulated cluster."""
    return text.startswith(SIMULATED_NETWORK)


def is_private(raw: bytes) -> bool:
    """Whether an IPv4 address is one of the private networks."""
    return raw[0] == 10 or raw[:2] == b"\xc0\xa8" or (raw[0] == 172 and 16 <= raw[1] < 32)


def is_netmask(text: str) -> bool:
    """Whether a text is the netmask of a network: ones before zeros, 255.0.0.0 to 255.255.255.252."""
    raw = packed(text)
    if raw is None or len(raw) != 4 or raw[0] != 0xFF:
        return False
    hosts = ~int.from_bytes(raw, "big") & 0xFFFFFFFF
    return hosts > 1 and hosts & (hosts + 1) == 0


def is_link_local(raw: bytes) -> bool:
    """Whether an address is valid on one link only (169.254.0.0/16, fe80::/10)."""
    return raw[:2] == b"\xa9\xfe" if len(raw) == 4 else raw[0] == 0xFE and raw[1] & 0xC0 == 0x80


def is_host(raw: bytes) -> bool:
    """Whether an address can identify one host: not all zeros, not multicast, not broadcast."""
    if not any(raw):
        return False
    return not (224 <= raw[0] <= 239 or raw == b"\xff" * 4) if len(raw) == 4 else raw[0] != 0xFF


def is_v2_ipv4(text: str) -> bool:
    """Whether the 2.0 parser accepts a text as IPv4: four numbers up to 255 without leading zeros."""
    return _v2_ipv4().fullmatch(text) is not None


@lru_cache(maxsize=None)  # noqa: UP033  (Python 3.8 on other hosts has no functools.cache)
def _v2_ipv4() -> re.Pattern[str]:
    return re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")  # Half a millisecond, and few tables need it.


def is_v2_ipv6(text: str) -> bool:
    """Whether the 2.0 parser accepts a text as IPv6: it uses ``inet_pton``, without an interface.

    Source: hcomm ip_address.h, IsIPv6.
    """
    try:
        inet_pton(AF_INET6, text)
    except (OSError, ValueError):  # ValueError: a NUL or a lone surrogate
        return False
    return True


def is_eid(text: str) -> bool:
    """Whether a text is an EID: 32 hex digits."""
    return re.fullmatch(_EID, text) is not None


#: The check of the 2.0 parser for an address, by ``addr_type``.
V2_CHECKS = {"IPV4": is_v2_ipv4, "IPV6": is_v2_ipv6, "EID": is_eid}


#: The arguments with which ``hccn_tool -i N`` shows an address of each family.
QUERIES = {"IPv4": "-ip -g", "IPv6": "-ip -inet6 -g"}
#: The most addresses that are looked at for the family of a table.
_MOST_SEEN = 64


def query(texts: Iterable[object]) -> str:
    """Return the arguments with which ``hccn_tool -i N`` shows addresses of the family of most texts.

    >>> query(["192.168.1.1"]), query(["fd00::1", ""])
    ('-ip -g', '-ip -inet6 -g')
    """
    seen = [text for text in islice(texts, _MOST_SEEN) if isinstance(text, str) and text]
    return QUERIES["IPv6" if 2 * sum(":" in text for text in seen) > len(seen) else "IPv4"]
