"""What proves where a message is from. It loads OpenSSL, which the ranks of one host do not need."""

from __future__ import annotations

import hashlib
import hmac


class Digests:
    """SHA-256 of a content, and the code (MAC) that only who has the key can make."""

    @staticmethod
    def of(content: bytes) -> bytes:
        """Return the SHA-256 of a content."""
        return hashlib.sha256(content).digest()

    @staticmethod
    def mac(key: bytes, data: bytes) -> bytes:
        """Return the code for data."""
        return hmac.digest(key, data, "sha256")

    @staticmethod
    def is_equal(mac: bytes, claimed: str) -> bool:
        """Return whether a code is the one that is claimed, in hexadecimal digits."""
        return hmac.compare_digest(mac, bytes.fromhex(claimed))
