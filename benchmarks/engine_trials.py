"""What is broken in a trial of an engine's job: whose process, which exit code and which cause are right."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

#: What a rank does to itself; see fault_rank.py.
RANK_FAULTS = ("exit", "sigkill", "sigsegv", "sigterm", "stubborn", "children", "sessions", "closed")
_LAUNCHER = {
    "launcher-term": ("launcher", signal.SIGTERM),
    "launcher-int": ("launcher", signal.SIGINT),
    "launcher-kill": ("launcher", signal.SIGKILL),
}
#: Fault: whose process gets which signal.
SIGNALS = {
    **_LAUNCHER,
    "engine": ("engine", signal.SIGKILL),
    "daemon": ("daemon", signal.SIGKILL),
    "shim": ("shim", signal.SIGKILL),
    "supervisor": ("supervisor", signal.SIGKILL),
    "keeper": ("keeper", signal.SIGKILL),
    "ssh": ("ssh", signal.SIGKILL),
    "rank-kill": ("rank", signal.SIGKILL),
    "scancel": ("job", 0),
}
#: Launcher and its keeper within 20 ms.
BOTH = "launcher-keeper"
ONE_HOST = (*RANK_FAULTS, *_LAUNCHER, "engine", "daemon", "shim", "rank-kill", BOTH)
TWO_HOSTS = (*RANK_FAULTS, *_LAUNCHER, "engine", "daemon", "supervisor", "keeper", "rank-kill", "ssh", BOTH)
SLURM = (*RANK_FAULTS, *_LAUNCHER, "engine", "daemon", "supervisor", "keeper", "rank-kill", "scancel")
#: Of the faults of ranks, which are the least likely to tell anything new, this share is drawn.
_RANKS_SHARE = 0.25


class Trial(NamedTuple):
    """What is to happen: to which rank, or to what is above it, with which exit code, and when (seconds)."""

    fault: str
    culprit: int
    code: int
    delay: float

    @property
    def is_ranks(self) -> bool:
        """Whether the rank does it to itself."""
        return self.fault in RANK_FAULTS

    @property
    def launcher_is_killed(self) -> bool:
        """Whether nobody is left to give an exit code."""
        return self.fault in {"launcher-kill", BOTH}


def draw(generator: random.Random, faults: Sequence[str], ranks: int) -> Trial:
    """A random trial."""
    own = [fault for fault in faults if fault in RANK_FAULTS]
    others = [fault for fault in faults if fault not in RANK_FAULTS]
    fault = generator.choice(own if (generator.random() < _RANKS_SHARE and own) or not others else others)
    return Trial(fault, generator.randrange(ranks), generator.randint(1, 120), generator.uniform(0, 0.5))


def right_codes(trial: Trial) -> tuple[int, ...]:
    """Return what the launcher may exit with."""
    ranks = {"sigkill": 137, "sigsegv": 139, "sigterm": 143}
    if trial.is_ranks:
        return (ranks.get(trial.fault, trial.code),)
    launchers = {"launcher-term": 143, "launcher-int": 130}
    # Slurm ends the ranks by SIGTERM, and salloc its command by SIGHUP: either may come first.
    if trial.fault == "ssh":
        return tuple(range(1, 256))  # Open MPI's mpirun ends for it, and its own code is told.
    return (143, 129) if trial.fault == "scancel" else (launchers.get(trial.fault, 137),)


def names_cause(trial: Trial, said: str, *, host: str, broken: Mapping[int, str]) -> bool:
    """Whether the launcher names what was broken.

    Args:
        trial: The trial.
        said: What the launcher has written.
        host: What the table calls the host of the rank, "" where there is one host only.
        broken: The name of each process that was signalled.
    """
    on = f" on {re.escape(host)}" if host else ""
    killed = (rf"{re.escape(name)} \(pid {pid}\)(?: on \S+)? was killed" for pid, name in broken.items())
    processes = "|".join(killed)
    mpirun = r"(?:mpi\S*|srun) failed first: killed by SIGKILL"
    pattern = {
        "engine": f"{mpirun}|{processes}",
        # On the launcher's host Open MPI's mpirun is the daemon as well.
        "daemon": f"{processes}|{mpirun}",
        "shim": rf"the shim of rank {trial.culprit} \(",
        "supervisor": rf"lost contact with the supervisor{on} ",
        "keeper": rf"keeper process{on} was killed",
        # mpirun of Open MPI ends when an ssh does, and MPICH's proxy when its own ssh does.
        "ssh": rf"{processes}|mpi\S* failed first: |mpirun ended|(?:prte|orte)\S* \(pid \d+\)",
        "launcher-term": "received SIGTERM",
        "launcher-int": "received SIGINT",
        "scancel": r"received SIG(?:TERM|HUP)",
    }.get(trial.fault, rf"rank {trial.culprit} failed first: ")
    return re.search(pattern, said) is not None
