"""Why ``mpirun`` could not use a host: asked over the same ssh, host by host, all at once.

``mpirun`` gives up as a whole and often does not say because of which host. This does, in ssh's own words.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from hccl_tools.discover.local_addresses import is_this_host
from hccl_tools.gathering import bootstrap
from hccl_tools.gathering.failures import MPI4PY_MISSING_HINT, Failure
from hccl_tools.programs import ssh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.gathering.commands import SshStart

#: Connections at the same time; sshd itself starts to refuse more than a few unauthenticated ones.
_AT_ONCE = 32
_NOT_THERE = 127
_MAY_NOT_RUN = 126

#: What ``python -c`` runs there: its exit text is the cause. The daemon is what mpirun starts there.
_CHECK = """\
import importlib.util, os, shutil, sys
for name in ("hccl_tools", "mpi4py"):
    if importlib.util.find_spec(name) is None:
        sys.exit("missing " + name)
daemon = sys.argv[1]
if not (os.access(daemon, os.X_OK) if "/" in daemon else shutil.which(daemon)):
    sys.exit("missing " + daemon)
"""


def causes(hosts: Sequence[str], start: SshStart, seconds: float) -> list[Failure]:
    """Return the failure of each host that cannot be used, as far as ssh can tell.

    Args:
        hosts: Whom to ask; this host itself needs no ssh and is passed over.
        start: How mpirun would start a process there.
        seconds: How long each may take.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda host: None if is_this_host(host) else _cause(host, start, seconds), hosts)
        return [failure for failure in found if failure is not None]


def _cause(host: str, start: SshStart, seconds: float) -> Failure | None:
    daemon = start.mpirun.daemon
    remote = shlex.join([sys.executable, "-c", _CHECK, daemon])
    try:
        done = subprocess.run(
            [*start.ssh, "--", host, remote],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
            timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Failure(host, f"ssh got no answer within {seconds:.0f} s", "is it overloaded, a disk gone?")
    if done.returncode == 0:
        return None
    return _explained(host, done.returncode, done.stderr, daemon)


def _explained(host: str, status: int, said: str, daemon: str) -> Failure:
    """Turn what a host's ssh or Python said into what is wrong with it."""
    last = ssh.last_words(said)
    if status == ssh.FAILED:
        return Failure(host, last or "ssh failed without a word", ssh.hint(host, said))
    if status in {_NOT_THERE, _MAY_NOT_RUN}:
        what = "is not there" if status == _NOT_THERE else "cannot be run there"
        return Failure(host, f"{sys.executable} {what}", "install hccl-tools there, in the same place")
    if last == "missing hccl_tools":
        return Failure(host, f"hccl-tools is not installed there for {sys.executable}", bootstrap.HINT)
    if last == "missing mpi4py":
        return Failure(host, "mpi4py is not installed there", MPI4PY_MISSING_HINT)
    if last == f"missing {daemon}":
        return Failure(host, f"Open MPI is not installed there: no {daemon}", "install the same one there")
    return Failure(host, last or f"its Python ended with exit code {status}")
