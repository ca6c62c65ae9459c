"""Evidence of other jobs in the same folder: of other processes, on other devices, or from before the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain.events import Event, Seen
from hccl_tools.explain.jobs import Job, objection
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.sources import Source
from tests.support.growth import steps
from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

TORCHRUN = """\
E0318 10:00:40.700000 4711 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 2 (pid: {pid}) of binary: /usr/bin/python3
Root Cause (first observed failure):
[0]:
  time      : 2026-03-18_10:00:40
  rank      : 2 (local_rank: 2)
  exitcode  : 1 (pid: {pid})
"""
FAULT = "[Wed Mar 18 10:00:30 2026] [ascend] [drv_dms] [ERROR] [dms_event_distribute 402] device fault event. (devid={device}; event_id=0x80E01801; assertion=1) HBM multi-bit ECC\n"
KILLED = "[Wed Mar 18 10:00:30 2026] Out of memory: Killed process {pid} (python3) total-vm:812345kB\n"
UNREADABLE = (
    "[rank2]: RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
)
PREEMPTED = "slurmstepd: error: *** JOB 12 ON hosta CANCELLED AT 2026-03-18T{} DUE TO PREEMPTION ***\n"


@dataclass
class Beside(Plogs):
    """Another job on the same host: on devices 4 and on, with other processes."""

    def device(self, rank: int) -> int:
        return 4 + rank


def jobs(command_line: CommandLine, files: dict[str, str]) -> str:
    """Return the answer about a job whose rank 2 failed, beside another one that reports errors."""
    job = Plogs(command_line.folder / "logs", 4).start()
    other = Beside(command_line.folder / "logs", 4).start("other")
    for rank in (0, 1, 2):
        other.error(rank, 31, "socket type[0], listen on ip[192.168.0.105] and specific port[16666] fail.")
    job.screen(2, UNREADABLE)
    for name, text in files.items():
        path = job.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return command_line("explain", "logs").out


@pytest.mark.parametrize(("pid", "first"), [(4002, "Rank 2"), (4006, "Rank")])
def test_the_job_is_that_whose_processes_the_launcher_names(
    command_line: CommandLine, pid: int, first: str
) -> None:
    out = jobs(command_line, {"torchrun.log": TORCHRUN.format(pid=pid)})
    assert out.startswith(first)
    assert out.startswith("Rank 2 (device 2 of 10.0.0.1") is (pid == 4002)
    assert ("messages of another job were left out" in out) is (pid == 4002)


@pytest.mark.parametrize("earlier", [7200.0, 60.0])
def test_the_job_is_that_whose_screens_are_there(command_line: CommandLine, earlier: float) -> None:
    """Without a line of a launcher, the screens began with the processes of one of two jobs."""
    job = Plogs(command_line.folder / "logs", 4).start()
    other = Beside(command_line.folder / "logs", 4, clocks={0: -earlier}).start("other")
    for rank in (0, 1, 2):
        other.error(rank, earlier + 31, "[TaskExecStage][Timeout]Task para information is Notify Wait")
    for rank in range(4):
        job.screen(rank, f"2026-03-18 10:00:0{rank} INFO [rank {rank}] starts")
    job.screen(2, UNREADABLE)
    (job.folder / "10.0.0.1" / "dmesg.txt").write_text(FAULT.format(device=7))
    out = command_line("explain", "logs").out
    assert out.startswith("Rank 2 (device 2 of 10.0.0.1") is (earlier > 300)
    assert ("device 7 is that of a process of another job" in out) is (earlier > 300)


@pytest.mark.parametrize("device", [7, 2])
def test_a_fault_of_a_device_that_another_job_uses(command_line: CommandLine, device: int) -> None:
    files = {"torchrun.log": TORCHRUN.format(pid=4002), "10.0.0.1/dmesg.txt": FAULT.format(device=device)}
    out = jobs(command_line, files)
    is_own = device == 2
    assert ("more wrong bits" in out.splitlines()[0]) is is_own
    assert ("device 7 is that of a process of another job" in out) is not is_own


@pytest.mark.parametrize("pid", [4006, 4002])
def test_the_end_of_a_process_of_another_job(command_line: CommandLine, pid: int) -> None:
    files = {"torchrun.log": TORCHRUN.format(pid=4002), "10.0.0.1/dmesg.txt": KILLED.format(pid=pid)}
    out = jobs(command_line, files)
    assert ("out-of-memory killer" in out.splitlines()[0]) is (pid == 4002)
    assert ("process 4006 is of another job" in out) is (pid == 4006)


@pytest.mark.parametrize(("at", "is_cause"), [("10:30:00", True), ("09:59:00", False)])
def test_a_job_that_the_scheduler_ended_after_another_one_failed(
    command_line: CommandLine, at: str, is_cause: bool
) -> None:
    """The processes of a benchmark failed before those of the job began."""
    folder = command_line.folder / "logs"
    before = Plogs(folder / "before", 4, clocks={0: -900.0}).start("other")
    for rank in range(3):
        before.notify(rank, None, 200)
    Plogs(folder, 4).start()
    (folder / "slurm-12.out").write_text(PREEMPTED.format(at))
    first = command_line("explain", "logs").out.splitlines()[0]
    assert ("Slurm ended the job: PREEMPTION" in first) is is_cause


EVENTS = """\
LAST SEEN   TYPE      REASON      OBJECT                  MESSAGE
{evicted}   Warning   Evicted     pod/sft-worker-1   The node was low on resource: ephemeral-storage.
31m         Normal    Started     pod/sft-worker-1   Started container ascend
"""


@pytest.mark.parametrize(("evicted", "is_former"), [("58m", True), ("2m5s", False)])
def test_a_pod_that_was_evicted_before_the_pod_of_the_job_started(
    command_line: CommandLine, evicted: str, is_former: bool
) -> None:
    command_line.write("events.txt", EVENTS.format(evicted=evicted))
    command_line.write(
        "screen.txt", "[pod/sft-worker-1/ascend] [rank4]: FileNotFoundError: [Errno 2] No such file: '/a'\n"
    )
    out = command_line("explain", "events.txt", "screen.txt").out
    assert ("evicted the pod" in out.splitlines()[0]) is not is_former
    assert ("it is about the pod before" in out) is is_former


def test_a_host_is_looked_up_among_those_of_a_large_job() -> None:
    """Each fault names a host, and a job has thousands of both."""
    event = Event(messages()["HCM201"], {"server": "worker-7"}, (), 0, 1)
    fault = Seen(event, Place(), "actor")

    def taken(hosts: int) -> int:
        names = frozenset(f"node-{number}" for number in range(hosts))
        job = Job(0.0, 1.0, frozenset({("", "1")}), frozenset({"1"}), names, frozenset(), frozenset(), True)
        assert (
            objection(fault, job, [Source("dmesg.txt", "dmesg.txt")], {"HCM201"})
            == "the job has no host worker-7"
        )
        return steps(lambda: objection(fault, job, [Source("dmesg.txt", "dmesg.txt")], {"HCM201"}))

    assert taken(5000) == taken(5)
