"""``launch --preflight full``: the checks of ``doctor`` on all hosts of the job, before anything starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import doctor_run
from hccl_tools.doctor import examining, registry
from hccl_tools.doctor_report import as_text
from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.gathering import choice
from hccl_tools.launch import engines
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.launch.model.request import LaunchRequest

_TOOL_TIMEOUT_S = 10.0
_GATHER_TIMEOUT_S = 60


def ask_hosts(request: LaunchRequest, ignored_checks: Sequence[str]) -> None:
    """Print what may stop or slow the job, on standard error.

    All hosts of the table are asked, with the engine of the job; under ``--engine loop`` this host alone.

    Raises:
        LaunchError: Something would stop the job, or the table cannot be read.
        UsageError: The job uses no NPU, its table is read from standard input, or a check does not exist.
    """
    if request.start.cpu:
        raise UsageError(
            "--preflight full asks the NPUs of the hosts, but --cpu uses none",
            hint="use --preflight quick, or leave --cpu out",
        )
    selection = registry.selection((), ignored_checks, ())
    selection = selection._replace(ignore=(*selection.ignore, *request.table.ignore))
    engine = engines.get(request.start.engine)
    report = _report(request)
    pings = doctor_run.pings(selection, every=False)
    job = examining.Job(report, request.table.product, None, request.hosts.start_port, pings=pings)
    reached: dict[str, Any] = {
        **dict.fromkeys(("hosts", "hostfile", "ssh", "via")),
        "engine": engine.queries_with or choice.outside_slurm(os.environ).engine,
        "gather_timeout": _GATHER_TIMEOUT_S,
    }
    local = not engine.starts_all_hosts
    seen, silent = doctor_run.observed(job, reached, tool_timeout=_TOOL_TIMEOUT_S, local=local)
    job = doctor_run.with_product_of(seen, job)
    result = examining.examine(seen, job, selection, silent)
    shown = tuple(one for one in result.findings if one.consequence != "note")
    click.echo(
        "".join(as_text.render(result._replace(findings=shown), width=screen.width(2))), nl=False, err=True
    )
    if result.fails():
        faults = sum(one.consequence == "stops" for one in shown)
        raise LaunchError(
            f"nothing was started: {count(faults, 'fault')} would stop the job",
            hint="mend what is listed above; --preflight quick starts without asking all hosts",
        )


def _report(request: LaunchRequest) -> Report | None:
    from hccl_tools.launch.planning import table_source  # noqa: PLC0415  (a table made at launch has no file)
    from hccl_tools.validation.checker import validate  # noqa: PLC0415

    product, ignore = request.table.product, request.table.ignore
    if request.table.made is not None:
        return validate(request.table.made.data, product=product, ignore=ignore)
    located = table_source.locate(request.table, os.environ)
    if located is None:
        return None
    if located[0] == "-":
        raise UsageError(
            "--preflight full cannot read the table from standard input, which can be read once",
            hint="write the table to a file, and name it with --rank-table",
        )
    if request.table.exclude:
        from hccl_tools.tablefiles import remainder  # noqa: PLC0415  (few jobs leave hosts out)

        left, _ = remainder.of_file(located[0], request.table.exclude, product=product)
        return validate(left, product=product, ignore=ignore)
    return validate(located[0], product=product, ignore=ignore)
