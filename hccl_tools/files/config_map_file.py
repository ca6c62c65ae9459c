"""The file of a new ConfigMap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.document.reading import read_file
from hccl_tools.document.writing import change_mode, is_folder, write_atomically
from hccl_tools.errors import TableError

if TYPE_CHECKING:
    from hccl_tools.formats.kubernetes.names import ConfigMapName


def target(destination: str | None, names: ConfigMapName) -> str:
    """Return the file for a ConfigMap.

    Args:
        destination: A folder (existing, or with a final slash) or a file; None is the current folder.
    """
    name = f"{names.name}.configmap.json"
    if destination is None:
        return name
    return os.path.join(destination, name) if is_folder(destination) else destination


def save(text: str, path: str, *, force: bool = False, mode: int | None = None) -> str:
    """Write a ConfigMap unless its file is up to date, and return the result as a phrase with the file.

    Args:
        mode: The mode of the file; None for the mode of an existing file, else 0666 minus the umask.

    Raises:
        TableError: The file has other contents and ``force`` is off.
        InputError: The existing file cannot be read.
        WriteError: The file cannot be written; an existing file is unchanged.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        if (content := read_file(path)) == text.encode():
            if mode is not None:
                change_mode(path, mode, content)
            return f"already up to date: {path}"
        if not force:
            raise TableError(
                f"{path} exists and has other contents", hint="--force replaces it, -o writes elsewhere"
            )
    return f"wrote {write_atomically(path, [text], mode=mode, create=not force)}"
