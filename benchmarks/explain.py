"""How long ``explain`` takes to read healthy logs: one of a gigabyte, and 1,024 of a megabyte, on one core.

``python -m benchmarks.explain [GIGABYTES]`` writes the logs into a temporary folder. The time is that of the
processor: the disk and other users of the machine do not count.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

_LINES = (
    "[INFO] HCCL(12345,python3):2026-11-20-10:11:12.123.456 [hccl_comm.cc:{0}] [12345]Entry-HcclAllReduce:"
    " tag[AllReduce_10.0.0.1], sendBuf[0x12c041400000], count[1048576], dataType[float16]\n"
    '{{"step": {0}, "loss": 2.3456, "learning rate": 0.0001, "throughput": 1234.5,'
    ' "time": "2026-11-20 10:11:12"}}\n'
)
_MEGABYTE = 1_000_000


def megabyte() -> bytes:
    """Return a megabyte of the log of a job that trains."""
    text = "".join(_LINES.format(number) for number in range(_MEGABYTE // 250))
    return (text.encode() * 2)[:_MEGABYTE]


def measured(path: Path) -> str:
    """Return the time and the memory of ``explain`` for a file or a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "hccl_tools", "explain", str(path)]
    core = min(os.sched_getaffinity(0))
    done = subprocess.run(
        command, capture_output=True, check=False, preexec_fn=lambda: os.sched_setaffinity(0, {core})
    )
    assert done.returncode == 1, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{seconds:.1f} s of one core, {after.ru_maxrss / 1024:.0f} MiB"


def main() -> None:
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    part = megabyte()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "rank_0.log"
        with log.open("wb") as file:
            for _ in range(round(1000 * gigabytes)):
                file.write(part)
        print(f"one log of {gigabytes:g} GB: {measured(log)}")
        log.unlink()
        many = Path(folder) / "many"
        many.mkdir()
        for number in range(round(1024 * gigabytes)):
            (many / f"rank_{number}.log").write_bytes(part)
        print(f"{round(1024 * gigabytes):,} logs of 1 MB: {measured(many)}")


if __name__ == "__main__":
    main()
