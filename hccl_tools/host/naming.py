"""Look up the names of hosts: that of this host, and those in variables. A broken DNS does not block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.programs import resolving
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

#: Seconds for all lookups; those that take longer are unknown.
_TIME = 3.0
#: The variables with the name or address of the host that leads a job.
LEADERS = ("MASTER_ADDR", "MASTER_IP", "MS_SCHED_HOST", "CM_CHIEF_IP")
#: Beside each of them the variable with its port.
PORTS = {"MASTER_ADDR": "MASTER_PORT", "MASTER_IP": "MASTER_PORT", "MS_SCHED_HOST": "MS_SCHED_PORT"}
_URL = r"[A-Za-z][A-Za-z0-9+.-]*://(\[[^\]]*\]|[^:/\s]*)(?::([^/\s]*))?"


class HostInVariable(NamedTuple):
    """A host, and a port or ``""``, that a variable names."""

    variable: str
    host: str
    port: str


def named_hosts(environ: Mapping[str, str]) -> Iterator[HostInVariable]:
    """Yield the hosts that variables name: MASTER_ADDR and the like, and those with ``tcp://HOST:PORT``."""
    for variable in LEADERS:
        if text := environ.get(variable, "").strip():
            yield HostInVariable(variable, text, environ.get(PORTS.get(variable, ""), ""))
    for variable, text in environ.items():
        found = re.match(_URL, text.strip())
        if found is not None and found[1]:
            yield HostInVariable(variable, found[1].strip("[]"), found[2] or "")


def looked_up(names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each name: none for a name without addresses; an unknown one is left out."""
    return resolving.looked_up(names, _TIME)
