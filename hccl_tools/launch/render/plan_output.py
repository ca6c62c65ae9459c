"""A plan as JSON, for ``--dry-run=json`` and ``plan.json``, and as text for a screen, for ``--dry-run``.

The text has what is equal once, and what differs in columns. Secrets are masked in both.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from hccl_tools.launch import engines
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.notation import masking, number_list, screen
from hccl_tools.notation.phrases import aligned, and_more, count
from hccl_tools.notation.printable import escaped, json_escaped
from hccl_tools.runs import directory, names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan, RankProcess

SCHEMA_VERSION = 1
#: Variables that change the behaviour of HCCL; the ranks inherit them.
_ASCEND_PREFIXES = ("HCCL_", "ASCEND_")
_OWN_PREFIX = "HCCL_TOOLS_"
_INTERNAL = (LAUNCHER_VARIABLE,)
#: Before the text of a fact.
_FACT = " " * 17
#: Columns of a value that differs from rank to rank; a longer one is shown with its rank below the columns.
_LONGEST_CELL = 24
#: Digits of a port.
_LONGEST_NUMBER = 5
#: Items of a list of all ranks, such as their endpoints, that is shown whole.
_MOST_ITEMS = 8
#: For the run directory, which a line of its own names.
_RUN_DIR = "{run_directory}"


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
        line = json.dumps(_process_json(process, plan), ensure_ascii=False)
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


def _process_json(process: RankProcess, plan: Plan) -> dict[str, Any]:
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


def as_text(plan: Plan, environment: Mapping[str, str], command: Sequence[str] = ()) -> str:
    """Return a plan as text: choices, ranks in columns, variables and command lines.

    The lines fit the screen, or 80 columns.
    """
    width = screen.width() or screen.STANDARD
    return "".join(f"{line}\n" for line in _lines(plan, environment, command, width))


def _lines(plan: Plan, environment: Mapping[str, str], command: Sequence[str], width: int) -> Iterator[str]:
    rehearsal = ", a rehearsal on the CPU" if plan.cpu else ""
    yield from _fitted(
        f"plan: {count(plan.world_size, 'rank')} on {_hosts(plan.hosts)}{rehearsal}; nothing is started",
        width,
    )
    facts = {
        **plan.chosen,
        "engine": plan.chosen.get("engine", plan.engine),
        "run directory": names.shown(plan.run_dir),
    }
    if plan.rendezvous:
        facts["rendezvous"] = "{} port {}".format(*plan.rendezvous)
    for subject, text in (*facts.items(), *(("note", note) for note in plan.notes)):
        yield from _fitted(f"  {subject + ':':<15}{text}", width, _FACT)
    yield ""
    columns = _Columns(plan)
    yield from (escaped(line) for line in columns.lines())
    yield ""
    if command:
        yield "command:"
        yield from _words(masking.arguments(command), width)
        yield ""
    yield from columns.commands(width)
    if plan.common:
        yield "every process also gets:"
        yield from _assignments(masking.variables(plan.common), width, plan.run_dir)
    inherited = inherited_ascend_variables(environment)
    yield from _listed("inherited unchanged", inherited, width, "no HCCL_* or ASCEND_* is set")
    if plan.supervisor:
        exported = exported_for_display(plan, environment)
        yield from _listed("passed to other hosts", exported, width, "no variables")
    removed = ", ".join(plan.removed) or "nothing"
    yield from _fitted(f"replaced or removed from the shell's environment: {removed}", width)


def _hosts(hosts: Sequence[str]) -> str:
    return hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts ({and_more(hosts)})"


class _Columns:
    """The ranks of a plan in columns, and each variable as a text of these columns: ``RANK_ID={rank}``."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._ranks = plan.ranks
        self._variables = [masking.variables(process.environment) for process in self._ranks]
        self._cells: dict[str, list[str]] = {
            "rank": [str(process.rank) for process in self._ranks],
            "host": [process.host for process in self._ranks],
            "device": [str(process.device) for process in self._ranks],
            "DEVICE_ID": [str(process.device_id) for process in self._ranks],
        }
        if plan.cores:
            bound = (plan.cores.get(process.rank, ()) for process in self._ranks)
            self._cells["cores"] = [number_list.fold(cores) or "all" for cores in bound]
        #: A variable that some ranks lack, or that has long values of its own, is not in it.
        self._templates: dict[str, str] = {}
        for name in dict.fromkeys(name for variables in self._variables for name in variables):
            self._add(name)

    def _add(self, name: str) -> None:
        if any(name not in variables for variables in self._variables):
            return
        values = [variables[name] for variables in self._variables]
        template = self._template(name, values)
        if template is None and max(map(screen.cells, values)) <= _LONGEST_CELL:
            self._cells[name] = values
            template = f"{{{name}}}"
        if template is not None:
            self._templates[name] = template

    def _template(self, name: str, values: Sequence[str]) -> str | None:
        if all(value == values[0] for value in values):
            return self._in_run(shlex.quote(values[0]))
        for column in ("DEVICE_ID",) if name == "DEVICE_ID" else ("rank", "DEVICE_ID", "device"):
            cells = self._cells[column]
            if values == cells:
                return f"{{{column}}}"
            before, _, after = values[-1].rpartition(cells[-1])
            if all(value == f"{before}{cell}{after}" for value, cell in zip(values, cells, strict=True)):
                quoted = [shlex.quote(part) if part else "" for part in (before, after)]
                return self._in_run(f"{{{column}}}".join(quoted))
        return self._counted(values)

    def _counted(self, values: Sequence[str]) -> str | None:
        """Return the text of values that end with a number counted by the rank: ``10.0.0.1:{6170+rank}``."""
        before, _, number = values[0].rpartition(":")
        first = self._ranks[0].rank
        if not (number.isdecimal() and number.isascii()) or len(number) > _LONGEST_NUMBER:
            return None
        base = int(number) - first
        if any(
            value != f"{before}:{base + process.rank}"
            for value, process in zip(values, self._ranks, strict=True)
        ):
            return None
        return f"{shlex.quote(before)}:{{{base}+rank}}"

    def _in_run(self, text: str) -> str:
        return text.replace(self._plan.run_dir, _RUN_DIR)

    def lines(self) -> Iterator[str]:
        """Yield the columns; the scheduler is not a rank and has no device."""
        plan = self._plan
        logs = [
            process.log if plan.local_server in (None, process.server_index) else f"{process.log} (there)"
            for process in plan.processes
        ]
        rows = list(zip(*self._cells.values(), strict=True))
        if len(logs) > len(rows):
            rows.insert(0, ("sched", plan.processes[0].host, *("-" for _ in range(len(self._cells) - 2))))
        header = (*self._cells, "log")
        rows = [(*row, log) for row, log in zip(rows, logs, strict=True)]
        yield from (f"  {line}" for line in aligned([header, *rows]))
        if self._cells["device"] != self._cells["DEVICE_ID"]:
            yield "  device: the physical id, as in the table; DEVICE_ID: the id in the process"

    def commands(self, width: int) -> Iterator[str]:
        """Yield what every rank runs, with the names of columns in braces, and what single ones run."""
        plan = self._plan
        if not plan.processes:
            return
        if len(self._ranks) < len(plan.processes):
            yield "the scheduler:"
            yield from _process(plan.processes[0], width)
        argv = self._ranks[0].argv
        if any(process.argv != argv for process in self._ranks):
            for process in self._ranks:
                yield f"{process.name}:"
                yield from _process(process, width)
            return
        yield "every rank:" if len(self._ranks) > 1 else f"{self._ranks[0].name}:"
        yield from _words([f"{name}={text}" for name, text in self._templates.items()], width, quoted=True)
        yield from _words(masking.arguments(argv), width)
        for process, variables in zip(self._ranks, self._variables, strict=True):
            if own := {name: value for name, value in variables.items() if name not in self._templates}:
                yield f"{process.name} also gets:"
                yield from _assignments(own, width)


