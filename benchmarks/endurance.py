"""What is left or grows after many launches and in a long job: ``python -m benchmarks.endurance [PART]...``.

The parts, all by default:

* ``launches=N``: N launches of two ranks in a row (1,000). Processes, shared memory, temporary files and the
  time of a launch before and after.
* ``job=MINUTES``: a job of four ranks that writes 10 GB of logs in that time (60). Rank 2 fails in every
  sixth of it, so that the job is restarted five times; the logs are rotated as ``copytruncate`` of logrotate
  does; ``logs -f`` follows a rank, and ``stacks`` and ``jobs`` are called every second. Memory and
  descriptors of the launcher, its keeper and ``logs -f`` are sampled.
* ``ranks=N``: N ranks at once (1,024).
* ``tables=N``: N tables of 8 ranks in one ``validate`` (10,000), against a loop of ``json.load``.

The exit code is 1 if something is left, grows, or has another end than it should.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.measuring import Contender, alternate, plain_environment
from benchmarks.validate import make

_TOOL = [sys.executable, "-m", "hccl_tools"]
_PYTHON = [sys.executable, "-I", "-S", "-c"]
_BYTES, _RANKS, _ATTEMPTS, _ROTATIONS = 10_000_000_000, 4, 6, 12
#: A process may have this much more at the end than after the first minutes: caches that are filled.
_MORE_MEGABYTES, _MORE_DESCRIPTORS = 4.0, 2
#: The launches at the end may take this much longer than those at the beginning.
_SLOWER = 1.2
_MOST_RATIO = 3
#: A rank: whole lines at a steady rate; rank 2 fails at the end of its part, but in the last attempt.
_RANK = """
import os, sys, time
end, part = float(sys.argv[1]), float(sys.argv[2])
bytes_a_second, attempts = int(sys.argv[3]), int(sys.argv[4])
rank, attempt = int(os.environ["RANK_ID"]), int(os.environ["HCCL_TOOLS_RESTART"])
began, number = time.time(), 0
lines = (b"x" * 111 + b"\\n") * max(1, bytes_a_second // 1120)
while time.time() < end:
    number += 1
    time.sleep(max(0, began + number * 0.1 - time.time()))
    os.write(1, b"%d %07d\\n" % (rank, number) + lines)
    if rank == 2 and attempt + 1 < attempts and time.time() > began + part:
        sys.exit(3)
"""


class Scene:
    """A folder and an environment of its own: what is left in them is not of another job."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.mark = f"HCCL_TOOLS_ENDURANCE={os.getpid()}-{time.time()}"
        for name in ("temporary", "runtime", "state"):
            (self.folder / name).mkdir(mode=0o700)
        places = {"TMPDIR": "temporary", "XDG_RUNTIME_DIR": "runtime", "XDG_STATE_HOME": "state"}
        own = {name: f"{folder}/{place}" for name, place in places.items()}
        self.env = {**plain_environment(), **own, **dict([self.mark.split("=")])}
        self.shared = self._shared_memory()

    @staticmethod
    def _shared_memory() -> set[str]:
        return {one.name for one in Path("/dev/shm").iterdir()}  # noqa: S108

    def left(self) -> list[str]:
        """Return the processes, temporary files and shared memory that are left."""
        folders = (self.folder / "temporary", self.folder / "runtime")
        found = [f"file {one}" for folder in folders for one in folder.rglob("*") if one.is_file()]
        found += [f"shared memory {name}" for name in self._shared_memory() - self.shared]
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (process / "environ").read_bytes():
                    found.append(f"process {process.name}: {(process / 'cmdline').read_bytes()!r}")
            except OSError:  # noqa: PERF203  (it has ended)
                continue
        return found


def launches(number: int) -> bool:
    """Start jobs one after the other."""
    with TemporaryDirectory() as name:
        scene, seconds = Scene(name), list[float]()
        argv = [
            *_TOOL,
            "launch",
            "--no-table",
            "-n",
            "2",
            "--log-dir",
            f"{name}/log",
            "--no-python",
            "/bin/true",
        ]
        for _ in range(number):
            began = time.perf_counter()
            done = subprocess.run(argv, capture_output=True, text=True, check=False, env=scene.env)
            seconds.append(time.perf_counter() - began)
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                return False
        left, part = scene.left(), max(1, number // 10)
        first, last = median(seconds[:part]), median(seconds[-part:])
    times = f"{first * 1000:.0f} ms each at first and {last * 1000:.0f} ms at last"
    print(f"launches: {number}, {len(left)} left, {times}")
    print(*left, sep="\n", end="\n" if left else "")
    return not left and last <= _SLOWER * first


class _Watched:
    """A process with what it used over time."""

    def __init__(self, name: str, pid: int) -> None:
        self.name, self.folder = name, Path(f"/proc/{pid}")
        self.samples: list[tuple[float, int]] = []

    def sample(self) -> None:
        """Note memory (MB) and descriptors, unless the process has ended."""
        try:
            pages = int((self.folder / "statm").read_text().split()[1])
            descriptors = sum(1 for _ in (self.folder / "fd").iterdir())
            self.samples.append((pages * os.sysconf("SC_PAGE_SIZE") / 1e6, descriptors))
        except OSError:
            return

    def is_steady(self) -> bool:
        """Print the first and the last samples, and return whether they are alike."""
        part = max(1, len(self.samples) // 10)
        (memory, fds), (later, more) = (
            (median(one[0] for one in few), median(one[1] for one in few))
            for few in (self.samples[part : 2 * part], self.samples[-part:])
        )
        print(
            f"  {self.name}: {memory:.1f} MB and {fds:.0f} descriptors, at last {later:.1f} MB and {more:.0f}"
        )
        return later <= memory + _MORE_MEGABYTES and more <= fds + _MORE_DESCRIPTORS


def _call(argv: list[str], env: dict[str, str], problems: list[str]) -> float:
    began = time.perf_counter()
    done = subprocess.run([*_TOOL, *argv], capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        problems.append(f"{argv[0]}: exit code {done.returncode}: {done.stderr[:300]}")
    return time.perf_counter() - began


def _rotate(run: Path) -> int:
    """Copy and truncate each rank's log, keep one old file of each, and return the bytes."""
    moved = 0
    for log in run.rglob("rank_*.log"):
        moved += log.stat().st_size
        shutil.copyfile(log, log.with_suffix(".log.1"))
        os.truncate(log, 0)
    return moved


def job(minutes: int) -> bool:
    """Watch a long job."""
    seconds, problems, calls = minutes * 60.0, list[str](), dict[str, list[float]](stacks=[], jobs=[])
    with TemporaryDirectory() as name:
        scene = Scene(name)
        logs, program = f"{name}/log", Path(name, "rank.py")
        program.write_text(_RANK)
        rate, end = round(_BYTES / seconds / _RANKS), time.time() + seconds
        argv = [*_TOOL, "launch", "--no-table", "-n", str(_RANKS), "--log-dir", logs, "--faulthandler",
                "--max-restarts", str(_ATTEMPTS), "--max-restarts-per-hour", str(60 * _ATTEMPTS),
                str(program), str(end), str(seconds / _ATTEMPTS), str(rate), str(_ATTEMPTS)]  # fmt: skip
        with Path(name, "launch.out").open("wb") as out:
            launcher = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, env=scene.env)
        watched, follower, run = _begin(launcher, logs, scene.env)
        moved, next_rotation = 0, time.time() + seconds / _ROTATIONS
        while launcher.poll() is None:
            second = time.time()
            for command in calls:
                if launcher.poll() is None:
                    calls[command].append(
                        _call([command, "--log-dir", logs, "-f", "json"], scene.env, problems)
                    )
            for one in watched:
                one.sample()
            if second > next_rotation:
                moved, next_rotation = moved + _rotate(run), second + seconds / _ROTATIONS
            time.sleep(max(0.0, second + 1 - time.time()))
        moved += _rotate(run)
        followed = follower.communicate(timeout=60)[0]
        report = json.loads((run / "report.json").read_text())
        left = scene.left()
    code, restarts = launcher.returncode, report["restarts"]
    return _Outcome(watched, calls, problems, code, restarts, moved, int(followed), left).is_right()


def _begin(
    launcher: subprocess.Popen[bytes], logs: str, env: dict[str, str]
) -> tuple[list[_Watched], subprocess.Popen[bytes], Path]:
    """Wait for the run, follow a rank's log, and return what is watched."""
    while not (found := [*Path(logs).glob("[0-9]*/rank_1.log")]):
        if launcher.poll() is not None:
            sys.exit(f"launch ended with {launcher.returncode}")
        time.sleep(0.05)
    counter = "import sys; n = 0\nfor line in sys.stdin.buffer: n += 1\nprint(n)"
    follow = subprocess.Popen(
        [*_TOOL, "logs", "latest", "--rank", "1", "-f", "--log-dir", logs],
        stdout=subprocess.PIPE, env=env,
    )  # fmt: skip
    follower = subprocess.Popen([*_PYTHON, counter], stdin=follow.stdout, stdout=subprocess.PIPE)
    keeper = int(Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()[0])
    watched = [
        _Watched("launch", launcher.pid),
        _Watched("its keeper", keeper),
        _Watched("logs -f", follow.pid),
    ]
    return watched, follower, found[0].parent


class _Outcome(NamedTuple):
    """What a long job was like."""

    watched: list[_Watched]
    calls: dict[str, list[float]]
    problems: list[str]
    code: int
    restarts: int
    moved: int
    lines: int
    left: list[str]

    def is_right(self) -> bool:
        """Print it, and return whether all is as it should be."""
        print(
            f"job: exit code {self.code}, {self.restarts} restarts, {self.moved / 1e9:.2f} GB of logs, "
            f"logs -f has shown {self.lines:,} lines, {len(self.left)} left"
        )
        for command, seconds in self.calls.items():
            part = max(1, len(seconds) // 10)
            first, last = median(seconds[:part]), median(seconds[-part:])
            print(f"  {command}: {len(seconds)} calls, {first:.2f} s at first, {last:.2f} s at last")
        wrong = [*self.problems[:10], *self.left]
        print(*wrong, sep="\n", end="\n" if wrong else "")
        steady = [one.is_steady() for one in self.watched]
        return all(steady) and self.code == 0 and self.restarts == _ATTEMPTS - 1 and not wrong


def ranks(number: int) -> bool:
    """Start many ranks at once."""
    with TemporaryDirectory() as name:
        scene = Scene(name)
        program = ["/bin/sh", "-c", "echo $RANK_ID; sleep 5"]
        argv = [
            *_TOOL,
            "launch",
            "--no-table",
            "-n",
            str(number),
            "--log-dir",
            f"{name}/log",
            "--no-python",
            *program,
        ]
        began = time.perf_counter()
        launcher = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=scene.env)
        _, status, usage = os.wait4(launcher.pid, 0)
        took = time.perf_counter() - began
        launcher.returncode = code = os.waitstatus_to_exitcode(status)
        (run,) = Path(name, "log").glob("[0-9]*-[0-9]*")
        right = sum((run / f"rank_{rank}.log").read_text() == f"{rank}\n" for rank in range(number))
        left = scene.left()
    print(f"ranks: {right} of {number} wrote their log, exit code {code}, {took:.1f} s (5 s of work), "
          f"{usage.ru_maxrss * 1024 / 1e6:.0f} MB, {len(left)} left")  # fmt: skip
    return code == 0 and right == number and not left


def tables(number: int) -> bool:
    """Check many small tables in one call."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        text = Path(make(folder, "1.0", 1)).read_text()
        (folder / "many").mkdir()
        for one in range(number):
            (folder / "many" / f"{one:05d}.json").write_text(text)
        loop = (
            "import json, pathlib, sys\nfor one in pathlib.Path(sys.argv[1]).iterdir(): json.load(one.open())"
        )
        shell = f'exec "$0" -m hccl_tools validate -q {name}/many/*.json'
        found = alternate(
            [
                Contender("loop", [*_PYTHON, loop, str(folder / "many")]),
                Contender("validate", ["/bin/sh", "-c", shell, sys.executable]),
            ],
            3,
        )
    ratio = found["validate"].seconds / found["loop"].seconds
    print(f"tables: {number} in {found['validate'].seconds:.2f} s and {found['validate'].megabytes:.0f} MB, "
          f"json.load {found['loop'].seconds:.2f} s: {ratio:.1f} times, at most {_MOST_RATIO}")  # fmt: skip
    return ratio <= _MOST_RATIO


_PARTS = {"launches": (launches, 1000), "job": (job, 60), "ranks": (ranks, 1024), "tables": (tables, 10_000)}


def main(parts: list[str]) -> int:
    """Take the parts in turn."""
    right = True
    for part in parts or _PARTS:
        name, _, number = part.partition("=")
        take, usual = _PARTS[name]
        right &= take(int(number or usual))
        sys.stdout.flush()
    return int(not right)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main(sys.argv[1:]))
