"""Start modules of this package in further processes, without modules of the current folder.

``python -m`` and ``python -c`` look for modules in the current folder first. Other users may be able to write
to it: their ``json.py`` would then run as this user. ``-P`` needs Python 3.11, and ``-I`` ignores PYTHONPATH.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from hccl_tools.version import IMPORT_ROOT

_START = "from hccl_tools.own_python import run; run()"


def command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of this package with this Python.

    Args:
        module: Its name as for ``python -m``; its function ``main`` is called. Command lines show it.
        arguments: The arguments of the module.
    """
    return [sys.executable, "-c", _with_package(_START), module, *arguments]


def script(program: str) -> list[str]:
    """Return the command line that runs the text of a program that imports this package."""
    return [sys.executable, "-c", _with_package(program)]


def without_current_folder(program: str) -> str:
    """Return the text of a program for ``python -c`` that imports nothing from the current folder."""
    return f"import sys; sys.path[:] = filter(None, sys.path); {program}"


def _with_package(program: str) -> str:
    """Return the same for a program that imports this package, as it is in this process."""
    # The folder comes first only if it does so here, as in a checkout: site-packages is the last one.
    first = f"{IMPORT_ROOT!r}, " if sys.path[:1] == [IMPORT_ROOT] else ""
    return f"import sys; sys.path[:] = [{first}*filter(None, sys.path), {IMPORT_ROOT!r}]; {program}"


def run() -> None:
    """Run the module that the first argument names, and exit: the other end of ``command``."""
    module = import_module(sys.argv.pop(1))
    if hasattr(module, "__path__"):
        module = import_module(f"{module.__name__}.__main__")
    sys.exit(module.main())


def typed(*arguments: str) -> str:
    """Return the command line of ``hccl-tools`` for a user to type: with the full path of the script.

    sudo and other hosts may have another PATH.
    """
    import shlex  # noqa: PLC0415  (2 ms; few commands print one)

    path = f"{sys.executable.rpartition('/')[0]}/hccl-tools"
    words = [path, *arguments] if os.access(path, os.X_OK) else command("hccl_tools", *arguments)
    return shlex.join(words)


def typed_rank() -> list[str]:
    """Return the words with which a user starts a rank in a process of mpirun or srun.

    Where `python` on PATH is not the one that has this package, the rank still uses that of PATH.
    """
    module = ["-m", "hccl_tools.launch.rank"]
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    first = next((one for one in folders if os.access(f"{one}/python", os.X_OK)), None)
    if first is None:
        return [sys.executable, *module]
    own = os.stat(sys.executable.rpartition("/")[0])  # noqa: PTH116  (pathlib is not loaded for it)
    if os.path.samestat(os.stat(first or "."), own):  # noqa: PTH116  (as above)
        return ["python", *module]
    return [sys.executable, *module, "--python", "python"]
