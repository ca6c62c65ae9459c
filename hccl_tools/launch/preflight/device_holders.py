"""Find the processes that have an open descriptor on a device (/dev/davinciN)."""

from __future__ import annotations

import os
import pwd
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.launch.processes import procfs
from hccl_tools.launch.runs.directory import RUN_VARIABLE
from hccl_tools.notation.phrases import time_span
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_NODE = re.compile(r"/dev/davinci([0-9]+)")


class Holder(NamedTuple):
    """A process that has a device open: ``age`` in seconds, ``run`` the run directory of the process."""

    pid: int
    device: int
    user: str
    command: str
    age: float
    run: str | None

    def __str__(self) -> str:
        """Return one line with the device, the process and its age."""
        left = f", left over from run {self.run}" if self.run else ""
        return (
            f"device {self.device} is in use by process {self.pid} of {self.user}, {time_span(self.age)} old"
            f"{left}: {self.command}"
        )


def holders(devices: Iterable[int]) -> list[Holder]:
    """Return the other processes of this host that have a given device open.

    Only root sees the processes of other users.
    """
    wanted = set(devices)
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            found += [_holder(int(name), device) for device in sorted(_open_devices(int(name)) & wanted)]
    return found


def _open_devices(pid: int) -> set[int]:
    found: set[int] = set()
    with suppress(OSError):
        for link in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):  # The process may have closed the descriptor.
                if match := _NODE.search(os.readlink(link)):
                    found.add(int(match[1]))
    return found


def _holder(pid: int, device: int) -> Holder:
    try:
        user = pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    except (OSError, KeyError):
        user = "an unknown user"
    status = procfs.status(pid)
    age = max(0.0, time.time() - procfs.started(status)) if status else 0.0
    return Holder(pid, device, user, procfs.command(pid), age, procfs.environment(pid).get(RUN_VARIABLE))
