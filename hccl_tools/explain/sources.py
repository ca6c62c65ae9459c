"""The logs to read: files, folders with logs, standard input, and the rank and process that a path names."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.errors import InputError
from hccl_tools.explain.reader import STDIN
from hccl_tools.processes import run_files
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import IO

    from hccl_tools.explain.reader import Extent


#: Files in a folder that are no logs.
_NO_LOGS = (
    *(".json", ".py", ".pyc", ".so", ".pt", ".pth", ".ckpt", ".safetensors", ".npy", ".npz", ".bin", ".om"),
    *(".onnx", ".pkl", ".tar", ".zip", ".mindir", ".yaml", ".sh", ".h5", ".pid", ".lock"),
)
#: Folders of CANN's logs below the one that belongs to a host or a rank.
_PARTS = re.compile(r"^(?:debug|run|security|plog|device-\d+|device-app-\d+|log|logs|ascend)$")
_PID = re.compile(r"^(?:plog|device-app|device|hccl)-(?:parser-)?(\d+)[_-]")
_RANK = re.compile(r"(?:^|[_.-])(?:rank|worker|workerlog)[_.-]?(\d{1,6})(?=$|[_.-])")
_HOST = re.compile(r"(?:^|[_-])(\d{1,3}(?:\.\d{1,3}){3})(?:$|[_-])")
_TEXTS = (".log", ".txt", ".out", ".err")
#: Folders that people name after a host and a device. CANN's own folders of devices have a hyphen.
_HOST_FOLDER = re.compile(r"(?:host|node|server|machine)[-_.]?[a-zA-Z]?\d[\w.-]{0,60}", re.IGNORECASE)
_DEVICE_FOLDER = re.compile(r"(?:device|dev|npu|card)_?(\d{1,2})", re.IGNORECASE)
#: The output of a tool that shows a host, with any name: ``worker-3_df.txt`` is not a log of rank 3.
_STATE = re.compile(
    r"(?:^|[_.-])(?:df|free|ps|ss|netstat|lsof|dmesg|ifconfig|ip[_-]?(?:a|addr|link|route)|npu[_-]?smi"
    r"|hccn(?:[_-]?tool)?|sinfo|squeue|scontrol|sacct|(?:kubectl[_-])?(?:get[_-]\w{2,12}|describe)"
    r"|(?:compose|docker)[_-]ps|uptime|lspci|lsmod|mount)(?=$|[_.-])",
    re.IGNORECASE,
)
#: What is open in this process already, perhaps a file without a name; and an empty log.
_OPENED = re.compile(r"/(?:dev|proc/self)/fd/[0-9]+|/dev/(?:stdin|null)")
#: Names that people give to folders and logs of hosts, of which several differ in a number or letter.
_ALIKE = re.compile(
    r"(?:(?:host|node|server|machine|box|npu|gpu|cn|hpc|compute|master|worker|pod)[-_.]?[a-z]?\d{0,5}(?:[-_.]\w{1,8}){0,2}"
    r"|(?!run|log|job|try|out|err|exp|std|tmp)[a-z]{1,3}\d{1,4}"
    r"|(?!(?:run|p?logs?|job|try|out|err|exp|std|tmp|rank|step|iter|epoch|ckpt|attempt|part|device|test|data|train|task)-)"
    r"[a-z]{1,8}-(?:[a-z]{1,4}-?)?\d{1,4})",
    re.IGNORECASE,
)
_ENDINGS = re.compile(r"(?:\.(?:log|txt|out|err))?(?:\.gz)?$")
_VARIES = re.compile(
    r"\d+|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|(?<=[a-z])[A-Z](?![a-z])"
    r"|(?<=[a-z][-_.])(?!(?:logs?|out|err|run|old|new|tmp|debug|plogs?|all)$)[a-z]{3,8}$"
)
#: Levels of folders below the one that the user named; os.walk calls itself for each before Python 3.12.
_DEEPEST = 64

#: What is read of all folders that a user names: logs, their bytes on the disk, and names that are looked at.
_MOST_FILES, _MOST_BYTES, _MOST_NAMES = 1 << 18, 1 << 38, 1 << 22
#: The same of logs outside of a run directory that the run names.
_MOST_FILES_OF_RUN, _MOST_BYTES_OF_RUN, _DEEPEST_OF_RUN = 1 << 14, 1 << 34, 8


class Limits:
    """What may still be read of folders."""

    def __init__(self, files: int = _MOST_FILES, size: int = _MOST_BYTES, deepest: int = _DEEPEST) -> None:
        self.deepest = deepest
        self._files, self._size, self._names = files, size, _MOST_NAMES
        self._most = f"{files:,} logs, {size >> 30} GiB or {_MOST_NAMES:,} names"

    @classmethod
    def of_run(cls) -> Limits:
        """Return the limits of logs outside of a run directory that the run names."""
        return cls(_MOST_FILES_OF_RUN, _MOST_BYTES_OF_RUN, _DEEPEST_OF_RUN)

    def look_at(self, names: int) -> None:
        """Count names in a folder."""
        self._names -= names

    def add(self, about: os.stat_result) -> None:
        """Count a log."""
        self._files -= 1
        self._size -= about.st_blocks * 512  # bytes; holes are not read

    @property
    def problem(self) -> str:
        """Why no further log is read, a clause; "" while more may be read."""
        left = min(self._files, self._size, self._names)
        return f"more than {self._most} were found" if left < 0 else ""


class Source(NamedTuple):
    """A log.

    Attributes:
        path: Its path; ``-`` is standard input.
        shown: Its name in messages.
        rank: The rank that its path names.
        pid: The process that its name names, "" if none.
        group: The folder that holds all logs of one host or rank: process ids are unique in it.
        host: The host, if it is known.
        ranks: The ranks that can have written it; None if that is unknown.
        is_run: Whether it is a log of the run that is explained.
        extent: What was read of it, None before it is read.
        host_folder: The folder with the name of a host, "" if there is none.
        device_folder: The device that a folder is named after.
        is_dump: Whether it is a dump of a flight recorder, or the evidence of a host, and no log.
        is_outside: Whether only the plan or the report of a run names it: it is outside of the run directory.
    """

    path: str
    shown: str
    rank: int | None = None
    pid: str = ""
    group: str = ""
    host: str = ""
    ranks: Collection[int] | None = None
    is_run: bool = False
    extent: Extent | None = None
    host_folder: str = ""
    device_folder: int | None = None
    is_dump: bool = False
    is_outside: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it can be read again: standard input, and what the run itself says, cannot."""
        return self.path not in ("", STDIN)

    @property
    def is_program_log(self) -> bool:
        """Whether it is a file with what programs write, not a log of CANN for one process."""
        return self.is_file and not self.pid and not self.is_dump

    @property
    def is_of_process(self) -> bool:
        """Whether its lines are those of one process of a job: its path names the process or the rank."""
        return bool(self.pid) or self.rank is not None

    @property
    def process(self) -> tuple[str, str]:
        """The process that its name names, as a key: see ``identities.Key``."""
        return (self.group or self.path, self.pid)

    @property
    def names_rank(self) -> bool:
        """Whether the name of the file itself has the rank, as in ``worker_3.log``."""
        return not self.pid and self.rank is not None and bool(_RANK.search(os.path.basename(self.path)))

    @property
    def has_errors(self) -> bool:
        """Whether errors are written there: CANN's run logs have none, and show no rank that is silent."""
        return "run" not in os.path.dirname(self.path)[len(self.group) :].split(os.sep)


