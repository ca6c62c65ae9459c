"""The host to examine: its variables, and the paths of its files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The folder that contains ``/dev``, ``/etc``, ``/sys`` and ``/usr`` of the host in place of ``/``: in a
#: container, where the host's file tree is mounted.
ROOT_VARIABLE = "HCCL_TOOLS_ROOT"
#: Variables in which platforms give a container its host's address (ModelArts; Kubernetes manifests).
HOST_VARIABLES = ("MA_CURRENT_HOST_IP", "HOST_IP")
#: The variables above, and the variable with the pod's own address.
ADDRESS_VARIABLES = (*HOST_VARIABLES, "POD_IP")
#: Seconds that a tool may take for one answer.
TOOL_TIMEOUT = 20.0


class Site(NamedTuple):
    """The host to examine.

    ``hccn_tool``, ``hccn_conf`` and ``rootinfo`` override the default paths; ``tool_timeout`` is in seconds.
    """

    environ: Mapping[str, str] = os.environ
    hccn_tool: str | None = None
    hccn_conf: str | None = None
    tool_timeout: float = TOOL_TIMEOUT
    rootinfo: str | None = None

    def path(self, absolute: str) -> str:
        """Return the path of a file of the host; ``absolute`` is its default path."""
        root = self.environ.get(ROOT_VARIABLE, "")
        return root.rstrip("/") + absolute if root else absolute
