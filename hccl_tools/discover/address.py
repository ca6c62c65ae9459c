"""IP addresses as texts: which are addresses at all, and which are the same one."""

from __future__ import annotations

import socket


def packed(text: str) -> bytes | None:
    """Return the bytes of an IPv4 or IPv6 address, or None where the text is no address.

    A leading zero (``01.2.3.4``), blanks and host names are no addresses, to HCCL neither.
    """
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return socket.inet_pton(family, text)
    except (OSError, ValueError, UnicodeError):
        return None


def is_unset(text: str) -> bool:
    """Return whether an address is all zeros: what a device shows before one is set."""
    raw = packed(text)
    return raw is not None and not any(raw)


def is_loopback(raw: bytes) -> bool:
    """Return whether an address leads back to the host itself (127.0.0.0/8, ``::1``)."""
    return raw[0] == 127 if len(raw) == 4 else raw == b"\0" * 15 + b"\1"


def is_link_local(raw: bytes) -> bool:
    """Return whether an address is good on one cable only (169.254.0.0/16, fe80::/10)."""
    return raw[:2] == b"\xa9\xfe" if len(raw) == 4 else raw[0] == 0xFE and raw[1] & 0xC0 == 0x80


def is_host(raw: bytes) -> bool:
    """Return whether an address can be one host's at all: not unset, not multicast, not broadcast."""
    if not any(raw):
        return False
    return not (224 <= raw[0] <= 239 or raw == b"\xff" * 4) if len(raw) == 4 else raw[0] != 0xFF
