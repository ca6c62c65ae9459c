"""Convert a function and its arguments to bytes for another interpreter."""

from __future__ import annotations

import functools
import io
import os
import pickle
import sys
from collections.abc import Iterable
from multiprocessing import reduction
from multiprocessing import spawn as preparing
from typing import TYPE_CHECKING, Any

from hccl_tools.launch.spawn.errors import SpawnOptionError

if TYPE_CHECKING:
    from collections.abc import Callable

_TOP_LEVEL = "define the function at the top level of a module or script"


def arguments(args: Any) -> tuple[Any, ...]:
    """Return ``args`` as a tuple.

    Raises:
        SpawnOptionError: ``args`` is not a sequence of arguments; a text would give one argument per letter.
    """
    if isinstance(args, str | bytes) or not isinstance(args, Iterable):
        raise SpawnOptionError(f"args={args!r} is not a sequence of arguments: write args=({args!r},)")
    return tuple(args)


def pickled(func: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    """Return the interpreter state that the child needs, the function and its arguments as bytes.

    Raises:
        SpawnOptionError: The function or an argument cannot be pickled.
    """
    _check_function(func)
    preparation = preparing.get_preparation_data("hccl-tools rank")
    # multiprocessing gives its key only to its own children; the ranks do not use its pipes.
    preparation.pop("authkey", None)
    if not _main_can_be_imported():
        preparation.pop("init_main_from_path", None)
    buffer = io.BytesIO()
    pickle.dump(preparation, buffer)
    try:
        reduction.ForkingPickler(buffer).dump((func, args))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SpawnOptionError(
            f"the function and its arguments must be picklable: {error}", hint=_TOP_LEVEL
        ) from error
    return buffer.getvalue()


def _check_function(func: Any) -> None:
    if not callable(func):
        raise SpawnOptionError(
            f"{func!r} is not a function", hint="spawn(train, args=(3,)), without calling it"
        )
    while isinstance(func, functools.partial):
        func = func.func
    name = getattr(func, "__qualname__", type(func).__qualname__)
    if "<lambda>" in name:
        raise SpawnOptionError("a lambda cannot be sent to another process: it has no name", hint=_TOP_LEVEL)
    if "<locals>" in name:
        raise SpawnOptionError(
            f"{name} cannot be sent to another process: it is defined inside a function", hint=_TOP_LEVEL
        )
    module = getattr(func, "__module__", None) or type(func).__module__
    if module == "__main__" and not _main_can_be_imported():
        where = "was typed into an interactive session, python -c or stdin"
        if getattr(sys.modules["__main__"], "__spec__", None) is not None:
            where = "is defined in the __main__.py of a package"
        raise SpawnOptionError(
            f"{name} {where}, where other processes cannot find it: write it into a file and import it from "
            "there",
            hint="from my_file import " + name,
        )


def _main_can_be_imported() -> bool:
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).rpartition(".")[2] != "__main__"
    path = getattr(main, "__file__", None)
    return path is not None and os.path.exists(path)
