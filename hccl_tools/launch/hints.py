"""What an exit code, a signal or an HCCL code means, in one sentence that says what to do."""

from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.launch.outcome import RankEnd

#: HCCL's codes, from the messages and suggestions of hcomm's error table (CANN 8.x) and its manuals.
HCCL_CODES = {
    "EI0001": "an environment variable of HCCL has a value that it does not take; the message names it",
    "EI0002": (
        "a collective operation waited longer than HCCL_EXEC_TIMEOUT for another rank: look for the rank that"
        " failed, hung or had more data than the others, then for lost packets (`error cqe` in the plog)"
    ),
    "EI0003": "a collective operation was called with a bad argument, or RANK_ID is wrong",
    "EI0004": "HCCL cannot use the rank table: `hccl-tools validate` says where and why",
    "EI0005": "the ranks called different operations: script, data and table must be the same everywhere",
    "EI0006": (
        "a rank waited longer than HCCL_CONNECT_TIMEOUT (120 s) for another one: look at the rank it names;"
        " if that one came late, raise HCCL_CONNECT_TIMEOUT, else check the link and the TLS switch"
        " (`hccn_tool -i N -tls -g`), which must be the same on all devices"
    ),
    "EI0007": "memory or notify registers are exhausted: fewer communicators, or a smaller HCCL_BUFFSIZE",
    "EI0008": "the hosts have different HCCL versions: install the same CANN everywhere",
    "EI0009": "two devices could not be linked: check the link between the two that it names",
    "EI0010": (
        "devices of one server cannot reach each other directly: check them with `npu-smi info`,"
        " or set HCCL_INTRA_ROCE_ENABLE=1"
    ),
    "EI0011": "the device has no memory left: end what else runs on it (`npu-smi info`), or a smaller batch",
    "EI0012": "copying between devices failed: look for a rank that ended earlier, then at the link",
    "EI0013": "the network between two devices failed: look for a rank that ended earlier, then at the link",
    "EI0014": (
        "the rank table does not agree with itself or with this host's devices:"
        " `hccl-tools validate --local` says where"
    ),
    "EI0015": (
        "the ranks did not find each other through rank 0's host: check that all were started,"
        " HCCL_SOCKET_IFNAME or HCCL_IF_IP, and that the hosts reach each other"
    ),
    "EI0016": "a setting (often the TLS switch) has a value that does not fit the other devices",
    "EI0017": "the rank table lacks a key, or a value is no string: `hccl-tools validate` says which",
    "EI0019": "an address or port of HCCL is taken: another job runs on this host, see HCCL_IF_BASE_PORT",
    "EI0020": "an address or port of HCCL is taken: another job runs on this host, see HCCL_IF_BASE_PORT",
    "EJ0001": (
        "the device is still held by an earlier process: end what `npu-smi info` shows on it,"
        " wait 10 seconds and start again"
    ),
    "EJ0002": "the device's network port is down: `hccn_tool -i N -link -g`",
    "EJ0003": (
        "HCCL's port (60000-60015, or HCCL_IF_BASE_PORT; 16666 on the device) is taken:"
        " another job of this host uses it, or an earlier one left a process"
    ),
    "EJ0004": "a device_ip of the rank table is not the device's address: `hccl-tools validate --local`",
}

_SIGNALS: dict[int, str] = {
    signal.SIGSEGV: "it touched memory that is not its own: `python -X faulthandler` says where",
    signal.SIGBUS: "often /dev/shm is full or too small (docker: --shm-size)",
    signal.SIGABRT: "the program or a library gave up; its message stands above in the log",
    signal.SIGILL: "the program was built for another kind of processor",
    signal.SIGFPE: "an integer was divided by zero in compiled code",
    signal.SIGTERM: "not sent by the launcher: by the program itself, a batch system, a script or a person",
    signal.SIGINT: "not sent by the launcher: by the program itself, a script or a person",
    signal.SIGHUP: "not sent by the launcher: by the program itself, a script or a person",
    signal.SIGXCPU: "the CPU time limit (ulimit -t) was reached",
    signal.SIGXFSZ: "the file size limit (ulimit -f) was reached",
    signal.SIGSYS: "a system call is forbidden here (a container's seccomp rules)",
}


def for_end(end: RankEnd, *, killed_by_oom: bool | None) -> list[str]:
    """Sentences on how a process ended.

    Args:
        end: The process.
        killed_by_oom: Whether the kernel's or the cgroup's count of out-of-memory kills has risen meanwhile;
            ``None`` where none can be read.
    """
    if end.error:
        return [_cannot_run(end)]
    if end.signal == signal.SIGKILL:
        return [_killed(killed_by_oom)]
    if end.signal:
        return [_SIGNALS[end.signal]] if end.signal in _SIGNALS else []
    return _for_code(end.code or 0)


def for_codes(codes: Iterable[str]) -> list[str]:
    """One sentence per HCCL code that is known."""
    return [f"{code}: {HCCL_CODES[code]}" for code in codes if code in HCCL_CODES]


def _killed(killed_by_oom: bool | None) -> str:
    if killed_by_oom:
        return (
            "the kernel's out-of-memory killer did it (its count has risen): less memory per rank,"
            " fewer data-loading workers, or a larger limit"
        )
    if killed_by_oom is None:
        return "most often the out-of-memory killer: see `dmesg`; or somebody's kill -9"
    return (
        "not the out-of-memory killer (its count has not risen), nor the launcher: the program itself,"
        " a batch system, a script or a person sent kill -9"
    )


def _cannot_run(end: RankEnd) -> str:
    program, reason = end.process.argv[0], os.strerror(end.error)
    if end.error == errno.ENOENT:
        if "/" in program and os.path.exists(program):
            return f'"{program}" names an interpreter in its first line that is not there'
        where = "" if "/" in program else " on the PATH"
        return f'there is no program "{program}"{where}'
    if end.error == errno.ENOEXEC:
        return f'"{program}" is no program: a script needs a first line such as #!/bin/sh, or `sh {program}`'
    if end.error == errno.EACCES:
        return f'"{program}" may not be run: `chmod +x` it, or start it as `python {program}`'
    return f'"{program}" cannot be run: {reason}'


def _for_code(code: int) -> list[str]:
    if code == 120:
        return ["Python could not write out its last output: is the disk full?"]
    if code in (126, 127):
        problem = "cannot be run" if code == 126 else "is not there"
        return [f"as a shell reports it, a command that it was to run {problem}"]
    number = code - 128
    if number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGTERM):
        return [
            f"as a shell reports it, a process that it started was ended by {signal.Signals(number).name}"
        ]
    return []
