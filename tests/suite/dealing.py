"""Which worker runs which tests.

A unit is what one worker runs in a row: the tests of a bed, which is built once then, or those of a file. A
bed whose tests take longer than ``LONGEST_S`` is built several times, for a part of its files each.

There are two kinds of workers. As many as there are cores prefer the units that compute, all others those
that wait for something. The longest unit comes first, by the times in ``durations.json``, which
``make durations`` writes. A worker that finds no unit of its kind takes one of the other.
"""

from __future__ import annotations

import json
import math
import os
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

#: Fixtures that start a bed.
BEDS = ("two_hosts", "three_hosts", "slurm_cluster", "browser")
#: Seconds of tests above which a bed is built once more.
LONGEST_S = 240.0
DURATIONS = Path(__file__).with_name("durations.json")
CORES = len(os.sched_getaffinity(0))
#: The share of its time that a unit computes, from which on it does not wait.
_COMPUTES = 0.25


class Cost(NamedTuple):
    """The seconds that some tests take, and the CPU time of the worker and its children meanwhile."""

    seconds: float = 0.0
    cpu: float = 0.0

    def plus(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.cpu + other.cpu)


#: What the tests of a file that has not been measured count as.
_UNKNOWN = Cost(5.0, 5.0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-durations", action="store_true", help=f"write {DURATIONS.name} after the run")


class Unit(NamedTuple):
    """What one worker runs in a row."""

    name: str
    cost: Cost
    items: list[pytest.Item]


def bed_of(item: pytest.Item) -> str:
    """Return the bed that a test uses, "" for none."""
    return next((bed for bed in BEDS if bed in getattr(item, "fixturenames", ())), "")


def part_of(item: pytest.Item) -> str:
    """Return the name of the smallest part that is dealt: the tests of a file that use the same bed."""
    file = item.nodeid.split("::")[0]
    return f"{file} {bed}" if (bed := bed_of(item)) else file


def units(items: Sequence[pytest.Item]) -> list[Unit]:
    """Return what is dealt, the longest first, its tests in the order of ``items``."""
    known = recorded()
    parts = {part_of(item): bed_of(item) for item in items}
    costs = {part: known.get(part, _UNKNOWN) for part in parts}
    names = {part: part for part, bed in parts.items() if not bed}
    for bed in BEDS:
        names |= _dealt_to_beds(bed, {part: costs[part] for part, its_bed in parts.items() if its_bed == bed})
    found: dict[str, Unit] = {}
    for item in items:
        name = names[part_of(item)]
        found.setdefault(name, Unit(name, Cost(), [])).items.append(item)
    for part, name in names.items():
        found[name] = found[name]._replace(cost=found[name].cost.plus(costs[part]))
    return sorted(found.values(), key=lambda unit: (-unit.cost.seconds, unit.name))


def _dealt_to_beds(bed: str, parts: dict[str, Cost]) -> dict[str, str]:
    """Return on which of several equal beds each part runs."""
    beds = [0.0] * math.ceil(sum(cost.seconds for cost in parts.values()) / LONGEST_S)
    found = {}
    for part, cost in sorted(parts.items(), key=lambda each: (-each[1].seconds, each[0])):
        least = beds.index(min(beds))
        beds[least] += cost.seconds
        found[part] = f"{bed} {least + 1}"
    return found


def recorded() -> dict[str, Cost]:
    """Return what each part cost when it was measured last."""
    return {name: Cost(*cost) for name, cost in json.loads(DURATIONS.read_text())["parts"].items()}


class Dealer(LoadScopeScheduling):  # type: ignore[misc]
    """Deals the units that the first worker has written into a file."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self._read: dict[str, tuple[str, bool]] | None = None

    @property
    def _units(self) -> dict[str, tuple[str, bool]]:
        if self._read is None:
            self._read = {
                test: (name, computes) for test, name, computes in json.loads(_file(self.config).read_text())
            }
        return self._read

    def _split_scope(self, nodeid: str) -> str:
        return self._units[nodeid][0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        prefers = int(node.gateway.id.removeprefix("gw")) < CORES
        for name, tests in self.workqueue.items():
            if self._units[next(iter(tests))][1] == prefers:
                self.workqueue.move_to_end(name, last=False)
                break
        super()._assign_work_unit(node)


def _file(config: pytest.Config) -> Path:
    """Return the file of the units: for a worker, where the controller expects it."""
    if hasattr(config, "workerinput"):
        return Path(config.workerinput["units"])
    folder: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return folder / "units.json"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Dealer | None:
    return Dealer(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    node.workerinput["units"] = str(_file(node.config))


def deal(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests in the order of the units, and have the first worker tell the controller of these."""
    found = units(items)
    items[:] = [item for unit in found for item in unit.items]
    if hasattr(config, "workerinput") and config.workerinput["workerid"] == "gw0":
        rows = [
            (item.nodeid, unit.name, unit.cost.cpu > _COMPUTES * unit.cost.seconds)
            for unit in found
            for item in unit.items
        ]
        _file(config).write_text(json.dumps(rows))


class _Meter:
    """Adds up what the tests of each part cost."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.costs: dict[str, Cost] = {}

    def add(self, name: str, cost: Cost) -> None:
        self.costs[name] = self.costs.get(name, Cost()).plus(cost)


_METER = pytest.StashKey[_Meter]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_METER] = _Meter()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before, cpu = time.monotonic(), _cpu_seconds()
    done = yield
    item.config.stash[_METER].add(part_of(item), Cost(time.monotonic() - before, _cpu_seconds() - cpu))
    return done


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController, error: object) -> None:
    """Take over what the tests of a worker cost."""
    for name, cost in getattr(node, "workeroutput", {}).get("costs", {}).items():
        node.config.stash[_METER].add(name, Cost(*cost))


def pytest_sessionfinish(session: pytest.Session) -> None:
    config, costs = session.config, session.config.stash[_METER].costs
    if hasattr(config, "workeroutput"):
        config.workeroutput["costs"] = {name: tuple(cost) for name, cost in costs.items()}


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Write what was measured, if that is asked for."""
    if config.option.write_durations and not hasattr(config, "workerinput"):
        meter = config.stash[_METER]
        rows = [
            f"  {json.dumps(part)}: [{cost.seconds:.1f}, {cost.cpu:.1f}]"
            for part, cost in sorted(meter.costs.items())
        ]
        head = f'"cores": {CORES}, "seconds": {time.monotonic() - meter.began:.0f}'
        body = ",\n".join(rows)
        DURATIONS.write_text(f'{{{head}, "parts": {{\n{body}\n}}}}\n')
