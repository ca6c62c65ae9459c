"""Recognize the dumps of flight recorders, and the evidence of hosts, by their content; and read them."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

from hccl_tools.processes import run_files

if TYPE_CHECKING:
    from typing import IO

#: Bytes at the beginning of a file that show what it is.
_HEAD = 1 << 16
PICKLE = b"\x80"
GZIP, _GZIP_WINDOW = b"\x1f\x8b", 31
#: Keys of a dump; one of them is near its beginning.
_KEYS = (b"collective_seq_id", b"pg_config", b"pg_status", b"last_enqueued_collective")
#: A key of the evidence of a host.
EVIDENCE_KEY = b'"recorder_problem"'
#: Endings of dumps, which often have none: ``nccl_trace_rank_3``.
_ENDINGS = (".json", ".pkl", ".pickle", ".trace", ".bin", ".dump")


def is_dump(path: str) -> bool:
    """Return whether a file is a dump of a recorder, or the evidence of a host; False if it is unreadable."""
    ending = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    if ending and ending not in _ENDINGS and not ending[1:].isdecimal():
        return False
    try:
        with open(run_files.open_read(path), "rb") as file:
            head = beginning(file, _HEAD)
    except (OSError, zlib.error):
        return False
    if head.startswith(PICKLE):
        return any(key in head for key in _KEYS)
    return head.lstrip()[:1] in {b"{", b"["} and (any(key in head for key in _KEYS) or EVIDENCE_KEY in head)


def beginning(file: IO[bytes], most: int) -> bytes:
    """Return the first bytes of a file, unpacked if it is compressed.

    Raises:
        OSError: The file cannot be read.
        zlib.error: It is damaged.
    """
    data = file.read(most) or b""  # None: a file in /proc has nothing to read yet.
    if not data.startswith(GZIP):
        return data
    return zlib.decompressobj(_GZIP_WINDOW).decompress(data, most)
