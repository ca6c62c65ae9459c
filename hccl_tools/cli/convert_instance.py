"""``hccl-tools convert --instance``: the rank table of an instance of a service table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.diagnostics import render
from hccl_tools.errors import TableError, UsageError
from hccl_tools.formats import service
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import tell
from hccl_tools.transform import instance_table
from hccl_tools.validation.checker import validate
from hccl_tools.validation.config_maps import check_one

if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.service_table import Instance, ServiceTable

#: The product of instances without super pods: MindIE-Motor runs on A2 and A3 (rank tables of 910A differ).
PRODUCT = "a2"
_TARGETS = ("1.0", "1.2")
#: The rule on ranks that --renumber makes harmless.
_DUPLICATE_RANK = "HCC723"


def option(function: Any) -> Any:
    """Add ``--instance``."""
    text = "Of a service table: the instance, by group_id or GROUP/SERVER."
    return click.option("--instance", metavar="N", help=text)(function)


def read(file: str, instance: str, target: str | None, *, renumber: bool) -> RankTable:
    """Return the rank table of an instance and print what it lacks.

    Raises:
        InputError: The file cannot be read.
        TableError: It is not a service table, or the instance has errors or other ranks than 0 to N-1.
        UsageError: The target is not 1.0 or 1.2.
    """
    if target not in (*_TARGETS, None):
        raise UsageError(f"--instance has no {target} table", hint="use --to 1.0 or --to 1.2")
    report = check_one(file, partial(validate, limit=None))
    if not report.is_service or report.document is None:
        message = f"--instance is for service tables (server_group_list), and {report.file} is none"
        raise UsageError(message, hint="omit --instance")
    if report.document.problem is not None or not isinstance(report.document.value, dict):
        raise _refusal(report)
    table = service.read(report.document.value)
    chosen = instance_table.choose(table, instance)
    _require_sound(report, table, chosen, renumber=renumber)
    made = instance_table.rank_table(table, chosen, renumber=renumber)
    size = f"{count(len(made.table.servers), 'server')}, {count(len(made.table), 'rank')}"
    tell(f"{chosen.name} of {report.reader}: {size}")
    for line in made.lost:
        tell(f"lost: {line}")
    for line in made.changed:
        tell(f"changed: {line}")
    return made.table


def _require_sound(report: Report, table: ServiceTable, chosen: Instance, *, renumber: bool) -> None:
    """Refuse an instance with errors; errors of other groups do not matter."""
    path = table.group_path(chosen.group)
    own = tuple(
        one
        for one in report.errors
        if one.path[:2] == path and not (renumber and one.rule.id == _DUPLICATE_RANK)
    )
    if own or not table.rows(chosen.servers):
        raise _refusal(report._replace(findings=own or report.findings, omitted={}))


def _refusal(report: Report) -> TableError:
    findings = "".join(render([report], "text")).rstrip()
    return TableError(f"{report.file} cannot be used", lines=findings.split("\n"))
