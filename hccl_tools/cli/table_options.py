"""Options and output of the commands that make a table from tables: check it, then write it."""

from __future__ import annotations

import os
import shlex
import stat
from shlex import quote
from typing import TYPE_CHECKING

import click

from hccl_tools.cli.lazy_group import TYPED_CALL
from hccl_tools.cli.options import together
from hccl_tools.cli.values import Choice, Seconds
from hccl_tools.errors import TableError, UsageError
from hccl_tools.host.site_defaults import Site
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import and_more, operand
from hccl_tools.notation.printable import escaped, tell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.table.model import RankTable

mode = click.option("--mode", metavar="MODE", help="File mode, such as 640. Default: 0666 minus the umask.")
_force = click.option("--force", is_flag=True, help="Replace a file that contains another table.")
_output = click.option(
    "-o", "--output", metavar="DIR|FILE|-", help="Output path; - for stdout. Default: the current folder."
)


#: The frameworks of ``--target``.
TARGET = Choice(["mindspore", "torch", "mindie", "xllm"])
writing = together(mode, _force, _output)
wait = click.option(
    "--wait", type=Seconds(), metavar="SECONDS", help="Wait up to SECONDS for an incomplete table."
)


def from_environment() -> str:
    """Return the path in RANK_TABLE_FILE for a command without FILE, and report it on stderr.

    Raises:
        UsageError: The variable is not set.
    """
    from hccl_tools.launch.planning import table_source  # noqa: PLC0415  (only without a FILE)

    variable = table_source.naming_variable(os.environ)
    if variable is None:
        raise UsageError("no rank table given", hint=_with_file())
    file = table_source.usual_file(os.environ[variable])
    tell(f"note: no FILE given: using {variable}={os.environ[variable]}")
    return file


def _with_file() -> str:
    """Return the call as it was typed, with a table of the current folder, or with FILE."""
    from hccl_tools.launch.planning import tables_here  # noqa: PLC0415  (only for an incomplete call)

    context = click.get_current_context()
    words = [context.command_path]
    for param in context.command.params:
        if context.get_parameter_source(param.name or "") is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = context.params.get(param.name or "")
        if isinstance(param, click.Option) and value is True:
            words.append(param.opts[-1])
        elif isinstance(param, click.Option) and isinstance(value, (str, int)):
            words += [param.opts[-1], shlex.quote(str(value))]
    files = tables_here.names()
    if not files:
        return f"name the file of a table: `{' '.join([*words, 'FILE'])}`, or set RANK_TABLE_FILE"
    more = f"; this folder also has {and_more(list(map(operand, files[1:])))}" if files[1:] else ""
    return f"name the file of a table: `{' '.join([*words, operand(files[0])])}`{more}"


def wait_for(file: str, seconds: float | None) -> None:
    """Wait until a table is ready, and report on stderr what is missing; do nothing if ``seconds`` is None.

    Raises:
        TableError: The table was not complete in time.
    """
    if seconds is not None:
        from hccl_tools.files import waiting  # noqa: PLC0415  (rarely used)

        waiting.wait(file, seconds=seconds, report=tell)


