"""Look at a file of this host, and write a table there; hosts get this module in ``remote.archive``."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import sys
import zipfile
import zlib
from typing import TYPE_CHECKING, Literal

from hccl_tools.document.links import Entry, ForeignLinkError
from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import WriteError
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from hccl_tools.records import Count, LongText

#: What is at a path.
Kind = Literal["none", "file", "link", "directory", "special"]
#: The entry of the archive with the packed table, if it is not in the request.
PAYLOAD = "payload"
#: The most bytes of a table, and of the packed contents that an answer has.
MOST_BYTES = 1 << 26
_MOST_ANSWERED = 1 << 20
_WHAT = {
    "link": ("a symbolic link", "remove the link, or name its target with -o"),
    "directory": ("a directory", "name a file with -o"),
    "special": ("a device, pipe or socket", "name a file with -o"),
}


class CopyRequest(NamedTuple):
    """What to do with the file at a path.

    Attributes:
        sha256: The digest of the table.
        content: The packed table to write; empty to look only, or if the archive has it.
        write: Whether to write.
        mode: The mode of the file; None for that of an existing file, else 0666 minus the umask.
        replaceable: The digests of files that may be replaced.
        force: Whether any file may be replaced.
    """

    path: str
    sha256: str
    content: LongText = ""
    write: bool = False
    mode: int | None = None
    replaceable: tuple[str, ...] = ()
    force: bool = False


class FileState(NamedTuple):
    """What is at the path; ``content`` is packed, and empty for the table itself or if it is too long."""

    kind: Kind
    sha256: str = ""
    mode: Count = 0
    content: LongText = ""
    written: bool = False


def pack(data: bytes) -> str:
    """Return bytes as a compressed text of ASCII."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def unpack(text: str, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of :func:`pack`, at most ``most`` of them.

    Raises:
        ValueError: The text is damaged.
    """
    try:
        return zlib.decompressobj().decompress(base64.b64decode(text), most)
    except zlib.error as error:
        raise ValueError(str(error)) from None


def handle(request: CopyRequest) -> FileState:
    """Do what a request says on this host, and return what is at the path then.

    Raises:
        WriteError: The file cannot be read or written, or must not be replaced.
    """
    seen, data_there = _seen(request, with_mode=request.write)
    if not request.write or seen.sha256 == request.sha256:
        return seen
    if seen.kind in _WHAT:
        what, hint = _WHAT[seen.kind]
        raise WriteError(f"{request.path} is {what}", hint=hint)
    if seen.kind == "file" and not (request.force or seen.sha256 in request.replaceable):
        raise WriteError(f"{request.path} has other contents", hint="--force replaces it")
    data = unpack(request.content or _payload())
    if hashlib.sha256(data).hexdigest() != request.sha256:
        raise WriteError("the table was not received completely")
    try:
        write_atomically(
            request.path, [data], mode=request.mode, follow_link=False, create=seen.kind == "none",
            read=data_there,
        )  # fmt: skip
    except WriteError:
        after = _look(request, with_mode=True)
        if after.sha256 == request.sha256:  # hosts may share the folder: another was faster
            return after
        raise
    after = _look(request)
    if after.sha256 != request.sha256:
        raise WriteError(f"{request.path} changed after it was written", hint="find out which program did")
    return after._replace(written=True)


def _look(request: CopyRequest, *, with_mode: bool = False) -> FileState:
    return _seen(request, with_mode=with_mode)[0]


def _seen(request: CopyRequest, *, with_mode: bool) -> tuple[FileState, bytes | None]:
    """Return what is at the path of a request, and its content; links are not followed.

    The content is ``None`` if there is no file, or if it is larger than a table may be.

    ``with_mode`` gives the table that is there already the mode of the request. The mode is that of the file
    that was read: another user can own the folder, and exchange the file meanwhile.

    Raises:
        WriteError: The file cannot be read, or its mode cannot be changed.
    """
    try:
        with Entry(request.path, follow_last=False) as entry:
            if entry.about is None:
                return FileState("none"), None
            if not stat.S_ISREG(entry.about.st_mode):
                return FileState(_kind(entry.about)), None
            with os.fdopen(entry.open(os.O_RDONLY), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    return FileState(_kind(found)), None
                data = file.read(MOST_BYTES + 1)
                digest = hashlib.sha256(data).hexdigest()
                if with_mode and digest == request.sha256:
                    return _with_mode(request, file.fileno(), stat.S_IMODE(found.st_mode)), data
    except (FileNotFoundError, NotADirectoryError):
        return FileState("none"), None
    except OSError as error:
        raise _unreadable(request.path, error) from None
    is_large = len(data) > MOST_BYTES
    packed = "" if digest == request.sha256 or is_large else pack(data)
    shown = packed if len(packed) <= _MOST_ANSWERED else ""
    return FileState("file", digest, stat.S_IMODE(found.st_mode), shown), None if is_large else data


def _kind(found: os.stat_result) -> Kind:
    kinds: dict[int, Kind] = {stat.S_IFLNK: "link", stat.S_IFDIR: "directory"}
    return kinds.get(stat.S_IFMT(found.st_mode), "special")


def _with_mode(request: CopyRequest, handle: int, mode: int) -> FileState:
    """Give the table, which is open, the mode of the request."""
    if request.mode is None or mode == request.mode:
        return FileState("file", request.sha256, mode)
    try:
        os.fchmod(handle, request.mode)
    except OSError as error:
        raise WriteError(
            f"{request.path} has mode {mode:o}, and cannot get {request.mode:o}: {error.strerror}"
        ) from None
    return FileState("file", request.sha256, request.mode, written=True)


def _payload() -> str:
    with zipfile.ZipFile(sys.argv[0]) as archive:
        return archive.read(PAYLOAD).decode("ascii")


def _unreadable(path: str, error: OSError) -> WriteError:
    if isinstance(error, ForeignLinkError):
        return WriteError(f"{path} cannot be read: {error.clause}", hint="remove the link")
    return WriteError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}")
