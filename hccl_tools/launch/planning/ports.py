"""The rendezvous port of a job's ranks."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.host import site_defaults
from hccl_tools.host.host_ports import DEVICE_PORT, is_free
from hccl_tools.host.site_defaults import START_PORT
from hccl_tools.launch.planning import environment
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.processes import run_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.planning.placement import RankPlacement

#: The default for jobs on several hosts, so that the hosts need not agree on a port.
DEFAULT_PORT = 18118
#: The port at which launchers with different ``--start-port`` find each other.
DISCOVERY_PORT = 18117
#: The range to choose from: excludes MindSpore's 8118, torch's 29500, HCCL's 16666 and 60000-60031.
FIRST = 10000
LAST = 19999
#: The variable of Paddle's launcher for the maximum length of a variable in bytes.
_LIMIT_VARIABLE = "PADDLE_ENV_LIMIT_LEN"
_FLAGS = "FLAGS_START_PORT"
_LOCAL_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
_TAKEN = frozenset({DEFAULT_PORT, DISCOVERY_PORT, DEVICE_PORT})


def free_port() -> int:
    """Return a free port of 10000-19999, below the range of ports for outgoing connections.

    Raises:
        UsageError: No port of the range is free.
    """
    span = LAST - FIRST + 1
    # A random start avoids collisions of two launches in the same second.
    first = int.from_bytes(os.urandom(4), "little") % span
    for step in range(span):
        port = FIRST + (first + step) % span
        if port not in _TAKEN and is_free(port):
            return port
    raise UsageError(
        f"no port of {FIRST}-{LAST} is free on this host", hint="specify a port: --start-port PORT"
    )


def wait_for_port_file(path: str, *, seconds: float) -> int:
    """Wait for the file to which rank 0 writes its port, and return that port.

    Raises:
        UsageError: The file was not written in time.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if run_files.status(path):
            with open(run_files.open_read(path), encoding="ascii") as file:
                return int(file.read())
        time.sleep(0.005)
    raise UsageError(f"rank 0 did not publish its port within {seconds:g} s", hint=f"see {path}")


def choose(
    start_port: int | None, environ: Mapping[str, str], *, several_hosts: bool, ranks_meet: bool
) -> tuple[int, list[str]]:
    """Return the rendezvous port of a job's ranks (0 if they need none) and notes about that port.

    Raises:
        UsageError: A variable with the port is not a port number, or no port is free.
    """
    port, source = chosen_port(start_port, environ, several_hosts=several_hosts)
    if port is None and not several_hosts:
        return (free_port() if ranks_meet else 0), []
    port = port or DEFAULT_PORT
    warnings = [f"{warning} ({source})" for warning in port_warnings(port, several_hosts=several_hosts)]
    of_site = [f"start port {port} ({source})"] if source.startswith(START_PORT) else []
    return port, of_site + warnings


def chosen_port(
    asked: int | None, environ: Mapping[str, str], *, several_hosts: bool = True
) -> tuple[int | None, str]:
    """Return the port that the user has chosen, ``None`` without one, and its source.

    The default of a site is for jobs on several hosts: on one host each job takes a free port.

    Raises:
        UsageError: HCCL_TOOLS_START_PORT or FLAGS_START_PORT is not a port number.
    """
    if asked is not None:
        return asked, "--start-port"
    names = _variables(environ) if several_hosts else (_FLAGS,)
    name = next((variable for variable in names if environ.get(variable)), None)
    if name is None:
        return None, "the default"
    source = site_defaults.origin(name, environ)
    port = whole_number(environ[name])
    if port is None or not 1024 <= port < 65536:
        raise UsageError(f'{source}="{environ[name]}" is not a port', hint="use a number from 1024 to 65535")
    return port, source


def _variables(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the variables with the port, the first first: the user's own precede the file of the site."""
    of_site = site_defaults.is_from_file(START_PORT, environ)
    return (_FLAGS, START_PORT) if of_site else (START_PORT, _FLAGS)


def endpoints(
    placements: Sequence[RankPlacement], *, master: str, port: int, servers: int
) -> tuple[str, ...]:
    """Return the endpoint (address:port) of each rank for paddle; rank 0 has the rendezvous address.

    The ranks of each server have consecutive ports from ``port``; ``port`` 0 gives an empty tuple.
    In a job on one server, all endpoints have the address ``master``.
    """
    if not port:
        return ()
    found, taken, first = [], dict[int, int](), placements[0].server_index
    for placement in placements:
        server = placement.server_index if servers > 1 else first
        host = master if server == first else placement.host
        place = taken[server] = taken.get(server, -1) + 1
        found.append(f"{host}:{port + place}")
    return tuple(found)


def endpoints_limit(environ: Mapping[str, str]) -> int:
    """Return the maximum length of the list of endpoints in a variable, in bytes, as Paddle's launcher does.

    Raises:
        UsageError: PADDLE_ENV_LIMIT_LEN is not a number.
    """
    text = environ.get(_LIMIT_VARIABLE)
    if text is None:
        return environment.ENDPOINTS_LIMIT
    number = whole_number(text)
    if number is None:
        raise UsageError(
            f'{_LIMIT_VARIABLE}="{text}" is not a number of bytes',
            hint=f"unset it: the default is {environment.ENDPOINTS_LIMIT}",
        )
    return min(number, environment.LONGEST_VALUE)


def port_warnings(port: int, *, several_hosts: bool) -> list[str]:
    """Return warnings about a port that the hosts of a job listen on or connect to."""
    found = []
    if several_hosts and not FIRST <= port <= LAST + 1:
        found.append(
            f"port {port} is outside 10000-20000, which administrators usually open for jobs on several hosts"
        )
    if (used := _local_range()) and used[0] <= port <= used[1]:
        found.append(
            f"port {port} is in {used[0]}-{used[1]}, the range for outgoing connections "
            "(ip_local_port_range): another connection may be using it"
        )
    return found


def _local_range() -> tuple[int, int] | None:
    try:
        with open(_LOCAL_RANGE, encoding="ascii") as file:
            first, last = file.read().split()
    except (OSError, ValueError):
        return None
    return int(first), int(last)
