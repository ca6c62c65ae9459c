"""Read and check the table of a job in a file."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from hccl_tools import formats
from hccl_tools.errors import InputError, LaunchError, TableError
from hccl_tools.launch.model.request import JobTable
from hccl_tools.notation.printable import tell
from hccl_tools.validation import loading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hccl_tools.launch.model.request import TableChoice
    from hccl_tools.table.model import RankTable

#: The keys of a group_list's devices that HCCL reads.
_COLUMNS = ("device_id", "device_ip", "rank_id")


def load(
    path: str,
    choice: TableChoice,
    env: Mapping[str, str],
    *,
    on_this_host: bool,
    begin: Callable[[RankTable], None] | None,
) -> JobTable:
    """Read the table of a job, and wait for it if the user asked for that; see ``load_file``."""
    if choice.wait is not None:
        wait(path, choice.wait)
    return load_file(path, choice, env, on_this_host=on_this_host, begin=begin)


def wait(path: str, seconds: float) -> None:
    """Wait until a table is ready, with lines of the launcher.

    Raises:
        TableError: The table was not complete in time.
    """
    from hccl_tools.files import waiting  # noqa: PLC0415  (1.0 ms; few tables are still being written)

    waiting.wait(path, seconds=seconds, report=_report)


def _report(line: str) -> None:
    tell(f"hccl-tools: {line}")


def load_file(
    path: str,
    choice: TableChoice,
    env: Mapping[str, str],
    *,
    on_this_host: bool = False,
    begin: Callable[[RankTable], None] | None = None,
) -> JobTable:
    """Read a table and check it for the job's product and variables.

    ``on_this_host`` tells whether the job uses the NPUs of this host; ``begin`` is called with the table
    before it is judged.

    Raises:
        LaunchError: The file cannot be read, or the table has errors; some of them cannot be ignored.
    """
    left: list[str] = []
    try:
        source: str | bytes = path
        if choice.exclude:
            from hccl_tools.files import remainder  # noqa: PLC0415  (10 ms; few jobs leave hosts out)

            source, *left = remainder.of_file(path, choice.exclude, product=choice.product)
        loaded = loading.load(
            source, product=choice.product, ignore=choice.ignore, env=env, on_this_host=on_this_host,
            begin=begin,
            name=f"{path} without {', '.join(map(str, choice.exclude))}" if choice.exclude else None,
        )  # fmt: skip
    except (InputError, TableError) as error:
        raise LaunchError(error.head, hint=error.hint, lines=error.lines) from error
    _require_ranks(loaded.table, path)
    notes = (*left, *(f"{path}: {warning}" for warning in loaded.warnings))
    shown = "standard input" if path == "-" else os.path.abspath(path)
    table, data = loaded.table, loaded.data
    if table.format == "group_list":
        table, data = _as_1_0(table)
    return JobTable(shown, table, data, loaded.product, loaded.product_reason, notes)


def _require_ranks(table: RankTable, path: str) -> None:
    """Refuse a table that does not number its ranks and devices; only ignored rules let such a table pass."""
    count = len(table.rank_numbers)
    ranks = sorted(rank for rank in table.rank_numbers if rank is not None)
    if ranks != [*range(count)] or None in table.device_numbers:
        raise LaunchError(
            f"{path}: `launch` needs the rank ids 0 to {count - 1}, each once, "
            "and a number as device id of each",
            hint="correct the table; ignored rules do not change this",
        )


def _as_1_0(table: RankTable) -> tuple[RankTable, bytes]:
    """Convert a group_list to the 1.0 table that HCCL derives from it; instances of a server are combined.

    The ranks' copy omits keys that HCCL does not read; the table here keeps pod names to identify this host.
    """
    from hccl_tools.transform import conversion  # noqa: PLC0415  (0.5 ms; a group_list)

    made = conversion.convert(table, to="1.0")
    servers = [replace(server, fields={}) for server in made.servers]
    columns = {key: made.columns[key] for key in _COLUMNS if key in made.columns}
    plain = replace(made, servers=servers, columns=columns, fields={})
    return made, "".join(formats.write(plain)).encode()
