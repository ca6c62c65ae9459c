"""Load the command line faster: find its modules at once, and load less of Python's library.

A launch has 160 modules of this package. Only the processes of commands use this, and no program that imports
the library.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_OWN = f"{__package__}."


def prepare() -> None:
    """Change how this process imports, before the command line is loaded."""
    sys.meta_path.insert(0, OwnModules)
    # click imports inspect for the texts of help: with Python's parser and tokenizer, 3 ms and 1 MB.
    sys.modules.setdefault("inspect", _Inspect("inspect"))
    # Few calls use these, which dataclasses and this package import.
    for name in ("copy", "shlex", "textwrap"):
        sys.modules.setdefault(name, _LoadedOnUse(name))
    # click's uuid asks it for the name of the system; a dozen patterns, 1 ms.
    sys.modules.setdefault("platform", _LoadedOnUse("platform", system=lambda: os.uname().sysname))


class OwnModules:
    """Finds the source files of this package, 2 ms of a launch faster than Python's finders.

    These list each folder and look for extension modules first. They find what this one does not: the modules
    of an archive.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        """Return where a module is; ``None`` for other packages, and for what is not a source file."""
        if path is None or not name.startswith(_OWN):
            return None
        base = f"{path[0]}/{name.rpartition('.')[2]}"
        for file, folders in ((f"{base}.py", None), (f"{base}/__init__.py", [base])):
            if os.path.isfile(file):
                spec = ModuleSpec(name, SourceFileLoader(name, file), origin=file)
                spec.has_location, spec.submodule_search_locations = True, folders
                return spec
        return None


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
        with _LoadedOnUse._lock:  # Another thread may have loaded it: the class is then another one.
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            if self.__class__ is not ModuleType:
                vars(self).update(vars(import_module(self.__name__)))
                self.__class__ = ModuleType  # type: ignore[assignment]
        return getattr(self, name)


class _Inspect(_LoadedOnUse):
    """``inspect``, which click asks for the help of each option, nearly always one line."""

    def cleandoc(self, text: str) -> str:
        """Return the text as ``inspect.cleandoc`` does, which is loaded for more than one line."""
        if "\n" in text or "\t" in text:
            cleaned: str = _LoadedOnUse.__getattr__(self, "cleandoc")(text)  # type: ignore[operator]
            return cleaned
        return text.lstrip()
