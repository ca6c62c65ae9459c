"""Read the copies of a table on this host: at the path of the job, and those that variables name."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from hccl_tools.host.machine import state

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The variables with the path of a table that programs read.
TABLE_VARIABLES = ("RANK_TABLE_FILE", "RANKTABLEFILE", "MINDSPORE_HCCL_CONFIG_PATH")
#: The names of a table in a folder that such a variable names.
_TABLE_NAMES = ("jobstart_hccl.json", "hccl.json")
_LARGEST_TABLE = 1 << 28


def states_of_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the state of the tables in variables: ``file``, ``directory``, ``absent`` or ``unreadable``."""
    return {name: _state(path) for name, path in _named(environ).items()}


def hashes_of_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes of the tables in variables, without those that cannot be read."""
    found = {name: sha256(_file(path)) for name, path in _named(environ).items()}
    return {name: text for name, text in found.items() if text}


def sha256(path: str) -> str:
    """Return the hash of the content of a table, ``""`` if it cannot be read.

    HCCL compares tables as it writes them after it has read them: layout and order of keys do not count. A
    file that is not JSON is compared byte for byte.
    """
    if not os.path.isfile(path):
        return ""
    with suppress(OSError), open(path, "rb") as file:
        return hashlib.sha256(_content(file.read(_LARGEST_TABLE))).hexdigest()
    return ""


def _content(raw: bytes) -> bytes:
    try:
        return json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return raw


def _named(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the paths in variables. A relative one depends on the folder in which the job starts."""
    named = {name: environ[name] for name in TABLE_VARIABLES if os.path.isabs(environ.get(name, ""))}
    return {name: path for name, path in named.items() if "\0" not in path}


def _file(path: str) -> str:
    inside = (os.path.join(path, name) for name in _TABLE_NAMES) if os.path.isdir(path) else ()
    return next(filter(os.path.exists, inside), path)


def _state(path: str) -> str:
    file = _file(path)
    return "unreadable" if os.path.isfile(file) and not os.access(file, os.R_OK) else state(file)
