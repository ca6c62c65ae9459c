"""The measurements of a report: one figure per run of the job."""

from __future__ import annotations

from hccl_tools.records import NamedTuple


class Figure(NamedTuple):
    """One run of the job on a number of machines or devices.

    ``devices`` counts those of all machines. At least one of ``machines`` and ``devices`` is known, and at
    least one of ``seconds`` and ``throughput`` unless the run ``failed``.
    """

    #: The position in the file, for messages: ``row 3`` or ``runs[2]``.
    place: str
    #: The experiment, if the file has several, such as a network's name.
    name: str = ""
    machines: int | None = None
    devices: int | None = None
    seconds: float | None = None
    #: The unit in which the file gives the time: ms, s, min, h or d.
    time_unit: str = "s"
    #: Work per second, in any unit.
    throughput: float | None = None
    metric: float | None = None
    batch_size: float | None = None
    learning_rate: float | None = None
    #: Why the run has no result; empty for a run that ended well.
    failed: str = ""


class Figures(NamedTuple):
    """The figures of a file, and how its columns are to be shown."""

    rows: tuple[Figure, ...]
    metric_name: str = "metric"
    #: Remarks about the file, such as columns that are not used.
    notes: tuple[str, ...] = ()
