"""Where on this machine the facts are looked for: file tree, environment, time given to a tool."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.programs.lookup import is_program, on_path

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Another place than ``/`` under which ``/dev``, ``/etc``, ``/sys`` and ``/usr`` of the host are found: in a
#: container, the folder where the host's tree is mounted.
ROOT_VARIABLE = "HCCL_TOOLS_ROOT"
#: Seconds a tool may take for one answer before it is ended.
TOOL_TIMEOUT = 20.0


class Site(NamedTuple):
    """One host to look at.

    ``hccn_tool``, ``hccn_conf`` and ``rootinfo`` are what the user named in place of the usual ones;
    ``tool_timeout`` is in seconds.
    """

    environ: Mapping[str, str] = os.environ
    hccn_tool: str | None = None
    hccn_conf: str | None = None
    tool_timeout: float = TOOL_TIMEOUT
    rootinfo: str | None = None

    def path(self, absolute: str) -> str:
        """Return where a file of the host is found; ``absolute`` is its usual place."""
        root = self.environ.get(ROOT_VARIABLE, "")
        return root.rstrip("/") + absolute if root else absolute

    def program(self, name: str, *elsewhere: str) -> str | None:
        """Return the path of a program: the first on PATH, else the first of the usual places, else None."""
        there = on_path(name, self.environ)
        return there or next((place for place in map(self.path, elsewhere) if is_program(place)), None)
