"""Read and check the files of a run directory.

Another version may have written them, the disk may have been full, or another user may own the directory.
"""

from __future__ import annotations

import math
import os
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from hccl_tools.codec import DecodeError, decode, decode_as, parse
from hccl_tools.errors import UsageError
from hccl_tools.processes import run_files
from hccl_tools.records import NamedTuple
from hccl_tools.runs import directory, names
from hccl_tools.runs.directory import ENDED, PROCESSES
from hccl_tools.runs.saved import PlanHead, PlanSummary, SavedPlan, SavedProcess, SavedReport, is_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeVar

    _T = TypeVar("_T")

#: The highest process id of Linux (PID_MAX_LIMIT).
_HIGHEST_PID = 1 << 22
#: Bytes of a file in the run of another user: a list of runs, which every user can extend, reads all plans.
_LARGEST_OF_OTHERS = 1 << 24
#: Bytes of all of these files of one user that a list of runs reads; one that is refused counts as a part.
_MOST_OF_OTHERS, _CHEAP = 1 << 25, 16
#: Values in it; each takes about 60 bytes of memory.
_MOST_VALUES_OF_OTHERS = 1_000_000
_SEPARATORS = (b"[", b"{", b",", b":")
_KINDS = ("launch", "spawn")
#: What is left of ``_MOST_OF_OTHERS`` for each user in ``limited_in_all``.
_left: dict[int, int] | None = None
#: Bytes of a plan that a list of runs reads.
_HEAD = 1 << 18


class MalformedRunError(UsageError):
    """A file of a run directory is malformed."""


class Holder(NamedTuple):
    """The record that the launcher of a run has written about itself.

    ``pid`` is 0 and ``host`` "" if nothing is recorded. ``start`` is in clock ticks since boot, 0 if unknown;
    ``ended`` is the exit code and reason if the launcher could not write a report.
    """

    pid: int = 0
    host: str = ""
    started: float = 0.0
    kind: str = "launch"
    start: int = 0
    ended: tuple[int, str] | None = None


def is_run(path: str) -> bool:
    """Return whether a path is a run directory that this user can read."""
    try:
        with run_files.opened(path) as folder:
            return folder.stat(names.PLAN) is not None
    except OSError:
        return False


def has_report(path: str) -> bool:
    """Return whether a run directory has a report, or something in its place."""
    try:
        with run_files.opened(path) as folder:
            folder.stat(names.REPORT)
    except FileNotFoundError:
        return False
    except OSError:
        pass
    return True


def plan(path: str) -> SavedPlan:
    """Return the plan in a run directory, without processes if there is none.

    Raises:
        MalformedRunError: The file does not contain a plan.
    """
    return _plan(path, _identity(path, names.PLAN))


def summary(path: str) -> PlanSummary:
    """Return the summary of the plan in a run directory.

    Of a plan that ``launch`` has written the beginning is read: the plan of 65,536 ranks has 100 MB.

    Raises:
        MalformedRunError: The file does not contain a plan.
    """
    head, mark, rest = _read(path, names.PLAN, _HEAD).partition(PROCESSES.encode())
    try:
        if mark:
            job = decode(PlanHead, parse(head + b"}"), strict=False)
            first = _first_rank(rest)
            return PlanSummary(job.world_size, len(job.hosts), first.argv)
    except DecodeError:
        pass  # another version, or another program, has written it
    whole = plan(path)
    ranks = whole.ranks
    return PlanSummary(len(ranks), len(whole.hosts), ranks[0].argv if ranks else ())


def _first_rank(processes: bytes) -> SavedProcess:
    """Return the first rank, which follows MindSpore's scheduler; each process is a line."""
    for line in processes.split(b"\n", 2)[:2]:
        process = decode(SavedProcess, parse(line.rstrip(b",")), strict=False)
        if process.rank >= 0:
            return process
    raise DecodeError("it has no rank")


def report(path: str) -> SavedReport | None:
    """Return the report in a run directory, None if there is none.

    Raises:
        MalformedRunError: The file does not contain a report.
    """
    return _saved(path, names.REPORT, SavedReport)


