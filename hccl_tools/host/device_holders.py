"""Find the processes that have an open descriptor on a device (/dev/davinciN of the site)."""

from __future__ import annotations

import os
import pwd
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.host.open_descriptors import OpenDescriptors, users_and_numbers
from hccl_tools.processes import procfs
from hccl_tools.processes.foreign_descriptors import ForeignDescriptors
from hccl_tools.processes.procfs import RUN_VARIABLE
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.host.site_defaults import Site

    _Node = tuple[int, int, str]

#: With what the name of each node of a device begins.
_NAME = "davinci"


class Holder(NamedTuple):
    """A process that has a device open: ``age`` in seconds, ``run`` the run directory of the process."""

    pid: int
    device: int
    user: str
    command: str
    age: float
    run: str | None


def holders(devices: Iterable[int], site: Site) -> tuple[list[Holder], str]:
    """Return the other processes of this host that have a given device open, and what was not looked at.

    Only root sees the processes of other users.
    """
    nodes: dict[_Node, int] = {}
    for device in devices:
        with suppress(OSError):
            nodes[_node(os.stat(site.path(f"/dev/davinci{device}")))] = device
    if not nodes:
        return [], ""
    opened = OpenDescriptors(without={os.getpid(), *procfs.kernel_threads()})
    wanted = [
        (pid, name)
        for pid, descriptors in opened.each()
        for name, target in descriptors
        if target.rpartition("/")[2].startswith(_NAME)
    ]
    held: dict[int, set[_Node]] = {}
    with ForeignDescriptors(wanted) as looked_at:
        for pid, name in wanted:
            about = looked_at.status(pid, name)
            if about is not None:
                held.setdefault(pid, set()).add(_node(about))
    found = [
        _holder(pid, device) for pid, used in held.items() for node, device in nodes.items() if node in used
    ]
    return found, "; ".join(filter(None, [opened.left_out(), _without_mounts(looked_at)]))


def _without_mounts(looked_at: ForeignDescriptors) -> str:
    """Return whose processes were not looked at because of their mounts, "" if there is none."""
    numbers = {user: len(pids) for user, pids in looked_at.incomplete.items()}
    if not numbers:
        return ""
    return (
        "the file systems of open files are not known, since lists of mounts are too long or unusable: "
        f"{users_and_numbers(numbers)}; the numbers are those of processes"
    )


def closed_nodes(devices: Iterable[int], site: Site) -> tuple[str, ...]:
    """Return the paths of the device nodes that exist and cannot be opened by this user."""
    paths = (site.path(f"/dev/davinci{device}") for device in devices)
    return tuple(path for path in paths if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK))


def _node(about: os.stat_result) -> _Node:
    """Return what makes two nodes the same device, in every container: a name is not enough.

    A process can give any file that name in a mount namespace of its own, and a container another name to a
    device.
    """
    if stat.S_ISCHR(about.st_mode):
        return os.major(about.st_rdev), os.minor(about.st_rdev), "device"
    return about.st_dev, about.st_ino, "file"


def _holder(pid: int, device: int) -> Holder:
    try:
        user = pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    except (OSError, KeyError):
        user = "an unknown user"
    status = procfs.status(pid)
    age = max(0.0, time.time() - procfs.started(status)) if status else 0.0
    return Holder(pid, device, user, procfs.command(pid), age, procfs.environment(pid).get(RUN_VARIABLE))
