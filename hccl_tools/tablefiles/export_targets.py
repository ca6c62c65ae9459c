"""The requirements of frameworks on the file of a rank table, and the variables with its path.

Source: MindIE-LLM ranktable_config.cpp (mode 640, container_ip); torch_npu and xLLM (no symbolic link; a path
that does not exist is silently ignored); MindSpore (RANK_TABLE_FILE). MindIE up to 2.0 reads RANKTABLEFILE,
later versions RANK_TABLE_FILE.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.discover.facts import HostFacts


class Target(NamedTuple):
    """The requirements of one framework.

    Attributes:
        name: The value of ``--target``.
        mode: The required file mode, None for any.
        container_ip: Whether every server must have a container_ip.
        follows_links: Whether the framework opens a symbolic link.
    """

    name: str
    title: str
    mode: int | None = None
    container_ip: bool = False
    follows_links: bool = True
    formats: tuple[str, ...] = ("1.0", "1.2", "2.0", "group_list")


TARGETS = {
    target.name: target
    for target in (
        Target("mindspore", "MindSpore"),
        Target("torch", "torch_npu", follows_links=False),
        Target("mindie", "MindIE", mode=0o640, container_ip=True, formats=("1.0", "1.2")),
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


def variables(target: Target, path: str, hosts: Sequence[HostFacts]) -> dict[str, str]:
    """Return the variables that pass the path of the table to a framework.

    Args:
        hosts: The hosts of the table; with several hosts, variables that differ between hosts are omitted.
    """
    # The real path, because some readers refuse symbolic links.
    real = os.path.realpath(path)
    found = {"RANK_TABLE_FILE": real}
    if target.name == "mindie":
        found["RANKTABLEFILE"] = real
        if len(hosts) == 1:
            found["MIES_CONTAINER_IP"] = hosts[0].container_ip or hosts[0].server_id
    return found
