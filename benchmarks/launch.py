"""Time and memory of ``hccl-tools launch``: ``python -m benchmarks.launch [RUNS]``.

Held against the loop of the guides: start every rank in the background with its own log, then wait. Where
torchrun and msrun are installed they are measured in the same run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from benchmarks.launchers import installed
from benchmarks.measuring import Contender, Row, alternate, report

if TYPE_CHECKING:
    from benchmarks.measuring import Figures

#: A rank says when it got to work.
RANK = "import time\nprint('first line at', time.time(), flush=True)\n"
RANKS = 4
#: The path of a host with NPUs, which stand-ins imitate: its devices are looked at before the start.
WITH_DEVICES = "launch with devices"
MAKE_HOST = """\
import json, sys
from pathlib import Path
from tests.support.hosts import make_host
host = make_host(Path(sys.argv[1]), nodes=range(int(sys.argv[2])))
card = host.root / "sys/bus/pci/devices/0000:3d:00.0"
card.mkdir(parents=True)
(card / "vendor").write_text("0x19e5\\n")
(card / "device").write_text("0xd801\\n")
print(json.dumps(host.environ()))
"""
LOOP = """
mkdir -p {logs}
for i in $(seq 0 {last}); do RANK_ID=$i {program} > {logs}/rank_$i.log 2>&1 & done
wait
"""


def _host_with_devices(folder: Path) -> dict[str, str]:
    """Make a host with NPUs and return the environment for it.

    In another process: the peak memory of a child begins with that of its parent.
    """
    making = [sys.executable, "-c", MAKE_HOST, str(folder), str(RANKS)]
    made = subprocess.run(making, check=True, capture_output=True, text=True).stdout
    found: dict[str, str] = json.loads(made)
    return {**found, "PATH": f"{found['PATH'].split(':')[0]}:{os.environ['PATH']}"}


def last_first_line(logs: Path, began: float) -> float:
    """Return the seconds from ``began`` until the last rank's first line, and empty the logs."""
    lines = [line for log in logs.rglob("*.log") for line in log.read_text().splitlines()]
    times = [float(line.rsplit(" ", 1)[1]) for line in lines if "first line at" in line]
    shutil.rmtree(logs)
    if len(times) < RANKS:  # under msrun the scheduler runs the script as well
        sys.exit(f"{logs}: {len(times)} first lines instead of {RANKS}")
    return max(times) - began


def trivial_ranks(folder: Path, runs: int) -> dict[str, Figures]:
    """Measure four ranks of Python that print one line, from every launcher that is here."""
    (folder / "rank.py").write_text(RANK)
    subprocess.run(
        [
            "hccl-tools",
            "gen",
            "--simulate",
            "910a",
            "--device_num",
            "[0,4)",
            "-o",
            str(folder / "table.json"),
        ],
        check=True,
        capture_output=True,
    )
    launch = ["hccl-tools", "launch", "--rank-table", "table.json", "--cpu", "--start", "table"]
    loop, after_click = (
        LOOP.format(logs=logs, last=RANKS - 1, program="python rank.py") for logs in ("loop", "click")
    )
    devices = _host_with_devices(folder / "host")
    own_table = ["hccl-tools", "gen", "--device_num", f"[0,{RANKS})", "-o", str(folder / "devices.json")]
    subprocess.run(own_table, check=True, capture_output=True, env=devices)
    with_devices = ["hccl-tools", "launch", "--rank-table", "devices.json", "--start", "table"]
    commands = {
        "bash loop": ["bash", "-c", loop],
        # What any launcher needs that is written with click, before it has done anything.
        "loop after click": ["bash", "-c", f"python -c 'import click'; {after_click}"],
        "launch": [*launch, "--log-dir", "launch", "rank.py"],
        WITH_DEVICES: [*with_devices, "--log-dir", "devices", "rank.py"],
    }
    if torchrun := installed("torchrun"):
        options = ["--nproc-per-node=4", "--log-dir=torchrun", "--redirects=3"]
        commands["torchrun"] = [torchrun, *options, "rank.py"]
    if installed("msrun"):
        options = ["--worker_num=4", "--local_worker_num=4", "--join=True", "--log_dir=msrun"]
        commands["msrun"] = ["msrun", *options, "rank.py"]
    contenders = [
        Contender(
            name,
            argv,
            cwd=str(folder),
            env=devices if name == WITH_DEVICES else {},
            note=partial(last_first_line, folder / name.split()[-1]),
        )
        for name, argv in commands.items()
    ]
    return alternate(contenders, runs)


