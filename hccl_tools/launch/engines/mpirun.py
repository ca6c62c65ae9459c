"""``--engine mpirun``: the mpirun or mpiexec of Open MPI or MPICH."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.engines.engine import Located
from hccl_tools.launch.engines.mpi import MpiEngine
from hccl_tools.launch.engines.mpich import Mpich
from hccl_tools.launch.engines.openmpi import OpenMpi
from hccl_tools.programs.mpirun import find_mpirun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Keyed by flavour with or without the version.
_FLAVOURS: dict[str, MpiEngine] = {
    "openmpi": OpenMpi(),
    "openmpi-5": OpenMpi(kill_timeout=20),
    "mpich": Mpich(),
}


class Mpirun(MpiEngine):
    """Finds the program; the engine of its flavour composes the options."""

    def of_flavour(self, flavour: str) -> MpiEngine:
        """Return the engine for a flavour such as ``openmpi-5``."""
        return _FLAVOURS.get(flavour) or _FLAVOURS[flavour.partition("-")[0]]

    def locate(self, environ: Mapping[str, str], wanted: str | None, hosts: Sequence[str]) -> Located:  # noqa: ARG002
        """Return the wanted mpirun, or the first on PATH."""
        found = find_mpirun(environ, wanted)
        return Located(found.path, found.flavour)
