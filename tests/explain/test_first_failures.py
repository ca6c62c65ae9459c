"""Which failure is first: a rank's own before all waits, who is behind, who was late, and what is of another job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.log_folders import explained

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

KERNEL = (
    "[ERROR] RUNTIME({},{}):2026-03-18-{}.000.000 [device_error_proc.cc:1434] 1 ProcessStarsCoreErrorInfo:The error from"
    " device(chipId:3, dieId:0), serial number is 2, there is an aivec error exception, core id is 15, error code = 0x800000\n"
)
ENTRY = (
    "[INFO] HCCL({pid},{program}):2026-03-18-{time}.000.000 [op_base.cc:1292] [{pid}]Entry-HcclCommInitRootInfoInner:ranks[4],"
    " rank[{rank}], rootinfo: host ip[{root}] port[60000] nicDeploy[1] identifier[{root}%eth0_60000_0_17], deviceLogicId[{rank}]\n"
)
RAISED = '[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File "t.py", line 9, in f\n[rank{rank}]: {what}\n'
SIGTERM = "W0318 {time}.000000 2 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 7703 closing signal SIGTERM\n"
TABLE = """\
Root Cause (first observed failure):
[0]:
  time      : 2026-03-18_10:00:24
  host      : node-a
  rank      : {rank} (local_rank: {rank})
  exitcode  : {code} (pid: {pid})
  error_file: <N/A>
  traceback : {why}
