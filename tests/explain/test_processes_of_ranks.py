"""The rank of a process that does not say it: launchers and the logs of ranks do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

ECC = "[ERROR] RUNTIME({0},python):2026-03-18-10:01:40.113.403 [device.cc:1] [{0}]hbm multi bit ecc, error code is 507054\n"
TABLE = """\
Root Cause (first observed failure):
[0]:
  time      : 2026-03-18_10:01:41
  host      : node-1
  rank      : 2 (local_rank: 2)
  exitcode  : 1 (pid: 6102)
"""


def plog(folder: Path, pid: int) -> None:
    path = folder / "debug" / "plog" / f"plog-{pid}_20260318100000000.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ECC.format(pid))


def first(command_line: CommandLine) -> str:
    return command_line("explain", "logs").out.splitlines()[0]


@pytest.mark.parametrize(
    "line",
    [
        "[launch] rank 2 started with pid 6102",
        "2026-03-18 10:00:01 INFO start worker rank=2 pid=6102 device=2",
        "started worker, rank: 2, pid: 6102",
        "Start process of rank 2 (pid 6102)",
        "[2026-03-18 10:00:01,1] [INFO] [launch.py:256:main] process 6102 spawned with command: ['python3', '--local_rank=2']",
        TABLE,
    ],
)
def test_a_launcher_names_the_process(command_line: CommandLine, line: str) -> None:
    folder = command_line.folder / "logs"
    plog(folder, 6102)
    (folder / "launcher.log").write_text(line + "\n")

    assert first(command_line).startswith("Rank 2: the memory of the device")


def test_the_log_of_a_worker_has_the_process_in_its_lines(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    plog(folder / "plogs", 6102)
    for rank in (1, 2):
        worker = folder / "msrun" / f"worker_{rank}.log"
        worker.parent.mkdir(exist_ok=True)
        worker.write_text(f"[WARNING] ME({6100 + rank}:28,MainProcess):2026-03-18-10:00:01 [a.py:1] begins\n")

    assert first(command_line).startswith("Rank 2: ")


@pytest.mark.parametrize(
    "line", ["local_rank 2 has pid 6102", "rank 2 has no pid yet, see 6102", "rank 2.5, pid 6102"]
)
def test_other_lines_name_no_process(command_line: CommandLine, line: str) -> None:
    folder = command_line.folder / "logs"
    plog(folder, 6102)
    (folder / "launcher.log").write_text(line + "\n")

    assert first(command_line).startswith("The memory of the device")


def test_a_process_with_two_ranks_has_none(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    plog(folder, 6102)
    (folder / "launcher.log").write_text("rank 2 started with pid 6102\nrank 3 started with pid 6102\n")

    assert first(command_line).startswith("The memory of the device")


def test_the_process_of_the_nearest_folder_is_meant(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    for host, rank in (("node-a", 2), ("node-b", 10)):
        path = folder / host / "plog" / "plog-6102_20260318100000000.log"
        path.parent.mkdir(parents=True)
        path.write_text(
            ECC.format(6102)
            if host == "node-b"
            else "[INFO] HCCL(6102,python):2026-03-18-10:00:00.1 begins\n"
        )
        (folder / host / "launcher.log").write_text(f"rank {rank} started with pid 6102\n")

    assert first(command_line).startswith("Rank 10: ")


def test_a_process_without_a_plog_that_the_kernel_killed(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    folder.mkdir()
    (folder / "launcher.log").write_text(
        "".join(f"rank {rank} started with pid 610{rank}\n" for rank in range(4))
    )
    (folder / "dmesg.txt").write_text("Out of memory: Killed process 6102 (python3) total-vm:812345kB\n")

    assert first(command_line).startswith("Rank 2: the kernel's out-of-memory killer")


def test_a_process_of_the_worker_s_log_that_the_kernel_killed(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    folder.mkdir()
    for rank in range(2):
        (folder / f"worker_{rank}.log").write_text(
            f"[INFO] ME({6100 + rank}:28,MainProcess):2026-03-18-10:00:01 [a.py:1] begins\n"
        )
    (folder / "dmesg.txt").write_text("Out of memory: Killed process 6101 (python3) total-vm:812345kB\n")

    assert first(command_line).startswith("Rank 1: the kernel's out-of-memory killer")


FAILED = "[ERROR] RUNTIME({pid},python3):2026-03-18-10:05:52.113.646 [task.cc:1136]{pid} Kernel task happen error. EZ9999\n"
GAVE_UP = (
    "[ERROR] HCCL({pid},python3):2026-03-18-10:35:52.113.646 [task_exception_handler.cc:412] [{pid}]"
    "EI0002: The wait execution of the Notify register times out.\n"
)


@pytest.mark.parametrize(
    ("folder", "who"),
    [
        ("host2/device3", "Device 3 of host2: "),
        ("node-02/npu_3", "Device 3 of node-02: "),
        ("server2.cluster", "Host server2.cluster: "),
        ("device-3", ""),
        ("hosts/devices", ""),
    ],
)
def test_the_host_and_the_device_that_folders_are_named_after(
    command_line: CommandLine, folder: str, who: str
) -> None:
    for place, text, pid in ((folder, FAILED, 4203), ("host1/device0", GAVE_UP, 4100)):
        log = command_line.folder / "logs" / place / f"plog-{pid}_20260318100000.log"
        log.parent.mkdir(parents=True)
        log.write_text(text.format(pid=pid))

    said = command_line("explain", "logs").out

    what = "a part of CANN failed internally" if who else "A part of CANN failed internally"
    assert said.startswith(
        f"{who}{what} (EZ9999), at 2026-03-18 10:05:52. It reports this before the first rank"
    )
