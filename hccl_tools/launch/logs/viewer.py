"""Show the logs of a run on standard output, in whole lines; also to a reader on another host.

The reader runs ``hccl-tools logs --serve ...`` here over ssh or srun. The input of this command closes
when the reader exits, or when the run has ended, which only the launcher's host knows.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import IO, TYPE_CHECKING, Protocol

from hccl_tools.errors import InputError, UsageError
from hccl_tools.launch.logs.follower import Follower
from hccl_tools.notation import number_list
from hccl_tools.notation.printable import escaped, tell
from hccl_tools.processes import run_files, sparse_files
from hccl_tools.runs import directory, files, hosts, index, names, own_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hccl_tools.runs.index import Run
    from hccl_tools.runs.saved import SavedProcess

#: Seconds between two reads of a log.
_PAUSE = 0.1
#: Seconds until the logs of other hosts are visible on a shared disk.
_SHARED_DISK_SECONDS = 3.0
_BLOCK = 1 << 16


def default_rank(run: Run) -> int:
    """Return the rank to show by default: the one that failed first or did not end, else the lowest here."""
    report = files.report(run.path)
    failure = report.first_failure if report else None
    if failure and failure.rank >= 0:
        return failure.rank
    ended = report.ranks if report else ()
    left = [one.rank for one in ended if one.asked_to_end and one.rank >= 0]
    if left and len(left) < len(ended):
        return min(left)
    here = [process.rank for process in files.plan(run.path).ranks if hosts.is_on_this_host(run, process)]
    return min(here, default=0)


def chosen_ranks(run: Run, texts: Sequence[str]) -> list[int]:
    """Return the ranks of a run that are typed as ``3``, ``0,2-4`` or ``all``: in this order, each once.

    Raises:
        UsageError: A text is not a list of ranks.
        InputError: The run does not have a rank.
    """
    known = [process.rank for process in files.plan(run.path).ranks] if texts else []
    found: list[int] = []
    for item in (item for text in texts for item in text.split(",")):
        span = number_list.span(item.strip())
        if item.strip() == "all":
            found += known
        elif span is None:
            raise UsageError(
                f'--rank "{item}" is not a rank', hint="for example --rank 3, --rank 0,2-4 or --rank all"
            )
        elif max(span) > max(known, default=-1):
            raise InputError(f"{run.name} has no {_name(max(span))}", hint=_which(run))
        else:
            found += range(min(span), max(span) + 1)
    return list(dict.fromkeys(found))


def by_host(run: Run, ranks: Sequence[int], *, scheduler: bool = False) -> dict[str, list[int]]:
    """Return the ranks by the host that has their logs, "" for this host; -1 is the scheduler.

    A log that exists on this host is read here, wherever its rank runs: the disk is shared.

    Raises:
        InputError: The run does not have a given rank.
    """
    found: dict[str, list[int]] = {}
    planned = {process.rank: process for process in files.plan(run.path).processes}
    for rank in [-1] if scheduler else dict.fromkeys(ranks):
        process = planned.get(rank) or _planned(run, rank)
        found.setdefault("" if _is_read_here(run, process) else process.host, []).append(rank)
    return found


def paths(run: Run, ranks: Sequence[int], *, while_: Callable[[], bool] | None = None) -> dict[str, str]:
    """Return the paths of logs of this host, by the prefix of their lines; rank -1 is the scheduler.

    The function waits for missing logs while ``while_`` returns true.

    Raises:
        InputError: A log does not exist on this host.
    """
    found = {}
    folder = run_files.hold(run.path)
    # A log outside another user's run directory must be that user's: the plan may name any file.
    owner = None if directory.is_own(run.path) else folder.owner
    for rank in ranks:
        process = _planned(run, rank)
        path = os.path.join(run.path, process.log)
        while while_ and not os.path.lexists(path) and while_():
            time.sleep(_PAUSE)
        if not os.path.lexists(path):
            name = _name(rank)
            raise InputError(f"{run.name} has no log of {name} on this host", hint=_where(run, process))
        try:
            _check_place(run, path, owner)
            if owner is not None and os.path.isabs(process.log):
                run_files.hold_outside(os.path.dirname(path), file_mode=0).owner = owner
            os.close(run_files.open_read(path))
        except OSError as error:
            why = run_files.reason(error)
            raise InputError(f"the log of {_name(rank)}, {path}, cannot be read: {why}") from None
        found[_name(rank)] = path
    return found


def _check_place(run: Run, path: str, owner: int | None) -> None:
    """Refuse a log outside of a run directory of this user that this user's launch has not made.

    Raises:
        InputError: It is such a log.
    """
    if owner is None and run_files.find(path) is None and (why := own_runs.why_strange(run.path, os.environ)):
        raise InputError(
            f"{path} was not read: it is outside of the run directory {run.path}, which {why}",
            hint="if that log is meant, read it with `less`",
        )


def local(logs: Mapping[str, str], *, prefixed: bool, lines: int | None) -> list[Source]:
    """Return readers for logs of this host, each from its last ``lines`` lines or from its beginning.

    Raises:
        InputError: A log cannot be opened: another user may exchange it meanwhile.
    """
    return [
        _shown(path, f"[{name}] ".encode() if prefixed else b"", lines=lines) for name, path in logs.items()
    ]


def _shown(path: str, prefix: bytes, *, lines: int | None) -> Source:
    try:
        return _Shown(path, prefix, lines=lines)
    except OSError as error:
        raise InputError(f"{escaped(path)} cannot be read: {run_files.reason(error)}") from None


def show(sources: Sequence[Source], *, is_over: Callable[[], bool], escape: bool = False) -> None:
    r"""Write logs to standard output until the run is over, or no source has more data.

    ``escape`` writes unprintable characters as ``\u001b``, for logs of runs that are not in the record.

    Raises:
        InputError: A log could not be read to its end; all other logs were shown.
    """
    reported: set[Source] = set()
    while True:
        over = is_over()
        while sum(_write(source.read(last=over), escape=escape) for source in sources):
            continue
        for source in sources:
            if source.error and source not in reported and len(sources) > 1:
                reported.add(source)
                tell(f"hccl-tools: {source.error.message}")
        if all(source.error or (over and source.ended) for source in sources):
            break
        time.sleep(_PAUSE)
    if errors := [source.error for source in sources if source.error]:
        raise errors[0] if len(sources) == 1 else InputError("some logs could not be shown completely")


class Source(Protocol):
    """A reader of one or more logs.

    Attributes:
        ended: Whether all data has been read, once the run is over.
        error: Why reading failed.
    """

    ended: bool
    error: InputError | None

    def read(self, *, last: bool) -> bytes:
        """Return new whole lines, possibly ""; ``last`` includes an incomplete line."""


class _Shown:
    """The log of one rank over all restarts of the job, from the latest restart on."""

    def __init__(self, path: str, prefix: bytes, *, lines: int | None) -> None:
        self.ended = True
        self.error: InputError | None = None
        self._path, self._prefix, self._restart = path, prefix, 0
        while run_files.status(names.generation(path, self._restart + 1)):
            self._restart += 1
        current = names.generation(path, self._restart)
        self._follower = Follower(
            current, prefix, offset=0 if lines is None else _offset_of_last(current, lines)
        )

    def read(self, *, last: bool) -> bytes:
        """Return the data that can be shown now; the log of a restart follows the rest of this log."""
        if self.error is not None:
            return b""
        following = names.generation(self._path, self._restart + 1)
        restarted = run_files.status(following) is not None
        if (data := self._follower.read(last=last or restarted)) or not restarted:
            return data
        self._follower.close()
        self._restart += 1
        try:
            self._follower = Follower(following, self._prefix)
        except OSError as error:
            self.error = InputError(f"{escaped(following)} cannot be read: {run_files.reason(error)}")
            return b""
        return self._follower.read(last=last)


def _planned(run: Run, rank: int) -> SavedProcess:
    for process in files.plan(run.path).processes:
        if process.rank == rank:
            return process
    raise InputError(f"{run.name} has no {_name(rank)}", hint=_which(run))


def _name(rank: int) -> str:
    return "scheduler" if rank < 0 else f"rank {rank}"


def _is_read_here(run: Run, process: SavedProcess) -> bool:
    if hosts.is_on_this_host(run, process):
        return True
    if os.path.isabs(process.log):
        return False  # Named by the user (`workerlog.0`): each host may have a file of that name.
    # The logs of a run that has just started may not exist yet. Its host's clock may differ from this one's.
    deadline = time.monotonic() + min(run.started - time.time() + _SHARED_DISK_SECONDS, _SHARED_DISK_SECONDS)
    while not (there := os.path.exists(os.path.join(run.path, process.log))) and run.state == "running":
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE)
    return there


def _which(run: Run) -> str:
    ranks = [process.rank for process in files.plan(run.path).ranks]
    return f"its ranks are {min(ranks)} to {max(ranks)}" if ranks else f"see {run.path}"


def _where(run: Run, process: SavedProcess) -> str:
    if not process.here:
        return f"it runs on {process.host}: read its log there, in {hosts.path_on(run, process.host)}"
    return "it has not started" if run.state == "running" else f"see {run.path}"


def _write(data: bytes, *, escape: bool) -> int:
    shown = escaped(data.decode(errors="replace"), keep="\n\t").encode() if escape else data
    view = memoryview(shown)
    while view:
        view = view[os.write(1, view) :]
    return len(data)


def _offset_of_last(path: str, lines: int) -> int:
    with open(run_files.open_read(path), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if not lines:
            return size
        left = lines + 1  # The newline at the end, if there is one, ends the last line.
        if size and not _ends_line(file, size):
            left -= 1
        for begin, position in _blocks_before(file, size):
            file.seek(begin)
            block = file.read(position - begin)
            if (found := block.count(b"\n")) < left:
                left -= found
                continue
            end = len(block)
            for _ in range(left):
                end = block.rfind(b"\n", 0, end)
            return begin + end + 1
    return 0


def _blocks_before(file: IO[bytes], size: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of the blocks of a file, the last first, without its holes."""
    for begin, end in reversed(list(sparse_files.extents(file.fileno(), 0, size))):
        while end > begin:
            yield max(begin, end - _BLOCK), end
            end -= _BLOCK  # noqa: PLW2901  (the block is done)


