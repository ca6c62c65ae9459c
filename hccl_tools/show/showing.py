"""The output of ``show``, as a tree or as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from hccl_tools.notation import screen
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.phrases import count, ordinal
from hccl_tools.notation.printable import escaped, stdout_is_ascii
from hccl_tools.show import description, matrix, tree
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.table.product_names import read_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.show.description import ServerFacts
    from hccl_tools.table.model import RankTable


@dataclass(frozen=True)
class ShowOptions:
    """The part of a table to show.

    Attributes:
        rank: The only rank to show, if the user selected a rank.
        way: The criterion that recognised this host, if the user selected this host.
        one_server: Whether the user selected a single server.
        color: Whether to use colours.
    """

    report: Report
    table: RankTable
    rank: int | None = None
    way: str | None = None
    one_server: bool = False
    color: bool = False

    def as_json(self, servers: Sequence[ServerFacts]) -> str:
        """Return the JSON text: the whole table, one ``server``, or one rank with its server."""
        value: dict[str, Any] = {"schema_version": description.SCHEMA_VERSION, "file": self.report.file}
        value |= {"format": self.table.format, "product": self.report.product}
        value |= {"fingerprint": fingerprint(self.table)}
        value |= {"server_count": len(self.table.servers), "rank_count": len(self.table)}
        if self.rank is not None:
            server = description.as_json(servers[0])
            ranks = server.pop("ranks")
            one = next(rank for rank in ranks if rank.get("rank") == self.rank)
            value |= {"server": server, **one, "local_size": len(ranks)}
        elif self.one_server:
            value |= {"server": description.as_json(servers[0])}
        else:
            value |= {"servers": [description.as_json(server) for server in servers]}
        return json.dumps(value, indent=4) + "\n"

    def lines(self, servers: Sequence[ServerFacts], *, unfold: bool) -> list[str]:
        """Return the lines of text: one rank, or the tree under a heading."""
        ascii_only = stdout_is_ascii()
        if self.rank is not None:
            return [escaped(line, ascii_only=ascii_only) for line in self._rank_lines(servers[0], self.rank)]
        group_size = read_name(self.report.product).product.group_size
        style = tree.Style(screen.width(), ascii_only, group_size, unfold, self.color)
        heading = escaped(self._heading(servers[0]), ascii_only=ascii_only)
        pen = screen.Pen(self.color)
        above = [pen("quiet", line) for line in screen.wrapped(heading, screen.width())]
        return [*above, *tree.lines(servers, style)]

    def matrix_lines(self, indices: Sequence[int]) -> Iterator[str]:
        """Yield the lines of the links between the devices of some servers, and the legend.

        Raises:
            TableError: A server has too many devices for a matrix.
        """
        ascii_only = stdout_is_ascii()
        read = read_name(self.report.product)
        yield from (
            escaped(line, keep="\t", ascii_only=ascii_only)
            for line in chain(
                matrix.lines(self.table, read.product, indices),
                [""],
                matrix.legend(
                    f"product: {self.report.product}, {self.report.product_reason}",
                    f"table: {self.report.file}, fingerprint {fingerprint(self.table)}",
                ),
            )
        )

    def _heading(self, first: ServerFacts) -> str:
        if self.way is not None:
            devices = f"ranks {fold(first.rank_ids)}, devices {fold(first.device_ids)}"
            return f"this host is {first.server_id}, by {self.way}: {devices}"
        size = f"{count(len(self.table.servers), 'server')}, {count(len(self.table), 'rank')}"
        assumed = f", product {self.report.product} (assumed)" if self.report.product_is_assumed else ""
        print_ = fingerprint(self.table)
        return f"{self.report.file}: {self.table.format}, {size}, fingerprint {print_}{assumed}"

    def _rank_lines(self, server: ServerFacts, rank: int) -> list[str]:
        one = next(one for one in server.ranks if one.rank == rank)
        facts = {
            "rank": f"{rank} of {len(self.table)}",
            "server": f"{server.server_id} (the {ordinal(server.index + 1)} of {len(self.table.servers)})",
            "super pod": server.super_pod_id,
            "host_ip": server.host_ip,
            "device": str(one.device_id),
            "SDID": one.super_device_id,
            "local rank": f"{one.local_rank} of {len(server.ranks)}",
            "address": ", ".join(one.addresses) or "none",
        }
        return [f"{name:<10}  {text}" for name, text in facts.items() if text is not None]
