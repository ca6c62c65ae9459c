"""What brings a plan to its hosts. Each engine is one pure function, ``command(plan) -> list[str]``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan

_MODULES = {"loop": "loop", "mpirun": "mpirun", "slurm": "slurm"}


def command(plan: Plan) -> list[str]:
    """Return the command line by which the plan's engine starts it; empty for the loop, which needs none."""
    module = import_module(f"hccl_tools.launch.engines.{_MODULES[plan.engine]}")
    found: list[str] = module.command(plan)
    return found
