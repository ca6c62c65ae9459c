"""The rank table of a job: where it is found, what it holds, and the bytes that the ranks will read."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hccl_tools.errors import InputError, LaunchError, TableError, UsageError
from hccl_tools.launch.model.request import JobTable
from hccl_tools.launch.model.variables import TABLE_FROM_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.table.model import RankTable

#: What HCCL takes of a group_list's devices.
_COLUMNS = ("device_id", "device_ip", "rank_id")
#: The variables that name a table, MindSpore's older one last.
TABLE_VARIABLES = ("RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH")
#: The file's usual names where RANK_TABLE_FILE is a directory, and ModelArts' places.
_NAMES = ("jobstart_hccl.json", "hccl.json")
_MODELARTS = ("/user/config/jobstart_hccl.json", "/home/ma-user/rank_table/jobstart_hccl.json")


def locate(request: LaunchRequest, environ: Mapping[str, str]) -> tuple[str, str | None] | None:
    """Return the path of the table and a sentence on why that one, or ``None`` where none was named.

    The sentence is ``None`` for a table that the user has typed. A directory means the usual file in it. A
    number of ranks or a list of devices does not take the place of a table that the shell names: that table
    may well be the one they speak of, and where it is not, that is told (``beside_table``).

    Raises:
        LaunchError: A directory holds no such file.
        UsageError: A table was typed, and that there is to be none.
    """
    if request.no_table:
        if request.rank_table is not None:
            raise UsageError("--rank-table and --no-table exclude each other", hint="leave one of them out")
        return None
    if request.rank_table == TABLE_FROM_ENVIRONMENT:
        return _unpacked(request, environ), None
    if request.rank_table is not None:
        return _file_in(request.rank_table), None
    if request.physical is not None:
        return None
    if (variable := naming_variable(environ)) is not None:
        path = _file_in(environ[variable])
        return path, f"no --rank-table: {variable} of your shell is taken, {path}"
    for path in _MODELARTS:
        if os.path.exists(path):
            return path, f"no --rank-table: ModelArts' table is taken, {path}"
    return None


def naming_variable(environ: Mapping[str, str]) -> str | None:
    """Return the variable that names a table, or ``None``."""
    return next((variable for variable in TABLE_VARIABLES if environ.get(variable)), None)


def load(path: str, request: LaunchRequest, environ: Mapping[str, str]) -> JobTable:
    """Read and check the table of a request.

    Raises:
        TableError: It has not been completed in the time of ``--wait``.
        LaunchError: The file cannot be read at all, or the table has errors.
    """
    if request.wait is not None:
        from hccl_tools.tablefiles import waiting  # noqa: PLC0415  (few tables are still being written)

        waiting.wait(path, seconds=request.wait, tell=_tell)
    return load_file(path, request, environ)


def _tell(line: str) -> None:
    sys.stderr.write(f"hccl-tools: {line}\n")


def load_file(path: str, request: LaunchRequest, environ: Mapping[str, str]) -> JobTable:
    """Read and check a table for the job's product and, as some change HCCL's verdict, its variables.

    Raises:
        LaunchError: The file cannot be read at all, or the table has errors; the message holds the findings.
    """
    from hccl_tools.validation import checker  # noqa: PLC0415  (a launch without a table does not need it)

    try:
        # A rehearsal on the CPU does without HCCL.
        env = {} if request.cpu else {**environ, **request.environment}
        table, report = checker.load(path, product=request.product, ignore=request.ignore, env=env)
    except (InputError, TableError) as error:
        raise LaunchError(error.message, hint=error.hint) from error
    notes = tuple(f"{path}: {finding.message}" for finding in report.warnings)
    judged = f"{report.product}: {report.product_reason}"
    source = "standard input" if path == "-" else os.path.abspath(path)
    if table.format == "group_list":
        return JobTable(source, *_as_1_0(table), judged, notes)
    # The very bytes that were judged: the file may be another one by now.
    data = report.document.data if report.document else b""
    return JobTable(source, table, data, judged, notes)


def _as_1_0(table: RankTable) -> tuple[RankTable, bytes]:
    """Turn a group_list into the 1.0 table that HCCL makes of it, instances of one server into that server.

    The ranks get it without what HCCL does not take; in the table here pod names stay, to find this host by.
    """
    from dataclasses import replace  # noqa: PLC0415  (rarely needed)

    from hccl_tools import formats  # noqa: PLC0415
    from hccl_tools.transform import conversion  # noqa: PLC0415

    made = conversion.convert(table, to="1.0")
    servers = [replace(server, fields={}) for server in made.servers]
    columns = {key: made.columns[key] for key in _COLUMNS if key in made.columns}
    plain = replace(made, servers=servers, columns=columns, fields={})
    return made, "".join(formats.write(plain)).encode()


def _unpacked(request: LaunchRequest, environ: Mapping[str, str]) -> str:
    """Write the table that came along into the run directory, whole at once, and return its path."""
    from hccl_tools.launch.planning import packed_table  # noqa: PLC0415  (on other hosts only)
    from hccl_tools.launch.runs import directory  # noqa: PLC0415  (on other hosts only)

    run_dir = request.run_dir or "."
    directory.create(run_dir, shared=True, mode=request.log_mode)
    name = f".given_table-{os.uname().nodename}-{os.getpid()}"
    path = os.path.join(run_dir, "given_table.json")
    os.replace(directory.write(run_dir, name, packed_table.unpack(environ)), path)
    return path


def usual_file(path: str) -> str:
    """Return the file of a usual name where the path is a directory, else the path itself."""
    inside = (os.path.join(path, name) for name in _NAMES) if os.path.isdir(path) else ()
    return next((file for file in inside if os.path.exists(file)), path)


def _file_in(path: str) -> str:
    file = usual_file(path)
    if file == path and os.path.isdir(path):
        raise LaunchError(f"{path} is a directory without {' or '.join(_NAMES)}", hint="name the file itself")
    return file
