"""The on-disk formats of a rank table: which one a document is, reading it, writing it.

A reader takes a parsed document and is strict: it refuses exactly what the format's JSON Schema refuses,
so that a table can be read without loading a schema library. It says only that something is wrong; the
schema says what (see ``hccl_tools.formats.schema``).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from hccl_tools.formats.detection import Detection, detect
from hccl_tools.formats.structure import StructureError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.model import Format, RankTable

__all__ = ["Detection", "StructureError", "detect", "module", "read", "write"]

_MODULES = {"1.0": "v1_0", "1.2": "v1_2", "2.0": "v2_0", "group_list": "group_list"}


class FormatModule(Protocol):
    """What each module of this package offers."""

    def read(self, value: dict[str, Any]) -> RankTable:
        """Return the table of a parsed document.

        Raises:
            StructureError: The format's schema refuses the document.
        """

    def write(self, table: RankTable) -> Iterator[str]:
        """Yield the table's text piece by piece, indent 4, in the key order users know."""

    def device_path(self, table: RankTable, row: int) -> Path:
        """Return where the device of a row stands in the document."""

    def server_path(self, table: RankTable, index: int) -> Path:
        """Return where a server's entry stands in the document."""


@cache
def module(table_format: str) -> FormatModule:
    """Return the module of a format by its name."""
    return cast("FormatModule", import_module(f"hccl_tools.formats.{_MODULES[table_format]}"))


def read(value: Any, table_format: Format | None = None) -> RankTable:
    """Read a parsed document as a rank table, by default in the format that it is.

    Raises:
        StructureError: It is no rank table, or the format's schema refuses it.
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
