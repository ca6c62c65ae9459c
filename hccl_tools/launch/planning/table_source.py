"""Find, read and check the rank table of a job, with the bytes that the ranks will read."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from hccl_tools import formats, load_part
from hccl_tools.errors import HcclToolsError, InputError, LaunchError, TableError, UsageError
from hccl_tools.launch.model.request import JobTable
from hccl_tools.notation.printable import tell
from hccl_tools.validation import loading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import LaunchRequest, TableChoice
    from hccl_tools.launch.planning.job import Job
    from hccl_tools.launch.planning.visible_devices import Surroundings
    from hccl_tools.table.model import RankTable

#: The variables with the path of a table; MindSpore's older variable is last.
TABLE_VARIABLES = ("RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH")
#: The usual file names in a directory given as RANK_TABLE_FILE, and the paths that ModelArts uses.
_NAMES = ("jobstart_hccl.json", "hccl.json")
_MODELARTS = ("/user/config/jobstart_hccl.json", "/home/ma-user/rank_table/jobstart_hccl.json")
#: The keys of a group_list's devices that HCCL reads.
_COLUMNS = ("device_id", "device_ip", "rank_id")


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
        begin = around.addresses.begin if around.addresses else None
        loaded = load(path, choice, variables, on_this_host=around.uses_npus, begin=begin)
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
    devices = [placement.device for placement in job.placements]
    made: JobTable | None = load_part("launch.planning.own_table").make_table(
        devices, request.table, around.environ, path
    )
    return made


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


def load(
    path: str,
    choice: TableChoice,
    env: Mapping[str, str],
    *,
    on_this_host: bool,
    begin: Callable[[RankTable], None] | None,
) -> JobTable:
    """Read the table of a job, and wait for it if the user asked for that; see ``load_file``."""
    if choice.wait is not None:
        wait(path, choice.wait)
    return load_file(path, choice, env, on_this_host=on_this_host, begin=begin)


def wait(path: str, seconds: float) -> None:
    """Wait until a table is ready, with lines of the launcher.

    Raises:
        TableError: The table was not complete in time.
    """
    load_part("files.waiting").wait(path, seconds=seconds, report=_report)


def _report(line: str) -> None:
    tell(f"hccl-tools: {line}")


def load_file(
    path: str,
    choice: TableChoice,
    env: Mapping[str, str],
    *,
    on_this_host: bool = False,
    begin: Callable[[RankTable], None] | None = None,
) -> JobTable:
    """Read a table and check it for the job's product and variables.

    ``on_this_host`` tells whether the job uses the NPUs of this host; ``begin`` is called with the table
    before it is judged.

    Raises:
        LaunchError: The file cannot be read, or the table has errors; some of them cannot be ignored.
    """
    left: list[str] = []
    try:
        source: str | bytes = path
        if choice.exclude:
            source, *left = load_part("files.remainder").of_file(path, choice.exclude, product=choice.product)
        loaded = loading.load(
            source, product=choice.product, ignore=choice.ignore, env=env, on_this_host=on_this_host,
            begin=begin,
            name=f"{path} without {', '.join(map(str, choice.exclude))}" if choice.exclude else None,
        )  # fmt: skip
    except (InputError, TableError) as error:
        raise LaunchError(error.head, hint=error.hint, lines=error.lines) from error
    _require_ranks(loaded.table, path)
    notes = (*left, *(f"{path}: {warning}" for warning in loaded.warnings))
    shown = "standard input" if path == "-" else os.path.abspath(path)
    table, data = loaded.table, loaded.data
    if table.format == "group_list":
        table, data = _as_1_0(table)
    return JobTable(shown, table, data, loaded.product, loaded.product_reason, notes)


def _require_ranks(table: RankTable, path: str) -> None:
    """Refuse a table that does not number its ranks and devices; only ignored rules let such a table pass."""
    count = len(table.rank_numbers)
    ranks = sorted(rank for rank in table.rank_numbers if rank is not None)
    if ranks != [*range(count)] or None in table.device_numbers:
        raise LaunchError(
            f"{path}: `launch` needs the rank ids 0 to {count - 1}, each once, "
            "and a number as device id of each",
            hint="correct the table; ignored rules do not change this",
        )


def _as_1_0(table: RankTable) -> tuple[RankTable, bytes]:
    """Convert a group_list to the 1.0 table that HCCL derives from it; instances of a server are combined.

    The ranks' copy omits keys that HCCL does not read; the table here keeps pod names to identify this host.
    """
    from hccl_tools.transform import conversion  # noqa: PLC0415  (0.5 ms; a group_list)

    made = conversion.convert(table, to="1.0")
    servers = [replace(server, fields={}) for server in made.servers]
    columns = {key: made.columns[key] for key in _COLUMNS if key in made.columns}
    plain = replace(made, servers=servers, columns=columns, fields={})
    return made, "".join(formats.write(plain)).encode()