def many_ranks(folder: Path, runs: int) -> Row:
    """Hold 256 ranks of /bin/true against the loop."""
    loop = LOOP.format(logs="many-loop", last=255, program="/bin/true")
    launch = [
        "hccl-tools",
        "launch",
        "--no-table",
        "-n",
        "256",
        "--log-dir",
        "many",
        "--no-python",
        "/bin/true",
    ]
    figures = alternate(
        [
            Contender("launch", launch, cwd=str(folder)),
            Contender("loop", ["bash", "-c", loop], cwd=str(folder)),
        ],
        runs,
    )
    return Row(
        "256 ranks of /bin/true", figures["launch"].seconds, "s", "bash loop", figures["loop"].seconds, 3.5
    )


def shim(folder: Path, runs: int) -> list[Row]:
    """Hold a rank behind the shim against the same program and a Python that does nothing, in seconds.

    What the launcher settles is made for 2 and for 8,192 ranks; mpirun's part is its variables alone.
    """
    rows = []
    for size in (2, 8192):
        run_dir = folder / f"shim-{size}"
        run_dir.mkdir()
        making = [sys.executable, "-m", "benchmarks.shim_facts", str(run_dir), str(size)]
        subprocess.run(making, check=True)
        world = {f"OMPI_COMM_WORLD_{name}": str(size) for name in ("SIZE", "LOCAL_SIZE")}
        world |= {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "PMIX_NAMESPACE": "job"}
        command = [sys.executable, "-m", "hccl_tools.launch.rank", "--facts", str(run_dir / "mpi_ranks")]
        contenders = [
            Contender("shim", command, env=world),
            Contender("python", [sys.executable, "-c", "pass"]),
            Contender("program", ["/bin/true"]),
        ]
        figures = alternate(contenders, 3 * runs)
        added = figures["shim"].seconds - figures["python"].seconds - figures["program"].seconds
        rows.append(Row(f"the shim adds to one of {size} ranks", added, "s", "a bound", 0.025, 1))
    return rows


def looking(folder: Path, runs: int) -> list[Row]:
    """Hold what only looks against its bound in seconds."""
    launch = ["hccl-tools", "launch"]
    figures = alternate(
        [
            Contender("launch --help", [*launch, "--help"], cwd=str(folder)),
            Contender(
                "launch --dry-run",
                [*launch, "--rank-table", "table.json", "--cpu", "--dry-run", "rank.py"],
                cwd=str(folder),
            ),
        ],
        runs,
    )
    return [Row(name, own.seconds, "s", "a bound", 0.15, 1) for name, own in figures.items()]


def main(runs: int) -> None:
    """Measure and print."""
    folder = Path(mkdtemp(prefix="hccl-tools-bench-"))
    try:
        figures = trivial_ranks(folder, runs)
        ours, loop, after_click = (figures[name] for name in ("launch", "bash loop", "loop after click"))
        devices = figures[WITH_DEVICES]
        rows = [
            Row("4 ranks, the last rank's first line", ours.noted, "s", "bash loop", loop.noted, 2.3),
            Row("  the same", ours.noted, "s", "import click, then the loop", after_click.noted),
            Row("4 ranks, the whole run", ours.seconds, "s", "bash loop", loop.seconds),
            Row("  peak memory", ours.megabytes, "MB", "a bound", 25, 1),
            Row(
                "4 ranks with devices, the same",
                devices.noted,
                "s",
                "import click, then the loop",
                after_click.noted,
                1.6,
            ),
            Row("  peak memory", devices.megabytes, "MB", "a bound", 21, 1),
        ]
        rows += [
            Row(f"4 ranks, the last first line, {name}", ours.noted, "s", name, figures[name].noted, 1 / 6)
            for name in ("torchrun", "msrun")
            if name in figures
        ]
        rows.append(many_ranks(folder, runs))
        rows += looking(folder, runs)
        rows += shim(folder, runs)
    finally:
        shutil.rmtree(folder)
    report(f"launch: medians of {runs}, whole processes", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
