"""The lock that prevents two jobs with the same table from running on a host at the same time.

A rehearsal on the CPU takes no lock: it uses no device, and every simulated table of a size is the same.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import stat
import zlib
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.runs import private_files

if TYPE_CHECKING:
    from collections.abc import Mapping

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def take(data: bytes, run_dir: str, environ: Mapping[str, str]) -> int:
    """Take the lock of a table on this host; return a descriptor that holds the lock until it is closed.

    The descriptor is -1 if the lock has no private directory.

    Raises:
        LaunchError: Another launch with the same table is running; the message names its pid and directory.
    """
    try:
        folder = private_files.place(environ)
        private_files.ensure(folder)
        path = os.path.join(folder, f"table-{zlib.crc32(data):08x}{zlib.adler32(data):08x}.lock")
        descriptor = os.open(path, _FLAGS, 0o600)
    except (LaunchError, OSError):
        return -1
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        os.close(descriptor)
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.fsdecode(os.pread(descriptor, 4096, 0)).splitlines()
        os.close(descriptor)
        if error.errno != errno.EWOULDBLOCK:
            return -1
        pid, directory = (*holder, "?", "?")[:2]
        raise LaunchError(
            f"a job with this table is already running on this host: pid {pid}, {directory}",
            hint=f"wait for that job, or end it with `{shlex.join(['hccl-tools', 'stop', directory])}`"
            + _for_array(environ),
        ) from None
    own = os.fsencode(f"{os.getpid()}\n{run_dir}\n")
    os.pwrite(descriptor, own, 0)  # Over the last holder: to empty the file first takes 0.2 ms.
    os.ftruncate(descriptor, len(own))
    return descriptor


def _for_array(environ: Mapping[str, str]) -> str:
    if "SLURM_ARRAY_JOB_ID" not in environ:
        return ""
    return "; a job array with --array=...%1 runs its tasks one after another"
