"""Write small files of a run atomically, without a sync: after a power failure nobody needs them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def write(folder: str, name: str, data: bytes | Iterable[bytes], mode: int = 0o600) -> str:
    """Write a file completely or not at all, even if several hosts share the disk; return its path.

    Raises:
        OSError: The file cannot be written; an existing file is unchanged.
    """
    path = os.path.join(folder, name)
    temporary = f"{path}.{os.urandom(8).hex()}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.writelines([data] if isinstance(data, bytes) else data)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    return path
