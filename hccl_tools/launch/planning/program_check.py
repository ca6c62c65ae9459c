"""Check that the script, module or program of the ranks exists, without importing or running it."""

from __future__ import annotations

import os
import shlex
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.launch.planning import script_kind
from hccl_tools.notation.phrases import EXAMPLE_PROGRAM, operand
from hccl_tools.programs.lookup import ProgramMissingError, ProgramRefusedError, on_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.request import Program

#: Entries of a folder that are compared with the name of a script.
_MOST_LOOKED_AT = 1000
#: Time limit for the check by the ranks' Python, in seconds.
_ANSWER_SECONDS = 30.0
#: The check that the ranks' Python runs. It may not find the submodules of a package that sets its own
#: ``__path__``, or of a module that replaces another module (``os.path``).
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


def check(program: Program, environ: Mapping[str, str], *, python: str | None = None) -> None:
    """Check that the script or program exists, or that the ranks' ``python``, if given, finds the module.

    Raises:
        ProgramMissingError: The script, program or module does not exist.
        ProgramRefusedError: The script, program or module cannot be run or read.
    """
    name = program.argv[0]
    if program.kind == "module":
        if python is not None:
            _check_module(name, environ, python)
    elif program.kind == "program":
        _check_executable(name, environ)
    else:
        _check_script(program.argv, environ)


def _check_script(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    name = argv[0]
    if not os.path.exists(name):
        looked = f"looked for {os.path.abspath(name)}"
        if name == EXAMPLE_PROGRAM:
            looked += (
                f"; in printed commands, {name} stands for your own program: name yours, or try the ranks "
                "with `--no-python env` in its place"
            )
        hint = looked
        if script := _misspelt(name):
            hint = f'did you mean "{script}"?'
        elif on_path(name, environ):
            hint = f"`--no-python {shlex.join(argv)}` starts the program of that name"
        raise ProgramMissingError(f'the script "{name}" does not exist', hint=hint)
    is_package = os.path.isdir(name) and os.path.exists(os.path.join(name, "__main__.py"))
    if os.path.isdir(name) and not is_package:
        raise ProgramRefusedError(
            f'"{name}" is a directory without __main__.py', hint="give the path of a script"
        )
    if not os.access(name, os.R_OK):
        raise ProgramRefusedError(
            f'the script "{name}" is not readable by this user',
            hint=f"its owner allows it with `chmod a+r {operand(name)}`",
        )
    script_kind.require_python(argv)


def _misspelt(name: str) -> str:
    """Return the script of the folder that a name means: without its ``.py``, or misspelt; "" if none."""
    if os.path.isfile(f"{name}.py"):
        return f"{name}.py"
    folder, typed = os.path.split(name)
    if not typed.endswith(".py"):
        return ""
    from difflib import get_close_matches  # noqa: PLC0415  (1.1 ms; only for a name that is wrong)

    try:
        with os.scandir(folder or ".") as entries:
            scripts = [one.name for one in islice(entries, _MOST_LOOKED_AT) if one.name.endswith(".py")]
    except OSError:
        return ""
    stems = [one.removesuffix(".py") for one in scripts]
    alike = get_close_matches(typed.removesuffix(".py"), stems, n=1)
    return os.path.join(folder, f"{alike[0]}.py") if alike else ""


def _check_module(name: str, environ: Mapping[str, str], python: str) -> None:
    if name.endswith(".py") and os.path.isfile(name):
        raise ProgramRefusedError(f'-m "{name}": this is a script, not a module', hint="leave -m out")
    problem = module_problem(name, python, environ)
    if problem is None:
        return
    if problem.startswith("no module"):
        raise ProgramMissingError(
            f'the module "{name}" does not exist: {python} finds {problem}',
            hint="the search covers this folder, PYTHONPATH and the packages of that Python",
        )
    raise ProgramRefusedError(f'-m "{name}" cannot be run: {problem}', hint="give a module of the package")


def _check_executable(name: str, environ: Mapping[str, str]) -> None:
    if on_path(name, environ) is not None:
        return
    if os.path.exists(name):
        raise ProgramRefusedError(
            f'"{name}" is not executable',
            hint=f"`chmod +x {operand(name)}`, or start it with its interpreter",
        )
    raise ProgramMissingError(f'the program "{name}" does not exist', hint="give a path, or a name on PATH")


def module_problem(name: str, python: str, environ: Mapping[str, str]) -> str | None:
    """Return why ``python -m NAME`` would fail, as a phrase; ``None`` if it may start."""
    if _is_local_file(name, environ):
        return None
    import subprocess  # noqa: PLC0415  (2 ms; not for a module that is a local file)

    from hccl_tools.programs import bounded_run  # noqa: PLC0415  (2 ms)

    try:
        asked = bounded_run.run([python, "-c", _ASK, name], _ANSWER_SECONDS, environ)
    except (OSError, subprocess.SubprocessError):
        return None
    answer = asked.output.strip() if asked.code == 0 else ""
    if answer == "package":
        return f"{name} is a package without __main__"
    return answer if answer.startswith("no module") else None


def _is_local_file(name: str, environ: Mapping[str, str]) -> bool:
    inside = name.replace(".", "/")
    folders = [""] if not environ.get("PYTHONSAFEPATH") else []
    folders += [folder for folder in environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return any(
        os.path.isfile(os.path.join(folder, inside + ending))
        for folder in folders
        for ending in (".py", "/__main__.py")
    )
