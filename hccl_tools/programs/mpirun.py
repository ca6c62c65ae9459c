"""Find mpirun or mpiexec, and determine its MPI.

Open MPI and MPICH install the same two names. The first directory of PATH with either name counts, as for
the user's shell; ``--mpirun`` selects another program, for example Debian's ``mpiexec.mpich``.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING

from hccl_tools import own_python
from hccl_tools.errors import LaunchError
from hccl_tools.programs import bounded_run
from hccl_tools.programs.lookup import MPIRUN, ProgramMissingError, on_path
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = ("mpirun", "mpiexec")
_ANSWER_SECONDS, _MOST_SHOWN = 60, 300
_OPENMPI_NAMES = (*_NAMES, "orterun", "prterun")
#: What ``--version`` prints, by flavour.
_OPENMPI = re.compile(r"\((?:Open MPI|OpenRTE)\) ([0-9]+)\.")
_MPICH = re.compile(r"^HYDRA build details:\n\s+Version:\s+([0-9]+)\.", re.MULTILINE)
_SYSTEM_FOLDERS = ("/bin", "/usr/bin")


class Mpirun(NamedTuple):
    """An mpirun or mpiexec: its absolute path and flavour (``openmpi-4``, ``openmpi-5``, ``mpich-4``)."""

    path: str
    flavour: str

    @property
    def is_open_mpi(self) -> bool:
        """Whether the program belongs to Open MPI."""
        return self.flavour.startswith("openmpi")

    @property
    def ssh_parameter(self) -> str:
        """The MCA parameter of Open MPI for the ssh command."""
        return "plm_rsh_agent" if self.flavour == "openmpi-4" else "plm_ssh_agent"

    @property
    def label_options(self) -> tuple[str, ...]:
        """The options with which Open MPI labels each line of a process: ``[1,3]<stdout>:TEXT``."""
        return ("--tag-output",) if self.flavour == "openmpi-4" else ("--output", "tag")

    @property
    def daemon(self) -> str:
        """The program of Open MPI that mpirun starts on other hosts: a path, or a name on their PATH."""
        name = "orted" if self.flavour == "openmpi-4" else "prted"
        return name if self.prefix is None else f"{self.prefix}/bin/{name}"

    @property
    def prefix(self) -> str | None:
        """The installation directory for ``--prefix``; None for the system's Open MPI.

        A non-interactive ssh has only the system's folders on its PATH.
        """
        folder = os.path.dirname(self.path)
        if folder in _SYSTEM_FOLDERS or os.path.basename(folder) != "bin":
            return None
        return os.path.dirname(folder)


def find_mpirun(environ: Mapping[str, str], wanted: str | None = None) -> Mpirun:
    """Return the mpirun to use.

    Args:
        wanted: The value of ``--mpirun``, a path or a name on PATH.

    Raises:
        ProgramMissingError: Neither mpirun nor mpiexec exists, or the wanted program does not exist.
        LaunchError: The program belongs to neither Open MPI nor MPICH.
    """
    path = on_path(wanted, environ) if wanted else _first_on_path(environ)
    if path is None:
        raise ProgramMissingError(
            f'--mpirun: "{wanted}" does not exist' if wanted else "--engine mpirun: no mpirun on PATH",
            hint="specify a path, or a name on PATH"
            if wanted
            else f"install one: {MPIRUN}; or use --engine loop",
        )
    try:
        done = bounded_run.run([path, "--version"], _ANSWER_SECONDS, environ)
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {_ANSWER_SECONDS} s"
        raise LaunchError(
            f"{path} --version: {reason}", hint="specify another mpirun with --mpirun"
        ) from error
    for name, pattern in (("openmpi", _OPENMPI), ("mpich", _MPICH)):
        if match := pattern.search(done.output):
            return Mpirun(path, f"{name}-{match[1]}")
    printed = (done.output.strip() or done.errors.strip() or "nothing").splitlines()[0][:_MOST_SHOWN]
    raise LaunchError(
        f"{path} is neither Open MPI nor MPICH; only these are supported (--version prints: {printed})",
        hint="specify another mpirun with --mpirun, or start the ranks yourself: "
        f"`mpirun -n 2 {shlex.join(own_python.typed_rank())} train.py`",
    )


def is_open_mpi_launcher(path: str) -> bool:
    """Return whether a program has one of the names of Open MPI's mpirun."""
    return os.path.basename(path).startswith(_OPENMPI_NAMES)


def _first_on_path(environ: Mapping[str, str]) -> str | None:
    """Return the first mpirun or mpiexec: both names are looked up in a directory before the next one."""
    for directory in environ.get("PATH", os.defpath).split(os.pathsep):
        for name in _NAMES:
            if found := on_path(os.path.join(directory or ".", name), environ):
                return found
    return None
