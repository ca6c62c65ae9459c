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
    from types import ModuleType

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

#: Parts that few calls need, or only later, with the milliseconds that loading one takes. Each is loaded by
#: its name where a call turns out to need it, as a command is; ``tests/test_architecture.py`` counts them.
_PARTS = frozenset({
    "cli.asked_hosts",  # 18 ms; tables of other hosts
    "cli.chosen_table",  # 9 ms; a table that a variable names
    "cli.completion",  # 14 ms; TAB
    "cli.from_log",  # 12 ms; --from-log
    "cli.gen_host_files",  # 1.8 ms; the files of an Ascend 950 host
    "cli.launch_preflight",  # 49 ms; checks on all hosts
    "cli.launch_printed",  # 25 ms; --dry-run, --emit
    "cli.launch_spares",  # 28 ms; --spares
    "cli.launch_table",  # 31 ms; --hosts, --hostfile
    "cli.usage",  # 33 ms; a wrong call
    "cli.validate_fix",  # 13 ms; --fix
    "doctor.quick",  # 3 ms; a start on devices
    "explain.bundle",  # 3 ms; --bundle
    "files.remainder",  # 14 ms; launch --exclude
    "files.waiting",  # 1.6 ms; launch --wait
    "formats.kubernetes.tables",  # 2 ms; Kubernetes objects
    "launch.cluster.agent",  # 6 ms; the launcher of another host
    "launch.cluster.by_engine",  # 8 ms; a job whose hosts an engine starts
    "launch.cluster.by_hand",  # 13 ms; a job of hosts with typed commands, and a refusal
    "launch.planning.own_table",  # 10 ms; the devices of this host, without a table
    "launch.planning.suggestions",  # 12 ms; a refusal
    "launch.protocol.digests",  # 2 ms; OpenSSL, for jobs of several hosts
    "launch.restart",  # 19 ms; --max-restarts
    "launch.supervise.after_start",  # 0.9 ms; jobs of more than some seconds
    "launch.supervise.supervisor",  # 3 ms; after the checks, or while hccn_tool answers
    "notation.exclusion",  # 0.5 ms; --exclude
    "show.picture.drawing",  # 10 ms; -f svg, -f html
    "validation.host_files",  # 28 ms; files of an Ascend 950 host
    "validation.local_check",  # 1.3 ms; --local
    "validation.non_table_documents",  # 3 ms; documents that are not a table
    "validation.older_formats",  # 3 ms; version 1.1, the lab form
    "validation.repair",  # 28 ms; a table that a reader has refused
    "zh.lines",  # 0.5 ms; --lang zh
})  # fmt: skip

__all__ = [
    "CurrentRank", "Diagnostic", "RankFailedError", "RankTable", "Report", "__version__", "convert",
    "current_rank", "merge", "spawn", "validate",
]  # fmt: skip


def load_part(name: str) -> "ModuleType":
    """Load one of the parts that few calls need, or only later."""
    if name not in _PARTS:
        raise LookupError(f"{name} is not in _PARTS")
    return import_module(f"hccl_tools.{name}")


if not TYPE_CHECKING:  # with __getattr__, a type checker accepts every name

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'hccl_tools' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(home), name)
        return value


def __dir__() -> "list[str]":
    return sorted(__all__)
