"""A plan for a person: what ``--dry-run`` prints. Secrets are masked."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools.launch.render import masking
from hccl_tools.launch.render.plan_json import exported, passed_on
from hccl_tools.notation import number_list
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan


def as_text(plan: Plan, environment: Mapping[str, str], command: Sequence[str] = ()) -> str:
    """Return a plan as text: what was chosen, the ranks in columns, command lines and variables."""
    return escaped("\n".join(_lines(plan, environment, command)) + "\n", keep="\n")


def _lines(plan: Plan, environment: Mapping[str, str], command: Sequence[str]) -> Iterator[str]:
    ranks = "1 rank" if plan.world_size == 1 else f"{plan.world_size} ranks"
    rehearsal = ", a rehearsal on the CPU" if plan.cpu else ""
    yield f"plan: {ranks} on {_counted(plan.hosts)}{rehearsal}; nothing is started"
    facts = {**plan.chosen, "engine": plan.engine, "run directory": plan.run_dir}
    if plan.rendezvous:
        facts["hosts meet"] = "{} port {}".format(*plan.rendezvous)
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
    passed = passed_on(environment)
    yield "passed on unchanged: " + (_assignments(passed) if passed else "no HCCL_* or ASCEND_* is set")
    if plan.supervisor:
        going = exported(plan, environment)
        yield "to other hosts go: " + (_assignments(going) if going else "no variables")
    yield "replaced or removed of your shell's: " + (", ".join(plan.removed) if plan.removed else "nothing")


def _counted(hosts: Sequence[str]) -> str:
    return (
        hosts[0]
        if len(hosts) == 1
        else f"{len(hosts)} hosts ({', '.join(hosts[:4])}" + (", ...)" if len(hosts) > 4 else ")")
    )


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
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        yield "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _bound(plan: Plan, text: str) -> tuple[str, ...]:
    return (text,) if plan.cores else ()


def _command_lines(plan: Plan) -> Iterator[str]:
    """Yield one command line per process of this host, as one could type it; of all where it has none."""
    for process in plan.local or plan.processes:
        argv = shlex.join(masking.arguments(process.argv))
        yield f"  {process.name}: {_assignments(process.environment)} {argv}"


def _assignments(environment: Mapping[str, str]) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in masking.variables(environment).items())
