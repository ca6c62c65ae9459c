"""Find and load the rank table of a job, with the bytes that the ranks will read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError, LaunchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import JobTable, LaunchRequest, TableChoice
    from hccl_tools.launch.planning.job import Job
    from hccl_tools.launch.planning.visible_devices import Surroundings

#: The variables with the path of a table; MindSpore's older variable is last.
TABLE_VARIABLES = ("RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH")
#: The usual file names in a directory given as RANK_TABLE_FILE, and the paths that ModelArts uses.
_NAMES = ("jobstart_hccl.json", "hccl.json")
_MODELARTS = ("/user/config/jobstart_hccl.json", "/home/ma-user/rank_table/jobstart_hccl.json")


def find(request: LaunchRequest, around: Surroundings, made_at: str) -> JobTable | None:
    """Return the table of a job, read and checked, or ``None`` if no table was specified.

    This host's product applies if NPUs are used and no product is specified. ``made_at`` is the path to which
    a table made from the hosts' answers will be written.

    Raises:
        TableError: The table was not complete within the time of ``--wait``.
        LaunchError: The file cannot be read, or the table has errors.
        UsageError: ``--rank-table`` and ``--no-table`` were both given.
    """
    choice = request.table
    if choice.made is not None:
        return choice.made._replace(path=made_at)
    found = locate(choice, around.environ)
    if found is None:
        if choice.exclude:
            raise UsageError(
                "--exclude leaves out hosts of a table or of a list of hosts, and this job has neither",
                hint="add --rank-table FILE or --hosts LIST, or leave --exclude out",
            )
        return None
    path, why = found
    try:
        variables = checked_in(request, around.environ)
        from hccl_tools.launch.planning import table_file  # noqa: PLC0415  (9 ms; the job has a table)

        begin = around.addresses.begin if around.addresses else None
        loaded = table_file.load(path, choice, variables, on_this_host=around.uses_npus, begin=begin)
    except HcclToolsError as error:
        error.hint = "; ".join(filter(None, (error.hint, why)))
        raise
    return loaded._replace(why=why)


def locate(choice: TableChoice, environ: Mapping[str, str]) -> tuple[str, str | None] | None:
    """Return the path of the table and a sentence with its source, or ``None`` if no table was specified.

    The sentence is ``None`` for a table given as an option. A directory is replaced by the usual file in it.
    A number of ranks or a list of devices does not disable the table in RANK_TABLE_FILE, because they may
    describe that table; ``option_conflicts`` reports a contradiction.

    Raises:
        LaunchError: A directory does not contain a file of a usual name.
        UsageError: ``--rank-table`` and ``--no-table`` were both given.
    """
    if choice.no_table:
        if choice.file is not None:
            raise UsageError("--rank-table and --no-table exclude each other", hint="leave one of them out")
        return None
    if choice.file is not None:
        return _file_in(choice.file), None
    if not choice.from_environment:
        return None
    if (variable := naming_variable(environ)) is not None:
        path = _file_in(environ[variable])
        return path, f"no --rank-table: using {path} from {variable} of your shell"
    for path in _MODELARTS:
        if os.path.exists(path):
            return path, f"no --rank-table: using ModelArts' table {path}"
    return None


def naming_variable(environ: Mapping[str, str]) -> str | None:
    """Return the environment variable that contains the path of a table, or ``None``."""
    return next((variable for variable in TABLE_VARIABLES if environ.get(variable)), None)


def checked_in(request: LaunchRequest, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that can change HCCL's verdict on a table; empty for a rehearsal on the CPU."""
    return {} if request.start.cpu else {**environ, **request.variables.assigned}


def make(job: Job, request: LaunchRequest, around: Surroundings, path: str, start: Start) -> JobTable | None:
    """Make the table of a job's devices on this host; ``None`` if the start does not need a table.

    Raises:
        DiscoveryError: The devices' addresses cannot be determined.
        LaunchError: HCCL would refuse the table, or the table does not follow the product's guide.
    """
    reads_table = start in {"table", "cluster"} or (start == "torch" and request.variables.pass_table)
    if not (reads_table and around.uses_npus) or request.table.no_table or job.server_count > 1:
        return None
    from hccl_tools.launch.planning import own_table  # noqa: PLC0415  (15 ms; the devices of this host, without a table)

    devices = [placement.device for placement in job.placements]
    return own_table.make_table(devices, request.table, around.environ, path)


def usual_file(path: str) -> str:
    """Return the file with a usual name if the path is a directory, else the path itself."""
    inside = (os.path.join(path, name) for name in _NAMES) if os.path.isdir(path) else ()
    return next((file for file in inside if os.path.exists(file)), path)


def _file_in(path: str) -> str:
    file = usual_file(path)
    if file == path and os.path.isdir(path):
        raise LaunchError(
            f"{path} is a directory without {' or '.join(_NAMES)}", hint="give the path of the file itself"
        )
    return file
