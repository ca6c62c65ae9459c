"""A job's control over many simulated hosts: ``python -m benchmarks.hosts [HOSTS ...]``.

The controller is ``hccl-tools launch`` in a process of its own. The agents of the other hosts are simulated
by this process, over loopback (see ``simulated_hosts``); each host has eight ranks. Two ways to start a job:

- by hand: the hosts meet at the rendezvous; "go" is the last Start
- engine: srun (a stand-in) starts the agents; "go" is the last Table

For each number of hosts and each way there are three jobs: one ends well, in one a host closes its
connection, in one a host becomes silent (its kernel drops each packet, as after a power failure). Columns:

- all, go: from the first host to the join of all but the last; from the connect of the last to the last "go"
- cpu: of the controller, for both
- B sent, B recv, msg: bytes sent and received and messages received, per host, over the whole job
- idle, MB: of the controller while nothing happens, 2 s and 1 ms per host after "go"
- told: from the end or the death of a host to the last answer or word of it; a silent host counts from
  ``--host-timeout`` after its last packet
- over: from the same moment to the exit of the controller
- dropped: connections that the controller closed because too many hosts connected at once
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measuring import plain_environment
from benchmarks.simulated_hosts import Address, Crowd, Host
from benchmarks.tables import PER_SERVER
from hccl_tools.launch import launcher
from hccl_tools.launch.cluster import consistency, job_hosts
from hccl_tools.launch.planning.ports import free_port
from tests.support.requests import launch_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SIZES = (16, 128, 1024, 8192)
WAYS = ("by hand", "engine")
ENDS = ("well", "closed", "silent")
KEY = "5e" * 32
FIRST_SERVER = "172.16.0.0"
IDLE_SECONDS = 5.0
HOST_TIMEOUT = 4.0
#: Stands for srun, and for a rank: it waits until somebody opens the pipe.
SRUN = '#!/bin/sh\nprintf %s "$HCCL_TOOLS_LAUNCHER" > "$BENCH/new" && mv "$BENCH/new" "$BENCH/launcher"\n'
RANK = '#!/bin/sh\nread line < "$BENCH/pipe"\nexit 0\n'
#: The columns: key, heading, format.
COLUMNS = (
    ("all", "all s", "8.3f"),
    ("go", "go s", "7.3f"),
    ("cpu", "cpu s", "7.2f"),
    ("sent", "B sent", "7.0f"),
    ("received", "B recv", "8.0f"),
    ("messages", "msg", "5.1f"),
    ("idle", "idle %", "6.2f"),
    ("megabytes", "MB", "6.1f"),
    ("told", "told s", "7.3f"),
    ("over", "over s", "7.3f"),
    ("exit", "exit", "4.0f"),
    ("dropped", "dropped", "7.0f"),
)


class Process(NamedTuple):
    """The controller's use of the machine so far: CPU seconds, MB (10**6 bytes) now."""

    seconds: float
    megabytes: float

    @classmethod
    def of(cls, pid: int) -> Process:
        """Read the figures of a process."""
        nanoseconds = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return cls(nanoseconds / 1e9, int(status["VmRSS"].split()[0]) * 1024 / 1e6)


