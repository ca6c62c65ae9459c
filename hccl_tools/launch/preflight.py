"""Check devices, ports and settings before the start; a fault in them would show only after minutes."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hccl_tools import load_part
from hccl_tools.errors import LaunchError
from hccl_tools.host.host_ports import is_free
from hccl_tools.launch.supervise import leftovers
from hccl_tools.notation.phrases import devices
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.doctor.quick import Quick
    from hccl_tools.launch.model.plan import Plan, RankProcess
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch

#: The switches of MindSpore's model suites that make N ranks one job instead of N jobs of one rank.
_SWITCH_OFF = r"(?i)\s*(distribute|run_distribute|use_parallel)\s*:\s*(false|no|off|0)\s*(#.*)?"
_LARGEST_YAML = 1 << 20
_REHEARSE, _SKIP = "to rehearse without NPUs add --cpu", "--preflight none starts without these checks"


class Findings(NamedTuple):
    """The findings on this host: errors prevent the start, warnings do not.

    Attributes:
        needs_npus: Whether the errors are about NPUs: a rehearsal does not have them.
    """

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    needs_npus: bool = False


def check(plan: Plan, environment: Mapping[str, str], nodes: Sequence[int]) -> Findings:
    """Check this host's part of a job; ``nodes`` are the device ids of this host or container."""
    warnings = tuple(_switched_off(plan)) if plan.world_size > 1 else ()
    deviceless = plan.cpu or plan.devices_are_placeholders
    errors = [] if deviceless else [*_missing_devices(plan, nodes)]
    if nodes and not deviceless:
        quick = _quick_checks(plan, environment)
        errors += quick.problems
        warnings += quick.notes
    return Findings((*errors, *_own_port(plan)), warnings, bool(errors))


def refuse(findings: Findings, *, skip: str = _SKIP, rehearse: str = _REHEARSE) -> None:
    """Refuse the start if there are errors, and list all of them.

    Args:
        skip: How to start in spite of the errors.
        rehearse: How to start without NPUs.

    Raises:
        LaunchError: The findings include an error.
    """
    if not findings.errors:
        return
    hint = f"{rehearse}; {skip}" if findings.needs_npus else skip
    what, *others = findings.errors
    if not others:
        raise LaunchError(what, hint=hint)
    raise LaunchError(
        f"{len(findings.errors)} problems prevent the start on this host",
        lines=[f"  - {error}" for error in findings.errors],
        hint=hint,
    )


def _devices(plan: Plan) -> dict[int, RankProcess]:
    return {process.device: process for process in plan.local if process.rank >= 0}


def _missing_devices(plan: Plan, nodes: Sequence[int]) -> Iterator[str]:
    """Yield a problem if devices are missing; without table and NPUs, device ids are placeholders."""
    missing = sorted(device for device in _devices(plan) if device not in nodes)
    if not missing or (plan.table is None and not nodes):
        return
    if nodes:
        are = "is" if len(missing) == 1 else "are"
        yield f"{devices(missing)} {are} not on this host, which has {devices(nodes)}"
    else:
        yield f"this host has no NPU: there is no /dev/davinci* for {devices(missing)}"


def _quick_checks(plan: Plan, environment: Mapping[str, str]) -> Quick:
    """Return what the quick checks of ``doctor`` find on this host."""
    addresses = tuple(dict.fromkeys(process.host for process in plan.local))
    found: Quick = load_part("doctor.quick").look(tuple(_devices(plan)), environment, addresses, plan.product)
    return found


def _own_port(plan: Plan) -> Iterator[str]:
    """Yield a problem if the ranks' rendezvous port is on this host and in use."""
    first = plan.ranks[0]
    name = "MS_SCHED_PORT" if "MS_SCHED_PORT" in first.environment else "MASTER_PORT"
    if first not in plan.local or name not in first.environment:
        return
    port = int(first.environment[name])
    if not is_free(port):
        yield f"port {port} ({name}) is in use on this host: choose another with --start-port"


def _switched_off(plan: Plan) -> Iterator[str]:
    """Yield the YAML arguments that make each rank train independently, with file and line."""
    for word in dict.fromkeys(plan.ranks[0].argv):
        path = word.partition("=")[2] or word
        if (
            path.endswith((".yml", ".yaml"))
            and os.path.isfile(path)
            and os.path.getsize(path) < _LARGEST_YAML
        ):
            with open(path, encoding="utf-8", errors="replace") as file:
                for number, line in enumerate(file, start=1):
                    if match := re.fullmatch(_SWITCH_OFF, line.rstrip("\n")):
                        yield (
                            f"{path}:{number}: {match[1]} is {match[2]}: {plan.world_size} ranks would train "
                            "independently of each other; set it to True"
                        )


class Preflight:
    """Checks this host for the plan, while a tool still answers; ``warnings`` refuses the start later.

    If an engine starts supervisors, each of them checks its own host.
    """

    def __init__(self, request: LaunchRequest) -> None:
        self._typed, self._is_wanted = request.variables.assigned, request.start.preflight
        self._found, self._logs = Findings(), ""

    def check(self, prepared: PreparedLaunch) -> None:
        """Check this host, and load the module of the next stage."""
        plan = prepared.plan
        if self._is_wanted and not plan.supervisor:
            environment = {**prepared.shared_environment, **self._typed}
            self._found = check(plan, environment, prepared.nodes)
            self._logs = os.path.dirname(plan.run_dir)
        load_part("launch.supervise.supervisor")  # The stage after the start, while hccn_tool answers.

    def warnings(self) -> tuple[str, ...]:
        """Return what does not prevent the start.

        Raises:
            LaunchError: Something prevents it.
        """
        refuse(self._found)
        return (*self._found.warnings, *(leftovers.leftovers_of_last_run(self._logs) if self._logs else ()))
