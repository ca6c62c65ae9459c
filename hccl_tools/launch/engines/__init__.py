"""The programs that start a plan or ask hosts: an :class:`~hccl_tools.launch.engines.engine.Engine` per name.

A new engine is a module of this package and a line in ``ENGINES``. A program registers its own engine with
:func:`register` and then calls ``hccl_tools.__main__.main()``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_tools.launch.engines.engine import Engine
    from hccl_tools.launch.model.plan import Plan

#: Name of an engine and of its module -> its class. A module is imported when it is used.
ENGINES = {"loop": "Loop", "mpirun": "Mpirun", "slurm": "Slurm", "ssh": "Ssh"}
#: loop has no other host, and mpirun reaches all hosts or none.
_ONLY_HERE, _ALL_OR_NONE = ("loop",), ("mpirun",)
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


def asking_hosts(*, one_by_one: bool = False) -> tuple[str, ...]:
    """Return the names of the engines that ask hosts, or those that reach each host alone.

    No module of ``ENGINES`` is imported: the options of a command list the names.
    """
    left_out = (*_ONLY_HERE, *(_ALL_OR_NONE if one_by_one else ()))
    others = (name for name, engine in _REGISTERED.items() if name not in ENGINES and engine.asks_hosts)
    return (*(name for name in ENGINES if name not in left_out), *others)
