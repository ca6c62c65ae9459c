"""Count the kernel's out-of-memory kills; an increase explains a SIGKILL."""

from __future__ import annotations

from hccl_tools.notation.whole_number import whole_number
from hccl_tools.processes import procfs
from hccl_tools.records import NamedTuple


class Kills(NamedTuple):
    """Out-of-memory kills so far, in this process's cgroup and on the whole machine; ``None`` if unknown."""

    cgroup: int | None
    machine: int | None

    def since(self, before: Kills) -> bool | None:
        """Return whether either count has changed; ``None`` if neither can be read."""
        pairs = [pair for pair in zip(self, before, strict=True) if None not in pair]
        return any(now != then for now, then in pairs) if pairs else None


def kills() -> Kills:
    """Return the current counts."""
    return Kills(_in_cgroup(), _count(procfs.read("/proc/vmstat"), "oom_kill"))


def _in_cgroup() -> int | None:
    for line in procfs.read("/proc/self/cgroup").splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        if hierarchy == "0":
            candidates = [f"/sys/fs/cgroup{path}/memory.events", "/sys/fs/cgroup/memory.events"]
        elif "memory" in controllers.split(","):
            candidates = [f"/sys/fs/cgroup/memory{at}/memory.oom_control" for at in (path, "")]
        else:
            continue
        # In a container the path may be the host's, while only the container's part of the tree is mounted.
        for candidate in candidates:
            if (count := _count(procfs.read(candidate), "oom_kill")) is not None:
                return count
    return None


def _count(text: str, name: str) -> int | None:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name and (number := whole_number(value)) is not None:
            return number
    return None
