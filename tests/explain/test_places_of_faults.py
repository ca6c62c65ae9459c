"""Where a fault is, by what stands around its line: the log of a host, a table of processes, its own process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

ATTEMPT = "[W0318 10:00:02.200000 socket.cpp:697] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - Cannot assign requested address).\n"
FAILED = "[rank{}]: ValueError: bad shape\n"
IN_USE = "[rank{}]: EJ0001: [PID: 4711] 2026-03-18-10:40:37.179.534 Failed to initialize the HCCP process. Reason: Maybe the last training process is running.\n"
ROW = "| {device}       0                 | {pid}         | python3                  | 28440                   |\n"
NFS = "[Wed Mar 18 10:10:00 2026] nfs: server 10.8.0.200 not responding, still trying\n"
BLOCKED = "[Wed Mar 18 10:14:00 2026] INFO: task python3:{} blocked for more than 120 seconds.\n"
LOCKUP = "[Wed Mar 18 {}:00 2026] watchdog: BUG: soft lockup - CPU#12 stuck for 22s! [kworker/12:3:991]\n"
OUT_OF_RANGE = "The extend info: errcode:(0x800000, 0, 0) errorStr: The DDR address of the MTE instruction is out of range. fixp_error0 info: 0x30498f0"
KERNEL = "Aicore kernel execute failed, device_id=1, stream_id=2, report_stream_id=2, task_id=8, flip_num=1, fault kernel_name=GatherV3_47, fault kernel info ext=none"


def said(command_line: CommandLine, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = command_line.folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(text)
    return command_line("explain", "logs").out


def test_an_attempt_to_connect_that_was_repeated(command_line: CommandLine) -> None:
    """The process went on, so that it neither waited until a limit nor follows from the failure."""
    steps = "".join(
        f"2026-03-18 10:{minute:02}:00 INFO step {minute}/90 loss 2.1\n" for minute in range(3, 30)
    )
    files = {f"rank_{rank}.log": ATTEMPT + steps for rank in range(2)}
    out = said(command_line, {**files, "rank_1.log": ATTEMPT + steps + FAILED.format(1)})
    assert out.startswith("Rank 1: the program raised an exception: ValueError: bad shape")
    assert "rendezvous store" not in out


def test_an_attempt_to_connect_is_no_wait_until_the_limit(command_line: CommandLine) -> None:
    out = said(command_line, {"rank_1.log": ATTEMPT})
    assert "an attempt to connect to torch's rendezvous store failed" in out
    assert "until the time limit" not in out.splitlines()[0]


def test_an_attempt_to_connect_before_the_kernel_ended_a_process(command_line: CommandLine) -> None:
    """Only a rank that gave up waiting shows that a fault came too late to be the cause."""
    killed = "[Wed Mar 18 10:20:00 2026] Out of memory: Killed process 4711 (python3) total-vm:812345kB\n"
    screen = "[pod/w-0/main] 2026-03-18 10:00:01 INFO [rank 0] pid=4710\n[pod/w-1/main] 2026-03-18 10:00:01 INFO [rank 1] pid=4711\n"
    files = {"screen.txt": screen + f"[pod/w-0/main] {ATTEMPT}", "dmesg.txt": killed}
    assert "out-of-memory killer ended a process" in said(command_line, files).splitlines()[0]


@pytest.mark.parametrize("processes", [2, 1])
def test_the_processes_on_the_devices_of_several_ranks(command_line: CommandLine, processes: int) -> None:
    rows = "".join(ROW.format(device=device, pid=18811 + device) for device in range(processes))
    files = {f"hosta/rank_{rank}.log": IN_USE.format(rank) for rank in range(2)}
    first = said(command_line, {**files, "hosta/npu-smi.txt": rows}).splitlines()[0]
    assert ("rocesses 18811, 18812 use devices 0-1" in first) is (processes == 2)
    assert ("rocess 18811 (python3) uses it" in first) is (processes == 1)


@pytest.mark.parametrize("host", ["10.0.0.2", "10.0.0.1"])
def test_a_file_server_and_the_ranks_that_wait_for_it(command_line: CommandLine, host: str) -> None:
    """The kernel of another host says nothing of the ranks for which the others wait."""
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    for rank in (0, 1):
        job.notify(rank, None, 1900)
        for other in (2, 3):
            job.error(
                rank, 1901,
                f"[HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[{job.host(other)}/{job.device(other)}],"
                f" Arrival Time:[Wed Mar 18 10:20:00 2026], Discoverer:[{job.host(rank)}/0], ExceptionType:[Stuck Occurred]",
            )  # fmt: skip
    blocked = BLOCKED.format(4000) + BLOCKED.format(4001) if host == "10.0.0.2" else ""
    first = said(command_line, {f"{host}/dmesg.txt": NFS + blocked}).splitlines()[0]
    is_there = host == "10.0.0.2"
    assert first.startswith("Host 10.0.0.2 (ranks 2-3): a file server does not respond (NFS)") is is_there
    assert ("The kernel reports that the processes of ranks 2-3 wait for it" in first) is is_there
    assert "Certain" not in first


@pytest.mark.parametrize(("hour", "is_cause"), [("10:12", True), ("07:12", False)])
def test_a_cpu_that_was_stuck_before_a_rank_was_reported(
    command_line: CommandLine, hour: str, is_cause: bool
) -> None:
    """What a wait reports began at the latest one time limit before; hours before, the ranks went on."""
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    for rank in (0, 1, 2):
        job.notify(rank, None, 1900)
        job.error(
            rank, 1901,
            f"[HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[{job.host(3)}/1], Arrival Time:[Wed Mar 18 10:20:00 2026],"
            f" Discoverer:[{job.host(rank)}/0], ExceptionType:[Stuck Occurred]",
        )  # fmt: skip
    first = said(command_line, {"10.0.0.2/dmesg.txt": LOCKUP.format(hour)}).splitlines()[0]
    assert ("a CPU of the host was stuck in the kernel" in first) is is_cause
    assert "Certain" not in first


@pytest.mark.parametrize("has_name", [True, False])
def test_a_kernel_that_used_a_wrong_address(command_line: CommandLine, has_name: bool) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    job.error(1, 30, OUT_OF_RANGE)
    if has_name:
        job.error(1, 30.1, KERNEL)
    for rank in (0, 2, 3):
        job.notify(rank, None, 1900)
    first = command_line("explain", "logs").out.splitlines()[0]
    assert first.startswith("Rank 1 (device 1 of 10.0.0.1, address 192.168.0.101): a kernel used an address")
    assert ("The kernel is GatherV3_47" in first) is has_name
    assert "Certain" not in first
