"""Environment variables that several parts of the launcher set and read."""

from __future__ import annotations

from hccl_tools.records import NamedTuple

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Where the launcher listens: for other hosts key, port and addresses, separated by ``@``, with ``STDOUT``
#: after the addresses if agents write to standard output; for shims the name of a local socket.
LAUNCHER_VARIABLE = "HCCL_TOOLS_LAUNCHER"
STDOUT = "stdout"
#: The ``--rank-table`` value for a table that the launcher sends.
TABLE_FROM_LAUNCHER = "@launcher"
#: The directory in which CANN writes the logs of a process. CANN creates the directory.
LOG_PATH_VARIABLE = "ASCEND_PROCESS_LOG_PATH"
#: The file that a rank touches to show that it makes progress; see ``CurrentRank.heartbeat``.
HEARTBEAT_VARIABLE = "HCCL_TOOLS_HEARTBEAT"
#: The number of restarts of the job before this start; the second one is torch's name.
RESTART_VARIABLE = "HCCL_TOOLS_RESTART"
TORCH_RESTART_VARIABLE = "TORCHELASTIC_RESTART_COUNT"


def of_restart(environment: Mapping[str, str], restart: int) -> dict[str, str]:
    """Return the variables for a start after ``restart`` restarts; variables that are not set stay unset."""
    counted = {RESTART_VARIABLE, TORCH_RESTART_VARIABLE} & environment.keys()
    return {**environment, **dict.fromkeys(counted, str(restart))}


class Inheritance(NamedTuple):
    """Which variables a process does not inherit: names, prefixes of names, and exceptions to these."""

    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()

    def removes(self, name: str) -> bool:
        """Return whether a process does not inherit the variable."""
        if name in self.names:
            return True
        return name.startswith(self.prefixes) and not name.startswith(self.exceptions)


def composed(
    environ: Mapping[str, str], inheritance: Inheritance, common: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of one process."""
    inherited = {name: value for name, value in environ.items() if not inheritance.removes(name)}
    return {**inherited, **common, **own}
