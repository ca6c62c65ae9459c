"""Speed-up, efficiency and the serial share of measured runs."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from hccl_tools.errors import InputError
from hccl_tools.records import NamedTuple
from hccl_tools.scaling import amdahl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.scaling.amdahl import Fit
    from hccl_tools.scaling.reading import Figure, Figures


class Point(NamedTuple):
    """The runs on one number of machines and devices.

    ``speed_up`` is against the smallest number, from the medians; ``slowest`` and ``fastest`` are the
    speed-ups of single runs. ``efficiency`` is ``speed_up`` divided by the ideal one. They are ``None`` if
    every run failed.
    """

    machines: int | None
    devices: int | None
    #: The number of machines or devices relative to which speed is compared.
    size: int
    #: The number of runs that ended well, whose medians follow.
    runs: int
    seconds: float | None = None
    throughput: float | None = None
    metric: float | None = None
    batch_size: float | None = None
    learning_rate: float | None = None
    #: The reasons of the other runs.
    failed: tuple[str, ...] = ()
    speed_up: float | None = None
    slowest: float | None = None
    fastest: float | None = None
    efficiency: float | None = None


class Series(NamedTuple):
    """The points of one experiment, smallest first; ``unit`` is what ``size`` counts."""

    name: str
    unit: str
    points: tuple[Point, ...]
    #: The unit in which the file gives the first time: ms, s, min, h or d.
    time_unit: str = "s"
    #: ``None`` with fewer than three sizes.
    fit: Fit | None = None

    @property
    def good(self) -> tuple[Point, ...]:
        """The points with a result."""
        return tuple(point for point in self.points if point.speed_up is not None)


def analyse(figures: Figures) -> tuple[Series, ...]:
    """Return the series of each experiment, in the order of the file.

    Raises:
        InputError: No two sizes of an experiment can be compared.
    """
    rows: dict[str, list[Figure]] = {}
    for row in figures.rows:
        rows.setdefault(row.name, []).append(row)
    return tuple(_series(name, own) for name, own in rows.items())


def _series(name: str, rows: Sequence[Figure]) -> Series:
    unit = _unit(rows)
    by_count: dict[tuple[int, int], list[Figure]] = {}
    for row in rows:
        by_count.setdefault((getattr(row, unit), row.machines or 0), []).append(row)
    timed = all(row.seconds is not None for row in rows if not row.failed)
    groups = [_Group(size, group, timed=timed) for (size, _), group in sorted(by_count.items())]
    base = next((group for group in groups if group.costs), None)
    title = f'"{name}": ' if name else ""
    if base is None:
        raise InputError(f"{title}every run failed", hint="the first reason: " + rows[0].failed)
    if len({group.size for group in groups}) < 2:
        raise InputError(f"{title}all rows have {base.size} {unit}: a comparison needs two numbers or more",
                         hint="add a row for another number of machines or devices")  # fmt: skip
    points = tuple(group.point(base) for group in groups)
    costs = [(group.size / base.size, cost) for group in groups for cost in group.costs]
    return Series(name, unit, points, rows[0].time_unit, amdahl.fit(costs))


def _unit(rows: Sequence[Figure]) -> str:
    """Return what is compared: devices, unless every row has the same number (of each machine)."""
    devices = {row.devices for row in rows}
    machines = {row.machines for row in rows}
    return "machines" if None in devices or (len(devices) == 1 and len(machines) > 1) else "devices"


class _Group:
    """The rows of one size. ``costs`` are their times, or the times per unit of work."""

    def __init__(self, size: int, rows: Sequence[Figure], *, timed: bool) -> None:
        self.size, self._rows = size, rows
        self._good = [row for row in rows if not row.failed]
        if timed:
            self.costs = [row.seconds for row in self._good if row.seconds is not None]
        else:
            self.costs = [1 / row.throughput for row in self._good if row.throughput is not None]

    def _median(self, field: str) -> float | None:
        values = [value for row in self._good if (value := getattr(row, field)) is not None]
        return median(values) if values else None

    def point(self, base: _Group) -> Point:
        first = self._rows[0]
        fields = ("seconds", "throughput", "metric", "batch_size", "learning_rate")
        medians = {field: self._median(field) for field in fields}
        failed = tuple(row.failed for row in self._rows if row.failed)
        point = Point(
            first.machines, first.devices, self.size, runs=len(self._good), failed=failed, **medians
        )
        if not self.costs:
            return point
        reference = median(base.costs)
        speed_up = reference / median(self.costs)
        return point._replace(
            speed_up=speed_up,
            slowest=reference / max(self.costs),
            fastest=reference / min(self.costs),
            efficiency=speed_up / (self.size / base.size),
        )
