"""The command to type after a table has been written."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hccl_tools.host.simulated_addresses import product_of
from hccl_tools.host.site_defaults import Site
from hccl_tools.host.visible import present
from hccl_tools.notation.phrases import EXAMPLE_PROGRAM, operand
from hccl_tools.table import addresses
from hccl_tools.table.products import assumed_for

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable

#: Ranks that ``launch --all-here`` starts without ``--max-ranks``.
_MOST_RANKS = 16


def launch(
    table: RankTable, path: str, *, product: str | None, service: str | None, simulated: bool = False
) -> str:
    """Return the call of ``launch`` that works for a table on the host where it was written.

    Args:
        product: The product to name; by default that of simulated servers, if it would not be assumed.
        service: The target of ``launch --emit`` for a table that a service reads.
        simulated: Whether the servers are known to be simulated; else their addresses tell.
    """
    is_rehearsed = simulated or is_simulated(table)
    product = product or (simulated_product(table) if is_rehearsed else None)
    words = ["hccl-tools launch --rank-table", operand(path)]
    words += ["--product", product] if product else []
    if service:
        words += ["--no-python --emit", service, "PROGRAM"]
    elif is_rehearsed:
        words += [*_rehearsal(table), EXAMPLE_PROGRAM]
    else:
        # The servers of a 2.0 table are network instances and not hosts.
        several = len(table.servers) > 1 and table.format != "2.0"
        words += [f"--engine ssh {EXAMPLE_PROGRAM}" if several else EXAMPLE_PROGRAM]
    return " ".join(words)


def explained(command: str) -> str:
    """Return the line of the next command; on a terminal, also that its program stands for the user's own."""
    is_example = command.endswith(f" {EXAMPLE_PROGRAM}") and not os.path.lexists(EXAMPLE_PROGRAM)
    note = f"\n  {EXAMPLE_PROGRAM} stands for your own program" if is_example and sys.stderr.isatty() else ""
    return f"next: {command}{note}"


def is_simulated(table: RankTable) -> bool:
    """Return whether the servers of a table have addresses of simulated machines.

    A single loopback address is this host, whose job is a rehearsal if it has no devices.
    """
    names = [server.server_id for server in table.servers]
    if all(map(addresses.is_simulated, names)):
        return True
    return any(map(addresses.is_loopback, names)) and (len(names) > 1 or not _has_devices())


def _has_devices() -> bool:
    return bool(present(Site()))


def simulated_product(table: RankTable) -> str | None:
    """Return the product of simulated servers, if it would not be assumed."""
    found = product_of(table)
    return found.name if found is not None and found is not assumed_for(table.format) else None


def _rehearsal(table: RankTable) -> list[str]:
    """Return the options that start all ranks of a table on this host without NPUs."""
    if len(table.servers) == 1 and addresses.is_loopback(table.servers[0].server_id):
        return ["--cpu"]
    return ["--cpu --all-here", *([f"--max-ranks {len(table)}"] if len(table) > _MOST_RANKS else [])]
