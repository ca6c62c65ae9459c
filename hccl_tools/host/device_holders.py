"""Find the processes that have an open descriptor on a device (/dev/davinciN of the site)."""

from __future__ import annotations

import os
import pwd
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.host.open_descriptors import OpenDescriptors
from hccl_tools.processes import mounts, procfs
from hccl_tools.processes.procfs import RUN_VARIABLE
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

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
    found: list[Holder] = []
    opened = OpenDescriptors(without={os.getpid(), *procfs.kernel_threads()})
    for pid, descriptors in opened.each():
        names = [name for name, target in descriptors if target.rpartition("/")[2].startswith(_NAME)]
        local: Container[str] = mounts.local_numbers(pid) if names else ()
        held = {_opened(pid, name, local) for name in names}
        found += [_holder(pid, device) for node, device in nodes.items() if node in held]
    return found, opened.left_out()


def closed_nodes(devices: Iterable[int], site: Site) -> tuple[str, ...]:
    """Return the paths of the device nodes that exist and cannot be opened by this user."""
    paths = (site.path(f"/dev/davinci{device}") for device in devices)
    return tuple(path for path in paths if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK))


def _opened(pid: int, name: str, local: Container[str]) -> _Node | None:
    """Return the node that a descriptor uses; None if it only refers to it (O_PATH), which needs no right."""
    flags, mount = mounts.descriptor(pid, name)
    if flags & os.O_PATH or mount not in local:
        return None
    try:
        return _node(os.stat(f"/proc/{pid}/fd/{name}"))
    except OSError:  # The process may have closed the descriptor.
        return None


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