"""
WAIT = "[rank{rank}]: EI0002: [PID: 880{rank}] 2026-03-18-{time}.000.000 The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify record from remote rank: [unknown].\n"
LOST = (
    "[rank4]:     Cluster Exception Location[IP/ID]:[10.0.0.1/3], Arrival Time:[Wed Mar 18 {} 2026], Discoverer:[10.0.0.2/0],"
    " ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited, 2. Network Disconnected\n"
)
NOT_SENT = (
    "[rank{rank}]: EI0006: [PID: 21{rank}] 2026-03-18-10:04:13.{rank}00.000 Getting socket times out. Reason: Remote Rank did not"
    " send the data in time. Please check the reason for the rank being stuck\n"
)
CLOSED = "2026-03-18 {} [rank0] elapsed time to build the index (seconds): 203.6\n[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:30211\n"
KILLED = "Mar 18 10:00:13 n kernel: [1.1] Memory cgroup out of memory: Killed process 44120 (python3) total-vm:6kB, anon-rss:3kB\n"
SEGFAULT = "Mar 18 10:00:15 n kernel: [2.2] python3[{}]: segfault at 10 ip 0000ffff8c2a11d4 sp 0000ffff1b7fd0a0 error 4 in libascendcl.so[ffff8c200000+15c000]\n"


def watchdog(rank: int, number: int) -> str:
    return (
        f"[rank{rank}]:[E318 10:30:11.041 ProcessGroupHCCL.cpp:1008] [Rank {rank}] Watchdog caught collective operation timeout:"
        f" WorkHCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600039 milliseconds\n"
    )


@pytest.mark.parametrize(
    ("numbers", "is_behind"),
    [
        ((900, 998, 998, 998), True),
        ((900, 998), True),
        ((900, 998, 998, 983, 998), True),
        ((900, 998, 998, 983, 941), False),
        ((900, 968, 989, 993), False),
    ],
)
def test_a_rank_is_behind_one_number_of_most_others(
    command_line: CommandLine, numbers: tuple[int, ...], is_behind: bool
) -> None:
    logs = {f"rank{rank}/stdout.log": watchdog(rank, number) for rank, number in enumerate(numbers)}
    first = explained(command_line, logs).splitlines()[0]
    assert first.startswith("Rank 0: the rank is behind") is is_behind
    assert is_behind or "The logs do not show the cause" in first


@pytest.mark.parametrize(
    ("elements", "is_odd"),
    [((4, 8, 8, 8), True), ((4, 8), True), ((4, 8, 16, 8), False), ((4, 8, 16, 32), False)],
)
def test_a_rank_has_another_number_of_elements_than_most(
    command_line: CommandLine, elements: tuple[int, ...], *, is_odd: bool
) -> None:
    logs = {
        f"rank{rank}/stdout.log": watchdog(rank, 998).replace("In=4", f"In={number}")
        for rank, number in enumerate(elements)
    }
    first = explained(command_line, logs).splitlines()[0]
    assert ("in different operations" in first) is is_odd


@pytest.mark.parametrize(("time", "is_first"), [("10:00:00", True), ("10:29:00", True), ("10:45:00", False)])
def test_an_error_before_all_waits_says_more_than_numbers(
    command_line: CommandLine, time: str, is_first: bool
) -> None:
    logs = {f"rank{rank}/stdout.log": watchdog(rank, 998 - 98 * (rank == 1)) for rank in range(3)}
    logs["rank3/stdout.log"] = KERNEL.format(30, "python3", time)
    first = explained(command_line, logs).splitlines()[0]
    assert first.startswith("Rank 3: a kernel failed on the device") is is_first
    assert first.startswith("Rank 1: the rank is behind") is not is_first


@pytest.mark.parametrize(("lost", "is_own"), [("10:00:53", True), ("10:00:24", True), ("09:58:00", False)])
def test_a_lost_heartbeat_names_who_ended(command_line: CommandLine, lost: str, is_own: bool) -> None:
    """The launcher ended rank 3 after rank 1 had failed."""
    failed = RAISED.format(rank=1, what="KeyError: 'image'") + SIGTERM.format(time="10:00:24")
    failed += TABLE.format(rank=1, code=1, pid=7701, why="none")
    waits = WAIT.format(rank=4, time="10:30:58") + LOST.format(lost) + WAIT.format(rank=5, time="10:30:58")
    first = explained(command_line, {"node-a.log": failed, "node-b.log": waits}).splitlines()[0]
    assert first.startswith("Rank 1: the program raised an exception: KeyError") is is_own
    assert first.startswith("Device 3 of 10.0.0.1: HCCL's heartbeat lost") is not is_own


@pytest.mark.parametrize(
    ("what", "is_own"),
    [("KeyError: 'image'", True), ("RuntimeError: The process exits for this inner error", False)],
)
def test_an_exception_without_a_time_and_a_lost_heartbeat(
    command_line: CommandLine, what: str, *, is_own: bool
) -> None:
    """Only one about the program's own data or code cannot follow from the loss."""
    waits = (
        WAIT.format(rank=4, time="10:30:58") + LOST.format("10:00:53") + WAIT.format(rank=5, time="10:30:58")
    )
    first = explained(command_line, {"a.log": RAISED.format(rank=1, what=what), "b.log": waits}).splitlines()[
        0
    ]
    assert first.startswith("Rank 1: the program raised an exception") is is_own
    assert first.startswith("Device 3 of 10.0.0.1: HCCL's heartbeat lost") is not is_own


@pytest.mark.parametrize(("time", "is_late"), [("10:05:34,711", True), ("10:04:02,000", False)])
@pytest.mark.parametrize("says", [True, False])
def test_a_rank_that_was_late_and_is_well(
    command_line: CommandLine, time: str, *, is_late: bool, says: bool
) -> None:
    log = "2026-03-18 10:02:11,004 [rank0] building the indices of the data ...\n"
    for rank in range(1, 4):
        log += f"2026-03-18 10:02:12,{rank}01 [rank{rank}] waiting for rank 0 in barrier()\n" if says else ""
    waits = "".join(NOT_SENT.format(rank=rank) for rank in range(1, 4))
    first = explained(command_line, {"out.txt": f"{log}{waits}{CLOSED.format(time)}"}).splitlines()[0]
    assert first.startswith("Rank 0: the rank came later than the others' time limit allows") is is_late
    assert ("say that they wait for it" in first) is (is_late and says)
    assert not is_late or "81 s later" in first


