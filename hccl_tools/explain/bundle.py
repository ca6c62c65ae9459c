"""Pack what a bug report needs into one archive: logs, table, plan, answer and versions, secrets masked."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import tarfile
import time
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.document.writing import open_new
from hccl_tools.errors import UsageError, WriteError
from hccl_tools.explain import answer as words
from hccl_tools.explain import table_fault
from hccl_tools.explain.anonymous import Anonymiser
from hccl_tools.explain.as_json import as_json
from hccl_tools.explain.reader import STDIN, LogReader, begin_unpacking
from hccl_tools.notation import masking
from hccl_tools.notation.phrases import and_more
from hccl_tools.processes import run_files
from hccl_tools.records import NamedTuple
from hccl_tools.runs import job_key, names
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.explain.answer import Answer

#: Bytes of a log that are packed: of a longer one the beginning and the end.
_HEAD, _TAIL = 1 << 20, 1 << 23
#: Bytes of a JSON file that are packed whole: the plan of 10,000 ranks.
_MOST_JSON = 1 << 24
#: Bytes of all files of a bundle, before they are compressed.
_MOST_IN_ALL = 1 << 28
#: Files of a bundle.
_MOST_FILES = 4096
#: Logs that a sentence names.
_MOST_NAMED = 8
#: A file that has a key and nothing else: of ``key create``, of openssl or age, or a private key as PEM.
_KEY = re.compile(
    rb"\s*(?:[0-9A-Fa-f]{32,}|[0-9A-Za-z+/_-]{40,}={0,2}|AGE-SECRET-KEY-\w+)\s*"
    rb"|\s*-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*",
    re.DOTALL,
)
_LONGEST_KEY_FILE = 1 << 14
#: A hole of a sparse file.
_HOLE = re.compile(rb"\0{4096,}")
#: The files in which CANN and the driver keep their versions.
_VERSION_FILES = (
    "/usr/local/Ascend/driver/version.info",
    "/usr/local/Ascend/firmware/version.info",
    "/usr/local/Ascend/ascend-toolkit/latest/version.cfg",
    "/usr/local/Ascend/ascend-toolkit/latest/opp/version.info",
    "/usr/local/Ascend/latest/version.cfg",
)
#: Bytes of such a file that are read.
_MOST_VERSION = 1 << 16
_MODE = 0o600


class Packed(NamedTuple):
    """What a bundle has: the names and sizes in bytes of its files, and sentences on what was left out."""

    files: list[tuple[str, int]]
    left_out: list[str]


def write(
    path: str,
    answer: Answer,
    *,
    run: str = "",
    table: str | None = None,
    folders: Sequence[str] = (),
    anonymise: bool = False,
) -> Packed:
    """Write the archive and return what is in it.

    Of a run only regular files of its owner in its directory are packed, and of folders regular files below
    them; links in them are not followed, and no link of another user is. Logs outside of the run directory,
    which its plan or its report names, are packed only if the user names them too. Files with a key are not.

    Args:
        run: The run directory, "" for none.
        table: The rank table that the user named; by default the run's copy.
        folders: The folders that the user named.
        anonymise: Whether to replace the names and addresses of hosts.

    Raises:
        UsageError: The file exists already.
        WriteError: It cannot be written.
    """
    hide = Anonymiser(_hosts(answer)).text if anonymise else str
    try:
        entry, descriptor = open_new(path, _MODE)
    except FileExistsError as error:
        raise UsageError(f"{path} exists already", hint="choose another name") from error
    packed = Packed([], [])
    begin_unpacking()
    used: dict[str, int] = {}
    try:
        with open(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, text in _texts(answer, run, table, folders, packed.left_out):
                data = hide(masking.text(text)).encode(errors="replace")
                about = tarfile.TarInfo(_unique(f"explain/{hide(_safe(name))}", used))
                about.size, about.mtime, about.mode = len(data), int(time.time()), 0o644
                archive.addfile(about, io.BytesIO(data))
                packed.files.append((about.name, about.size))
    except OSError as error:
        os.unlink(entry.name, dir_fd=entry.folder)
        raise WriteError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        entry.close()
    return packed._replace(left_out=[hide(masking.text(one)) for one in dict.fromkeys(packed.left_out)])


def _hosts(answer: Answer) -> set[str]:
    own = {os.uname().nodename}
    return (
        own
        | {one.host for one in answer.cluster.places.by_rank.values()}
        | {source.host for source in answer.sources}
    )


def _texts(
    answer: Answer, run: str, table: str | None, folders: Sequence[str], left_out: list[str]
) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file, and note the files that are left out."""
    yield "answer.txt", "".join(f"{line}\n" for line in words.text(answer))
    yield "answer.json", json.dumps(as_json(answer), indent=2) + "\n"
    yield "versions.txt", "".join(f"{line}\n" for line in _versions())
    of_run = [os.path.join(run, name) for name in (names.PLAN, names.REPORT, names.TABLE)] if run else []
    of_run = of_run[:-1] if table else of_run
    typed = {log.path for log in answer.sources if not log.is_outside}
    outside = dict.fromkeys(log.path for log in answer.sources if log.path not in typed)
    logs = [log.path for log in answer.sources if log.path in typed and log.path not in {"", STDIN, *of_run}]
    left_out += _outside(list(outside))
    root = os.path.commonpath([os.path.abspath(log) for log in logs]) if logs else "/"
    left = _MOST_IN_ALL
    of_causes = {answer.sources[one.seen.event.file].path for one in answer.causes if one.seen is not None}
    logs.sort(key=lambda path: path not in of_causes)
    paths = list(dict.fromkeys((*of_run, *((table,) if table else ()), *logs)))
    if len(paths) > _MOST_FILES:
        left_out.append(f"{len(paths) - _MOST_FILES:,} logs: the bundle has {_MOST_FILES:,} files already")
    for path in paths[:_MOST_FILES]:
        if path in of_run and not os.path.lexists(path):
            continue
        if left <= 0:
            left_out.append(f"{path}: the bundle has {_MOST_IN_ALL >> 20} MiB already")
            continue
        try:
            is_table = path == table
            opened = table_fault.open_file(path) if is_table else _opened(path, _folder_of(path, folders))
            if _has_key(opened):
                os.close(opened)
                left_out.append(f"{path} is a file with a key")
                continue
            text, cut = _read(opened, path)
        except OSError as error:
            left_out.append(f"{path}: {run_files.reason(error)}")
            continue
        left -= len(text)
        left_out += [f"{path}: {cut}"] if cut else []
        yield (_name(path, root) if path in logs else os.path.basename(path)), text


