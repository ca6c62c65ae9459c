"""Rules on what MindSpore requires of a table (``validate --target mindspore``).

MindSpore 2.4 and later read RANK_TABLE_FILE (or MINDSPORE_HCCL_CONFIG_PATH) when no msrun and no MPI started
the process, and call that deprecated; ``msrun --rank_table_file`` uses the table to order the ranks.

Source: MindSpore 2.10 communication/management.py and libd_collective.so; mindspore-ai/docs rank_table.md.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.hint import FILES
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.rules.table_file import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

_GUIDE = "MindSpore rank_table.md"


@rule(
    "HCC891",
    "mindspore-server-order",
    "forbidden",
    needs=("rank_id", "server_id"),
    source=f"{_GUIDE}, rank_id",
    words="the guide of MindSpore",
)
def server_order(subject: Subject) -> Iterator[Finding]:
    """The ranks do not follow the order of the server_ids as text, which MindSpore's guide requires.

    HCCL does not require it.

    Base: 1.0 2x8
    Example: swap /server_list/0/server_id /server_list/1/server_id
    Instead: table
    Hint: MindSpore orders servers by their ids as text: `hccl-tools merge --order server-id -o - OLD > NEW` numbers them so
    """
    table = subject.table
    if table.format not in SERVER_LIST:
        return
    lowest = sorted(
        (min((table.rank_numbers[row] or 0 for row in server.rows), default=0), server.server_id)
        for server in table.servers
    )
    for (_rank, before), (rank, name) in pairwise(lowest):
        if name < before:
            yield Finding(
                f"server {quoted(name)} has rank {rank}, after server {quoted(before)}",
                ("server_list",),
                _how_to_order(subject),
            )
            return


def _how_to_order(subject: Subject) -> str:
    """Return the hint on servers in another order than that of their ids as text."""
    if _has_no_order(subject):
        return (
            "no order is that of MindSpore's guide and has the servers of each super pod together (HCC529): name the hosts so that their "
            "order as text is that of the super pods (node01, node02, ...); or, as HCCL does not require this order, use --ignore HCC891"
        )
    if subject.document is None:  # The table is not in a file yet.
        return (
            f"{_AS_TEXT}: list the hosts in this order; or leave --target out, and number the file so: "
            "`hccl-tools merge --order server-id FILE -o NEW.json`"
        )
    return f"{_AS_TEXT}: `hccl-tools merge --order server-id -o - {FILES}` numbers them so"


_AS_TEXT = "MindSpore orders servers by their ids as text"


def _has_no_order(subject: Subject) -> bool:
    """Return whether servers of different super pods alternate in the order of the server_ids as text."""
    pods = subject.table.super_pods or ()
    pod_of = {server: pod for pod, one in enumerate(pods) for server in one.server_ids}
    in_order = sorted({server.server_id for server in subject.table.servers})
    runs = [pod for pod, _ in groupby(in_order, key=pod_of.get)]
    return len(runs) > len({*runs})


@rule(
    "HCC892",
    "mindspore-file-unreadable",
    "refused",
    source="MindSpore communication/management.py",
    words="Get hccl rank_table_file failed",
)
def file_unreadable(subject: Subject) -> Iterator[Finding]:
    """The owner of the file may not read it.

    ``init`` ends with "Get hccl rank_table_file failed, please export MINDSPORE_HCCL_CONFIG_PATH or
    RANK_TABLE_FILE", as without a file.

    Base: 1.0 1x8
    Example: mode 200
    Instead: table
    Hint: chmod u+r table.json
    """
    yield from unreadable(subject)
