"""Every mpirun of this machine (Open MPI's from the wheel and the system's, MPICH's), and ssh."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Where Debian and Fedora have MPICH's library; mpi4py's wheel looks for libmpi.so.12 in the usual places.
_MPICH_LIBRARIES = ("/usr/lib/*/libmpich.so.12", "/usr/lib64/mpich/lib/libmpi.so.12")


class Mpirun(NamedTuple):
    """One of them; ``is_mpich`` tells its family."""

    path: Path
    is_mpich: bool = False

    def __str__(self) -> str:
        return "mpich" if self.is_mpich else "wheel" if self.path.parent == _BESIDE else "system"

    def ranks(self, count: int, *argv: str) -> list[str]:
        """Return the command line that starts so many MPI processes on this machine, typed by hand."""
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        options = [] if self.is_mpich else ["--oversubscribe", *root]
        return [str(self.path), *options, "-n", str(count), *argv]

    @property
    def for_launch(self) -> list[str]:
        """The options by which ``launch`` takes this one."""
        return ["--engine", "mpirun", "--mpirun", str(self.path)]

    def for_mpi4py(self, folder: Path) -> dict[str, str]:
        """Return the variables by which mpi4py's wheel loads this one's library; ``folder`` is for a link."""
        if not self.is_mpich:
            return {"PATH": f"{self.path.parent}:{os.environ['PATH']}"}
        library = next((path for name in _MPICH_LIBRARIES for path in Path("/").glob(name[1:])), None)
        if library is None:
            pytest.skip("MPICH's library is not where it is looked for")
        (folder / "libmpi.so.12").symlink_to(library)
        return {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": str(folder)}


class Ssh:
    """``--engine ssh``, which starts the same jobs on several hosts without MPI."""

    is_mpich = False
    for_launch = ("--engine", "ssh")

    def __str__(self) -> str:
        return "ssh"


_BESIDE = Path(sys.executable).parent
_ALL = (
    Mpirun(_BESIDE / "mpirun"),
    Mpirun(Path("/usr/bin/mpirun.openmpi")),
    Mpirun(Path("/usr/bin/mpiexec.mpich"), is_mpich=True),
)
MPIRUNS: Sequence[Mpirun] = [mpirun for mpirun in _ALL if mpirun.path.exists()]
every_mpirun = pytest.mark.parametrize(
    "mpirun", MPIRUNS or [pytest.param(None, marks=pytest.mark.skip("no mpirun"))], ids=str
)
#: All that start the supervisors of a job on other hosts from one.
REMOTE_ENGINES: Sequence[Mpirun | Ssh] = [Ssh(), *MPIRUNS]
every_remote_engine = pytest.mark.parametrize("engine", REMOTE_ENGINES, ids=str)
