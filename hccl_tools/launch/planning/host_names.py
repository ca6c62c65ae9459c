"""Check the host names of a rank table before they become part of a command.

HCCL accepts nearly any text as a server_id, which suffices for a job on one host. For a job on several
hosts the text is parsed by a shell, by ssh or by mpirun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.document.document import Document
from hccl_tools.errors import LaunchError
from hccl_tools.formats import module
from hccl_tools.notation import host_list

if TYPE_CHECKING:
    from hccl_tools.launch.planning.planner import PreparedLaunch


def check(prepared: PreparedLaunch, *, use: str, colons: bool = False) -> None:
    """Refuse a job with a host that cannot be written in a command.

    ``use`` names the option that needs the hosts; with ``colons`` the command accepts IPv6 addresses.

    Raises:
        LaunchError: A host is not a host name or an address; the message contains its line in the table.
    """
    for process in prepared.plan.ranks:
        why = host_list.why_not_a_host(prepared.plan.way_to(process.host), ipv6=colons)
        if why is None:
            continue
        kinds = "a host name or an address" if colons else "a host name or an IPv4 address"
        raise LaunchError(
            f'{_place(prepared, process.server_index)}"{process.host}" {why}, and {use} needs host names',
            hint=f"give the server a host_ip or a server_id that is {kinds}"
            + ("; --engine ssh accepts IPv6 addresses" if host_list.is_ipv6(process.host) else ""),
        )


def _place(prepared: PreparedLaunch, index: int) -> str:
    table, data, path = prepared.table, prepared.table_data, prepared.plan.table
    if table is None or data is None or path is None:
        return ""
    try:
        with open(path, "rb") as file:
            if file.read(len(data) + 1) != data:
                return f"{path}: "  # The ranks' copy was converted: its lines differ.
    except OSError:
        return f"{path}: "
    key = "host_ip" if table.servers[index].host_ip else "server_id"
    document = Document.parse(data, path)
    span = document.spans([(*module(table.format).server_path(table, index), key)])[0]
    return "{}:{}:{}: ".format(path, *document.position(span.start))
