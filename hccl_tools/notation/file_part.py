"""A text of others as a part of a file name: it must not lead to another folder or act on a terminal."""

from __future__ import annotations

from binascii import crc32
from urllib.parse import quote

#: The most characters; the limit of file systems for a whole name is 255 bytes.
_LONGEST = 64


def file_part(text: str) -> str:
    """Return a text with only letters, digits and ``_ . - : ~``; other signs are percent-encoded.

    A long text is cut, and ends with a checksum: two long names of hosts remain two names.

    >>> file_part("10.0.0.1"), file_part("x/../../y"), file_part("-o")
    ('10.0.0.1', 'x%2F..%2F..%2Fy', '%2Do')
    """
    safe = quote(text, safe=":", errors="replace")
    if safe[:1] in {"-", "."}:
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    if len(safe) <= _LONGEST:
        return safe
    digest = f"{crc32(text.encode(errors='replace')):08x}"
    return f"{safe[: _LONGEST - len(digest) - 1]}_{digest}"
