"""Detect, read and write the file formats of rank tables.

A reader accepts a parsed document. It refuses exactly the documents that violate the format's JSON Schema, so
that valid tables are read without the schema. A reader reports only that a document is wrong; the schema
gives the violations (see ``hccl_tools.formats.schema``).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from hccl_tools.formats.column_checks import StructureError
from hccl_tools.formats.detection import Detection, detect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import RankTable

__all__ = ["MODULES", "Detection", "StructureError", "detect", "module", "read", "write"]

#: Format -> its module in this package, and the name of its schema.
MODULES = {"1.0": "v1_0", "1.2": "v1_2", "2.0": "v2_0", "group_list": "group_list"}


class FormatModule(Protocol):
    """The functions of each format module of this package."""

    def read(self, value: dict[str, Any]) -> RankTable:
        """Return the table of a parsed document.

        Raises:
            StructureError: The document violates the format's schema.
        """

    def write(self, table: RankTable) -> Iterator[str]:
        """Yield the text of a table piece by piece, indented by 4, in the usual order of keys."""

    def device_path(self, table: RankTable, row: int) -> Path:
        """Return the path of the device of a row."""

    def server_path(self, table: RankTable, index: int) -> Path:
        """Return the path of a server's entry."""


@cache
def module(table_format: str) -> FormatModule:
    """Return the module of a format."""
    return cast("FormatModule", import_module(f"hccl_tools.formats.{MODULES[table_format]}"))


def read(value: Any, table_format: Format | None = None) -> RankTable:
    """Read a parsed document as a rank table, by default in its detected format.

    Raises:
        StructureError: The document is not a rank table, or violates the schema of the format.
    """
    if table_format is None:
        found = detect(value)
        if found.format is None:
            raise StructureError((), found.reason)
        table_format = found.format
    return module(table_format).read(value)


def write(table: RankTable) -> Iterator[str]:
    """Yield the text of a table in its format."""
    return module(table.format).write(table)