def collect(paths: Iterable[str], limits: Limits | None = None) -> tuple[list[Source], list[str]]:
    """Return the logs in files and folders, and sentences on what is left out.

    Args:
        limits: What may be read of the folders, by default as much as of those that a user names.

    Raises:
        InputError: A path does not exist.
    """
    found: list[Source] = []
    notes: list[str] = []
    limits = limits or Limits()
    for path in paths:
        if path == STDIN:
            found.append(Source(STDIN, "standard input"))
            continue
        try:
            found += _in_folder(path, limits, notes) if os.path.isdir(path) else [_typed(path)]
        except links.ForeignLinkError as error:
            notes.append(
                f"{path} was not read: {error.clause}; type the path without the link if it is meant"
            )
    return list({one.path: one for one in found}.values()), notes


def _in_folder(path: str, limits: Limits, notes: list[str]) -> list[Source]:
    """Return the logs in a folder that the user named, which its path means from now on.

    Raises:
        ForeignLinkError: The path leads through a link of another user.
    """
    found: list[Source] = []
    try:
        folder = links.open_folder(path, os.O_RDONLY, owners=links.this_user_and_root())
        listed = os.dup(folder)
        try:
            run_files.hold_logs(path.rstrip("/") or "/", folder, below=True)
            found += _walk(path, listed, limits, notes)
        finally:
            os.close(listed)
    except links.ForeignLinkError:
        raise
    except OSError as error:
        notes.append(f"{path} cannot be read: {error.strerror}")
    if not found:
        notes.append(f"{path} has no logs")
    return found