@pytest.mark.parametrize(
    ("signal", "code", "segfault", "first"),
    [
        (
            "SIGSEGV",
            -11,
            "20566",
            "Rank 6: a signal ended the rank: signal SIGSEGV. The kernel reports a segmentation fault",
        ),
        ("SIGSEGV", -11, "999", "Rank 6: a signal ended the rank: signal SIGSEGV. Inferred"),
        ("SIGKILL", -9, "999", "A container or job reached its memory limit"),
    ],
)
def test_the_memory_killer_does_not_explain_another_signal(
    command_line: CommandLine, signal: str, code: int, segfault: str, first: str
) -> None:
    why = f"Signal {-code} ({signal}) received by PID 20566"
    log = SIGTERM.format(time="10:00:16") + TABLE.format(rank=6, code=code, pid=20566, why=why)
    out = explained(command_line, {"train.out": log, "dmesg.txt": KILLED + SEGFAULT.format(segfault)})
    assert out.startswith(first)


@pytest.mark.parametrize(("root", "rank", "is_other"), [("10.4.4.9", 0, True), ("10.4.4.4", 3, False)])
def test_processes_of_another_communicator_are_another_job(
    command_line: CommandLine, root: str, rank: int, *, is_other: bool
) -> None:
    logs = {}
    for number in range(3):
        entry = ENTRY.format(
            pid=520 + number, program="python3", time=f"10:20:2{number}", rank=number, root="10.4.4.4"
        )
        logs[f"plog/plog-52{number}_20260318102009.log"] = entry
    other = ENTRY.format(pid=311, program="bench", time="09:58:20", rank=rank, root=root)
    logs["plog/plog-311_20260318095800.log"] = other + KERNEL.format(311, "bench", "10:05:11")
    log = "".join(
        f"2026-03-18 10:21:1{number} [rank{number} pid 52{number}] loading\n" for number in range(3)
    )
    what = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
    log += RAISED.format(rank=2, what=what) + SIGTERM.format(time="10:21:17").replace("7703", "520")
    log += TABLE.format(rank=2, code=1, pid=522, why="none").replace("10:00:24", "10:21:17")
    out = explained(command_line, {**logs, "train.out": log})
    assert out.startswith("Rank 2: the program raised an exception") is is_other
    assert out.startswith("Rank 3: a kernel failed on the device") is not is_other
    assert ("messages of another job were left out: of process 311" in out) is is_other


@pytest.mark.parametrize(("prefix", "is_rank"), [(8, False), (1, True)])
def test_prefixes_of_ranks_override_the_number_of_a_pod(
    command_line: CommandLine, prefix: int, is_rank: bool
) -> None:
    logs = {
        "w-worker-0.log": WAIT.format(rank=0, time="10:30:20"),
        "w-worker-1.log": WAIT.format(rank=prefix, time="10:30:20"),
        "w-worker-2.log": "2026-03-18 10:00:16 iteration 4950/ 60000 loss 2.5\n",
    }
    first = explained(command_line, logs).splitlines()[0]
    assert first.startswith("Rank 2: silent while other ranks wait") is is_rank
    assert is_rank or "anks 0,8" in first


@pytest.mark.parametrize(("names", "is_corrected"), [(("node-east", "node-west"), True), (("a", "b"), False)])
def test_the_clocks_of_hosts_whose_names_differ_by_a_word(
    command_line: CommandLine, names: tuple[str, str], is_corrected: bool
) -> None:
    """The first host is 431 s ahead, so that its failure seems to be after the loss of the heartbeat."""
    east = "".join(
        f"[2026-03-18 10:07:{second}] iteration {second}/ 900 loss 2\n" for second in range(20, 40)
    )
    west = "".join(
        f"[2026-03-18 10:00:{second - 11:02}] iteration {second}/ 900 loss 2\n" for second in range(20, 40)
    )
    memory = "RuntimeError: NPU out of memory. Tried to allocate 9.38 GiB (NPU 2; 60.97 GiB total capacity)"
    east += RAISED.format(rank=1, what=memory) + SIGTERM.format(time="10:07:45")
    east += TABLE.format(rank=1, code=1, pid=7701, why="none").replace("10:00:24", "10:07:45")
    west += (
        WAIT.format(rank=4, time="10:30:58") + LOST.format("10:00:40") + WAIT.format(rank=5, time="10:30:58")
    )
    out = explained(command_line, {f"{names[0]}/out.log": east, f"{names[1]}/out.log": west})
    assert ("is 431 s ahead" in out) is is_corrected
    assert out.startswith("Rank 1: the device has no memory left")
