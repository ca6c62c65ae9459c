"""A plan as JSON, for ``--dry-run=json`` and ``plan.json``. Secrets are masked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.launch import engines
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.notation import masking
from hccl_tools.notation.printable import json_escaped
from hccl_tools.runs import directory, names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan, RankProcess

SCHEMA_VERSION = 1
#: Variables that change the behaviour of HCCL; the ranks inherit them.
_ASCEND_PREFIXES = ("HCCL_", "ASCEND_")
_OWN_PREFIX = "HCCL_TOOLS_"
_INTERNAL = (LAUNCHER_VARIABLE,)


def as_bytes(plan: Plan, environment: Mapping[str, str], command: Sequence[str] = ()) -> Iterator[bytes]:
    """Yield a plan as a JSON file, in parts; bytes of a name that are not UTF-8 are escaped."""
    return (part.encode(errors="backslashreplace") for part in _parts(plan, environment, command))


def write(plan: Plan, environment: Mapping[str, str]) -> None:
    """Write a plan into its run directory.

    Raises:
        LaunchError: The file cannot be written.
    """
    data = as_bytes(plan, environment, engines.of(plan).command(plan))
    directory.write(plan.run_dir, names.PLAN, data)


def as_json(plan: Plan, environment: Mapping[str, str], command: Sequence[str] = ()) -> str:
    """Return a plan as JSON with a version and a stable order of keys."""
    return "".join(_parts(plan, environment, command))


def _parts(plan: Plan, environment: Mapping[str, str], command: Sequence[str]) -> Iterator[str]:
    """Yield a plan process by process: as one text, that of 8,192 ranks takes 18 MB."""
    yield json_escaped(json.dumps(_job(plan, environment, command), indent=2, ensure_ascii=False)[:-2])
    yield directory.PROCESSES.rstrip("\n")
    for number, process in enumerate(plan.processes):
        # In one line: Python's encoder in C, which is ten times as fast, does not indent.
        line = json.dumps(_process(process, plan), ensure_ascii=False)
        yield f"{',' if number else ''}\n    {json_escaped(line)}"
    yield "\n  ]\n}\n"


def _job(plan: Plan, environment: Mapping[str, str], command: Sequence[str]) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "start": plan.start,
        "engine": plan.engine,
        "cpu": plan.cpu,
        "world_size": plan.world_size,
        "hosts": list(plan.hosts),
        # The names by which hosts are reached that have answered with another address.
        **({"reached": dict(plan.reached)} if plan.reached else {}),
        # The address to which launchers started by hand on each host connect.
        "meeting": "{} port {}".format(*plan.rendezvous) if plan.rendezvous else None,
        "rank_table": plan.table,
        "run_dir": plan.run_dir,
        "working_dir": plan.working_dir,
        "chosen": dict(plan.chosen),
        "notes": list(plan.notes),
        "removed_variables": list(plan.removed),
        "passed_variables": masking.variables(inherited_ascend_variables(environment)),
        "common_variables": masking.variables(plan.common),
        "exported_variables": masking.variables(exported_for_display(plan, environment)),
        "command": masking.arguments(command),
        # `logs` needs the id to reach the hosts of the job.
        "slurm_job": environment.get("SLURM_JOB_ID"),
    }


def _process(process: RankProcess, plan: Plan) -> dict[str, Any]:
    return {
        "name": process.name,
        "rank": process.rank,
        "host": process.host,
        "server_index": process.server_index,
        "here": plan.local_server in (None, process.server_index),
        "device": process.device,
        "device_id": process.device_id,
        "log": process.log,
        "cores": list(plan.cores.get(process.rank, ())) or None,
        "argv": masking.arguments(process.argv),
        "environment": masking.variables(process.environment),
    }


def exported_for_display(plan: Plan, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an engine passes to other hosts, without internal variables."""
    return {name: environment.get(name, "") for name in plan.exported if not name.startswith(_INTERNAL)}


def inherited_ascend_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of HCCL and CANN that the ranks inherit unchanged, sorted by name."""
    return {
        name: environment[name]
        for name in sorted(environment)
        if name.startswith(_ASCEND_PREFIXES) and not name.startswith(_OWN_PREFIX)
    }
