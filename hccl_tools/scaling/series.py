"""Run a series: every count once, then again in the reverse order, until all repeats are done."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import contextmanager
from statistics import mean
from typing import TYPE_CHECKING, Any

from hccl_tools.document.writing import write_atomically
from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import count, time_span
from hccl_tools.notation.printable import show_status
from hccl_tools.processes import run_files
from hccl_tools.records import NamedTuple
from hccl_tools.runs import names, parents
from hccl_tools.scaling import single_run
from hccl_tools.scaling.single_run import Stopped
from hccl_tools.transform.subsetting import subset
from hccl_tools.validation import checker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.scaling.measuring import Measures
    from hccl_tools.scaling.series_file import SeriesFile
    from hccl_tools.table.model import RankTable


class Count(NamedTuple):
    """A number of machines and devices, and the options or the text of the rank table for it.

    ``machines`` is ``None`` if the series does not vary it. ``devices`` counts those of all machines.
    """

    machines: int | None
    devices: int
    options: tuple[str, ...] = ()
    table: str | None = None

    @property
    def text(self) -> str:
        """The count for messages: ``8 devices``, ``16 devices on 2 machines``."""
        where = "" if self.machines is None else f" on {count(self.machines, 'machine')}"
        return count(self.devices, "device") + where

    @property
    def log_name(self) -> str:
        """The name of the log directory of its runs."""
        return ("" if self.machines is None else f"machines-{self.machines}-") + f"devices-{self.devices}"


class Plan(NamedTuple):
    """A series: which counts, how often, and the launch without the options of the counts."""

    counts: Sequence[Count]
    repeat: int
    #: The options of ``launch``, and the program with its arguments.
    options: tuple[str, ...]
    program: tuple[str, ...]
    log_dir: Path
    measures: Measures

    def arguments(self, one: Count, table: str | None = None) -> tuple[str, ...]:
        """Return the arguments of ``launch`` with the file of a table, if there is one.

        The options for this number of ranks come last, because the last value of an option counts.
        """
        own = one.options if table is None else ("--rank-table", table)
        return (*self.options, *own, "--log-dir", str(self.log_dir / one.log_name), "--", *self.program)

    def order(self) -> Iterator[tuple[int, Count]]:
        """Yield each repeat, from 1, and count.

        Every second repeat is in the reverse order: a machine that becomes slower delays all counts alike.
        """
        for repeat in range(1, self.repeat + 1):
            for one in self.counts if repeat % 2 else reversed(self.counts):
                yield repeat, one


def run(plan: Plan, file: SeriesFile, *, keep_going: bool) -> bool:
    """Run what is not in the file yet, and add each result to it; return False if a run failed.

    Raises:
        UsageError: A pattern has never matched, or a log directory cannot be used; the file has the earlier
            runs.
        Stopped: A signal has ended the series; the finished runs are in the file.
    """
    waiting = [pair for pair in plan.order() if not file.done(pair[1].machines, pair[1].devices, pair[0])]
    progress = _Progress(len(waiting))
    good = True
    file.write()
    with _signals():
        for repeat, one in waiting:
            log_dir = plan.log_dir / one.log_name
            _make(str(log_dir))
            table = one.table and write_atomically(log_dir / names.TABLE, [one.table])
            progress.begin(f"{one.text}, repeat {repeat} of {plan.repeat}")
            row = single_run.run(plan.arguments(one, table), log_dir, plan.measures, progress.draw)
            file.add({"machines": one.machines, "devices": one.devices, "repeat": repeat, **row})
            progress.end(row)
            if row.get("failed"):
                good = False
                if not keep_going:
                    break
    return good


def _make(log_dir: str) -> None:
    try:
        parents.make(log_dir)
    except OSError as error:
        raise single_run.not_usable(log_dir, run_files.reason(error)) from error
    except LaunchError as error:  # Its exit code is that of ``launch``.
        raise UsageError(error.message, hint=error.hint) from error


@contextmanager
def _signals() -> Iterator[None]:
    """Let the signals that end a program end the current run first."""

    def stop(number: int, _frame: object) -> None:
        raise Stopped(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    old = {
        number: signal.signal(number, stop)
        for number in numbers
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


class _Progress:
    """A line per finished run on stderr; on a terminal also one about the current run, with the time left."""

    def __init__(self, runs: int) -> None:
        self._runs, self._number = runs, 0
        self._durations: list[float] = []
        self._title, self._began = "", 0.0
        self._on_terminal = sys.stderr.isatty()
        self._write: Callable[[str], object] = sys.stderr.write

    def begin(self, title: str) -> None:
        self._number += 1
        self._title, self._began = title, time.monotonic()
        self.draw()

    def draw(self) -> None:
        if not self._on_terminal:
            return
        age = time.monotonic() - self._began
        text = f"run {self._number} of {self._runs}: {self._title}, {time_span(age)}"
        if self._durations:
            left = mean(self._durations) * (self._runs - self._number + 1) - age
            text += f"; about {time_span(max(left, 0.0))} left"
        show_status(screen.cut(text, (screen.width(2) or screen.STANDARD) - 1))

    def end(self, row: dict[str, Any]) -> None:
        self._durations.append(time.monotonic() - self._began)
        if self._on_terminal:
            show_status("")
        values = [f"{name} {row[name]:g}" for name in ("throughput", "metric") if row.get(name) is not None]
        if row.get("failed"):
            values = [f"failed: {row['failed']}"]
        elif row.get("time") is not None:
            values.insert(0, time_span(row["time"], 2))
        line = f"{self._number}/{self._runs}  {self._title}: {', '.join(values)}; {row['run']}"
        self._write(f"{screen.fitted(line, screen.width(2))}\n")
        sys.stderr.flush()


def cut_table(
    table: RankTable, *, machines: int, per_machine: int, product: str | None, ignore: Sequence[str] = ()
) -> RankTable:
    """Return the table of the first machines, with the first devices that the rules of the product allow.

    Each machine keeps the same device ids, which are consecutive in the order of the ranks.

    Raises:
        UsageError: The table is too small, or the rules allow no such set of devices.
    """
    wanted = f"{count(per_machine, 'device')} on {count(machines, 'machine')}"
    if machines > len(table.servers):
        has = count(len(table.servers), "machine")
        raise UsageError(f"{wanted}: the table has {has}", hint="leave the larger numbers out of --nnodes")
    servers = [server.server_id for server in table.servers[:machines]]
    ids = _device_ids(table)
    if per_machine > len(ids):
        has = f"{count(len(ids), 'device')} on {servers[0]}"
        raise UsageError(
            f"{wanted}: the table has {has}", hint="leave the larger numbers out of --nproc-per-node"
        )
    first: Report | None = None
    for start in range(len(ids) - per_machine + 1):
        made = subset(table, servers=servers, devices=ids[start : start + per_machine])
        report = checker.check_table(made, product=product, ignore=ignore)
        if report.ok:
            return made
        first = first or report
    finding = first.errors[0] if first is not None else None
    said = f" ({finding.rule.id}: {finding.message})" if finding else ""
    raise UsageError(f"{wanted}: the rules do not allow it{said}", hint=finding.hint if finding else None)


def _device_ids(table: RankTable) -> list[int]:
    """Return the device ids of the first machine in the order of their ranks."""
    ranks, ids = table.rank_numbers, table.device_numbers
    rows = sorted(table.servers[0].rows, key=lambda row: ranks[row] or 0)
    return [number for row in rows if (number := ids[row]) is not None]
