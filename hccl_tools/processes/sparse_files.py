"""The parts of a file that have data."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def extents(descriptor: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a file from ``begin`` to ``end`` that have data; of a sparse file not its holes.

    A hole of terabytes takes no room on the disk, and hours to read.
    """
    about = os.fstat(descriptor)
    is_sparse = stat.S_ISREG(about.st_mode) and about.st_blocks * 512 < about.st_size  # 512 bytes
    while is_sparse and begin < end:
        try:
            begin = os.lseek(descriptor, begin, os.SEEK_DATA)
            hole = os.lseek(descriptor, begin, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # The rest is a hole.
                return
            break
        if begin < end:
            yield begin, min(hole, end)
        begin = hole
    if begin < end:
        yield begin, end