class Job:
    """A job whose controller runs."""

    def __init__(self, folder: Path, way: str, hosts: int) -> None:
        self.folder, self.by_hand, self.count = folder, way == "by hand", hosts
        self.port = free_port()
        self.launcher = subprocess.Popen(
            [sys.executable, "-m", "hccl_tools", "launch", "--rank-table", "table.json", "--cpu",
             "--start", "table", "--host-timeout", f"{HOST_TIMEOUT:g}", "--grace", "5", "--hang-warn", "0",
             *self.options(), "--no-python", str(folder / "rank")],
            cwd=folder, env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=(folder / "output").open("w"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.crowd = Crowd()

    def options(self) -> list[str]:
        """Return the options of this way to start a job."""
        if not self.by_hand:
            return ["--engine", "slurm"]
        return ["--server", FIRST_SERVER, "--master-addr", "127.0.0.1", "--start-port", str(self.port)]

    def environment(self) -> dict[str, str]:
        """Return the variables of the controller."""
        path = f"{self.folder}:{os.environ['PATH']}"
        found = {"PATH": path, "BENCH": str(self.folder), "HCCL_TOOLS_JOB_KEY": KEY}
        return {**plain_environment(), **found, **({} if self.by_hand else {"SLURM_JOB_ID": "1"})}

    def address(self) -> Address:
        """Wait until the controller listens; return where."""
        if self.by_hand:
            return Address(self.port, bytes.fromhex(KEY), self.values())
        given = self.folder / "launcher"
        while not given.exists():
            assert self.launcher.poll() is None, (self.folder / "output").read_text()
            time.sleep(0.01)
        key, port, _ = given.read_text().split("@")
        given.unlink()
        return Address(int(port), bytes.fromhex(key))

    def values(self) -> Mapping[str, str]:
        """Return what all hosts of a job that is started by hand must have in common."""
        program = (str(self.folder / "rank"),)
        request = launch_request(
            program, kind="program", rank_table=str(self.folder / "table.json"), cpu=True, start="table",
            server=FIRST_SERVER, master_address="127.0.0.1", start_port=self.port,
        )  # fmt: skip
        prepared = launcher.prepared_launch(request)
        hosts = job_hosts.of_plan(prepared)
        assert hosts
        return consistency.manifest(hosts, prepared, request).values

    def join(self, most: int) -> None:
        """Let hosts join until ``most`` have."""
        crowd, first = self.crowd, int(self.by_hand)
        address = self.address() if not crowd.hosts else next(iter(crowd.hosts.values())).address
        for number in range(first + len(crowd.hosts), first + most):
            ranks = range(number * PER_SERVER, (number + 1) * PER_SERVER)
            crowd.add(Host(number, address, ranks))
        answer = "waiting" if self.by_hand else "table"
        crowd.run("join", lambda: crowd.counts[answer] >= most or self.has_failed())

    def has_failed(self) -> bool:
        """Exit if the controller has refused the job."""
        if self.launcher.poll() is not None:
            raise SystemExit((self.folder / "output").read_text())
        return False

    def open_pipe(self) -> None:
        """Let the ranks of this host, or srun, exit."""
        with suppress(OSError):
            os.close(os.open(self.folder / "pipe", os.O_WRONLY | os.O_NONBLOCK))

    def has_exited(self) -> bool:
        """Return whether the controller has exited; let srun exit."""
        self.open_pipe()
        return self.launcher.poll() is not None


@contextmanager
def job_folder(hosts: int) -> Iterator[Path]:
    """Make a folder with the table, and the stand-ins; remove it at the end."""
    folder = Path(mkdtemp(prefix="hccl-tools-bench-"))
    try:
        table = [sys.executable, "-m", "benchmarks.tables", "1.0", str(hosts), str(folder / "table.json")]
        subprocess.run(table, check=True)
        for name, text in (("srun", SRUN + RANK.partition("\n")[2]), ("rank", RANK)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        os.mkfifo(folder / "pipe")
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def running(folder: Path, way: str, hosts: int) -> Iterator[Job]:
    """Start a job; at the end, kill a controller that is left."""
    job = Job(folder, way, hosts)
    try:
        yield job
    finally:
        job.launcher.kill()
        job.launcher.wait()


def measure(job: Job, end: str) -> dict[str, float]:
    """Let a job run and end; return its figures by name."""
    crowd, agents, pid = job.crowd, job.count - job.by_hand, job.launcher.pid
    go = "start" if job.by_hand else "table"
    job.join(1)  # The controller listens.
    crowd.dropped = 0
    before, began = Process.of(pid), time.monotonic()
    job.join(agents - 1)
    found = {"all": time.monotonic() - began}
    began = time.monotonic()
    job.join(agents)
    crowd.run("go", lambda: crowd.counts[go] >= agents)
    found["go"] = crowd.last[go] - began
    crowd.run("ranks", lambda: time.monotonic() > began + 2.0 + job.count / 1000)
    found["cpu"] = Process.of(pid).seconds - before.seconds
    found |= idle(pid)
    everyone, crowd.is_ending = list(crowd.hosts.values()), True
    if end == "well":
        began = time.monotonic()
        crowd.end()
        if job.by_hand:  # srun exits after its agents.
            job.open_pipe()
        last = "heard" if job.by_hand else "release"
        crowd.run("end", lambda: crowd.counts[last] >= agents)
    else:
        victim, last = everyone[agents // 2], "end"
        began = time.monotonic()
        if end == "closed":
            crowd.leave(victim)
        else:
            victim.fall_silent()
            began += HOST_TIMEOUT
        crowd.run("death", lambda: crowd.counts["end"] >= agents - 1)
    found["told"] = crowd.last[last] - began
    crowd.run("exit", job.has_exited)
    found |= {"over": time.monotonic() - began, "exit": job.launcher.returncode, "dropped": crowd.dropped}
    found["sent"] = sum(host.sent for host in everyone) / agents
    found["received"] = sum(host.received for host in everyone) / agents
    found["messages"] = crowd.counts.total() / agents
    crowd.close()
    return found


def idle(pid: int) -> dict[str, float]:
    """Return the memory of a process in MB, and the part of a core that it uses while nothing happens."""
    first, began = Process.of(pid), time.monotonic()
    time.sleep(IDLE_SECONDS)
    last = Process.of(pid)
    share = (last.seconds - first.seconds) / (time.monotonic() - began)
    return {"megabytes": last.megabytes, "idle": 100 * share}


def main(sizes: list[int]) -> None:
    """Measure and print."""
    print(time.strftime("%Y-%m-%d %H:%M"), "load", *os.getloadavg())
    heads = "".join(f" {head:>{form.partition('.')[0]}}" for _, head, form in COLUMNS)
    print(f"{'hosts':>6} {'way':7} {'end':6}{heads}", flush=True)
    for hosts in sizes or SIZES:
        for way in WAYS:
            for end in ENDS:
                with job_folder(hosts) as folder, running(folder, way, hosts) as job:
                    found = measure(job, end)
                figures = "".join(f" {found[key]:{form}}" for key, _, form in COLUMNS)
                print(f"{hosts:6} {way:7} {end:6}{figures}", flush=True)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]])
