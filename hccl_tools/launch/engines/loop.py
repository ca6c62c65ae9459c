"""The null engine: this host's supervisor starts the ranks itself, in a loop over RANK_ID and DEVICE_ID."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.launch.engines.engine import Engine

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan, RankProcess


class Loop(Engine):
    """Starts the ranks of this host without another program."""

    name = "loop"
    starts_all_hosts = False
    names_hosts = False

    def processes(self, plan: Plan) -> tuple[RankProcess, ...]:
        """Return the ranks of this host, and the scheduler if it runs here."""
        return plan.local
