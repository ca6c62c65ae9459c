"""Check and write the root info and the endpoint files of an Ascend 950 host, all of them or none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools.document.reading import read_file
from hccl_tools.document.writing import write_together
from hccl_tools.errors import TableError
from hccl_tools.formats.endpoint_file import device_of, files_in
from hccl_tools.notation.phrases import count
from hccl_tools.transform import host_files
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.transform.host_files import Entry


def endpoint_paths(folder: str, values: Mapping[int, Entry]) -> dict[str, Entry]:
    """Return the endpoint files of devices by path."""
    return {str(Path(folder, f"ub_endpoint_npu_{number}.json")): one for number, one in values.items()}


def left_over(folder: str, values: Mapping[int, Entry]) -> list[str]:
    """Return the names of endpoint files in a folder that are for other devices."""
    return [Path(file).name for file in files_in(folder) if device_of(file) not in values]


def check(values: Mapping[str, Entry]) -> None:
    """Check new files as ``validate`` does, except for the comparison with files on disk.

    Raises:
        TableError: A file has an error; the message has the first one.
    """
    for path, value in values.items():
        report = validate(host_files.text(value).encode(), product="a5")
        if not report.ok:
            first = report.errors[0]
            place = f" ({first.pointer})" if first.pointer else ""
            where = f"{Path(path).name}{place} [{first.rule.id}]"
            raise TableError(f"no file is written: {where}: {first.message}", hint=first.hint)


def save(values: Mapping[str, Entry], *, force: bool) -> str:
    """Write all files, and return what was done as a phrase.

    Raises:
        TableError: A file exists with other contents and ``force`` is off.
        InputError: An existing file cannot be read.
        WriteError: A file cannot be written; all files are unchanged.
    """
    texts = {path: host_files.text(value) for path, value in values.items()}
    # Not by pathlib, which raises an error on a name that is too long; `write_together` names such a file.
    existing = [path for path in texts if os.path.exists(path) and not os.path.isdir(path)]  # noqa: PTH110, PTH112
    other = [path for path in existing if read_file(path) != texts[path].encode()]
    if other and not force:
        more = f" (and {count(len(other) - 1, 'more file')})" if len(other) > 1 else ""
        raise TableError(
            f"no file is written: {other[0]} exists with other contents{more}",
            hint="--force replaces the files",
        )
    if len(existing) == len(texts) and not other:
        return f"{count(len(texts), 'file')} already up to date"
    write_together(texts, create=not force)
    return f"wrote {count(len(texts), 'file')}"
