"""Check the rank tables in a ConfigMap as ``kubectl get configmap -o json`` or ``-o yaml`` prints it.

A file is first checked as a table. Only a Kubernetes object is opened, so that tables cost nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.kubernetes import config_maps

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.kubernetes.tables import Outer, TableText


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
    outer = _outer(report, wanted)
    if outer is None:
        return [report]
    from hccl_tools.kubernetes.tables import tables_in  # noqa: PLC0415  (only for Kubernetes objects)

    found = tables_in(outer, wanted)
    return [_of_table(table, check) for table in found] or [_without_table(report, outer, check)]


def check_one(argument: str, check: Callable[[Any], Report]) -> Report:
    """Check a table, or the only table of the ConfigMaps in a file; see ``check_all``.

    Raises:
        InputError: The file cannot be read, does not have the key, or has several tables.
    """
    file, wanted = config_maps.split(argument)
    report = check(file)
    outer = _outer(report, wanted)
    if outer is None:
        return report
    from hccl_tools.kubernetes.tables import only_one, tables_in  # noqa: PLC0415

    table = only_one(tables_in(outer, wanted))
    return _without_table(report, outer, check) if table is None else _of_table(table, check)


def _outer(report: Report, wanted: str | None) -> Outer | None:
    if report.document is None or (wanted is None and not config_maps.is_wrapper(report.document)):
        return None
    from hccl_tools.kubernetes.tables import open_file  # noqa: PLC0415

    return open_file(report.document, report.file)


def _of_table(table: TableText, check: Callable[[Any], Report]) -> Report:
    return check(table.data)._replace(file=table.name, origin=table.origin)


def _without_table(report: Report, outer: Outer, check: Callable[[Any], Report]) -> Report:
    return report if outer.document is not None else check(outer.value)._replace(file=report.file)
