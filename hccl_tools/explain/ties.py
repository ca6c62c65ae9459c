"""Which faults that the kernel or Kubernetes report are tied to the ranks, and which may be of others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain import pods
from hccl_tools.explain.identities import OF_SLURM, OF_SYSTEM, STATES
from hccl_tools.explain.knowledge.message import fault_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.cluster import Cluster
    from hccl_tools.explain.events import Seen

#: A network port of a device went down, of which any job of the host can be the user.
_PORT = "HCM313"
#: Lines that are about whatever runs on a host or in a cluster. Slurm's lines are in the log of their job.
_BESIDE = {*OF_SYSTEM, _PORT} - {*OF_SLURM, *STATES, "HCM988"}
#: The kernel ended a process, as there was no memory left: it does so with SIGKILL.
_NO_MEMORY, _CRASHES = "HCM801", {"SIGSEGV", "SIGILL", "SIGFPE"}
#: Exceptions of a program about its own data and code, which no fault of a host or a pod brings about.
_OF_PROGRAM = re.compile(
    r"(?:[\w.]{0,60}\.)?(?:Value|Key|Type|Attribute|Index|Assertion|Name|Import|ModuleNotFound|ZeroDivision"
    r"|NotImplemented|FileNotFound|Unicode\w{0,9}|JSONDecode|Unpickling|UnboundLocal|Recursion|Permission)Error\b"
)


def is_loose(one: Seen, cluster: Cluster) -> bool:
    """Whether an event of the kernel, Kubernetes or an unused device is not known to be about a rank."""
    if one.event.message.kind not in {"cause", "error"}:
        return False
    if one.event.message.id not in _BESIDE and not _is_of_unused_device(one, cluster):
        return False
    if one.place.rank is not None or one.peer is not None:
        return False
    pid, pod = one.event.fields.get("pid", ""), pods.of(one, cluster.sources)
    if pid and any(pid == known for _, known in cluster.ranks):
        return False
    if pod and any(pod == other.place.host for other in cluster.seen):
        return False  # The lines of its log have its name.
    others = (source.path for file, source in enumerate(cluster.sources) if file != one.event.file)
    return not pod or not any(pod in path for path in others)


def _is_of_unused_device(one: Seen, cluster: Cluster) -> bool:
    """Whether the devices of all ranks are known, and a line is about another one.

    In a container the numbers can differ from those of the host, so that this alone proves nothing.
    """
    used = {place.device for place in cluster.places.by_rank.values()}
    return one.place.device is not None and bool(used) and None not in used and one.place.device not in used


def of_programs(failures: Iterable[Seen]) -> list[Seen]:
    """Return the failures that are exceptions of a program about its own data and code, or crashes of it."""
    return [
        one for one in failures if _OF_PROGRAM.match(one.event.fields.get("reason", "")) or _is_crash(one)
    ]


def _is_crash(failure: Seen) -> bool:
    """Whether a signal ended a rank that the kernel does not send when it has no memory left."""
    return failure.event.fields.get("signal", "") in _CRASHES


def is_apart(one: Seen, cluster: Cluster, failures: Sequence[Seen]) -> bool:
    """Whether a loose fault does not explain why the program of a rank failed, by its own data or code.

    Args:
        failures: The exceptions of programs: see ``of_programs``.
    """
    if not failures or not is_loose(one, cluster):
        return False
    if fault_of(one.event.message.id) != fault_of(_NO_MEMORY):
        failures = [failure for failure in failures if not _is_crash(failure)]
    pid = one.event.fields.get("pid", "")
    return bool(failures) and not any(
        pid and pid in failure.event.fields.get("reason", "") for failure in failures
    )


def apart(cluster: Cluster, causes: Sequence[Cause]) -> list[Seen]:
    """Return the loose faults beside a program that failed by itself: neither its cause nor what follows."""
    failures = of_programs(cause.seen for cause in causes[:1] if cause.seen is not None)
    if not failures:
        return []
    return [one for one in cluster.seen if is_apart(one, cluster, failures)]
