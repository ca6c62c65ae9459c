"""Reading a file or standard input whole, with an end to it: no wait on a pipe, no endless device.

A pipe that the shell has opened for this process (``<(cat table.json)``) is read like standard input.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
import time
from itertools import islice
from typing import IO

from hccl_tools.errors import InputError
from hccl_tools.notation.printable import escaped

#: The largest file that is read. HCCL refuses a 1.x table whose compact text exceeds 40 MiB; six times that
#: leaves room for indented ones, and a mistaken argument (a checkpoint, a core dump) ends at once. HCCL takes
#: 2.0 tables up to 1 GiB, but 65,536 ranks, its limit, need 20 MB.
SIZE_LIMIT = 256 << 20
_CHUNK = 1 << 20
#: How many entries of a folder are looked at for a file to propose.
_MOST_LOOKED_AT = 10_000
#: How a shell names what it has opened for a command.
_OPENED = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")
#: How often, and after how many seconds each, a ConfigMap's file is looked for again.
_SECOND_LOOKS, _SECOND_LOOK_AFTER = 10, 0.05
_PIPE_HINT = "pipe it in instead: name it - and write `cat FILE | hccl-tools ... -`"
_KINDS = (
    (stat.S_ISFIFO, "is a pipe, not a file", _PIPE_HINT),
    (stat.S_ISSOCK, "is a socket, not a file", _PIPE_HINT),
    (stat.S_ISCHR, "is a device, not a file", _PIPE_HINT),
    (stat.S_ISBLK, "is a device, not a file", _PIPE_HINT),
)
_REASONS = {
    errno.ENOENT: ("no such file: {}", "check the name; the path is taken from the current folder"),
    errno.ENOTDIR: ("no such file: {}, because a part of the path is a file", None),
    errno.EACCES: ("no permission to read {}", "ask its owner for permission, or read it as another user"),
    errno.EPERM: ("no permission to read {}", "ask its owner for permission, or read it as another user"),
    errno.ELOOP: ("{} is a symbolic link that leads back to itself", "remove the link and make it anew"),
    errno.ENAMETOOLONG: ("the file name is too long: {}", "give the name of a file, not its content"),
}


#: The name that means standard input, and what messages call it.
STDIN, STDIN_SHOWN = "-", "<stdin>"


def shown_name(file: str) -> str:
    """Return what messages call a file."""
    return STDIN_SHOWN if file == STDIN else file


def is_stream(name: str) -> bool:
    """Whether a name means what can be read only once: standard input, or a pipe opened by the shell."""
    if name == STDIN:
        return True
    opened = _OPENED.fullmatch(name)
    try:
        return opened is not None and stat.S_ISFIFO(os.fstat(int(opened[1])).st_mode)
    except (OSError, OverflowError):
        return False


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return what a regular file holds, standard input for ``-``, or what a pipe of the shell's brings.

    Raises:
        InputError: It is absent, no regular file, may not be read, or is above ``SIZE_LIMIT``.
    """
    name = os.fspath(path)
    if name == STDIN:
        return _read_stdin()
    if is_stream(name):
        return _read_opened(int(name.rpartition("/")[2]), name)
    try:
        try:
            return _read_named(name)
        except FileNotFoundError:
            return _read_swapped(name)
    except ValueError:
        raise InputError(f"the file name holds a zero byte: {_shown(name)}") from None
    except OSError as error:
        reason, hint = _REASONS.get(error.errno or 0, (None, None))
        if isinstance(error, FileNotFoundError) and os.path.islink(name):  # noqa: PTH114
            raise _dangling(name) from None
        message = reason.format(_shown(name)) if reason else f"{_shown(name)} cannot be read: {_words(error)}"
        raise InputError(message, hint=hint) from None