def _ends_line(file: IO[bytes], size: int) -> bool:
    file.seek(size - 1)
    return file.read(1) == b"\n"


def serve(path: str, ranks: Sequence[int], *, follow: bool, lines: int | None, prefixed: bool) -> None:
    """Print logs of a run that are on this host, for a reader on another host.

    Rank -1 is MindSpore's scheduler. ``follow`` waits for the run directory and the logs, and continues until
    standard input ends. ``lines`` is the maximum number of lines per log, ``None`` for all.

    Raises:
        InputError: The run or a log does not exist on this host.
    """
    signal.signal(signal.SIGTERM, _end_input)
    while not files.is_run(path):
        if not follow or _has_input_ended():
            raise InputError(f"there is no run in {path} on this host")
        time.sleep(_PAUSE)
    logs = paths(index.read(path), ranks, while_=lambda: follow and not _has_input_ended())
    shown = local(logs, prefixed=prefixed, lines=lines)
    show(shown, is_over=lambda: not follow or _has_input_ended())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # SIGTERM must not take effect while Python exits.


def _end_input(_number: int, _frame: object) -> None:
    """Handle Slurm's signal at the end of the allocation: the rest of the logs is printed then."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _has_input_ended() -> bool:
    return bool(select.select([0], [], [], 0)[0]) and not os.read(0, 4096)
