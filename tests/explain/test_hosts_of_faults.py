"""The host and the device of a fault beside the logs of the ranks: Slurm's nodes, and ports of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain.scanner import Scanner
from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

LOST = "srun: error: Node failure on {}\n"
ENDED = "slurmstepd: error: *** JOB 12 ON node05 CANCELLED AT 2026-03-18T10:33:52 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"
DOWN = "Mar 18 10:{:02}:10 server2 kernel: [ascend] device_id={}, event_id=0x81078603, NPU port link down\n"


def first(command_line: CommandLine) -> str:
    return command_line("explain", "logs").out.splitlines()[0]


@pytest.mark.parametrize("nodes", ["node07", "node[07-08]", "n7.cluster"])
def test_slurm_names_the_node_that_it_lost(command_line: CommandLine, nodes: str) -> None:
    folder = command_line.folder / "logs"
    Plogs(folder, 4).start().no_link(0, 3, 100.0)
    (folder / "slurm-12.out").write_text(LOST.format(nodes) + ENDED)
    assert first(command_line).startswith(f"Host {nodes}: Slurm lost a node of the job")
    assert "also a cause" not in command_line("explain", "logs").out


def test_the_host_of_the_step_is_not_the_lost_node(command_line: CommandLine) -> None:
    (command_line.folder / "slurm-12.out").write_text(ENDED)
    out = command_line("explain", "slurm-12.out").out
    assert out.startswith("Slurm lost a node of the job")


def two_hosts(command_line: CommandLine) -> Plogs:
    """Two hosts with four ranks each, whose logs are in folders with the names of the hosts."""
    job = Plogs(command_line.folder / "logs", 8, 4).start()
    job.no_link(3, 7, 250.0)
    job.no_link(7, 3, 250.0)
    for number in (1, 2):
        (job.folder / f"10.0.0.{number}").rename(job.folder / f"server{number}")
    return job


def test_the_rank_of_a_device_by_the_folder_of_its_host(command_line: CommandLine) -> None:
    (two_hosts(command_line).folder / "server2" / "messages").write_text(DOWN.format(1, 3))
    said = first(command_line)
    assert said.startswith("Rank 7 (device 3 of 10.0.0.2, ")
    assert "the network port of the device went down" in said


def test_a_device_whose_host_is_unknown_is_not_a_rank(command_line: CommandLine) -> None:
    (two_hosts(command_line).folder / "messages").write_text(DOWN.format(1, 3))
    assert first(command_line).startswith("Device 3: the network port of the device went down")


@pytest.mark.parametrize(
    "line",
    [
        "Mar 18 10:31:10 s kernel: [ascend] device_id=3, event_id=0x81078603, NPU port link down",
        "[EVENT] DEVDRV: event id 0x81078603, port link down, dev 3",
        "[drv_event] device 3: event 0x81078603",
        "[EVENT] ROCE(1,null): device(3) fault event: event_id 0x81078603, assertion: occur",
    ],
)
def test_the_device_stands_before_or_after_the_event(line: str) -> None:
    event = Scanner().event(line.encode())
    assert event is not None
    assert (event.message.id, event.fields) == ("HCM313", {"device": "3"})


def test_a_line_of_an_event_without_a_device() -> None:
    event = Scanner().event(b"[EVENT] DEVDRV: event id 0x81078603, port link down")
    assert event is not None
    assert event.fields == {}


def waits(command_line: CommandLine) -> Plogs:
    """Rank 0 waits for rank 1 until the limit of 1,836 s, at 11:06:40: the operation began at 10:36:04."""
    job = Plogs(command_line.folder / "logs", 2, 1).start()
    job.notify(0, 1, 4000.0)
    return job


UP = DOWN.replace("port link down", "assertion: recovered")


@pytest.mark.parametrize(
    ("lines", "is_cause"),
    [
        (DOWN.format(35, 0), True),
        (DOWN.format(1, 0), False),
        (DOWN.format(35, 0) + UP.format(36, 0), True),
        (DOWN.format(34, 0) + UP.format(35, 0), False),
        (DOWN.format(34, 0) + UP.format(35, 1), True),
    ],
    ids=["within the wait", "long before it", "up within the wait", "up before it", "another port up"],
)
def test_a_port_that_was_down_before_the_wait_is_not_the_cause(
    command_line: CommandLine, lines: str, is_cause: bool
) -> None:
    (waits(command_line).folder / "messages").write_text(lines)
    assert ("the network port of the device went down" in first(command_line)) == is_cause


ROOT_CAUSE = (
    "Failures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n"
    "[0]:\n  time      : 2026-03-18_10:00:00\n  host      : n1\n  rank      : 6 (local_rank: 6)\n  exitcode  : -11 (pid: 4711)\n"
)
CRASH = "2026-03-18 10:00:00 step 4\nFatal Python error: Segmentation fault\n"


def test_torchrun_names_the_rank_of_a_crash(command_line: CommandLine) -> None:
    command_line.write("logs/train.log", CRASH + ROOT_CAUSE)

    assert command_line("explain", "logs").out.startswith("Rank 6: the Python process crashed")


def test_torchrun_names_several_ranks(command_line: CommandLine) -> None:
    several = ROOT_CAUSE.replace("<NO_OTHER_FAILURES>", "rank      : 2 (local_rank: 2)")
    command_line.write("logs/train.log", CRASH + several)

    assert command_line("explain", "logs").out.startswith("The Python process crashed")


def test_the_names_of_logs_are_those_of_hosts(command_line: CommandLine) -> None:
    missing = "ModuleNotFoundError: No module named 'mindspeed'\n"
    command_line.write("logs/l1/train.log", "2026-03-18 10:00:00 INFO start\n")
    command_line.write("logs/l2/train.log", missing * 4)
    folders = command_line("explain", "logs").out
    command_line.write("screens/node-a.log", "2026-03-18 10:00:00 INFO start\n")
    command_line.write("screens/node-b.log", missing * 4)

    assert folders.startswith("Host l2: Python does not find a module")
    assert command_line("explain", "screens").out.startswith("Host node-b: Python does not find a module")


def test_the_names_of_runs_are_not_those_of_hosts(command_line: CommandLine) -> None:
    command_line.write("logs/run1.log", "2026-03-18 10:00:00 INFO start\n")
    command_line.write("logs/run2.log", "ModuleNotFoundError: No module named 'mindspeed'\n")

    assert command_line("explain", "logs").out.startswith("Python does not find a module")


DEEPSPEED = (
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n"
    "{}[2026-03-18 10:00:52,201] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4000\n"
    "{}[2026-03-18 10:00:54,400] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', '-u', 'ft.py',"
    " '--local_rank=7', '--lr=1'] exits with return code = 1\n"
)


def test_deepspeed_names_the_rank_of_the_only_host(command_line: CommandLine) -> None:
    command_line.write("logs/ds.log", DEEPSPEED.format("", ""))
    one = command_line("explain", "logs").out
    command_line.write("logs/ds.log", DEEPSPEED.format("n2: ", "n2: "))

    assert one.startswith("Rank 7: the program raised an exception")
    assert not command_line("explain", "logs").out.startswith("Rank 7")


def test_torchrun_observed_one_of_two_failures_first(command_line: CommandLine) -> None:
    raised = "[rank{0}]: Traceback (most recent call last):\n[rank{0}]: {1}\n"
    failures = raised.format(2, "ValueError: no batch") + raised.format(
        6, "OSError: [Errno 5] Input/output error"
    )
    command_line.write("logs/train.log", "2026-03-18 10:00:00 step 4\n" + failures + ROOT_CAUSE)

    assert command_line("explain", "logs").out.startswith("Rank 6: the program raised an exception: OSError")
