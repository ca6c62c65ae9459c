"""The programs that start a plan: one :class:`~hccl_tools.launch.engines.engine.Engine` per name.

A new engine is a module of this package and a line in ``ENGINES``. A program registers its own engine with
:func:`register` and then calls ``hccl_tools.__main__.main()``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.programs.lookup import ProgramMissingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.launch.engines.engine import Engine
    from hccl_tools.launch.model.plan import Plan

#: Name of an engine and of its module -> its class. A module is imported when it is used.
ENGINES = {"loop": "Loop", "mpirun": "Mpirun", "slurm": "Slurm", "ssh": "Ssh"}
_REGISTERED: dict[str, Engine] = {}


def names() -> tuple[str, ...]:
    """Return the names of all engines, for ``--engine``."""
    return tuple({**ENGINES, **_REGISTERED})


def register(engine: Engine) -> None:
    """Add an engine, or replace the engine of the same name.

    Call this function before the command line is read. Other hosts need none: the engine starts them.
    """
    _REGISTERED[engine.name] = engine


def get(name: str) -> Engine:
    """Return the engine with a name."""
    if name not in _REGISTERED:
        register(getattr(import_module(f"{__name__}.{name}"), ENGINES[name])())
    return _REGISTERED[name]


def of(plan: Plan) -> Engine:
    """Return the engine of a plan, for the implementation that was found."""
    return get(plan.engine).of_flavour(plan.engine_flavour)


def for_several_hosts(environ: Mapping[str, str]) -> tuple[Engine, str]:
    """Return the default engine for several hosts, and why it is used."""
    if get("slurm").is_inside(environ):
        return get("slurm"), "inside a Slurm allocation"
    try:
        return get("mpirun"), f"{get('mpirun').locate(environ, None, ()).program} is on PATH"
    except ProgramMissingError:
        return get("ssh"), "no mpirun on PATH"
    except LaunchError as error:
        return get("ssh"), error.message
