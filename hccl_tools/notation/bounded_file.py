"""Read a small file whose name a user has typed, with a limit on its size that holds while it is read.

A size that is looked up first says nothing about a device, a file of /proc, or a file that grows. Opening a
named pipe would wait for a writer, who may never come.
"""

from __future__ import annotations

import errno
import os
import stat

#: What a shell passes on already open: ``/dev/stdin``, ``<(command)``.
_OPEN_ALREADY = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
#: What to do about an error of the system.
_HINTS = {
    errno.ENOENT: "check the name; the path is relative to the current folder",
    errno.EACCES: "ask its owner for permission, or read it as another user",
    errno.EPERM: "ask its owner for permission, or read it as another user",
    errno.ELOOP: "remove the link and create it again",
    errno.ENAMETOOLONG: "specify the name of a file, not its content",
}
_KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


def hint(error: Exception) -> str | None:
    """Return what to do about a file that cannot be read, ``None`` if nothing can be said."""
    return _HINTS.get(error.errno or 0) if isinstance(error, OSError) else None


def read(path: str, limit: int) -> bytes:
    """Return the content of a regular file, or of a pipe that the shell has opened.

    Args:
        path: The name of the file.
        limit: The size that is too large by one byte more.

    Raises:
        OSError: The file cannot be opened, is a pipe or a device, or is larger than ``limit`` bytes;
            ``strerror`` completes a sentence, as the messages of the system do.
    """
    is_open_already = path.startswith(_OPEN_ALREADY)
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | (0 if is_open_already else os.O_NONBLOCK)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123  (a directory is refused here)
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode) and not (is_open_already and stat.S_ISFIFO(mode)):
            kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")
            raise OSError(errno.EINVAL, f"it is {kind}, not a file", path)
        data = file.read(limit + 1) or b""  # None: a file in /proc has nothing to read yet.
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit:,} bytes", path)
    return data
