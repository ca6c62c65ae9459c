"""Summaries of files and folders, to compare the hosts' copies of a program and of its data."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import count

if TYPE_CHECKING:
    from collections.abc import Iterator

ABSENT = "absent"
_PART = 1 << 20
#: Bytes of ``--code`` that are read. Of its further files, as of those of a data set, the beginning is read.
_CODE_BYTES = 1 << 30
_SAMPLE = 1 << 16
#: Files of a data set of which the beginning is read, spread evenly over the names in order.
_DATA_FILES = 16
#: Entries of a folder that are listed.
MOST_ENTRIES = 200_000
#: Names that a run of the program makes.
_MADE = frozenset({"__pycache__", ".git"})


def code(path: str) -> str:
    """Return a short hash of a file, or of all files of a folder with their names; else why there is none."""
    digest, left = _digest(), _CODE_BYTES
    try:
        if not os.path.isdir(path):
            _add(digest, path, left)
        else:
            for name in _files(path):
                digest.update(os.fsencode(name) + b"\0")
                left -= _add(digest, os.path.join(path, name), max(left, _SAMPLE))
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return f"unreadable ({error.strerror})"
    return digest.hexdigest()[:12]


def data(path: str) -> str:
    """Return how many files a folder has, their bytes together, and a hash of names, sizes and samples."""
    if not os.path.isdir(path):
        return "not a folder" if os.path.exists(path) else ABSENT
    digest, total = _digest(), 0
    names = list(_files(path))
    sampled = {names[len(names) * number // _DATA_FILES] for number in range(_DATA_FILES) if names}
    for name in names:
        full = os.path.join(path, name)
        with suppress(OSError):
            size = os.stat(full).st_size
            total += size
            digest.update(b"%s\0%d\0" % (os.fsencode(name), size))
            if name in sampled:
                _add(digest, full, _SAMPLE)
    more = "or more " if len(names) == MOST_ENTRIES else ""
    return f"{count(len(names), 'file')} {more}of {total:,} bytes, {digest.hexdigest()[:12]}"


def _digest() -> hashlib._Hash:
    return hashlib.sha256()


def _files(folder: str) -> Iterator[str]:
    """Yield the files of a folder, relative to it, in the order of their names."""
    found, waiting = 0, [folder]
    while waiting:  # os.walk calls itself for each level before Python 3.12.
        here, folders, names = next(os.walk(waiting.pop()), ("", [], []))
        inside = [os.path.join(here, name) for name in sorted(folders, reverse=True) if name not in _MADE]
        waiting += [path for path in inside if not os.path.islink(path)]
        for name in sorted(names):
            found += 1
            if found > MOST_ENTRIES:
                return
            yield os.path.relpath(os.path.join(here, name), folder)


def _add(digest: hashlib._Hash, path: str, most: int) -> int:
    """Add the size of a regular file and its bytes, at most ``most``; return the number of those bytes.

    A pipe would block, and a file of /proc, whose size is 0, can have any number of bytes.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ENXIO and (error.errno != errno.ENOENT or not os.path.lexists(path)):
            raise
        digest.update(b"not a regular file")  # A socket, or a link that leads nowhere.
        return 0
    with open(descriptor, "rb", buffering=0) as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            digest.update(b"not a regular file")
            return 0
        digest.update(b"%d\0" % about.st_size)
        left = most = min(most, about.st_size)
        while left and (part := file.read(min(left, _PART))):
            digest.update(part)
            left -= len(part)
    return most - left
