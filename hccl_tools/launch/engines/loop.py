"""The guide's loop over RANK_ID and DEVICE_ID: the supervisor of this host starts the ranks itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan


def command(plan: Plan) -> list[str]:  # noqa: ARG001  (what every engine is called with)
    """Return nothing: no other program is needed on this host."""
    return []
