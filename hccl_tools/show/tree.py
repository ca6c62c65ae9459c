"""Draw a table as a tree: super pods, servers, groups, devices, ranks, addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import and_more
from hccl_tools.notation.printable import escaped
from hccl_tools.notation.screen import Pen, cells, cut, padded
from hccl_tools.records import NamedTuple
from hccl_tools.table.model import FOLD_ABOVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.show.description import RankFacts, ServerFacts

#: The greatest number of servers whose devices are listed; otherwise each server is one line.
UNFOLDED = 4
_MOST_ADDRESSES = 2


class Style(NamedTuple):
    """The style of a tree.

    ``width`` is in columns, None for lines of any length. ``group_size`` is the number of devices of a group
    (910A), None without groups. With ``color``, what has lines below it is emphasised.
    """

    width: int | None = None
    ascii_only: bool = False
    group_size: int | None = None
    unfold: bool = False
    color: bool = False


class Node(NamedTuple):
    """A line of a tree and the lines below it."""

    text: str
    children: list[Node]


def lines(servers: Sequence[ServerFacts], style: Style) -> Iterator[str]:
    """Yield the lines of the tree, beginning with the super pods or servers."""
    folded = len(servers) > UNFOLDED and not style.unfold
    wide = max((cells(server.server_id) for server in servers), default=0)
    nodes = [_server_node(server, style, folded=folded, wide=wide) for server in servers]
    if any(server.super_pod_id is not None for server in servers):
        nodes = _pods(servers, nodes)
    yield from drawn(nodes, "", style)


def _pods(servers: Sequence[ServerFacts], nodes: list[Node]) -> list[Node]:
    pods: dict[str | None, list[Node]] = {}
    for server, node in zip(servers, nodes, strict=True):
        pods.setdefault(server.super_pod_id, []).append(node)
    return [
        Node("in no super pod" if name is None else f"super pod {name}", own) for name, own in pods.items()
    ]


def _server_node(server: ServerFacts, style: Style, *, folded: bool, wide: int) -> Node:
    parts = [
        padded(server.server_id, wide) if folded else server.server_id,
        f"ranks {number_list.fold(server.rank_ids)}",
    ]
    if folded:
        parts.append(f"devices {number_list.fold(server.device_ids)}")
    if server.host_ip not in (None, server.server_id):
        parts.append(f"host_ip {server.host_ip}")
    if server.pod_name is not None:
        parts.append(f"pod {server.pod_name}")
    return Node("  ".join(parts), [] if folded else _devices(server, style.group_size))


def _devices(server: ServerFacts, group_size: int | None) -> list[Node]:
    wide_rank = max((len(str(rank)) for rank in server.rank_ids), default=1)
    wide_device = max((len(str(device)) for device in server.device_ids), default=1)
    # Something follows the addresses in a super pod alone.
    known = [_addresses(one) for one in server.ranks if one.super_device_id is not None]
    wide = (wide_rank, wide_device, max(map(len, known), default=0))
    leaves = [(_group_of(one, group_size), Node(_device(one, wide), [])) for one in server.ranks]
    if group_size is None:
        return [leaf for _, leaf in leaves]
    groups: dict[int | None, list[Node]] = {}
    for group, leaf in leaves:
        groups.setdefault(group, []).append(leaf)
    return [Node(_group_name(group, group_size), own) for group, own in groups.items()]


def _group_of(one: RankFacts, group_size: int | None) -> int | None:
    return None if group_size is None or one.device_id is None else one.device_id // group_size


def _group_name(group: int | None, size: int) -> str:
    return "in no group" if group is None else f"group {group * size}-{group * size + size - 1}"


def _addresses(one: RankFacts) -> str:
    return and_more(one.addresses, _MOST_ADDRESSES) or "no address"


def _device(one: RankFacts, wide: tuple[int, int, int]) -> str:
    wide_rank, wide_device, wide_address = wide
    known = _addresses(one)
    sdid = ""
    if one.super_device_id is not None:
        known, sdid = known.ljust(wide_address), f"  SDID {one.super_device_id}"
    rank = "?" if one.rank is None else one.rank
    device = "?" if one.device_id is None else one.device_id
    return f"rank {rank:<{wide_rank}}  device {device:<{wide_device}}  {known}{sdid}"


def drawn(nodes: list[Node], margin: str, style: Style) -> Iterator[str]:
    """Yield the lines of nodes behind a margin; of many nodes, only the first and last ones."""
    tee, corner, bar = ("|-- ", "`-- ", "|   ") if style.ascii_only else ("├── ", "└── ", "│   ")
    pen = Pen(style.color)
    hidden = len(nodes) - FOLD_ABOVE if not style.unfold else 0
    for place, node in enumerate(nodes):
        if hidden > 0 and place == FOLD_ABOVE // 2:
            yield _clipped(f"{margin}{tee}... {hidden:,} more (--all) ...", style)
        if hidden > 0 and FOLD_ABOVE // 2 <= place < len(nodes) - FOLD_ABOVE // 2:
            continue
        last = place == len(nodes) - 1
        branch = margin + (corner if last else tee)
        line = _clipped(branch + escaped(node.text, ascii_only=style.ascii_only), style)
        text = line[len(branch) :]
        yield pen("frame", line[: len(branch)]) + (pen("message", text) if node.children else text)
        yield from drawn(node.children, margin + ("    " if last else bar), style)


def _clipped(line: str, style: Style) -> str:
    return cut(line, style.width, "..." if style.ascii_only else "…")
