"""Make, check and run Ascend HCCL rank tables.

The names below are the public library; each loads its module on first use, so that importing the package
costs nothing.
"""

import sys
from importlib import import_module

from hccl_tools.version import IMPORT_ROOT, __version__

# `python -m` looks in the current folder first, where other users may have put modules, and imports this
# package before anything else. The folder stays if this package is in it, as in a checkout.
if sys.argv[:1] == ["-m"] and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    sys.path[:1] = [entry for entry in sys.path[:1] if entry == IMPORT_ROOT]

TYPE_CHECKING = False  # not imported from typing, which the shim does not load; see records
if TYPE_CHECKING:
    from hccl_tools.diagnostics.diagnostic import Diagnostic, Report
    from hccl_tools.launch.current import CurrentRank, current_rank
    from hccl_tools.launch.spawn.api import spawn
    from hccl_tools.launch.spawn.errors import RankFailedError
    from hccl_tools.table.model import RankTable
    from hccl_tools.transform.conversion import convert
    from hccl_tools.transform.merging import merge
    from hccl_tools.validation.checker import validate

_HOMES = {
    "CurrentRank": "hccl_tools.launch.current",
    "Diagnostic": "hccl_tools.diagnostics.diagnostic",
    "RankFailedError": "hccl_tools.launch.spawn.errors",
    "RankTable": "hccl_tools.table.model",
    "Report": "hccl_tools.diagnostics.diagnostic",
    "convert": "hccl_tools.transform.conversion",
    "current_rank": "hccl_tools.launch.current",
    "merge": "hccl_tools.transform.merging",
    "spawn": "hccl_tools.launch.spawn.api",
    "validate": "hccl_tools.validation.checker",
}

__all__ = [
    "CurrentRank", "Diagnostic", "RankFailedError", "RankTable", "Report", "__version__", "convert",
    "current_rank", "merge", "spawn", "validate",
]  # fmt: skip


if not TYPE_CHECKING:  # with __getattr__, a type checker accepts every name

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'hccl_tools' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(home), name)
        return value


def __dir__() -> "list[str]":
    return sorted(__all__)
