"""Version 1.1 (heterogeneous) tables: HCCL's own checks, so that its verdict on them is known.

Source: hcomm topoinfo_ranktableHeterog.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.addresses import family, is_unset
from hccl_tools.table import read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path

_LONGEST_ID = 127


def faults(value: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what HCCL refuses in a version 1.1 table, with its place."""
    yield from _head(value)
    nodes = value.get("node_list")
    if not isinstance(nodes, list) or not nodes:
        yield ("node_list",) if "node_list" in value else (), "node_list is missing, empty or no list"
        return
    rank_ids: list[int] = []
    seen: set[str] = set()
    for index, node in enumerate(nodes):
        path: Path = ("node_list", index)
        address = node.get("node_addr") if isinstance(node, dict) else None
        if not isinstance(address, str) or family(address) is None or address in seen:
            yield path, "node_addr is missing, no address, or used twice"
            continue
        seen.add(address)
        yield from _ranks(node, path, rank_ids)
    if sorted(rank_ids) != list(range(len(rank_ids))):
        yield ("node_list",), "the rank ids are not 0 to N-1"
    unset = [is_unset(address) for address in seen]
    if any(unset) and not all(unset):
        yield ("node_list",), "some node_addr are 0.0.0.0 and some are not"


def _head(value: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    collective_id = value.get("collective_id")
    if not isinstance(collective_id, str) or len(collective_id.encode()) > _LONGEST_ID:
        yield (
            ("collective_id",) if "collective_id" in value else (),
            "collective_id is missing, no string or too long",
        )
    if "mode" in value and value["mode"] not in ("tcp", "rdma"):
        yield ("mode",), 'mode is neither "tcp" nor "rdma"'
    if "heterog_sub_version" in value and value["heterog_sub_version"] != "1.2":
        yield ("heterog_sub_version",), 'heterog_sub_version is not "1.2"'


def _ranks(node: dict[str, Any], path: Path, rank_ids: list[int]) -> Iterator[tuple[Path, str]]:
    ranks = node.get("ranks")
    if not isinstance(ranks, list) or not ranks:
        yield path, "ranks is missing, empty or no list"
        return
    for index, rank in enumerate(ranks):
        rank_id = rank.get("rank_id") if isinstance(rank, dict) else None
        number = read_uint(rank_id) if isinstance(rank_id, str) else None
        if number is None:
            yield (*path, "ranks", index), "rank_id is missing or no number in a string"
            continue
        rank_ids.append(number)
        for key in ("device_id", "port", "rank_ip"):
            if key in rank and not isinstance(rank[key], str):
                yield (*path, "ranks", index, key), f"{key} is no string"
        address = rank.get("rank_ip", "")
        if isinstance(address, str) and address and family(address) is None:
            yield (*path, "ranks", index, "rank_ip"), "rank_ip is no address"