def note_redirection(output: str | None) -> None:
    """Say that the table has a file of its own, if standard output alone was redirected to another one."""
    if output is not None:
        return
    try:
        out, err = os.fstat(1), os.fstat(2)
        name = os.readlink("/proc/self/fd/1")  # noqa: PTH115  (pathlib is not loaded for it)
    except OSError:
        return
    is_shared = (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
    if stat.S_ISREG(out.st_mode) and not is_shared and os.path.exists(name):  # noqa: PTH110
        file = shlex.quote(name.removeprefix(f"{os.getcwd()}/"))  # noqa: PTH109
        tell(f"note: the table is not printed: `-o {file}` writes it to that file, `-o -` prints it")


def deliver(
    table: RankTable,
    *,
    name: str,
    output: str | None,
    force: bool,
    mode: str | None,
    product: str | None,
    ignore: Sequence[str],
    origins: Sequence[str] = (),
    service: str | None = None,
) -> None:
    """Check a table and write it, as ``gen`` does.

    Args:
        name: The file name if ``output`` is a folder.
        product: The product whose rules apply; by default the product of the table's format.
        origins: The source file of each server, for the findings.
        service: The service that reads the table, for the next command.

    Raises:
        TableError: The table has an error, or another table exists in the file.
    """
    from hccl_tools.files import outputs  # noqa: PLC0415  (`--help` does not need it)

    digits = outputs.parse_mode(mode) if mode is not None else None
    to_stdout = output == outputs.STDOUT
    note_redirection(output)
    require_valid(table, to_stdout=to_stdout, product=product, ignore=ignore, origins=origins)
    if to_stdout:
        outputs.print_text(outputs.table_text(table))
        return
    path = outputs.target(output, table, name=name)
    saved = outputs.save(table, path, force=force, mode=digits, product=product)
    tell(*saved.summary(table, service).split("\n"))


def require_valid(
    table: RankTable,
    *,
    to_stdout: bool,
    product: str | None,
    ignore: Sequence[str],
    origins: Sequence[str] = (),
) -> None:
    """Check a table that is to be written, and print its findings if it has an error; see ``deliver``.

    Raises:
        TableError: The table has an error.
    """
    from hccl_tools.files import outputs, rejected_table  # noqa: PLC0415  (commands that write)

    report = outputs.check(table, product=product, ignore=ignore, name=rejected_table.NAME)
    if not report.ok:
        width = screen.width(2 if to_stdout else 1)
        click.echo(
            outputs.findings_text(report, width) + _origins_of_errors(report, origins),
            err=to_stdout,
            nl=False,
        )
        raise rejected_table.refusal(report, typed_call())


def typed_call() -> tuple[str, ...]:
    """Return the call of this command as it was typed, with the tool; empty for an own program."""
    typed: tuple[str, ...] = click.get_current_context().meta.get(TYPED_CALL, ())
    return typed


def _origins_of_errors(report: Report, origins: Sequence[str]) -> str:
    if report.table is None or not origins:
        return ""
    from hccl_tools import formats  # noqa: PLC0415

    module = formats.module(report.table.format)
    paths = [module.server_path(report.table, index) for index in range(len(origins))]
    at_fault = [
        index
        for index, path in enumerate(paths)
        if any(finding.path[: len(path)] == path for finding in report.errors)
    ]
    return "".join(
        escaped(f'server "{report.table.servers[index].server_id}" is from {origins[index]}') + "\n"
        for index in at_fault[:20]
    )


def report_servers(table: RankTable, origins: Sequence[str], *, in_order_given: bool) -> None:
    """Print on stderr the ranks of each server and its source, a file or host.

    Args:
        in_order_given: Whether the user chose the order; an order that is not numeric then causes a warning.
    """
    from hccl_tools.table import ordering  # noqa: PLC0415  (`--help` does not need it)

    tell(*_server_lines(table, origins))
    if table.format == "group_list":
        tell("note: HCCL numbers a group_list by server_id as text, not by the order of its servers")
        return
    pair = ordering.out_of_order(table) if in_order_given else None
    if pair is not None:
        tell(
            f"warning: servers are not in the order of their addresses: {pair[0]} is before {pair[1]}; "
            "`--order ip` sorts them"
        )


def _server_lines(table: RankTable, origins: Sequence[str]) -> Iterator[str]:
    from hccl_tools.notation import number_list  # noqa: PLC0415
    from hccl_tools.table.ordering import FOLD_ABOVE  # noqa: PLC0415

    width = max(len(server.server_id) for server in table.servers)
    shown = range(len(table.servers))
    for index in (
        shown if len(shown) <= FOLD_ABOVE else [*shown[: FOLD_ABOVE // 2], *shown[-FOLD_ABOVE // 2 :]]
    ):
        if len(shown) > FOLD_ABOVE and index == len(shown) - FOLD_ABOVE // 2:
            yield f"... and {len(shown) - FOLD_ABOVE:,} more servers ..."
        server = table.servers[index]
        ranks = sorted(number for row in server.rows if (number := table.rank_numbers[row]) is not None)
        yield f"server {server.server_id:<{width}}  ranks {number_list.fold(ranks)}  from {origins[index]}"


def named(table: RankTable, wanted: str) -> int:
    """Return the index of the server with a server_id, host_ip or pod name.

    Raises:
        TableError: The table has no such server.
    """
    from hccl_tools.transform.spare import index_of  # noqa: PLC0415  (only for --server)

    for index, server in enumerate(table.servers):
        if wanted in (server.server_id, server.host_ip, server.fields.get("pod_name")):
            return index
    return index_of(table, wanted)


def this_host(table: RankTable) -> tuple[int, str]:
    """Return the index of this host's server, and the criterion that recognised it.

    Raises:
        TableError: No server of the table is this host, or several may be.
    """
    from hccl_tools.host import host_state, recognition  # noqa: PLC0415  (only for --here)

    state = host_state.read_host_state(
        {number for number in table.device_numbers if number is not None}, Site()
    )
    found = recognition.recognise(table, state)
    names = [table.servers[index].server_id for index in found.servers[:4]]
    if len(found.servers) > 1:
        raise TableError(
            f"this host may be {' or '.join(names)}, by {found.way}", hint="choose one with --server ID"
        )
    if not found.servers:
        known = and_more([server.server_id for server in table.servers])
        raise TableError(
            f"none of the table's servers is this host: {known}",
            hint=f"this host is {', '.join(sorted(state.names))}; "
            "neither its addresses, its name nor its devices match a server; for another host: "
            f"--server {quote(table.servers[0].server_id)}",
        )
    return found.servers[0], found.way
