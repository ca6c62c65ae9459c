"""The ranks of the host from which a file is that no rank wrote, such as the log of the kernel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_tools.explain.cluster import Cluster


class RanksOfFiles:
    """Finds the ranks of the host of a file by the folders of all logs, which are walked once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._of_folder: dict[str, set[int]] = {}
        for source in cluster.sources:
            rank = source.rank if source.rank is not None else cluster.ranks.get(source.process)
            if rank is not None and source.is_file:
                for folder in _upwards(os.path.dirname(source.path)):
                    self._of_folder.setdefault(folder, set()).add(rank)
        self._all = set().union(*self._of_folder.values())
        known = cluster.places.by_rank
        self._hosts = {known[rank].host for rank in self._all & known.keys()} - {""}

    def ranks(self, file: int) -> frozenset[int]:
        """Return the ranks of the host of a file; none if that is not known, as of a folder with all logs."""
        source = self._cluster.sources[file]
        if source.host:
            known = self._cluster.places.by_rank
            named = frozenset(rank for rank, place in known.items() if place.host == source.host)
            if named:
                return named
        for folder in _upwards(os.path.dirname(source.path)) if source.is_file else ():
            if found := self._of_folder.get(folder):
                is_one_host = found != self._all or len(self._hosts) == 1
                return frozenset(found) if is_one_host else frozenset()
        return frozenset()


def _upwards(folder: str) -> list[str]:
    """Return a folder and those above it."""
    found = [folder]
    while (above := os.path.dirname(found[-1])) and above != found[-1]:
        found.append(above)
    return found
