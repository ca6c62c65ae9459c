"""How long ``explain`` takes to read healthy logs, beside ``grep`` with a list of words.

``python -m benchmarks.explain [GIGABYTES]`` writes the logs into a temporary folder: one without the word
`error`, one in which a fifth of the lines have it, and many of a megabyte. The time of the processor is that
of all processes: the disk and other users of the machine do not count in it. Each long log is read on one
core, then on all cores.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_STEPS = (
    (
        "[INFO] HCCL(12345,python3):2026-11-20-10:11:12.123.456 [hccl_comm.cc:{0}] [12345]"
        "Entry-HcclAllReduce: tag[AllReduce_10.0.0.1], sendBuf[0x{2:x}], count[1048576],"
        " dataType[float16]\n"
    ),
    (
        '{{"step": {0}, "loss": 2.3456, "learning rate": 0.0001, "throughput": 1234.5,'
        ' "time": "2026-11-20 10:11:12"}}\n'
    ),
)
_WITH_ERROR = (
    "2026-11-20 10:11:12 INFO metrics: step={0} errors=0 error_rate=0.0 retries={1}\n",
    "2026-11-20 10:11:12 INFO no error in shard {0}\n",
    "[INFO] HCCL(12345,python3):2026-11-20-10:11:12.123.456 [x.cc:{1}] last error code 0, step {0}\n",
)
#: What people search for: the words of `grep -c -F`.
_WORDS = (
    *("error", "Error", "ERROR", "fail", "Fail", "EI00", "EJ00"),
    *("timeout", "Killed", "SIGTERM", "Traceback", "abnormal"),
)
_MEGABYTE = 1_000_000
#: Megabytes that differ: more than `explain` remembers.
_DIFFERENT = 32


def megabyte(lines_with_error: int = 0, seed: int = 0) -> bytes:
    """Return a megabyte of the log of a job that trains; one of so many lines has `error`, 0: none."""
    lines, size, number, pick = [], 0, 0, random.Random(seed)  # noqa: S311  (not for secrets)
    while size < _MEGABYTE:
        number += 1
        is_step = not lines_with_error or number % lines_with_error
        kinds = _STEPS if is_step else _WITH_ERROR
        lines.append(
            kinds[number // (lines_with_error or 1) % len(kinds)].format(
                number, number % 97, pick.getrandbits(44)
            )
        )
        size += len(lines[-1])
    return "".join(lines).encode()[:_MEGABYTE]


def measured(command: list[str], cores: int) -> str:
    """Return the time and the memory of a program that reads logs on so many cores."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    done = subprocess.run(
        command, capture_output=True, check=False, preexec_fn=lambda: os.sched_setaffinity(0, allowed)
    )
    assert done.returncode in {0, 1}, done.stderr
    elapsed = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    number = "1 core" if cores == 1 else f"{cores} cores"
    return f"{seconds:.1f} s of the processor, {elapsed:.1f} s elapsed on {number}"


def main() -> None:
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    explain = [sys.executable, "-m", "hccl_tools", "explain"]
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        words, log = Path(folder) / "words", Path(folder) / "rank_0.log"
        words.write_text("\n".join(_WORDS) + "\n")
        for name, every in (("no line", 0), ("a fifth of the lines", 5)):
            parts = [megabyte(every, seed) for seed in range(_DIFFERENT)]
            with log.open("wb") as file:
                for number in range(round(1000 * gigabytes)):
                    file.write(parts[number % _DIFFERENT])
            print(f"one log of {gigabytes:g} GB, {name} with `error`:")
            print(f"  explain: {measured([*explain, str(log)], 1)}")
            print(f"  explain: {measured([*explain, str(log)], cores)}")
            grep = ["grep", "-c", "-F", "-f", str(words), str(log)]
            print(f"  grep -c -F, {len(_WORDS)} words: {measured(grep, 1)}")
        log.unlink()
        many = Path(folder) / "many"
        many.mkdir()
        for number in range(round(1024 * gigabytes)):
            (many / f"rank_{number}.log").write_bytes(parts[number % _DIFFERENT])
        print(f"{round(1024 * gigabytes):,} logs of 1 MB, a fifth of the lines with `error`:")
        print(f"  explain: {measured([*explain, str(many)], 1)}")


if __name__ == "__main__":
    main()