def _process(process: RankProcess, width: int) -> Iterator[str]:
    yield from _assignments(masking.variables(process.environment), width)
    yield from _words(masking.arguments(process.argv), width)


def _listed(title: str, variables: Mapping[str, str], width: int, nothing: str) -> Iterator[str]:
    if not variables:
        yield f"{title}: {nothing}"
        return
    yield f"{title}:"
    yield from _assignments(masking.variables(variables), width)


def _assignments(variables: Mapping[str, str], width: int, run_dir: str = "") -> Iterator[str]:
    words = [f"{name}={_shortened(value)}" for name, value in variables.items()]
    return _words(
        [word.replace(run_dir, _RUN_DIR) if run_dir else word for word in words], width, quoted=True
    )


def _shortened(value: str) -> str:
    """Return a value for a shell; of a long list the first and last items (``-f json`` has all)."""
    items = value.split(",")
    if len(items) <= _MOST_ITEMS:
        return shlex.quote(value)
    return f"{shlex.quote(','.join(items[:2]))},...,{shlex.quote(items[-1])} ({len(items)} items)"


def _words(words: Sequence[str], width: int, *, quoted: bool = False) -> Iterator[str]:
    text = " ".join(words) if quoted else shlex.join(words)
    return _fitted(f"  {text}", width, "  ") if text else iter(())


def _fitted(line: str, width: int, indent: str | None = None) -> Iterator[str]:
    yield from screen.wrapped(escaped(line), width, indent)


def lines(plan: Plan) -> Iterator[str]:
    """Yield the ranks of this host, the notes, and the variables that the ranks do not inherit."""
    ranks = [process for process in plan.local if process.rank >= 0]
    shown = ", ".join(str(process.device) for process in ranks[:16]) + (", ..." if len(ranks) > 16 else "")
    plural = "s" if len(ranks) > 1 else ""
    ranks_of_job = "s" if plan.world_size > 1 else ""
    of = f" of {plan.world_size}" if len(ranks) < plan.world_size else ""
    where = "a rehearsal on the CPU" if plan.cpu else f"device{plural} {shown}"
    logs = names.shown(plan.run_dir)
    # Without a table and a framework, ranks need no way to find each other.
    start = "" if plan.start == "table" and plan.table is None else f", start method {plan.start}"
    yield f"{len(ranks)}{of} rank{ranks_of_job}, {where}{start}; logs: {logs}"
    yield from plan.notes
    if plan.removed:
        yield f"replaced or removed in the ranks' environment: {and_more(plan.removed, 8)}"
