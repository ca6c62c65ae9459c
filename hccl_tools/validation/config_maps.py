"""Check the rank tables in a ConfigMap as ``kubectl get configmap -o json`` or ``-o yaml`` prints it.

A file is first checked as a table. Only a Kubernetes object is opened, so that tables cost nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools import load_part
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.notation.hint import unused

#: What to do about a copy of a table that is not complete.
_FETCH_AGAIN = (
    "do not write it yourself: this file is a copy that does not change, so fetch it again until its status "
    'is "completed": '
    "{}; meanwhile look at the job's pods with `kubectl get pods` and at the log of the program"
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Report
    from hccl_tools.formats.kubernetes.tables import Outer, TableText


def check_all(argument: str, check: Callable[[Any], Report]) -> list[Report]:
    """Check a table, or every table of the ConfigMaps in a file.

    Args:
        argument: A file, ``-``, or a key in a file (see ``config_maps.split``).
        check: ``checker.validate`` with its other arguments.

    Returns:
        The reports of the tables; of the file itself if it has none.

    Raises:
        InputError: The file cannot be read, or does not have the key.
    """
    file, wanted = config_maps.split(argument)
    report = check(file)
    inside = _inside(report, wanted, only_one=False)
    if inside is None:
        return [report]
    outer, found = inside
    return [_of_table(table, check) for table in found] or [_without_table(report, outer, check)]


def check_one(argument: str, check: Callable[[Any], Report]) -> Report:
    """Check a table, or the only table of the ConfigMaps in a file; see ``check_all``.

    Raises:
        InputError: The file cannot be read, does not have the key, or has several tables.
    """
    file, wanted = config_maps.split(argument)
    report = check(file)
    inside = _inside(report, wanted, only_one=True)
    if inside is None:
        return report
    outer, found = inside
    return _of_table(found[0], check) if found else _without_table(report, outer, check)


def _inside(report: Report, wanted: str | None, *, only_one: bool) -> tuple[Outer, list[TableText]] | None:
    """Return the document of Kubernetes that a file is, and the tables in it; ``None`` for another file.

    Raises:
        InputError: There are several tables although ``only_one`` is set, or the key is missing.
    """
    if report.document is None or (wanted is None and not config_maps.is_wrapper(report.document)):
        return None
    tables = load_part("formats.kubernetes.tables")
    outer = tables.open_file(report.document, report.file)
    found = list(tables.tables_in(outer, wanted))
    if only_one:
        found = [table for table in (tables.only_one(found),) if table is not None]
    return outer, found


def _of_table(table: TableText, check: Callable[[Any], Report]) -> Report:
    report = check(table.data)._replace(file=table.name, origin=table.origin)
    if (again := _what_to_do(report, table)) is None:
        return report
    findings = tuple(one._replace(hint=again.get(one.rule.id, one.hint)) for one in report.findings)
    # Correcting the extracted table is not the way here.
    return report._replace(findings=findings, origin=table.origin._replace(extract=""))


def _what_to_do(report: Report, table: TableText) -> dict[str, str] | None:
    """Return the hints, by rule, on a table whose remedy is not in the table alone; None for other tables."""
    value = None if report.document is None else report.document.value
    if isinstance(value, str):
        program = "import json, sys; print(json.load(sys.stdin))"
        file = unused("table.json", beside=table.origin.extracted)
        return {
            "HCC110": f"write its text to a file: {table.origin.extract}; decode that: "
            f"python3 -I -c '{program}' < {table.origin.extracted} > {file}; "
            f"then make the ConfigMap again from {file}"
        }
    if isinstance(value, dict) and value.get("status") == "initializing":
        return {"HCC106": _FETCH_AGAIN.format(table.origin.object_command)}
    return None


def _without_table(report: Report, outer: Outer, check: Callable[[Any], Report]) -> Report:
    if outer.document is not None:
        return report
    own = check(outer.value)._replace(file=report.file)
    return own._replace(findings=tuple(_with_line(one, outer) for one in own.findings))


def _with_line(finding: Diagnostic, outer: Outer) -> Diagnostic:
    """Return a finding on YAML, which has no document, with the line of its place."""
    place = outer.places.get(finding.path)
    return finding if place is None else finding._replace(message=f"{finding.message} (line {place.line})")
