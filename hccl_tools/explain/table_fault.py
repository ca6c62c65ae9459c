"""What is wrong with a rank table that HCCL refused: a file, or the text in its message."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.diagnostics import render
from hccl_tools.diagnostics.hint_files import with_files
from hccl_tools.document import links
from hccl_tools.errors import InputError
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import operand
from hccl_tools.processes import run_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.explain.cause import Cause
    from hccl_tools.explain.sources import Source

#: Folders of logs, and files there, in which a rank table is looked for; its bytes.
_MOST_FOLDERS, _MOST_FILES, _LARGEST = 64, 64, 4 << 20
_TABLE_FAULTS = ("HCM004", "HCM014", "HCM017")
#: The messages of HCCL's table parser begin so.
_TABLE_PARSER = "HCM4"


def with_fault(found: list[Cause], table: str | None, sources: Sequence[Source] = ()) -> list[Cause]:
    """Add what ``validate`` finds in the table to a first cause that is about the table.

    Args:
        table: The file; without it the table in the line of the cause, as CANN 8 and older print it, or the
            only table beside the logs.
        sources: The logs.
    """
    message = found[0].message if found else None
    if message is None or (message.id not in _TABLE_FAULTS and not message.id.startswith(_TABLE_PARSER)):
        return found
    seen = found[0].seen
    printed = seen.event.fields.get("table", "") if seen is not None else ""
    is_typed = table is not None
    if table is None and not printed:
        table = _beside(sources)
    if table is not None:
        reason = _fault_in_file(table, is_typed=is_typed)
    else:
        reason = _fault_in_line(printed) if printed else ""
    return [found[0]._replace(reason=reason), *found[1:]] if reason else found


def _beside(sources: Sequence[Source]) -> str | None:
    """Return the rank table in the folders of the logs or above them; None if none is there, or several."""
    own = dict.fromkeys(os.path.dirname(one.path) for one in sources if os.path.isfile(one.path))
    folders = list(own)
    if len(folders) > 1:
        folders.insert(0, os.path.commonpath([os.path.abspath(folder) for folder in folders]))
    found: dict[bytes, str] = {}
    for folder in folders[:_MOST_FOLDERS]:
        try:
            names = sorted(name for name in os.listdir(folder or ".") if name.lower().endswith(".json"))
        except OSError:
            continue
        for name in names[:_MOST_FILES]:
            path = os.path.join(folder, name)
            path = path if run_files.find(path) else os.path.relpath(path)
            # A link in a folder of another user may lead to any table of this user.
            with suppress(OSError):
                data = _content(path)
                if b'"server_list"' in data or b'"group_list"' in data:
                    found.setdefault(data, path)
    return next(iter(found.values())) if len(found) == 1 else None


def _content(path: str) -> bytes:
    """Return the content of a small file, b"" of a larger one."""
    with open(open_file(path), "rb") as file:
        data = file.read(_LARGEST + 1)
    return data if len(data) <= _LARGEST else b""


def open_file(path: str) -> int:
    """Open a file that is in a held folder, or to which no link of another user leads.

    Raises:
        OSError: It does not exist, cannot be read, or is refused.
    """
    if run_files.find(path):
        return run_files.open_read(path)
    with links.Entry(path, owners=links.this_user_and_root()) as entry:
        descriptor = entry.open(os.O_RDONLY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), path)
    return descriptor


def opened(table: str, *, is_typed: bool = True) -> str:
    """Return a path that stays the same file, even if the table of a run is replaced in the meantime.

    No table is read through a link of another user. One that the user has typed may be a pipe.

    Raises:
        InputError: The file cannot be opened.
    """
    try:
        if is_typed and run_files.find(table) is None:
            with suppress(FileNotFoundError), links.Entry(table, owners=links.this_user_and_root()):
                return table
            return table  # Its reader says that it does not exist.
        return f"/proc/self/fd/{open_file(table)}"
    except links.ForeignLinkError as error:
        hint = "type the path without the link" if is_typed else None
        raise InputError(f"{table} cannot be read: {error.clause}", hint=hint) from error
    except OSError as error:
        raise InputError(f"{table} cannot be read: {run_files.reason(error)}") from error


def _fault_in_file(table: str, *, is_typed: bool) -> str:
    """Return the first finding of ``validate`` as a clause."""
    path = opened(table, is_typed=is_typed)
    report = _checked(path)
    if report.ok:
        command = f"`hccl-tools validate {operand(table)}`"
        return f"{command} finds no error: try `--local` on the host of the rank"
    return f"the first fault is {''.join(render([report], 'concise')).splitlines()[0].replace(path, table)}"


def _fault_in_line(text: str) -> str:
    """Return what ``validate`` says about a table, as a clause; "" if the text is not a whole table.

    Args:
        text: The table as JSON, which the line may cut off.
    """
    report = _checked(text.encode())
    if report.format is None or report.document is None or report.document.problem is not None:
        return ""
    if report.errors:
        first = report.errors[0]
        more = "" if first.hint is None else f" ({with_files(first.hint, report)})"
        return f"the table in this line: {first.rule.id} {first.message}, {first.pointer}{more}"
    return _ranks(report)


def _checked(source: str | bytes) -> Report:
    from hccl_tools.validation.checker import validate  # noqa: PLC0415  (23 ms; few causes have a table)

    return validate(source)


def _ranks(report: Report) -> str:
    if report.table is None:
        return ""
    ranks = sorted(rank for rank in report.table.rank_numbers if rank is not None)
    devices = [device for device in report.table.device_numbers if device is not None]
    if not ranks:
        return ""
    which, on = ("rank", "device") if len(ranks) == 1 else ("ranks", "devices")
    listed = number_list.fold(sorted(set(devices))) if devices else "unknown"
    return f"the table in this line has {which} {number_list.fold(ranks)}, on {on} {listed}"
