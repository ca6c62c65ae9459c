"""Find the processes that have an open descriptor on a device (/dev/davinciN of the site)."""

from __future__ import annotations

import os
import pwd
import time
from typing import TYPE_CHECKING

from hccl_tools.processes import procfs
from hccl_tools.processes.procfs import RUN_VARIABLE
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hccl_tools.host.site_defaults import Site


class Holder(NamedTuple):
    """A process that has a device open: ``age`` in seconds, ``run`` the run directory of the process."""

    pid: int
    device: int
    user: str
    command: str
    age: float
    run: str | None


def holders(devices: Iterable[int], site: Site) -> list[Holder]:
    """Return the other processes of this host that have a given device open.

    Only root sees the processes of other users.
    """
    paths = {os.path.realpath(site.path(f"/dev/davinci{device}")): device for device in devices}
    found: list[Holder] = []
    if not paths:
        return found
    without = {os.getpid(), *procfs.kernel_threads()}
    for name in os.listdir("/proc"):
        if name.isdigit() and (pid := int(name)) not in without:
            found += [_holder(pid, device) for device in sorted(_open_devices(pid, paths))]
    return found


def closed_nodes(devices: Iterable[int], site: Site) -> tuple[str, ...]:
    """Return the paths of the device nodes that exist and cannot be opened by this user."""
    paths = (site.path(f"/dev/davinci{device}") for device in devices)
    return tuple(path for path in paths if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK))


def _open_devices(pid: int, paths: Mapping[str, int]) -> set[int]:
    try:
        folder = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return set()
    try:
        return {paths[target] for target in _targets(folder, os.listdir(folder)) if target in paths}
    except OSError:  # The process has ended.
        return set()
    finally:
        os.close(folder)


def _targets(folder: int, names: Iterable[str]) -> Iterator[str]:
    # Neither scandir nor `suppress`: every descriptor of every process is looked at before a start.
    for name in names:
        try:
            yield os.readlink(name, dir_fd=folder)
        except OSError:  # noqa: PERF203  (the process may have closed the descriptor)
            continue


def _holder(pid: int, device: int) -> Holder:
    try:
        user = pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    except (OSError, KeyError):
        user = "an unknown user"
    status = procfs.status(pid)
    age = max(0.0, time.time() - procfs.started(status)) if status else 0.0
    return Holder(pid, device, user, procfs.command(pid), age, procfs.environment(pid).get(RUN_VARIABLE))
