"""The folder whose ``sitecustomize`` lets the Python of a rank write its stacks on a signal."""

from __future__ import annotations

import os

from hccl_tools.version import IMPORT_ROOT

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Asks a rank for the dump of its flight recorder. The first and last real-time signals have other uses.
RECORDER_SIGNAL = 59
#: Has the number of this signal in the environment of a rank with a flight recorder.
RECORDER_VARIABLE = "HCCL_TOOLS_RECORDER"
FOLDER = os.path.join(IMPORT_ROOT, "hccl_tools", "launch", "rank_site")


def is_used(environment: Mapping[str, str]) -> bool:
    """Return whether a Python with these variables imports the ``sitecustomize`` of the folder."""
    return FOLDER in environment.get("PYTHONPATH", "").split(os.pathsep)


def python_path(own: str) -> str:
    """Return the PYTHONPATH that has the folder before the user's ``own`` folders."""
    others = [folder for folder in own.split(os.pathsep) if folder != FOLDER] if own else []
    return os.pathsep.join([FOLDER, *others])