def _typed(path: str) -> Source:
    """Return a file that the user named; its path means an entry of its folder from now on.

    Raises:
        ForeignLinkError: The path leads through a link of another user.
        InputError: It does not exist.
    """
    one = source(path)
    if _OPENED.fullmatch(path) and os.path.lexists(path):
        return one
    try:
        # Not even in a folder of its owner: what it leads to can be of this user, and goes into a bundle.
        with links.Entry(path, owners=links.this_user_and_root()) as entry:
            if entry.about is not None or entry.is_behind_link:
                real = entry.path if entry.is_behind_link else path
                # A folder whose names are known need not be readable.
                run_files.hold_logs(os.path.dirname(real), os.dup(entry.folder), below=False)
                return one._replace(path=real, is_dump=is_dump(real))
    except links.ForeignLinkError:
        raise
    except OSError:
        pass  # A folder of its path is missing, or closed to this user.
    raise InputError(f"there is no file or run {path}", hint="`hccl-tools jobs` lists the runs")


def source(path: str, *, root: str = "") -> Source:
    """Return a log with what its path names; ``root`` is the folder that the user named."""
    folder, name = os.path.split(path)
    pid = _PID.match(name)
    below = os.path.relpath(folder, root).split(os.sep) if root else folder.split(os.sep)[-3:]
    is_state = _STATE.search(name) is not None
    rank = (
        None
        if is_state
        else next((int(found[1]) for part in (name, *reversed(below)) if (found := _RANK.search(part))), None)
    )
    stem = os.path.splitext(name)[0] if name.endswith(_TEXTS) else name
    host = next((found[1] for part in (stem, *reversed(below)) if (found := _HOST.search(part))), "")
    named = next((part for part in reversed(below) if _HOST_FOLDER.fullmatch(part)), "")
    device = next(
        (int(found[1]) for part in reversed(below) if (found := _DEVICE_FOLDER.fullmatch(part))), None
    )
    parts = folder.split(os.sep)
    while parts and _PARTS.match(parts[-1]):
        parts.pop()
    return Source(
        path, path, rank, pid[1] if pid else "", os.sep.join(parts), host,
        host_folder=named, device_folder=device,
    )  # fmt: skip


def host_folders(sources: Sequence[Source]) -> list[str]:
    """Return the folder of each log that is probably that of its host, "" if none is.

    It is the first folder in which the paths of the logs differ, and it has logs of several processes.
    """
    paths = [os.path.dirname(one.path).split(os.sep) for one in sources]
    levels = zip(*(path for path, one in zip(paths, sources, strict=True) if one.pid), strict=False)
    common = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, levels))
    folders = [path[common] if len(path) > common else "" for path in paths]
    processes: dict[str, set[tuple[str, str]]] = {}
    for folder, one in zip(folders, sources, strict=True):
        if one.pid:
            processes.setdefault(folder, set()).add((one.group, one.pid))
    return [folder if len(processes.get(folder, ())) > 1 else "" for folder in folders]


