"""Whether ``python -m NAME`` will find its module: asked before the first rank, and nothing is imported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS = 30.0
#: What the ranks' Python is asked. A package that makes its own ``__path__``, or a module that stands for one
#: (``os.path``), may hold what is not seen here.
_ASK = """\
import sys
def find(name, path):
    found = (finder.find_spec(name, path) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)
def look(parts):
    path = None
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        parent = None if depth == 1 else spec
        spec = find(name, path)
        if spec is None:
            if parent is not None and parent.origin and b"__path__" in open(parent.origin, "rb").read():
                return "unknown"
            return "no module " + name
        path = spec.submodule_search_locations
        if path is None and depth < len(parts):
            return "unknown"
    if path is not None and find(".".join([*parts, "__main__"]), path) is None:
        return "package"
    return "found"
print(look(sys.argv[1].split(".")))
"""


def problem(name: str, python: str, environ: Mapping[str, str]) -> str | None:
    """Return why ``python -m NAME`` would not start, as a phrase; ``None`` if it would, or nobody can tell.

    Args:
        name: The module, ``package.module``.
        python: The ranks' interpreter.
        environ: The ranks' environment: PYTHONPATH counts.
    """
    if _lies_there(name, environ):
        return None
    import subprocess  # noqa: PLC0415  (a user's own module lies in the folder, and has been seen)

    try:
        asked = subprocess.run(
            [python, "-c", _ASK, name],
            env=dict(environ), capture_output=True, text=True, timeout=_SECONDS, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    answer = asked.stdout.strip()
    if answer == "package":
        return f"{name} is a package without __main__"
    return answer if answer.startswith("no module") else None


def _lies_there(name: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a module is a file in this folder or in one of PYTHONPATH's."""
    inside = name.replace(".", "/")
    folders = [""] if not environ.get("PYTHONSAFEPATH") else []
    folders += [folder for folder in environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return any(
        os.path.isfile(os.path.join(folder, inside + ending))
        for folder in folders
        for ending in (".py", "/__main__.py")
    )
