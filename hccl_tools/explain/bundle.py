"""Pack what a bug report needs into one archive: logs, table, plan, answer and versions, secrets masked."""

from __future__ import annotations

import io
import json
import os
import platform
import tarfile
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError, WriteError
from hccl_tools.explain import answer as words
from hccl_tools.explain.anonymous import Anonymiser
from hccl_tools.explain.as_json import as_json
from hccl_tools.explain.reader import STDIN, LogReader
from hccl_tools.launch.runs import names
from hccl_tools.notation import masking
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.explain.answer import Answer

#: Bytes of a log that are packed: of a longer one the beginning and the end.
_HEAD, _TAIL = 1 << 20, 1 << 23
#: The files in which CANN and the driver keep their versions.
_VERSION_FILES = (
    "/usr/local/Ascend/driver/version.info",
    "/usr/local/Ascend/firmware/version.info",
    "/usr/local/Ascend/ascend-toolkit/latest/version.cfg",
    "/usr/local/Ascend/ascend-toolkit/latest/opp/version.info",
    "/usr/local/Ascend/latest/version.cfg",
)
_MODE = 0o600


def write(
    path: str, answer: Answer, *, run: str = "", table: str | None = None, anonymise: bool = False
) -> int:
    """Write the archive and return the number of its files.

    Args:
        run: The run directory, "" for none.
        table: The rank table; by default the run's copy.
        anonymise: Whether to replace the names and addresses of hosts.

    Raises:
        UsageError: The file exists already.
        WriteError: It cannot be written.
    """
    hide = Anonymiser(_hosts(answer)).text if anonymise else str
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    except FileExistsError as error:
        raise UsageError(f"{path} exists already", hint="choose another name") from error
    except OSError as error:
        raise WriteError(f"{path} cannot be written: {error.strerror}") from error
    count = 0
    try:
        with open(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, lines in _files(answer, run, table):
                data = "".join(hide(masking.text(line)) for line in lines).encode()
                about = tarfile.TarInfo(f"explain/{hide(name)}")
                about.size, about.mtime, about.mode = len(data), int(time.time()), 0o644
                archive.addfile(about, io.BytesIO(data))
                count += 1
    except OSError as error:
        os.unlink(path)
        raise WriteError(f"{path} cannot be written: {error.strerror}") from error
    return count


def _hosts(answer: Answer) -> set[str]:
    own = {os.uname().nodename}
    return (
        own
        | {one.host for one in answer.cluster.places.by_rank.values()}
        | {source.host for source in answer.sources}
    )


def _files(answer: Answer, run: str, table: str | None) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield the name and the lines of each file."""
    yield "answer.txt", (f"{line}\n" for line in words.text(answer))
    yield "answer.json", (f"{line}\n" for line in json.dumps(as_json(answer), indent=2).splitlines())
    yield "versions.txt", (f"{line}\n" for line in _versions())
    of_run = [os.path.join(run, name) for name in (names.PLAN, names.REPORT)] if run else []
    table = table or (os.path.join(run, names.TABLE) if run else None)
    for path in (*of_run, *((table,) if table else ())):
        if os.path.isfile(path):
            yield os.path.basename(path), _lines(path)
    logs = [log for log in answer.sources if log.path != STDIN and os.path.isfile(log.path)]
    root = os.path.commonpath([os.path.abspath(log.path) for log in logs]) if logs else "/"
    for log in logs:
        if os.path.basename(log.path) != names.REPORT:
            inside = os.path.relpath(os.path.abspath(log.path), root)
            name = os.path.basename(log.path) if inside == "." else inside.replace("..", "_")
            yield os.path.join("logs", name.removesuffix(".gz")), _lines(log.path)


def _lines(path: str) -> Iterator[str]:
    """Yield the lines of a file; of a long one those at its beginning and its end."""
    head: list[bytes] = []
    tail: list[bytes] = []
    in_head = in_tail = 0
    for block in LogReader(path).blocks():
        if in_head < _HEAD:
            head.append(block.data)
            in_head += len(block.data)
            continue
        tail.append(block.data)
        in_tail += len(block.data)
        while in_tail - len(tail[0]) > _TAIL:
            in_tail -= len(tail.pop(0))
    for part in (head, tail):
        for data in part:
            yield from data.decode(errors="replace").splitlines(keepends=True)


def _versions() -> Iterator[str]:
    yield f"hccl-tools {__version__}"
    yield f"Python {platform.python_version()}"
    yield f"{platform.system()} {platform.release()} {platform.machine()}"
    for path in _VERSION_FILES:
        if os.path.isfile(path):
            yield f"{path}: {' '.join(''.join(_lines(path)).split())[:400]}"
