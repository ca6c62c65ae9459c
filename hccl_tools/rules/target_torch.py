"""Rules on what torch_npu requires of a table (``validate --target torch``).

torch_npu falls back to its own negotiation when it cannot use the table, and says so only in an INFO line.
A line "Create global hccl comm with ranktable success" in the log tells that the table was used.

Source: Ascend/pytorch 9e73e708 (2026-08-21), HCCLUtils.cpp:26 and ProcessGroupHCCL.cpp:2764.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.number_list import fold
from hccl_tools.rules.registry import Finding, Subject, rule
from hccl_tools.rules.table_file import link, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = "torch_npu HCCLUtils.cpp:26"


@rule(
    "HCC881",
    "torch-file-is-a-link",
    "refused",
    source=_SOURCE,
    words="The rank_table_file is not available, switch to original interface.",
)
def file_is_a_link(subject: Subject) -> Iterator[Finding]:
    """The file is a symbolic link, as in a mounted ConfigMap; torch_npu ignores such a table.

    It says so only in an INFO line.

    Base: 1.0 2x2
    Example: link
    Instead: table
    Hint: name the file itself, or copy it: `cp -L table.json FILE`
    """
    yield from link(subject)


@rule(
    "HCC882",
    "torch-file-unreadable",
    "refused",
    source=_SOURCE,
    words="The rank_table_file is not available, switch to original interface.",
)
def file_unreadable(subject: Subject) -> Iterator[Finding]:
    """The owner of the file may not read it; torch_npu ignores such a table.

    It says so only in an INFO line.

    Base: 1.0 2x2
    Example: mode 200
    Instead: table
    Hint: chmod u+r table.json
    """
    yield from unreadable(subject)


@rule(
    "HCC883",
    "torch-rank-order",
    "fails-later",
    code="EI0014",
    needs=("rank_id", "device_id"),
    source="torch_npu ProcessGroupHCCL.cpp:2764",
    words="ranktable config devId[..], but local devId[..]",
)
def rank_order(subject: Subject) -> Iterator[Finding]:
    """The ranks of a server are not those that torchrun gives its devices: consecutive, in device order.

    torchrun numbers the processes of a host from its first rank, and process N uses its device N. Another
    order in the table ends with "ranktable config devId[..], but local devId[..]".

    Base: 1.0 2x2
    Example: swap /server_list/0/device/0/rank_id /server_list/0/device/1/rank_id
    Instead: table
    Hint: number the ranks of each server in the order of its device ids, or start the job with `hccl-tools launch`
    """
    ranks, devices = subject.table.rank_numbers, subject.table.device_numbers
    for index, server in enumerate(subject.table.servers):
        rows = sorted(server.rows, key=lambda row: (devices[row] is None, devices[row]))
        found = [rank for row in rows if (rank := ranks[row]) is not None]
        if not found or found == list(range(found[0], found[0] + len(found))):
            continue
        yield Finding(
            f'server "{server.server_id}" has the ranks {fold(found)} in the order of its devices',
            subject.server_path(index),
            "number the ranks of each server in the order of its device ids, or start the job with "
            "`hccl-tools launch`",
        )


@rule(
    "HCC884", "torch-uneven-servers", "forbidden", source="torchrun --nproc-per-node, the same on all hosts"
)
def uneven_servers(subject: Subject) -> Iterator[Finding]:
    """The servers differ in their number of devices; torchrun starts as many processes on each host.

    Base: 1.0 2x2 a2
    Example: remove /server_list/1/device/1
    Instead: table
    Hint: start the job with `hccl-tools launch`, which starts a process per rank
    """
    sizes = {len(server.rows) for server in subject.table.servers}
    if len(sizes) > 1:
        listed = ", ".join(map(str, sorted(sizes)))
        hint = "start the job with `hccl-tools launch`, which starts a process per rank"
        yield Finding(f"the servers have different numbers of devices: {listed}", hint=hint)
