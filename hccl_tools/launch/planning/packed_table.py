"""Pack a rank table into environment variables, which are passed to other hosts without a shared disk."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.model.variables import TABLE_VARIABLE_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Bytes of one variable; Linux allows 128 KiB.
_PART = 100_000


def pack(data: bytes) -> dict[str, str]:
    """Return the variables that hold the whole table."""
    text = base64.b64encode(zlib.compress(data, 9)).decode()
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    return {f"{TABLE_VARIABLE_PREFIX}{number}": part for number, part in enumerate(parts)}


def unpack(environ: Mapping[str, str]) -> bytes:
    """Return the table from the environment.

    Raises:
        LaunchError: The environment does not contain a table.
    """
    parts: list[str] = []
    while part := environ.get(f"{TABLE_VARIABLE_PREFIX}{len(parts)}"):
        parts.append(part)
    if not parts:
        raise LaunchError("the environment does not contain the table: the launching host did not pass it on")
    return zlib.decompress(base64.b64decode("".join(parts)))