def elsewhere(path: str) -> dict[str, str]:
    """Return the run directories of the other hosts of a job, by host.

    Raises:
        MalformedRunError: The file is malformed.
    """
    data = _contents(path, names.RUN_DIRS)
    with _named(path, names.RUN_DIRS):
        found: dict[str, str] = decode_as("dict[str, OsText]", __name__, parse(data)) if data else {}
    if not all(map(is_path, found.values())):
        raise MalformedRunError(f"{os.path.join(path, names.RUN_DIRS)} does not contain paths")
    return found


@contextmanager
def limited_in_all() -> Iterator[None]:
    """Read at most ``_MOST_OF_OTHERS`` bytes of each other user's runs in a block, and refuse the rest."""
    global _left  # noqa: PLW0603  (of this process)
    _left = {}
    try:
        yield
    finally:
        _left = None


def holder(path: str) -> Holder:
    """Return the record that the launcher of a run has written about itself.

    Raises:
        MalformedRunError: The file is malformed.
    """
    data = _read(path, names.LAUNCHER, 4096)
    if not data:
        return Holder()
    *lines, last = data.decode(errors="replace").split("\n")
    ended = [line.removeprefix(ENDED).partition(" ") for line in lines if line.startswith(ENDED)]
    noted = [line for line in lines if not line.startswith(ENDED)]
    try:
        pid, host, started, kind, start = (noted + ["0", "", "0", "launch", "0"][len(noted) :])[:5]
        found = Holder(int(pid), host, float(started), kind, int(start))
    except ValueError:
        found = Holder(-1)
    is_sound = (
        0 <= found.pid <= _HIGHEST_PID and 0 <= found.started < math.inf and found.start >= 0 and not last
    )
    if not is_sound or found.kind not in _KINDS:
        raise MalformedRunError(f"{os.path.join(path, names.LAUNCHER)} does not name a launcher")
    code, _, reason = ended[-1] if ended else ("", "", "")
    return found._replace(ended=(int(code), reason)) if code.isdecimal() and len(code) < 4 else found


def _read(path: str, name: str, most: int) -> bytes:
    try:
        with run_files.opened(path) as folder:
            return folder.read(name, most)
    except OSError:
        return b""


def _identity(path: str, name: str) -> tuple[int, ...]:
    try:
        with run_files.opened(path) as folder:
            found = folder.stat(name)
    except OSError:
        found = None
    return () if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=1)  # a command reads it for each rank
def _plan(path: str, _identity: tuple[int, ...]) -> SavedPlan:
    return _saved(path, names.PLAN, SavedPlan) or SavedPlan(())


def _saved(path: str, name: str, kind: type[_T]) -> _T | None:
    data = _contents(path, name)
    with _named(path, name):
        return decode(kind, parse(data), strict=False) if data else None


@contextmanager
def _named(path: str, name: str) -> Iterator[None]:
    try:
        yield
    except DecodeError as error:
        raise MalformedRunError(f"{os.path.join(path, name)} cannot be read: {error.message}") from None


def _count(path: str, size: int) -> None:
    """Count bytes of the run of another user, whose own runs alone they cost."""
    if _left is None:
        return
    try:
        owner = os.stat(path).st_uid
    except OSError as error:  # Its user has renamed or removed it in the meantime.
        raise MalformedRunError(f"{path} cannot be read: {error.strerror}") from None
    _left[owner] = _left.get(owner, _MOST_OF_OTHERS) - size
    if _left[owner] < 0:
        raise MalformedRunError(
            f"the newer runs of this user have more than {_MOST_OF_OTHERS >> 20} MiB of plans and reports"
        )


def _contents(path: str, name: str) -> bytes:
    is_own = directory.is_own(path)
    largest = directory.LARGEST_PLAN if is_own else _LARGEST_OF_OTHERS
    data = _read(path, name, largest + 1)
    if not is_own:
        _count(path, len(data) // _CHEAP)
    if len(data) > largest:
        whose = "" if is_own else ", the limit for the run of another user"
        raise MalformedRunError(f"{os.path.join(path, name)} is larger than {largest >> 20} MiB{whose}")
    if not is_own and sum(map(data.count, _SEPARATORS)) > _MOST_VALUES_OF_OTHERS:
        raise MalformedRunError(
            f"{os.path.join(path, name)} has more than {_MOST_VALUES_OF_OTHERS:,} values,"
            " the limit for the run of another user"
        )
    if not is_own:
        _count(path, len(data))
    return data
