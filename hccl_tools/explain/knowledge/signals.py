"""What to do about a signal that ended a rank, by the name of the signal."""

from __future__ import annotations

from types import MappingProxyType

_SENT = "look for what sent it: the program itself, a script or a user, not the launcher"
#: Clauses, with commands in backticks.
REMEDIES = MappingProxyType(
    {
        "SIGSEGV": "start the job with `hccl-tools launch --faulthandler`, which shows where the process accessed invalid memory",
        "SIGBUS": "look at /dev/shm, which is often full or too small (docker: --shm-size)",
        "SIGILL": "use a build for this processor: the program was built for another kind",
        "SIGFPE": "look for an integer that compiled code divides by zero: `hccl-tools launch --faulthandler` shows where",
        "SIGKILL": "look for what sent it: the program itself, a batch system, a script or a user (kill -9), not the launcher",
        "SIGINT": _SENT,
        "SIGHUP": _SENT,
        "SIGXCPU": "raise the limit of CPU time (ulimit -t), which was reached",
        "SIGXFSZ": "raise the limit of the size of files (ulimit -f), which was reached",
        "SIGSYS": "look at the seccomp rules of the container, which forbid a system call",
    }
)
