"""A plan as JSON: what ``--dry-run=json`` prints and ``plan.json`` keeps. Secrets are masked."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.render import masking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan, RankProcess

SCHEMA_VERSION = 1
#: Shown in the plan because they change what HCCL does; the launcher passes them unchanged.
_PASSED_PREFIXES = ("HCCL_", "ASCEND_")
_OURS = "HCCL_TOOLS_"
_STEERS_TERMINALS = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def as_bytes(plan: Plan, environment: Mapping[str, str], command: Sequence[str] = ()) -> bytes:
    """Return a plan as a JSON file; what is no UTF-8 in a name or an argument is written as JSON can."""
    return as_json(plan, environment, command).encode(errors="backslashreplace")


def as_json(plan: Plan, environment: Mapping[str, str], command: Sequence[str] = ()) -> str:
    """Return a plan as JSON, versioned, keys in a stable order."""
    value: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "start": plan.start,
        "engine": plan.engine,
        "cpu": plan.cpu,
        "world_size": plan.world_size,
        "hosts": list(plan.hosts),
        # Where hosts that were started by hand meet, and keep a line to each other.
        "meeting": "{} port {}".format(*plan.rendezvous) if plan.rendezvous else None,
        "rank_table": plan.table,
        "run_dir": plan.run_dir,
        "working_dir": plan.working_dir,
        "chosen": dict(plan.chosen),
        "notes": list(plan.notes),
        "removed_variables": list(plan.removed),
        "passed_variables": masking.variables(passed_on(environment)),
        "common_variables": masking.variables(plan.common),
        "exported_variables": masking.variables(exported(plan, environment)),
        "command": masking.arguments(command),
        # By these the logs of other hosts are fetched.
        "slurm_job": environment.get("SLURM_JOB_ID"),
        "processes": [_process(process, plan) for process in plan.processes],
    }
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    # JSON escapes the control characters of ASCII alone; a terminal heeds others, too.
    return _STEERS_TERMINALS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


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


def exported(plan: Plan, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that go to other hosts, without the table that goes in the same way."""
    if not plan.exported:
        return {}
    from hccl_tools.launch.planning import remote_launch  # noqa: PLC0415  (only where an engine brings the job there)

    return remote_launch.to_show(plan.exported, environment)


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of HCCL and CANN that the ranks inherit as they are, sorted by name."""
    return {
        name: environment[name]
        for name in sorted(environment)
        if name.startswith(_PASSED_PREFIXES) and not name.startswith(_OURS)
    }