def _read_named(name: str) -> bytes:
    status = os.stat(name)  # noqa: PTH116  (`merge` reads thousands of files)
    _refuse_special(name, status)
    # O_NONBLOCK: should a pipe take the file's place right now, opening it does not wait for a writer.
    handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if 0 < status.st_size <= SIZE_LIMIT:
            data = os.read(handle, status.st_size + 1)
            if len(data) == status.st_size:
                return data
            os.lseek(handle, 0, os.SEEK_SET)
        return _read_open(handle, name)
    finally:
        os.close(handle)


def _read_swapped(name: str) -> bytes:
    """Look again for a file that a moment ago was not there, if it stands in a ConfigMap's folder.

    Kubernetes puts a new version into a new folder and lets the link ``..data`` lead there; who resolved the
    path just before finds the old folder gone.
    """
    folder = os.path.dirname(name)  # noqa: PTH120
    for _ in range(_SECOND_LOOKS if os.path.lexists(os.path.join(folder, "..data")) else 0):  # noqa: PTH118
        time.sleep(_SECOND_LOOK_AFTER)
        with contextlib.suppress(FileNotFoundError):
            return _read_named(name)
    return _read_named(name)


def _dangling(name: str) -> InputError:
    target = _shown(os.readlink(name))  # noqa: PTH115
    return InputError(f"{_shown(name)} is a symbolic link to {target}, which is not there",
                      hint="mount or copy what it points to, or make the link anew")  # fmt: skip


def _shown(name: str) -> str:
    """Return a file name as it can be shown on one line."""
    text = escaped(name)
    return text if len(text) <= 300 else text[:300] + "..."


def _words(error: OSError) -> str:
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def _refuse_special(name: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{_shown(name)} is a directory, not a file", hint=_files_in(name))
    for is_kind, what, hint in _KINDS:
        if is_kind(status.st_mode):
            raise InputError(f"{_shown(name)} {what}", hint=hint)


def _files_in(folder: str) -> str:
    """Return what to name in place of a folder."""
    found: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = sorted(one.name for one in islice(entries, _MOST_LOOKED_AT) if one.name.endswith(".json"))
    if not found:
        return "name a rank table; no .json file is in this directory"
    more = f"; {len(found)} are in it: {_shown(os.path.join(folder, '*.json'))}" if len(found) > 1 else ""  # noqa: PTH118
    return f"name a file in it: {_shown(os.path.join(folder, found[0]))}{more}"  # noqa: PTH118


def _read_open(handle: int, name: str) -> bytes:
    """Read what is not the regular file of the size that it was a moment ago, or has no size of its own."""
    status = os.fstat(handle)
    _refuse_special(name, status)
    with os.fdopen(handle, "rb", closefd=False) as file:
        return _read_bounded(file, name, status.st_size)


def _read_bounded(file: IO[bytes], name: str, size: int) -> bytes:
    """Read to the end, at most ``SIZE_LIMIT`` bytes; ``size`` is what the file should have."""
    if size <= SIZE_LIMIT:
        data = file.read(size + 1)
        if len(data) <= size and size:
            return data
        parts, total = [data], len(data)  # it grows, or has no size of its own (a pipe, /proc)
        while total <= SIZE_LIMIT and (part := file.read(_CHUNK)):
            parts.append(part)
            total += len(part)
        if total <= SIZE_LIMIT:
            return b"".join(parts)
    raise InputError(f"{_shown(name)} is larger than {SIZE_LIMIT >> 20} MiB",
                     hint="give a rank table: even 65,536 ranks need less than 20 MB")  # fmt: skip


def _read_opened(handle: int, name: str) -> bytes:
    try:
        with os.fdopen(os.dup(handle), "rb") as file:
            return _read_bounded(file, name, 0)
    except OSError as error:
        raise InputError(f"{name} cannot be read: {_words(error)}") from None


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise InputError("standard input is closed, so there is nothing to read for -")
    try:
        return _read_bounded(sys.stdin.buffer, "standard input", 0)
    except OSError as error:
        raise InputError(f"standard input cannot be read: {_words(error)}") from None
