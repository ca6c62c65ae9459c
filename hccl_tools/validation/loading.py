"""Load a rank table that must not have errors, for a command that uses it.

A regular table is used without the rules, which take half of the time until the ranks of a job start.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.document.document import Document
from hccl_tools.records import NamedTuple
from hccl_tools.validation import regular_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hccl_tools.table.model import RankTable


class Loaded(NamedTuple):
    """A table without errors.

    Attributes:
        data: The bytes that were checked.
        product: The name of the product for which it was checked, and ``product_reason`` why.
        warnings: What the warnings say.
    """

    table: RankTable
    data: bytes
    product: str
    product_reason: str
    warnings: tuple[str, ...] = ()


def load(
    source: str | os.PathLike[str] | bytes,
    *,
    product: str | None = None,
    ignore: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    on_this_host: bool = False,
    name: str | None = None,
    begin: Callable[[RankTable], None] | None = None,
) -> Loaded:
    """Read a table that must not have errors; see ``checker.validate`` for the arguments.

    ``name`` is what messages call the table; by default the name of its file.

    Raises:
        TableError: The table has an error; the message has the findings.
        InputError: The file cannot be read.
        UsageError: The product or a rule is unknown.
    """
    read: str | os.PathLike[str] | bytes | Document = source
    ignore = tuple(ignore)
    if not ignore and not isinstance(source, bytes) and not os.path.isdir(source):  # noqa: PTH112
        read = document = Document.read(source)
        regular = regular_tables.recognise(
            document, product, env or {}, on_this_host=on_this_host, begin=begin
        )
        if regular is not None:
            table, choice = regular
            return Loaded(table, document.data, choice.product.name, choice.reason)
    from hccl_tools.validation import checker  # noqa: PLC0415  (14 ms; few tables are not regular)

    report = checker.validate(
        read, product=product, ignore=ignore, env=env, on_this_host=on_this_host, begin=begin
    )
    table = checker.usable(report if name is None else report._replace(file=name))
    # The bytes that were checked: the file may have changed since then.
    data = report.document.data if report.document else b""
    warnings = tuple(one.message for one in report.warnings)
    return Loaded(table, data, report.product, report.product_reason, warnings)
