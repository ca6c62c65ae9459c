"""``hccl-tools`` and ``python -m hccl_tools``: the command line, and the options of the original script.

Users of ``hccl_tools.py`` type ``python -m hccl_tools --device_num "[0,8)"``: options without a command mean
``gen``, unless only other commands have the first one.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from _thread import RLock
from importlib import import_module
from types import ModuleType

#: Objects between two runs of the garbage collector. With Python's 700 it runs sixty times while a command is
#: loaded, a twentieth of the time until the ranks of a job start.
_COLLECT_AFTER = 50_000
#: Exit code after Ctrl-C.
_INTERRUPTED = 130


class _LoadedOnUse(ModuleType):
    """A module that is loaded when a name in it is first used, and is then like any other."""

    _lock = RLock()

    def __init__(self, name: str, **known: object) -> None:
        """Begin with names that need no loading."""
        super().__init__(name)
        vars(self).update(known)

    def __getattr__(self, name: str) -> object:
        """Load the module for a name; `from` asks for the path of a package first."""
        if name == "__path__":
            raise AttributeError(name)
        with self._lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            if self.__class__ is _LoadedOnUse:
                vars(self).update(vars(import_module(self.__name__)))
                self.__class__ = ModuleType  # type: ignore[assignment]
        return getattr(self, name)


def prepare() -> None:
    """Tune the garbage collector, lose no Ctrl-C, and load less, before the command line is loaded."""
    sys.unraisablehook = _report_unraisable
    gc.set_threshold(_COLLECT_AFTER)
    # Python collects garbage once more when it exits, which takes milliseconds and frees nothing of use.
    atexit.register(gc.freeze)
    # click imports it for the texts of help: with Python's parser and tokenizer, 3 ms and 1 MB.
    sys.modules.setdefault("inspect", _LoadedOnUse("inspect"))
    # click's uuid asks it for the name of the system; a dozen patterns, 1 ms.
    sys.modules.setdefault("platform", _LoadedOnUse("platform", system=lambda: os.uname().sysname))


def _report_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt this process again if Python has dropped Ctrl-C, as in a callback at the end of an import.

    Other exceptions are reported as usual.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    from hccl_tools import dropped_interrupt  # noqa: PLC0415  (0.7 ms; rare)

    dropped_interrupt.repeat_after(_report_unraisable.__code__)


def main(*, like_original: bool = False) -> None:
    """Run the command line of ``hccl-tools``, or with the options of the original script as well."""
    prepare()
    try:
        from hccl_tools.cli import main as command_line  # noqa: PLC0415  (after prepare)

        command_line(like_original=like_original)
    except KeyboardInterrupt:  # only during loading; later the command line handles it
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main(like_original=True)
