"""A plan as text, for ``--dry-run``. Secrets are masked."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools.launch.render.plan_json import exported_for_display, inherited_ascend_variables
from hccl_tools.notation import masking, number_list
from hccl_tools.notation.phrases import aligned, and_more, count
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan


def as_text(plan: Plan, environment: Mapping[str, str], command: Sequence[str] = ()) -> str:
    """Return a plan as text: choices, ranks in columns, command lines and variables."""
    return escaped("\n".join(_lines(plan, environment, command)) + "\n", keep="\n")


def _lines(plan: Plan, environment: Mapping[str, str], command: Sequence[str]) -> Iterator[str]:
    rehearsal = ", a rehearsal on the CPU" if plan.cpu else ""
    yield f"plan: {count(plan.world_size, 'rank')} on {_hosts(plan.hosts)}{rehearsal}; nothing is started"
    facts = {**plan.chosen, "engine": plan.chosen.get("engine", plan.engine), "run directory": plan.run_dir}
    if plan.rendezvous:
        facts["rendezvous"] = "{} port {}".format(*plan.rendezvous)
    for subject, text in facts.items():
        yield f"  {subject + ':':<15}{text}"
    for note in plan.notes:
        yield f"  {'note:':<15}{note}"
    yield ""
    yield from _columns(plan)
    yield ""
    if command:
        yield "command:"
        yield "  " + shlex.join(masking.arguments(command))
        yield ""
    yield "each process:" if plan.processes else ""
    yield from _command_lines(plan)
    if plan.common:
        yield "every process also gets: " + _assignments(plan.common)
    inherited = _assignments(inherited_ascend_variables(environment))
    yield "inherited unchanged: " + (inherited or "no HCCL_* or ASCEND_* is set")
    if plan.supervisor:
        exported = _assignments(exported_for_display(plan, environment))
        yield "passed to other hosts: " + (exported or "no variables")
    yield "replaced or removed from the shell's environment: " + (", ".join(plan.removed) or "nothing")


def _hosts(hosts: Sequence[str]) -> str:
    return hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts ({and_more(hosts)})"


def _columns(plan: Plan) -> Iterator[str]:
    header = ("rank", "host", "device (physical)", "DEVICE_ID (logical)", *_bound(plan, "cores"), "log")
    rows = [
        (
            "sched" if process.rank < 0 else str(process.rank),
            process.host,
            "-" if process.rank < 0 else str(process.device),
            "-" if process.rank < 0 else str(process.device_id),
            *_bound(plan, number_list.fold(plan.cores.get(process.rank, ())) or "all"),
            process.log if plan.local_server in (None, process.server_index) else f"{process.log} (there)",
        )
        for process in plan.processes
    ]
    yield from (f"  {line}" for line in aligned([header, *rows]))


def _bound(plan: Plan, text: str) -> tuple[str, ...]:
    return (text,) if plan.cores else ()


def _command_lines(plan: Plan) -> Iterator[str]:
    for process in plan.local or plan.processes:
        argv = shlex.join(masking.arguments(process.argv))
        yield f"  {process.name}: {_assignments(process.environment)} {argv}"


def _assignments(environment: Mapping[str, str]) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in masking.variables(environment).items())
