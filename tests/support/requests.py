"""Requests of ``launch`` from options by their names on the command line."""

from __future__ import annotations

from typing import Any

from hccl_tools.launch.model.request import LaunchRequest, Program

#: Options whose field has another name than the option.
_FIELDS = {
    "rank_table": ("table", "file"), "devices": ("devices", "listed"), "start": ("start", "method"),
    "environment": ("variables", "assigned"), "log_dir": ("logs", "dir"), "log_file": ("logs", "file"),
    "flat_logs": ("logs", "flat"),
}  # fmt: skip


def launch_request(program: tuple[str, ...] = ("train.py",), **options: Any) -> LaunchRequest:
    """Return a request; ``options`` are fields of its records: ``ranks``, ``cpu``, ``rank_table`` ..."""
    return with_options(LaunchRequest(Program(program)), **options)


def with_options(request: LaunchRequest, **options: Any) -> LaunchRequest:
    """Return a request with other values of some fields."""
    for option, value in options.items():
        record, field = _FIELDS.get(option) or (_record_of(option), option)
        request = request._replace(**{record: getattr(request, record)._replace(**{field: value})})
    return request


def _record_of(field: str) -> str:
    names = ("program", "table", "hosts", "devices", "start", "variables", "logs", "watch")
    request = LaunchRequest(Program(()))
    return next(name for name in names if field in getattr(request, name)._fields)
