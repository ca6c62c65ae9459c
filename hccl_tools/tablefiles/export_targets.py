"""The requirements of frameworks on the file of a rank table, and the variables with its path.

Source: MindIE-LLM ranktable_config.cpp (mode 640, container_ip); torch_npu and xLLM (no symbolic link; a path
that does not exist is silently ignored); MindSpore (RANK_TABLE_FILE). MindIE up to 2.0 reads RANKTABLEFILE,
later versions RANK_TABLE_FILE. Its guide for several hosts sets MASTER_IP to the first server and
HCCL_CONNECT_TIMEOUT to 7200; torch_npu warns below 300 if it uses a table.
"""

from __future__ import annotations

import os
import shlex
import stat
from typing import TYPE_CHECKING

from hccl_tools.errors import TableError, UsageError
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.table.model import RankTable

TIMEOUT = "HCCL_CONNECT_TIMEOUT"


class Target(NamedTuple):
    """The requirements of one framework.

    Attributes:
        name: The value of ``--target``.
        mode: The required file mode, None for any.
        container_ip: Whether every server must have a container_ip.
        follows_links: Whether the framework opens a symbolic link.
        least_timeout: The least HCCL_CONNECT_TIMEOUT of a job on several hosts, in seconds; None for any.
        usual_timeout: The value to set if it is less.
    """

    name: str
    title: str
    mode: int | None = None
    container_ip: bool = False
    follows_links: bool = True
    formats: tuple[str, ...] = ("1.0", "1.2", "2.0", "group_list")
    least_timeout: int | None = None
    usual_timeout: int | None = None


TARGETS = {
    target.name: target
    for target in (
        Target("mindspore", "MindSpore"),
        Target("torch", "torch_npu", follows_links=False, least_timeout=300, usual_timeout=600),
        Target(
            "mindie",
            "MindIE",
            mode=0o640,
            container_ip=True,
            formats=("1.0", "1.2"),
            least_timeout=300,
            usual_timeout=7200,
        ),
    )
}


def check(target: Target, table_format: str, destination: str | None) -> None:
    """Check the format and destination of a table for a framework.

    Raises:
        UsageError: The framework cannot read the format, or cannot open the destination.
    """
    if table_format not in target.formats:
        raise UsageError(
            f"{target.title} does not read {table_format} tables",
            hint=f"it reads {', '.join(target.formats)}",
        )
    if destination == "-":
        raise UsageError(
            "--target sets the mode of a file and prints variables with its path, but -o - writes no file",
            hint="specify a file or folder with -o, or omit --target",
        )
    if destination is not None and not target.follows_links and os.path.islink(destination):
        raise UsageError(
            f"{destination} is a symbolic link, which {target.title} refuses to open",
            hint=f"write to its target: -o {os.path.realpath(destination)}",
        )


def check_file(target: Target, path: str) -> None:
    """Check the mode of a table's file for a framework.

    Raises:
        TableError: The framework refuses to open the file.
    """
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if target.mode is not None and mode & ~target.mode:
        raise TableError(
            f"{path} has mode {mode:o}; {target.title} requires {target.mode:o}",
            hint=f"chmod {target.mode:o} {shlex.quote(path)}",
        )


def variables(target: Target, path: str, own_address: str | None) -> dict[str, str]:
    """Return the variables that pass the path of the table to a framework.

    Args:
        own_address: The container_ip or server_id of the host; None for the variables that all hosts share.
    """
    # The real path, because some readers refuse symbolic links.
    real = os.path.realpath(path)
    found = {"RANK_TABLE_FILE": real}
    if target.name == "mindie":
        found["RANKTABLEFILE"] = real
        if own_address is not None:
            found["MIES_CONTAINER_IP"] = own_address
    return found


def job_variables(target: Target, table: RankTable, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables besides the path that a job with this table needs on every host.

    A timeout that is already set and long enough is left as it is.
    """
    found = {}
    if target.name == "mindie" and len(table.servers) > 1:
        found["MASTER_IP"] = table.servers[0].server_id
    least = target.least_timeout if len(table.servers) > 1 else None
    text = environ.get(TIMEOUT, "")
    if least is not None and not (text.isdecimal() and int(text) >= least):
        found[TIMEOUT] = str(target.usual_timeout)
    return found
