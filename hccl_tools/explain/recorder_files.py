"""Recognize the dumps of flight recorders, and the evidence of hosts, by their content."""

from __future__ import annotations

import os

from hccl_tools.launch import run_files

#: Bytes at the beginning of a file that show what it is.
_HEAD = 1 << 16
PICKLE = b"\x80"
#: Keys of a dump; one of them is near its beginning.
_KEYS = (b"collective_seq_id", b"pg_config", b"pg_status", b"last_enqueued_collective")
#: A key of the evidence of a host.
EVIDENCE_KEY = b'"recorder_problem"'
#: Endings of dumps, which often have none: ``nccl_trace_rank_3``.
_ENDINGS = (".json", ".pkl", ".pickle", ".trace", ".bin", ".dump")


def is_dump(path: str) -> bool:
    """Return whether a file is a dump of a recorder, or the evidence of a host; False if it is unreadable."""
    ending = os.path.splitext(path)[1].lower()
    if ending and ending not in _ENDINGS and not ending[1:].isdecimal():
        return False
    try:
        with open(run_files.open_read(path), "rb", buffering=0) as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    if head.startswith(PICKLE):
        return any(key in head for key in _KEYS)
    return head.lstrip()[:1] == b"{" and (any(key in head for key in _KEYS) or EVIDENCE_KEY in head)