def named_hosts(sources: Sequence[Source]) -> list[str]:
    """Return the host of each log by the first name in its path in which the logs differ, "" if it is none.

    Such names are those of several hosts: ``node-a`` and ``node-b``, ``w1.log`` and ``w2.log``.
    """
    paths = [one.path.split(os.sep) if one.path else [] for one in sources]
    files = [path for path, one in zip(paths, sources, strict=True) if one.is_file]
    levels = zip(*files, strict=False)
    level = sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, levels))
    names = [_ENDINGS.sub("", path[level]) if len(path) > level else "" for path in paths]
    shapes = [_VARIES.sub("0", name) if _ALIKE.fullmatch(name) else "" for name in names]
    different = Counter(shape for _, shape in set(zip(names, shapes, strict=True)))
    return [name if shape and different[shape] > 1 else "" for name, shape in zip(names, shapes, strict=True)]


def _walk(top: str, opened: int, limits: Limits, notes: list[str]) -> Iterator[Source]:
    """Yield the logs in an open folder, also if another folder has its path meanwhile."""

    def tell(error: OSError) -> None:
        shown = os.path.normpath(os.path.join(top, error.filename or ""))
        notes.append(f"{shown} cannot be read: {error.strerror}")

    for below, folders, names, descriptor in os.fwalk(".", dir_fd=opened, onerror=tell):
        folder = os.path.join(top, below[2:]) if below != "." else top
        folders.sort()
        if folders and folder.count(os.sep) - top.count(os.sep) >= limits.deepest:
            notes.append(
                f"the folders in {folder} were not read: they are more than {limits.deepest} levels deep"
            )
            folders.clear()
        limits.look_at(len(names) + len(folders))
        for name in sorted(names):
            path = os.path.join(folder, name)
            about = _about(name, descriptor)
            if about is None:
                continue
            is_recorder = is_dump(path)
            if not is_recorder and name.lower().endswith(_NO_LOGS):
                continue
            limits.add(about)
            if limits.problem:
                break
            yield source(path, root=top)._replace(is_dump=is_recorder)
        if limits.problem:
            notes.append(f"{folder} and what follows in {top} was not read: {limits.problem}")
            return


def _about(name: str, folder: int) -> os.stat_result | None:
    """Return the facts about a regular file, None for anything else."""
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None  # It was removed, or the folder cannot be entered.
    return about if stat.S_ISREG(about.st_mode) else None


#: Bytes at the beginning of a file that show what it is.
_DUMP_HEAD = 1 << 16
PICKLE = b"\x80"
GZIP, _GZIP_WINDOW = b"\x1f\x8b", 31
#: Keys of a dump; one of them is near its beginning.
_DUMP_KEYS = (b"collective_seq_id", b"pg_config", b"pg_status", b"last_enqueued_collective")
#: A key of the evidence of a host.
EVIDENCE_KEY = b'"recorder_problem"'
#: Endings of dumps, which often have none: ``nccl_trace_rank_3``.
_DUMP_ENDINGS = (".json", ".pkl", ".pickle", ".trace", ".bin", ".dump")


def is_dump(path: str) -> bool:
    """Return whether a file is a dump of a recorder, or the evidence of a host; False if it is unreadable."""
    ending = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    if ending and ending not in _DUMP_ENDINGS and not ending[1:].isdecimal():
        return False
    try:
        with open(run_files.open_read(path), "rb") as file:
            head = beginning(file, _DUMP_HEAD)
    except (OSError, zlib.error):
        return False
    if head.startswith(PICKLE):
        return any(key in head for key in _DUMP_KEYS)
    return head.lstrip()[:1] in {b"{", b"["} and (
        any(key in head for key in _DUMP_KEYS) or EVIDENCE_KEY in head
    )


def beginning(file: IO[bytes], most: int) -> bytes:
    """Return the first bytes of a file, unpacked if it is compressed.

    Raises:
        OSError: The file cannot be read.
        zlib.error: It is damaged.
    """
    data = file.read(most) or b""  # None: a file in /proc has nothing to read yet.
    if not data.startswith(GZIP):
        return data
    return zlib.decompressobj(_GZIP_WINDOW).decompress(data, most)
