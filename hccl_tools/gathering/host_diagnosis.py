"""Determine why ``mpirun`` could not use a host: run a check over the same ssh, on all hosts at once.

``mpirun`` often does not report the host that failed. The check reports it, with the message of ssh.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.gathering.failures import HCCL_TOOLS_MISSING_HINT, MPI4PY_MISSING_HINT, Failure
from hccl_tools.host.local_addresses import is_this_host
from hccl_tools.programs import bounded_run, ssh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.gathering.commands import SshStart

#: The number of simultaneous connections; sshd refuses more than a few unauthenticated ones.
_AT_ONCE = 32
_NOT_FOUND = 127
_NOT_EXECUTABLE = 126

#: The check, for ``python -c``: its exit message is the cause. mpirun starts the daemon on each host.
_CHECK = """\
import importlib.util, os, shutil, sys
for name in ("hccl_tools", "mpi4py"):
    if importlib.util.find_spec(name) is None:
        sys.exit("missing " + name)
daemon = sys.argv[1]
if not (os.access(daemon, os.X_OK) if "/" in daemon else shutil.which(daemon)):
    sys.exit("missing " + daemon)
"""


def diagnose(hosts: Sequence[str], start: SshStart, seconds: float) -> list[Failure]:
    """Return the failure of each host that cannot be used, as far as ssh reports it.

    This host needs no ssh and is skipped. ``seconds`` is the time limit for each host.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda host: None if is_this_host(host) else _cause(host, start, seconds), hosts)
        return [failure for failure in found if failure is not None]


def _cause(host: str, start: SshStart, seconds: float) -> Failure | None:
    daemon = start.mpirun.daemon
    remote = shlex.join([*own_python.script(_CHECK), daemon])
    try:
        done = bounded_run.run([*start.ssh, "--", host, remote], seconds, os.environ)
    except subprocess.TimeoutExpired:
        return Failure(
            host, f"no answer over ssh within {seconds:.0f} s", "check its load and its file systems"
        )
    return _explain(host, done.code, done.errors, daemon) if done.code else None


def _explain(host: str, status: int, printed: str, daemon: str) -> Failure:
    last = ssh.last_line(printed)
    if status == ssh.FAILED:
        return Failure(host, last or "ssh failed without a message", ssh.hint(host, printed))
    if status in {_NOT_FOUND, _NOT_EXECUTABLE}:
        what = "does not exist" if status == _NOT_FOUND else "cannot be run"
        return Failure(host, f"{sys.executable} {what} there", "install hccl-tools there, in the same folder")
    if last == "missing hccl_tools":
        return Failure(
            host, f"hccl-tools is not installed there for {sys.executable}", HCCL_TOOLS_MISSING_HINT
        )
    if last == "missing mpi4py":
        return Failure(host, "mpi4py is not installed there", MPI4PY_MISSING_HINT)
    if last == f"missing {daemon}":
        return Failure(
            host, f"Open MPI is not installed there: no {daemon}", "install the same version there"
        )
    return Failure(host, last or f"its Python exited with exit code {status}")
