"""How to reach the hosts of a gathering."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.launch.engines.engine import CONNECT_SECONDS, Reach
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: The engine whose ssh ``--via`` replaces.
VIA_ENGINE = "ssh"
#: Seconds in which all hosts must answer.
TIMEOUT = 60


class GatherOptions(NamedTuple):
    """How to reach the hosts.

    Attributes:
        engine: One of ``engines.asking_hosts``; None for the default.
        seconds: The time limit for all hosts together.
        allow_missing: Whether to continue without the hosts that do not answer.
        via: The words of ``--via``, which replaces ssh; only for the engine ``ssh``.
        answered: Called with each host whose answer has arrived, perhaps by a thread.
        ssh: The user's ssh with its options, as typed; None selects the ssh set for Open MPI, else ``ssh``.
    """

    engine: str | None = None
    seconds: float = TIMEOUT
    allow_missing: bool = False
    ssh: str | None = None
    environ: Mapping[str, str] = os.environ
    via: tuple[str, ...] = ()
    answered: Callable[[str], None] | None = None

    @property
    def connect_seconds(self) -> int:
        """The timeout of a connection, in seconds."""
        return max(1, min(CONNECT_SECONDS, round(self.seconds / 6)))

    @property
    def reach(self) -> Reach:
        """How an engine reaches a host."""
        return Reach(self.environ, self.ssh, self.connect_seconds)
