# ruff: noqa: PTH104, PTH110, PTH123
# (pathlib is not needed, and a rank ought to start fast)
"""A rank of a fault trial: it comes up, waits, and the one that is chosen breaks as FAULT says.

Started by every launcher, with ``python -I -S``: it needs nothing but the standard library.
"""

from __future__ import annotations

import os
import signal
import sys
import time

FAULT = os.environ["FAULT"]
FOLDER = os.environ["FAULT_FOLDER"]
RANKS = int(os.environ["FAULT_RANKS"])
SMALL_DISK = 8 << 20  # bytes, as faults.py mounts it
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "RANK", "RANK_ID", "PMI_RANK")


def own_rank() -> int:
    """The rank, whoever started us."""
    return int(next(os.environ[name] for name in _RANK_VARIABLES if name in os.environ))


def child(session: bool) -> None:
    """Leave a child that ignores SIGTERM, if asked for in a session of its own."""
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if session:
            os.setsid()
        time.sleep(300)
        os._exit(0)


def is_up(rank: int) -> None:
    """Say that this rank runs and wait for all others."""
    with open(f"{FOLDER}/starting_{rank}", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.rename(f"{FOLDER}/starting_{rank}", f"{FOLDER}/up_{rank}")
    wait_for_all()


def wait_for_all() -> None:
    """Wait until every rank runs."""
    while not all(os.path.exists(f"{FOLDER}/up_{other}") for other in range(RANKS)):
        time.sleep(0.005)


def schedule() -> None:
    """Stand in for MindSpore's scheduler, which msrun waits for: it ends when it misses a rank."""
    wait_for_all()
    pids = [int(open(f"{FOLDER}/up_{rank}", encoding="ascii").read()) for rank in range(RANKS)]  # noqa: SIM115
    while all(runs(pid) for pid in pids):
        time.sleep(0.05)
    sys.exit(1)


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def fill_disk() -> None:
    """Write to our own log (the launcher has put it on the small disk) until there is no room.

    mpirun has no log: it takes what is written, and more than the disk holds is enough.
    """
    try:
        for _ in range(4 * SMALL_DISK // 65536):
            os.write(1, b"x" * 65535 + b"\n")
    except OSError:
        return


def break_down() -> None:
    """Do what FAULT says."""
    time.sleep(float(os.environ["FAULT_DELAY"]))
    numbers = {"sigkill": signal.SIGKILL, "sigsegv": signal.SIGSEGV, "sigterm": signal.SIGTERM}
    if FAULT in numbers:
        os.kill(os.getpid(), numbers[FAULT])
        time.sleep(300)
    if FAULT == "closed":
        os.close(1)
        os.close(2)
    if FAULT == "disk":
        fill_disk()
    os._exit(int(os.environ["FAULT_CODE"]))


def main() -> None:
    """Be a rank."""
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        schedule()
    rank = own_rank()
    if FAULT == "stubborn" and rank != int(os.environ["FAULT_RANK"]):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if FAULT in ("children", "sessions") or (FAULT.startswith("launcher") and rank % 2):
        child(session=FAULT != "children")
    is_up(rank)
    if not FAULT.startswith("launcher") and rank == int(os.environ["FAULT_RANK"]):
        break_down()
    print("rank", rank, "waits", flush=True)
    time.sleep(300)


if __name__ == "__main__":
    main()
