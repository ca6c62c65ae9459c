"""What a picture is of: a table, its servers, its marks, and the facts that a screenshot has to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import count
from hccl_tools.records import NamedTuple
from hccl_tools.show.picture.marks import notes
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.table.product_names import read_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.show.picture.marks import Mark, Note
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product


class Subject(NamedTuple):
    """What is drawn.

    Attributes:
        report: The report on the table.
        table: The table of the report.
        servers: The indices of the servers that are drawn.
        marks: What is marked.
        date: The date of drawing, as text.
        unfold: Whether equal servers are all drawn.
    """

    report: Report
    table: RankTable
    servers: Sequence[int]
    marks: Sequence[Mark] = ()
    date: str = ""
    unfold: bool = False

    @property
    def product(self) -> Product:
        """The product for which the table was checked."""
        return read_name(self.report.product).product

    def facts(self) -> str:
        """Return format, product, sizes, fingerprint and date as a line."""
        table = self.table
        size = f"{count(len(table.servers), 'server')}, {count(len(table), 'rank')}"
        shown = "" if len(self.servers) == len(table.servers) else f", {len(self.servers):,} of them shown"
        made = f"fingerprint {fingerprint(table)}, drawn {self.date}"
        assumed = " (assumed)" if self.report.product_is_assumed else ""
        return f"format {table.format}, product {self.report.product}{assumed}, {size}{shown}, {made}"

    def notes(self) -> list[Note]:
        """Return the marks as notes, with the number of findings that are not among them."""
        return notes(self.marks, {rule.id: number for rule, number in self.report.omitted.items()})

    def silent(self) -> list[int]:
        """Return the devices without a record in the logs."""
        return [row for mark in self.marks if mark.kind == "silent" for row in mark.rows]
