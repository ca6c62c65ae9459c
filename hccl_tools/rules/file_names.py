"""The numbers of servers and ranks in the name of a table's file. This module declares no rules."""

from __future__ import annotations

import re
from os.path import basename

from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple

_BEGIN, _END = r"(?:^|[_.-])", r"(?=[_.-]|$)"
#: ``hccl_2s_16p``, ``table-2nodes-16ranks``; the part ``p`` counts processes, one for each device.
_SERVERS = rf"(?i){_BEGIN}([0-9]{{1,5}})-?(?:s|n|servers?|nodes?|machines?|hosts?|pods?){_END}"
_RANKS = rf"(?i){_BEGIN}([0-9]{{1,6}})-?(?:p|ranks?|devices?|cards?|npus?|chips?){_END}"
#: ``2x8``: servers and the devices of each.
_BOTH = rf"(?i){_BEGIN}([0-9]{{1,5}})x([0-9]{{1,2}})p?{_END}"


class Sizes(NamedTuple):
    """The numbers that a file name states; None for those that it does not."""

    servers: int | None
    ranks: int | None

    def fits(self, servers: int | None, ranks: int) -> bool:
        """Return whether the name states these numbers, or one of them; ``None`` leaves out the servers."""
        is_other = servers is not None and self.servers is not None and self.servers != servers
        return not is_other and (self.ranks == ranks or (self.ranks is None and servers is not None))

    def text(self, servers: int | None) -> str:
        """Return the number that the name states, as a phrase."""
        if self.servers is not None and servers is not None:
            return count(self.servers, "server")
        return count(self.ranks or 0, "rank")


def sizes(path: str | None) -> Sizes | None:
    """Return the numbers in the name of a file; None if it has none, and for tables without a file."""
    name = basename(path or "")  # noqa: PTH119  (the name alone)
    if (both := re.search(_BOTH, name)) is not None:
        return Sizes(int(both[1]), int(both[1]) * int(both[2]))
    servers, ranks = re.search(_SERVERS, name), re.search(_RANKS, name)
    if servers is None and ranks is None:
        return None
    return Sizes(servers and int(servers[1]), ranks and int(ranks[1]))
