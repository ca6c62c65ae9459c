"""The table that a command without FILE is about, and the server of a table that its options choose."""

from __future__ import annotations

import os
import shlex
from shlex import quote
from typing import TYPE_CHECKING

import click

from hccl_tools.errors import TableError, UsageError
from hccl_tools.host import host_state, recognition
from hccl_tools.host.site_defaults import Site
from hccl_tools.launch.planning import table_source, tables_here
from hccl_tools.notation.phrases import and_more, operand
from hccl_tools.notation.printable import tell
from hccl_tools.transform.spare import index_of

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable


def from_environment() -> str:
    """Return the path in RANK_TABLE_FILE for a command without FILE, and report it on stderr.

    Raises:
        UsageError: The variable is not set.
    """
    variable = table_source.naming_variable(os.environ)
    if variable is None:
        raise UsageError("no rank table given", hint=_with_file())
    file = table_source.usual_file(os.environ[variable])
    tell(f"note: no FILE given: using {variable}={os.environ[variable]}")
    return file


def _with_file() -> str:
    """Return the call as it was typed, with a table of the current folder, or with FILE."""
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
    files = tables_here.sound_first()
    if not files:
        return f"name the file of a table: `{' '.join([*words, 'FILE'])}`, or set RANK_TABLE_FILE"
    more = f"; this folder also has {and_more(list(map(operand, files[1:])))}" if files[1:] else ""
    return f"name the file of a table: `{' '.join([*words, operand(files[0])])}`{more}"


def named(table: RankTable, wanted: str) -> int:
    """Return the index of the server with a server_id, host_ip or pod name.

    Raises:
        TableError: The table has no such server.
    """
    for index, server in enumerate(table.servers):
        if wanted in (server.server_id, server.host_ip, server.fields.get("pod_name")):
            return index
    return index_of(table, wanted)


def this_host(table: RankTable) -> tuple[int, str]:
    """Return the index of this host's server, and the criterion that recognised it.

    Raises:
        TableError: No server of the table is this host, or several may be.
    """
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