def _outside(logs: Sequence[str]) -> list[str]:
    """Return a sentence on the logs that only the plan or the report of a run names."""
    if not logs:
        return []
    shown = and_more(logs, _MOST_NAMED)
    return [f"outside of the run directory, and packed if you type the run and these paths: {shown}"]


def _has_key(descriptor: int) -> bool:
    """Return whether an open file is this user's job key, or has a key and nothing else."""
    about = os.fstat(descriptor)
    if about.st_size > _LONGEST_KEY_FILE:
        return False
    try:
        known = os.stat(job_key.path(os.environ))
        if (known.st_dev, known.st_ino) == (about.st_dev, about.st_ino):
            return True
    except (OSError, UsageError):
        pass  # There is no such file.
    return _KEY.fullmatch(os.pread(descriptor, _LONGEST_KEY_FILE, 0)) is not None


def _name(path: str, root: str) -> str:
    inside = os.path.relpath(os.path.abspath(path), root)
    name = os.path.basename(path) if inside == "." else inside.replace("..", "_")
    return os.path.join("logs", name.removesuffix(".gz"))


def _safe(name: str) -> str:
    """Return a name that every program can unpack: without newlines, and in UTF-8."""
    text = os.fsencode(name).decode(errors="backslashreplace")
    return masking.text("".join(char if char.isprintable() and char != "\\" else "_" for char in text))


def _unique(name: str, used: dict[str, int]) -> str:
    """Return a name that no file has yet, and note it in ``used``: how often a name was asked for."""
    chosen = name
    while chosen in used:
        used[name] += 1
        chosen = f"{name}.{used[name]}"
    used[chosen] = 1
    return chosen


def _folder_of(path: str, folders: Sequence[str]) -> str:
    return next((folder for folder in folders if path.startswith(os.path.join(folder, ""))), "")


def _read(descriptor: int, path: str) -> tuple[str, str]:
    """Return the text of an open file, which is closed, and a clause if only a part of it was read.

    Raises:
        OSError: The file cannot be read.
    """
    with open(descriptor, "rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
        size = os.fstat(file.fileno()).st_size
        file.seek(0)
        most = _MOST_JSON if path.endswith(".json") else _HEAD + _TAIL
        if is_packed:
            return _unpacked(file.fileno())
        if size <= most:
            return _HOLE.sub(b"", file.read(most)).decode(errors="replace"), ""
        head = _HOLE.sub(b"", file.read(most - _TAIL))
        file.seek(size - _TAIL)
        tail = _HOLE.sub(b"", file.read(_TAIL))
    return _joined([head], [tail], size - len(head) - len(tail))


def _joined(head: list[bytes], tail: list[bytes], cut: int) -> tuple[str, str]:
    parts = [b"".join(part).decode(errors="replace") for part in (head, tail)]
    if cut <= 0:
        return "".join(parts), ""
    middle = f"\n[hccl-tools: {cut:,} bytes are left out here]\n"
    return middle.join(parts), f"only its beginning and its end are packed, without {cut:,} bytes"


def _opened(path: str, folder: str) -> int:
    """Open a log to read.

    Raises:
        OSError: It cannot be opened, or is refused: see ``run_files.open_read``.
    """
    if not folder or run_files.find(path):
        return run_files.open_read(path)
    # The user may have named the folder by a link; links below it are not followed.
    with run_files.opened(links.real_path(folder)) as inside:
        if inside.owner == os.geteuid():
            # The files of all users may stand in a folder of this user, but none by a second name.
            about = os.lstat(path)
            inside.owner = about.st_uid if about.st_nlink == 1 else inside.owner
        return inside.open_read(os.path.relpath(path, folder))


def _unpacked(descriptor: int) -> tuple[str, str]:
    """Return the beginning and the end of a compressed log."""
    head: list[bytes] = []
    tail: list[bytes] = []
    in_head = in_tail = cut = 0
    for block in LogReader(f"/proc/self/fd/{descriptor}").blocks():
        if in_head < _HEAD:
            head.append(block.data)
            in_head += len(block.data)
            continue
        tail.append(block.data)
        in_tail += len(block.data)
        while in_tail - len(tail[0]) > _TAIL:
            cut += len(tail[0])
            in_tail -= len(tail.pop(0))
    return _joined(head, tail, cut)


def _versions() -> Iterator[str]:
    yield f"hccl-tools {__version__}"
    yield f"Python {platform.python_version()}"
    yield f"{platform.system()} {platform.release()} {platform.machine()}"
    for path in _VERSION_FILES:
        if os.path.isfile(path):
            with open(run_files.open_read(path), "rb") as file:
                yield f"{path}: {' '.join(file.read(_MOST_VERSION).decode(errors='replace').split())[:400]}"
