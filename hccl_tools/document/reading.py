"""Read a whole file or standard input, up to a limit, and never wait for a named pipe or read a device.

A pipe that the shell opened for this process (``<(cat table.json)``) is read like standard input.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import stat
import sys
import time
from itertools import islice
from typing import IO

from hccl_tools.errors import AbsentFileError, InputError
from hccl_tools.notation import bounded_file
from hccl_tools.notation.phrases import did_you_mean
from hccl_tools.notation.printable import escaped

#: The maximum file size in bytes. HCCL refuses 1.x tables of more than 40 MiB without blanks; six times that
#: size leaves room for indentation, and a wrong argument (a checkpoint, a core dump) is refused at once. HCCL
#: reads 2.0 tables of up to 1 GiB, but a table of 65,536 ranks, its limit, needs only 20 MB.
SIZE_LIMIT = 256 << 20
_CHUNK = 1 << 20
#: The number of entries of a folder that are searched for a file to suggest.
_MOST_LOOKED_AT = 10_000
#: Those that are compared with a name that does not exist.
_MOST_COMPARED = 1000
#: The name of a file descriptor that a shell opened for a command.
_OPENED = r"/(?:dev|proc/self)/fd/([0-9]{1,9})"
#: The number of further attempts to open a file of a ConfigMap, and the seconds before each.
_RETRIES, _RETRY_SECONDS = 10, 0.05
_PIPE_HINT = "use a pipe instead: `cat FILE | hccl-tools ... -`"
_REASONS = {
    errno.ENOENT: "no such file: {}",
    errno.ENOTDIR: "no such file: {}, because a part of its path is a file",
    errno.EACCES: "no permission to read {}",
    errno.EPERM: "no permission to read {}",
    errno.ELOOP: "{} is a symbolic link that leads back to itself",
    errno.ENAMETOOLONG: "the file name is too long: {}",
}


#: The argument for standard input, and its name in messages.
STDIN, STDIN_SHOWN = "-", "<stdin>"


def shown_name(file: str) -> str:
    """Return the name of a file in messages."""
    return STDIN_SHOWN if file == STDIN else file


def is_stream(name: str) -> bool:
    """Whether a name is a stream, which can be read only once: standard input, or a pipe of the shell."""
    if name == STDIN:
        return True
    opened = re.fullmatch(_OPENED, name) if name.startswith("/") else None
    try:
        return opened is not None and stat.S_ISFIFO(os.fstat(int(opened[1])).st_mode)
    except (OSError, OverflowError):
        return False


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a regular file, of standard input (``-``) or of a pipe that the shell opened.

    Raises:
        AbsentFileError: The file is absent.
        InputError: The file is unreadable, not a regular file, or larger than ``SIZE_LIMIT``.
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
        raise InputError(f"the file name has a zero byte: {_printable(name)}") from None
    except OSError as error:
        reason, hint = _REASONS.get(error.errno or 0), bounded_file.hint(error)
        if isinstance(error, FileNotFoundError) and os.path.islink(name):  # noqa: PTH114
            raise _dangling(name) from None
        if isinstance(error, FileNotFoundError) and (guess := _misspelt(name)):
            hint = f"{guess} {hint}"
        message = (
            reason.format(_printable(name))
            if reason
            else f"{_printable(name)} cannot be read: {_reason(error)}"
        )
        is_absent = error.errno in {errno.ENOENT, errno.ENOTDIR}
        raise (AbsentFileError if is_absent else InputError)(message, hint=hint) from None


def _misspelt(name: str) -> str:
    """Return a question with the most similar file of the same kind in the folder; "" without one."""
    folder, typed = os.path.split(name)
    ending = os.path.splitext(typed)[1]  # noqa: PTH122
    try:
        with os.scandir(folder or ".") as entries:
            files = [one.name for one in islice(entries, _MOST_COMPARED) if one.name.endswith(ending)]
    except OSError:
        return ""
    # Without the ending, in which all are alike.
    guess = (
        did_you_mean(typed.removesuffix(ending), [one.removesuffix(ending) for one in files])
        if ending
        else ""
    )
    return _printable(f'{guess[:-2]}{ending}"?') if guess else ""


def _read_named(name: str) -> bytes:
    status = os.stat(name)  # noqa: PTH116  (`merge` reads thousands of files)
    _refuse_special(name, status)
    # O_NONBLOCK: if a named pipe replaces the file now, opening it does not wait for a writer.
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
    """Try again to read a file that was not found, if it is in the folder of a ConfigMap.

    Kubernetes writes a new version to a new folder and then changes the link ``..data``. A path that was
    resolved just before leads to the old folder, which no longer exists.
    """
    folder = os.path.dirname(name)  # noqa: PTH120
    for _ in range(_RETRIES if os.path.lexists(os.path.join(folder, "..data")) else 0):  # noqa: PTH118
        time.sleep(_RETRY_SECONDS)
        with contextlib.suppress(FileNotFoundError):
            return _read_named(name)
    return _read_named(name)


def _dangling(name: str) -> InputError:
    target = _printable(os.readlink(name))  # noqa: PTH115
    return InputError(f"{_printable(name)} is a symbolic link to {target}, which does not exist",
                      hint="mount or copy the target, or create the link again")  # fmt: skip


def _printable(name: str) -> str:
    text = escaped(name)
    return text if len(text) <= 300 else text[:300] + "..."


def _reason(error: OSError) -> str:
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def _refuse_special(name: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{_printable(name)} is a directory, not a file", hint=_files_in(name))
    pipe, socket = stat.S_ISFIFO(status.st_mode), stat.S_ISSOCK(status.st_mode)
    kind = "a pipe" if pipe else "a socket" if socket else "a device"
    raise InputError(f"{_printable(name)} is {kind}, not a file", hint=_PIPE_HINT)


def _files_in(folder: str) -> str:
    found: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = sorted(one.name for one in islice(entries, _MOST_LOOKED_AT) if one.name.endswith(".json"))
    if not found:
        return "specify a rank table; this directory has no .json file"
    # A pattern in quotes is expanded by the commands that take several tables; without, by a shell.
    pattern = _printable(shlex.quote(os.path.join(folder, "*.json")))  # noqa: PTH118
    more = f"; it has {len(found)}: {pattern}" if len(found) > 1 else ""
    return f"specify a file in it: {_printable(os.path.join(folder, found[0]))}{more}"  # noqa: PTH118


def _read_open(handle: int, name: str) -> bytes:
    """Read an open file whose size has changed or is unknown, such as one in /proc."""
    status = os.fstat(handle)
    _refuse_special(name, status)
    with os.fdopen(handle, "rb", closefd=False) as file:
        return _read_bounded(file, name, status.st_size)


def _read_bounded(file: IO[bytes], name: str, size: int) -> bytes:
    """Read to the end, at most ``SIZE_LIMIT`` bytes; ``size`` is the expected size, 0 if unknown."""
    if size <= SIZE_LIMIT:
        data = file.read(size + 1) or b""  # None: a file in /proc has nothing to read yet.
        if len(data) <= size and size:
            return data
        parts, total = [data], len(data)  # the file grows, or has no known size (a pipe, /proc)
        while total <= SIZE_LIMIT and (part := file.read(_CHUNK)):
            parts.append(part)
            total += len(part)
        if total <= SIZE_LIMIT:
            return b"".join(parts)
    raise InputError(f"{_printable(name)} is larger than {SIZE_LIMIT >> 20} MiB",
                     hint="specify a rank table; even 65,536 ranks need less than 20 MB")  # fmt: skip


def _read_opened(handle: int, name: str) -> bytes:
    try:
        with os.fdopen(os.dup(handle), "rb") as file:
            return _read_bounded(file, name, 0)
    except OSError as error:
        raise InputError(f"{name} cannot be read: {_reason(error)}") from None


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise InputError("standard input (-) is closed")
    try:
        return _read_bounded(sys.stdin.buffer, "standard input", 0)
    except OSError as error:
        raise InputError(f"standard input cannot be read: {_reason(error)}") from None
