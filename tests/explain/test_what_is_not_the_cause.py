"""Faults that a job outlived, and failures of which no line says that they came first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.log_folders import explained
from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

STEP = "2026-03-18 {:02}:{:02}:00 INFO iteration {} / 9000 loss 2.3\n"
RAISED = '[rank{}]: Traceback (most recent call last):\n[rank{}]:   File "train.py", line 9, in <module>\n[rank{}]: {}\n'
NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: '/data/a'"
DISK_FULL = "OSError: [Errno 28] No space left on device"
AGAIN = "I0318 10:30:00.000 api.py:901] [default] Worker group FAILED. 2/3 attempts left; will restart worker group\n"
LOST = (
    "[ERROR] HCCL(835,python3):2026-03-18-10:{:02}:11.113.403 [task_exception_handler.cc:610] [835]Cluster Exception Location[IP/ID]:[10.0.0.2/1], Arrival Time:[Wed Mar 18 10:{:02}:11 2026], "
    "Discoverer:[10.0.0.1/0], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited\n"
)
LIMIT = "slurmstepd: error: *** STEP 12.0 ON n03 CANCELLED AT 2026-03-18T10:30:10 DUE TO TIME LIMIT ***\n"


def steps(hour: int, number: int = 20) -> str:
    return "".join(STEP.format(hour, minute, minute) for minute in range(number))


def raised(rank: int, text: str) -> str:
    return RAISED.format(rank, rank, rank, text)


@pytest.mark.parametrize(
    ("ignored", "first"), [(True, "The job is complete"), (False, "Rank 0: the program")]
)
def test_an_exception_that_python_ignores(command_line: CommandLine, ignored: bool, first: str) -> None:
    head = "[rank0]: Exception ignored in: <function Loader.__del__ at 0xffff>\n" if ignored else ""
    end = raised(0, "AssertionError: can only test a child process")
    out = explained(command_line, {"train.log": f"{steps(10)}Training Over!\n{head}{end}"})
    assert out.startswith(first)


@pytest.mark.parametrize("again", [AGAIN, ""])
def test_a_failure_of_an_earlier_attempt(command_line: CommandLine, again: str) -> None:
    log = steps(10) + raised(1, DISK_FULL) + again + steps(11, 3) + raised(3, NO_FILE)
    out = explained(command_line, {"train.log": log})
    assert out.startswith("Rank 3: the program raised an exception: FileNotFoundError") is bool(again)


@pytest.mark.parametrize(("further", "is_outlived"), [(25, True), (4, False)])
def test_a_failure_after_which_the_job_goes_on(
    command_line: CommandLine, further: int, is_outlived: bool
) -> None:
    """The ranks wait for each other in each step: what is in their buffers are a few steps at most."""
    log = steps(10) + raised(1, DISK_FULL) + steps(11, further) + raised(3, NO_FILE)
    out = explained(command_line, {"train.log": log})
    assert out.startswith("Rank 3: the program raised an exception: FileNotFoundError") is is_outlived
    assert out.startswith("Rank 1: a disk is full") is not is_outlived


def test_an_attempt_that_failed_and_was_the_last(command_line: CommandLine) -> None:
    out = explained(command_line, {"train.log": steps(10) + raised(1, DISK_FULL) + AGAIN})
    assert out.startswith("Rank 1: a disk is full")


@pytest.mark.parametrize(("day", "is_earlier"), [("08", True), ("18", False)])
def test_a_log_of_an_earlier_job_beside_the_last_one(
    command_line: CommandLine, day: str, is_earlier: bool
) -> None:
    old = (steps(10, 5) + raised(4, NO_FILE)).replace("2026-03-18", f"2026-03-{day}")
    out = explained(command_line, {"a.log": old, "b.log": steps(11) + raised(1, DISK_FULL)})
    assert out.startswith("Rank 1: a disk is full")
    assert ("messages of another job were left out" in out) is is_earlier
    assert ("rank 4: the program raised an exception" in out) is not is_earlier


@pytest.mark.parametrize("texts", [(NO_FILE, DISK_FULL), (DISK_FULL, NO_FILE)])
def test_two_failures_without_times(command_line: CommandLine, texts: tuple[str, str]) -> None:
    keys = [f"KeyError: '{len(text)}'" for text in texts]
    out = explained(
        command_line, {f"rank{rank}.log": raised(rank, text) for rank, text in zip((2, 6), keys, strict=True)}
    )
    assert out.startswith(
        f"Rank 2: the program raised an exception: {keys[0]}. 2 ranks failed, and no line has a time"
    )
    assert f"also a cause:\nRank 6: the program raised an exception: {keys[1]}." in out
    assert "Inferred from the order in time" not in out


@pytest.mark.parametrize(("minute", "is_stop"), [(30, True), (20, False)])
def test_a_heartbeat_that_is_lost_after_the_end_of_the_job(
    command_line: CommandLine, minute: int, is_stop: bool
) -> None:
    out = explained(command_line, {"slurm-12.out": LIMIT + LOST.format(minute, minute)})
    assert out.startswith("The job reached its time limit, at 2026-03-18 10:30:10.") is is_stop


def test_a_heartbeat_that_is_lost_after_a_fault_of_the_device(command_line: CommandLine) -> None:
    ecc = "[ERROR] 2026-03-18-10:14:51 (PID:222, Device:1, RankID:3) ERR00100 PTA call acl api failed. error code is 507054\n"
    files = {"10.0.0.2.log": raised(3, "RuntimeError: HBM MULTI BIT ECC ERROR.") + f"[rank3]: {ecc}"}
    out = explained(command_line, {**files, "10.0.0.1.log": LOST.format(15, 15)})
    assert out.startswith("Rank 3 (host 10.0.0.2): the memory of the device has more wrong bits")


def test_a_process_that_the_kernel_ended_before_its_heartbeat_was_lost(command_line: CommandLine) -> None:
    killed = "[Wed Mar 18 10:14:07 2026] Memory cgroup out of memory: Killed process 40127 (python3.10) total-vm:26kB\n"
    ended = "E0318 10:14:10.000000 281 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: -9) local_rank: 1 (pid: 40127) of binary: python\n"
    files = {"node-2/dmesg.txt": killed, "node-2/train.log": steps(10, 10) + ended}
    out = explained(command_line, {**files, "10.0.0.1.log": LOST.format(15, 15)})
    assert "the kernel ended a process, at 2026-03-18 10:14:07" in out.splitlines()[0]


@pytest.mark.parametrize(("name", "is_ours"), [("jupyter-lab", False), ("python3.10", True)])
def test_a_process_of_another_program_that_the_kernel_ended(
    command_line: CommandLine, name: str, is_ours: bool
) -> None:
    killed = f"[Wed Mar 18 10:10:01 2026] Memory cgroup out of memory: Killed process 55501 ({name}) total-vm:26kB\n"
    out = explained(command_line, {"dmesg.txt": killed, "train.log": steps(10) + raised(2, "KeyError: 'a'")})
    assert ("process 55501 (jupyter-lab) is not a process of the job" in out) is not is_ours


def test_a_failure_right_after_ctrl_c(command_line: CommandLine) -> None:
    typed = "^CW0318 10:20:10.612000 281 api.py:694] Received Signals.SIGINT death signal, shutting down workers\n"
    ended = "[rank0]: Traceback (most recent call last):\n[rank0]: KeyboardInterrupt\n"
    late = "[ERROR] HCCL(9103,python):2026-03-18-10:20:12.070.466 [socket.cc:54] [9103][ServerInit]call trace: hcclRet -> 19\n"
    out = explained(command_line, {"train.log": steps(10) + typed + ended + late})
    assert out.startswith("A user interrupted the job with Ctrl-C. Certain")


def test_a_store_that_a_rank_reached_later(command_line: CommandLine) -> None:
    failed = "2026-03-18 10:10:00 [W318 10:10:00.1 socket.cpp:752] [c10d] The client socket has failed to connect to [node0]:29500 (errno: 110 - Connection timed out).\n"
    assert "store" in explained(command_line, {"node3.log": steps(10, 10) + failed})
    assert explained(command_line, {"node3.log": steps(10, 10) + failed + steps(11)}).startswith(
        "no cause found"
    )


def test_a_clock_that_is_40_minutes_behind(command_line: CommandLine) -> None:
    """On the second host a kernel fails; the ranks of the first give up 1,836 s later, 9 minutes before by their clock."""
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    for rank in (0, 1):
        job.notify(rank, 2, 11_436.0 - 2400.0)
    job.error(
        2,
        9600.0,
        "ProcessCoreErrorInfo: Aicore kernel execute failed, device_id=0, stream_id=2, fault kernel_name=Add_1",
    )
    for log in (command_line.folder / "logs" / "10.0.0.1").rglob("plog-*"):
        log.write_text(log.read_text().replace("2026-03-18-10:00", "2026-03-18-09:20"))
    out = command_line("explain", "logs").out
    assert out.startswith("Rank 2")
    assert "a kernel failed on the device" in out.splitlines()[0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch.distributed.DistNetworkError: The IPv4 network addresses of (m-0, 29500) cannot be retrieved (gai error: -2 - Name or service not known).", "looked up: m-0"),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "The name of a host could not be looked up"),
        ("3m  Warning  Evict  pod/w-1  Pod is evicted, because of preempt", "A job of higher priority took the place of a pod"),
        ("/bin/sh: 1: c++: not found", "A compiler or a tool for building is missing: c++"),
        ("bash: line 3: ninja: command not found", "A compiler or a tool for building is missing: ninja"),
        ("bash: line 3: module: command not found", "no cause found"),
        ("HBM MULTI BIT ECC, Uncorrectable ECC, device_id=4, event_id=0x80e01801", "Device 4: the memory of the device has more wrong bits"),
        ("mce: [Hardware Error]: Corrected error, no action required.", "no cause found"),
    ],
)  # fmt: skip
def test_what_else_ends_a_job(command_line: CommandLine, line: str, expected: str) -> None:
    assert expected in explained(command_line, {"train.log": f"{steps(10)}{line}\n"}).splitlines()[0]


USERS = """\
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
| 3       0                 | 3303          | python                   | 29711                   |
| 3       0                 | 15501         | python3                  | 31980                   |
"""
NO_MEMORY = (
    "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 61.00 GiB total capacity; 28.10 GiB already"
    " allocated; 28.10 GiB current active; 1.00 GiB free; 28.40 GiB reserved in total by PyTorch)"
)


@pytest.mark.parametrize(("own", "named"), [("", "processes 3303, 15501 use it: one of them may be the rank itself"), ("3303", "process 15501 (python3) uses it")])  # fmt: skip
def test_the_rank_itself_is_not_the_process_to_stop(command_line: CommandLine, own: str, named: str) -> None:
    log = raised(3, NO_MEMORY)
    if own:
        log += f"[ERROR] 2026-03-18-10:14:51 (PID:{own}, Device:3, RankID:3) ERR00100 PTA call acl api failed. error code is 207001\n"
    assert named in explained(command_line, {"train.log": log, "npu-smi.txt": USERS}).splitlines()[0]


KILLED = (
    "[Wed Mar 18 {}:01 2026] Memory cgroup out of memory: Killed process 77310 (python3.10) total-vm:26kB\n"
)


@pytest.mark.parametrize(("time", "is_outlived"), [("10:05", True), ("10:55", False)])
def test_a_process_that_the_kernel_ended_while_the_job_went_on(
    command_line: CommandLine, time: str, is_outlived: bool
) -> None:
    end = "slurmstepd: error: *** STEP 12.0 ON n03 CANCELLED AT 2026-03-18T11:00:10 DUE TO TIME LIMIT ***\n"
    out = explained(command_line, {"dmesg.txt": KILLED.format(time), "train.log": steps(10, 50) + end})
    assert out.startswith("The job reached its time limit") is is_outlived


ENDED_BY_KERNEL = "[Wed Mar 18 10:19:30 2026] Out of memory: Killed process {} ({}) total-vm:1kB\n"
PORT_DOWN = "Mar 18 10:19:20 n1 kernel: [ascend] device_id=2, event_id=0x81078603, NPU port link down\n"
EVICTED = (
    "20m  Warning  Evicted  pod/prometheus-0  The node was low on resource: memory. Threshold quantity: 1Mi\n"
)
LAST_STATE = "Name:         w-0\n    Last State:     Terminated\n      Reason:       OOMKilled\n"
BESIDE = [
    ("dmesg.txt", ENDED_BY_KERNEL.format(55555, "python3")),
    ("messages", PORT_DOWN),
    ("events.txt", EVICTED),
    ("describe.txt", LAST_STATE),
]


@pytest.mark.parametrize(("name", "text"), BESIDE)
def test_a_fault_of_the_host_beside_an_exception_of_a_program(
    command_line: CommandLine, name: str, text: str
) -> None:
    """No fault of a host or pod makes a key missing, and nothing says that it is about a rank."""
    answer = explained(command_line, {"train.log": steps(10) + raised(3, "KeyError: 'labels'"), name: text})

    assert answer.startswith("Rank 3: the program raised an exception: KeyError: 'labels'")
    assert "(nothing says that it is about this job)" in answer or "(earlier than the cause" in answer
    assert "consequences" not in answer


@pytest.mark.parametrize(("name", "text"), BESIDE)
def test_a_fault_of_the_host_beside_a_lost_connection(
    command_line: CommandLine, name: str, text: str
) -> None:
    lost = "ConnectionResetError: [Errno 104] Connection reset by peer"
    answer = explained(command_line, {"train.log": steps(10) + raised(3, lost), name: text})

    assert not answer.startswith("Rank 3")
    assert "Certain" not in answer.splitlines()[0] or "no line says" not in answer


def test_the_kernel_killed_the_loader_of_a_rank(command_line: CommandLine) -> None:
    dead = raised(3, "ValueError: DataLoader worker (pid 55555) is gone")
    answer = explained(
        command_line, {"train.log": steps(10) + dead, "dmesg.txt": ENDED_BY_KERNEL.format(55555, "python3")}
    )

    assert "out-of-memory killer ended a process" in answer.splitlines()[0]


def test_the_exception_of_a_monitor_beside_a_rank(command_line: CommandLine) -> None:
    monitor = (
        "2026-03-18 10:05:00 level=error\nTraceback (most recent call last):\nRuntimeError: no gateway\n"
    )
    answer = explained(
        command_line, {"train.log": steps(10) + raised(3, "KeyError: 'labels'"), "exporter.log": monitor}
    )

    assert answer.startswith("Rank 3: the program raised an exception: KeyError: 'labels'")


def test_a_signal_to_the_launcher_before_everything_else(command_line: CommandLine) -> None:
    signal = "W0318 10:20:00.104000 17 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGTERM death signal, shutting down workers\n"
    after = "[rank3]: EI0013: [PID: 83] 2026-03-18-10:20:01.000.000 An error CQE occurred during operator execution.\n"
    pod = "14m   Normal   Killing   pod/trainer-master-0   Stopping container trainer\n"
    stopped = explained(command_line, {"train.log": steps(10) + signal + after, "events.txt": pod})
    failed = explained(
        command_line, {"train.log": steps(10) + raised(3, NO_FILE) + signal + after, "events.txt": pod}
    )

    assert stopped.startswith("A signal ended torchrun, which ended the ranks: signal SIGTERM")
    assert "Stopping container trainer" in stopped
    assert failed.startswith("Rank 3: the program raised an exception")


def test_a_rank_that_rank_0_names_in_a_barrier(command_line: CommandLine) -> None:
    barrier = "RuntimeError: [Rank 0]: Rank 3 failed to pass monitoredBarrier in 1800000 ms"
    waits = "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0."
    waiting = {"n1.log": raised(0, barrier) + raised(1, waits)}

    assert "there is no log of rank 3, for which rank 0 waits" in explained(command_line, waiting).lower()
    assert explained(command_line, {"rank_3.log": raised(3, NO_FILE)}).startswith(
        "Rank 3: the program raised"
    )


TRIED = "[W socket.cpp:663] [c10d] The client socket has failed to connect to [n0]:29500 (errno: 111 - Connection refused).\n"


def test_an_attempt_to_connect_after_which_a_training_began(command_line: CommandLine) -> None:
    """torch writes it at each start until rank 0 listens; the older form has no time."""
    waited = "[rank{}]: EI0002: [PID: 3] 2026-03-18-10:50:00.000.000 The Notify register has not received the Notify record from remote rank [unknown].\n"
    files = {f"rank_{rank}.log": TRIED + steps(10) + waited.format(rank) for rank in (0, 1)}

    answer = explained(command_line, files)
    assert "rendezvous store" not in answer.splitlines()[0]
    assert "(EI0002)" in answer.splitlines()[0]


def test_the_blocks_of_ranks_stand_in_another_order_than_their_times(command_line: CommandLine) -> None:
    waited = "[rank0]: EI0006: [PID: 3] 2026-03-18-10:04:20.444.436 Getting socket times out. Reason: Remote Rank did not send the data in time.\n"
    memory = "[rank3]: RuntimeError: NPU out of memory. Tried to allocate 3.47 GiB (NPU 3; 60.97 GiB total capacity)\n[rank3]: [ERROR] 2026-03-18-10:02:11 (PID:7103, Device:3, RankID:3) ERR99999 UNKNOWN applicaiton exception\n"

    assert explained(command_line, {"screen.txt": waited + memory}).startswith(
        "Rank 3: the device has no memory"
    )


def test_an_exception_of_mindspore_with_the_reason_of_hccl_below_it(command_line: CommandLine) -> None:
    passed_on = (
        "RuntimeError: Launch kernel failed, name:Default/hccl_allreduce-op12\n\n"
        "----------------------------------------------------\n- Ascend Error Message:\n"
        "----------------------------------------------------\n"
        "EI0006: [PID: 3100] 2026-03-18-10:02:40.444.436 Getting socket times out. Reason: Remote Rank did not send the data in time.\n"
    )
    own = 'Traceback (most recent call last):\n  File "t.py", line 1\nRuntimeError: Invalid column: label of /data/a\n'

    answer = explained(command_line, {"worker_0.log": passed_on, "worker_1.log": own})
    assert answer.startswith("Rank 1: the program raised an exception")


def test_memory_that_was_refused_just_before_another_process_lost_its_connection(
    command_line: CommandLine,
) -> None:
    line = "[ERROR] {}({},python):2026-03-18-10:24:15.{}.677 [x.cc:1] [{}]{}\n"
    memory = line.format("RUNTIME", 27, 595, 27, "halMemAlloc failed:size=2122688(bytes), ErrCode=207001")
    lost = line.format(
        "HCCL", 128, "{}", 128, "errNo[0x000000000500000d] recv fail, data[0xf], size[48], rtRet[228205]"
    )
    files = {"p/plog-27_20260318100000000.log": memory, "d/plog-128_20260318100000000.log": lost.format(682)}

    assert explained(command_line, files).startswith("Memory could not be allocated (207001)")
    files["d/plog-128_20260318100000000.log"] = lost.format(182)
    assert not explained(command_line, files).startswith("Memory could not be allocated")


def test_a_start_after_a_job_that_a_user_stopped_on_the_same_screen(command_line: CommandLine) -> None:
    again = "=== start 2  2026-03-18 12:00:00\n"
    stopped = steps(10) + "^C\nTraceback (most recent call last):\nKeyboardInterrupt\n"
    answer = explained(
        command_line, {"nohup.out": stopped + again + raised(5, "RuntimeError: bad checkpoint")}
    )

    assert answer.startswith("Rank 5: the program raised an exception: RuntimeError: bad checkpoint")
    assert "Certain" not in answer
