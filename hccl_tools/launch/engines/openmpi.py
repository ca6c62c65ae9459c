"""The options of Open MPI's mpirun, 4.1 and 5.

Both versions take the same ones here: ``--map-by`` with the qualifier OVERSUBSCRIBE (the plain
``--oversubscribe`` is deprecated in 5) and ``--bind-to none`` (both bind one or two ranks to a core each,
which makes threaded ranks crawl).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan

#: Seconds between mpirun's SIGTERM and its SIGKILL to supervisors, where it ends a job by itself. Version 4
#: always waits for all of them, several times, and so gets few.
_PATIENCE = {"openmpi-4": 1, "openmpi-5": 20}
#: A host that no longer answers is given up after 5 s of silence and 5 unanswered probes of 2 s; Open MPI
#: would begin to ask after 5 minutes. Seconds, and a number of probes.
_KEEPALIVE = {"time": 5, "intvl": 2, "probes": 5}


def for_hosts(plan: Plan) -> list[str]:
    """Return the options that start one process on each host of a plan."""
    hosts = list(dict.fromkeys(process.host for process in plan.ranks))
    options = ["-n", str(len(hosts)), "--host", ",".join(hosts), "--wdir", plan.working_dir]
    if plan.as_root:
        options.append("--allow-run-as-root")
    options += ["--map-by", "ppr:1:node", "--bind-to", "none"]
    # Supervisors end their ranks themselves; mpirun's own 0.25 s (5) or 1 s (4) would cut their grace short.
    options += ["--mca", "odls_base_sigkill_timeout", str(_PATIENCE.get(plan.engine_flavour, 1))]
    for name, value in _KEEPALIVE.items():
        options += ["--mca", f"oob_tcp_keepalive_{name}", str(value)]
    prefix = os.path.dirname(os.path.dirname(plan.engine_program))
    if prefix != "/usr":
        options += ["--prefix", prefix]
    for name in plan.exported:
        options += ["-x", name]
    return options


def for_ranks(plan: Plan) -> list[str]:
    """Return the options that start all ranks on this host."""
    options = ["-n", str(plan.world_size), "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    return [*options, "--allow-run-as-root"] if plan.as_root else options
