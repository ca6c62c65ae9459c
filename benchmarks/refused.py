"""CPU time and memory of judging refused tables: ``python -m benchmarks.refused [RUNS]``.

The tables are the worst of a megabyte, and some of 65,536 ranks. Each is judged in a process of its own, by
``jsonschema`` once for each shape, and by the walk that is the yardstick of the tests. Judging must take at
most 0.9 s and 20 MB on top of parsing, with the import of ``jsonschema``.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_SECONDS, MOST_MEGABYTES = 0.9, 20.0
RANKS, MEGABYTE = 65_536, 1_000_000
KEYS = ("device_id", "rank_id", "device_port", "host_port", "net_position", "net_protocol")
VALUES: tuple[Any, ...] = ("", 0, None, [], {}, True, 1.5)


def table(servers: list[Any]) -> dict[str, Any]:
    return {"version": "1.0", "status": "completed", "server_count": "1", "server_list": servers}


def device(rank: int, **others: Any) -> dict[str, Any]:
    address = f"10.{rank >> 16}.{rank >> 8 & 255}.{rank & 255}"
    return {"device_id": str(rank % 8), "device_ip": address, "rank_id": str(rank), **others}


def of_eights(change: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    return table(
        [
            {"server_id": f"s{first}", "device": [change(first + index) for index in range(8)]}
            for first in range(0, RANKS, 8)
        ]
    )


def all_shapes() -> dict[str, Any]:
    """Return a table in which no two devices have the same keys and types."""
    devices: list[Any] = []
    left = MEGABYTE
    for values in itertools.product(VALUES, repeat=len(KEYS)):
        found = dict(zip(KEYS, values, strict=True))
        left -= len(json.dumps(found, separators=(",", ":"))) + 1
        if left < 0:
            break
        devices.append(found)
    return table([{"server_id": "0", "device": devices}])


TABLES: dict[str, Callable[[], dict[str, Any]]] = {
    "8 ranks, one fault": lambda: table(
        [{"server_id": "0", "device": [device(0, rank_id=0), *map(device, range(1, 8))]}]
    ),
    "65,536 ranks, one fault": lambda: of_eights(
        lambda rank: device(rank, **({"rank_id": rank} if rank == RANKS // 2 else {}))
    ),
    "65,536 ranks, every rank_id a number": lambda: of_eights(lambda rank: device(rank, rank_id=rank)),
    "65,536 empty devices": lambda: of_eights(lambda _: {}),
    "1 MB of {}": lambda: table([{"server_id": "0", "device": [{} for _ in range(MEGABYTE // 3)]}]),
    "65,536 faulty servers of one device": lambda: table(
        [{"server_id": str(rank), "device": [device(rank, device_id=0)]} for rank in range(RANKS)]
    ),
    "1 MB of different shapes": all_shapes,
}


def judge(path: str, how: str) -> None:
    """Print the CPU time of import and judgement, and by how much they have raised the peak memory."""
    value = json.loads(Path(path).read_bytes())
    before = peak()
    began = time.process_time()
    if how == "walk":
        from tests.support.schema_walk import Violations  # noqa: PLC0415  (its import counts)

        found: Any = Violations(value, "1.0", 1000)
    else:
        from hccl_tools.formats import schema  # noqa: PLC0415

        found = schema.Violations(value, "1.0", 1000)
    spent = time.process_time() - began
    print(spent, peak() - before, sum(found.counts.values()))


def peak() -> float:
    """Return the largest resident size of this process in MB since the last call."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = (int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:"))
    Path("/proc/self/clear_refs").write_text("5")
    return found


def measured(path: Path, how: str, runs: int) -> tuple[float, float, int]:
    """Return the medians of some runs: seconds, MB, and the number of violations."""
    argv = [sys.executable, "-m", "benchmarks.refused", "--judge", str(path), how]
    outputs = [subprocess.run(argv, capture_output=True, text=True, check=True) for _ in range(runs)]
    rows = [[float(word) for word in done.stdout.split()] for done in outputs]
    seconds, megabytes, number = (median(column) for column in zip(*rows, strict=True))
    return seconds, megabytes, int(number)


def main(runs: int) -> int:
    too_much = []
    with TemporaryDirectory() as folder:
        for name, make in TABLES.items():
            path = Path(folder, "table.json")
            path.write_text(json.dumps(make(), separators=(",", ":")))
            seconds, megabytes, number = measured(path, "shapes", runs)
            walk, _, same = measured(path, "walk", runs)
            assert number == same, name
            print(f"{name:<38} {number:>8,} {seconds:6.2f} s {megabytes:6.1f} MB   the walk {walk:6.2f} s")
            if seconds > MOST_SECONDS or megabytes > MOST_MEGABYTES:
                too_much.append(name)
    for name in too_much:
        print(f"{name}: more than {MOST_SECONDS} s or {MOST_MEGABYTES} MB")
    return 1 if too_much else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--judge"]:
        judge(*sys.argv[2:])
    else:
        sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 5))
