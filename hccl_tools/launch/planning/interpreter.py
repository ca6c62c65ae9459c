"""Which Python runs the ranks, which frameworks it holds, and whether the program is there at all."""

from __future__ import annotations

import os
import re
import sys
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from hccl_tools.errors import LaunchError
from hccl_tools.launch.processes.process_limit import why_not_started
from hccl_tools.programs.lookup import ProgramMissingError, ProgramRefusedError, on_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import ProgramKind

#: What an installed distribution leaves in site-packages: this is where importlib.metadata looks as well.
_INSTALLED = re.compile(
    r"(mindspore(?:[-_](?:ascend|gpu|dev))?|torch|torch[-_]npu|paddlepaddle(?:[-_](?:gpu|npu))?)-([0-9][^-]*?)(?:-py[0-9.]+)?\.(?:dist|egg)-info",
    re.IGNORECASE,
)
_ASK = "import sys; print(sys.executable); print('\\n'.join(sys.path))"


#: Why a start is ``table`` where no framework is installed.
NO_FRAMEWORK = "the ranks' Python has no MindSpore, torch or paddle"


class Interpreter(NamedTuple):
    """The Python of the ranks: its path, why that one, and the versions of the frameworks it can import."""

    path: str
    reason: str
    frameworks: Mapping[str, str] = MappingProxyType({})


def find(python: str | None, *, own: bool, environ: Mapping[str, str], ask: bool) -> Interpreter:
    """Return the interpreter of the ranks.

    Args:
        python: What ``--python`` names, a path or a name on PATH.
        own: Whether the interpreter that runs us was chosen by the user (``python -m hccl_tools.launch``).
        environ: The caller's environment, for PATH.
        ask: Whether the frameworks have to be known.

    Raises:
        ProgramMissingError: There is no such Python.
        ProgramRefusedError: What is there is no program.
    """
    if python is not None:
        path, reason = on_path(python, environ), "--python"
        if path is None:
            if os.path.exists(python):
                what = "a directory" if os.path.isdir(python) else "not executable"
                raise ProgramRefusedError(f'--python: "{python}" is {what}', hint="name a Python")
            raise ProgramMissingError(
                f'--python: "{python}" is not there', hint="give a path, or a name on PATH"
            )
    elif own:
        path, reason = sys.executable, "the one that runs the launcher"
    else:
        path = on_path("python", environ) or on_path("python3", environ)
        reason = "your shell's"
        if path is None:
            path, reason = sys.executable, "the launcher's own, as PATH holds none"
    if not ask and not _is_shell_script(path):
        return Interpreter(path, reason)
    real, paths = (sys.executable, sys.path) if _is_ours(path) else _asked(path, environ)
    return Interpreter(real or path, reason, installed_frameworks(paths))


def installed_frameworks(paths: Iterable[str]) -> dict[str, str]:
    """Return ``{"mindspore": "2.10.0", "torch": ...}`` for a ``sys.path``, without importing anything.

    This reads what ``importlib.metadata.version`` would read, the names of the installed ``.dist-info``
    directories, for an interpreter that is not ours and in a twentieth of the time.
    """
    found: dict[str, str] = {}
    for path in paths:
        try:
            names = os.listdir(path)
        except OSError:
            continue
        for name in names:
            if name[:1] in "mMtTp" and (match := _INSTALLED.fullmatch(name)):
                framework = match[1].lower().replace("-", "_")
                # mindspore-ascend and mindspore-gpu are MindSpore's older package names.
                known = next((one for one in ("mindspore", "paddle") if framework.startswith(one)), framework)
                found.setdefault(known, match[2])
    return found


def is_at_least(version: str, wanted: tuple[int, int]) -> bool:
    """Tell whether a version such as ``2.10.0rc1`` is at least ``(2, 4)``."""
    match = re.match(r"([0-9]+)\.([0-9]+)", version)
    return match is not None and (int(match[1]), int(match[2])) >= wanted


def choose_start(frameworks: Mapping[str, str], *, cpu: bool) -> tuple[Start, str]:
    """Return the start for ``--start auto`` from what the ranks' Python holds, and why.

    MindSpore comes first where both are installed: this is a tool for its rank tables.
    """
    mindspore = frameworks.get("mindspore")
    if mindspore is not None:
        if cpu or is_at_least(mindspore, (2, 4)):
            return "cluster", f"MindSpore {mindspore}"
        return "table", f"MindSpore {mindspore}, older than 2.4"
    torch = frameworks.get("torch_npu") or frameworks.get("torch")
    if torch is not None:
        return "torch", f"torch {torch}"
    if "paddle" in frameworks:
        return "torch", f"paddle {frameworks['paddle']}, whose ranks meet as torch's do"
    return "table", NO_FRAMEWORK


def command(kind: ProgramKind, program: tuple[str, ...], python: str) -> tuple[str, ...]:
    """Return the argv of a rank."""
    if kind == "program":
        return program
    if kind == "module":
        return (python, "-m", *program)
    return (python, *program)


def check_program(
    kind: ProgramKind, program: tuple[str, ...], environ: Mapping[str, str], *, python: str | None = None
) -> None:
    """Make sure that the script, module or program is there.

    Args:
        kind: What the program is.
        program: It and its arguments.
        environ: The ranks' environment.
        python: The ranks' interpreter, which is asked for a module; without it a module is its own business.

    Raises:
        ProgramMissingError: It is not there.
        ProgramRefusedError: It cannot be run, or read.
    """
    name = program[0]
    if kind == "module":
        if python is not None:
            _check_module(name, environ, python)
        return
    if kind == "program":
        _check_executable(name, environ)
        return
    if not os.path.exists(name):
        looked = f"looked for {os.path.abspath(name)}"
        hint = f"--no-python starts the program {name}" if on_path(name, environ) else looked
        raise ProgramMissingError(f'the script "{name}" is not there', hint=hint)
    is_package = os.path.isdir(name) and os.path.exists(os.path.join(name, "__main__.py"))
    if os.path.isdir(name) and not is_package:
        raise ProgramRefusedError(
            f'"{name}" is a directory without __main__.py', hint="name the script inside it"
        )
    if not os.access(name, os.R_OK):
        raise ProgramRefusedError(f'the script "{name}" may not be read by this user')


def _check_module(name: str, environ: Mapping[str, str], python: str) -> None:
    from hccl_tools.launch.planning import module_lookup  # noqa: PLC0415  (for -m only)

    problem = module_lookup.problem(name, python, environ)
    if problem is None:
        return
    if problem.startswith("no module"):
        raise ProgramMissingError(
            f'the module "{name}" is not there: {python} finds {problem}',
            hint="it is looked for in this folder, PYTHONPATH and what that Python has installed",
        )
    raise ProgramRefusedError(f'-m "{name}" cannot be run: {problem}', hint="name a module of it")


def _check_executable(name: str, environ: Mapping[str, str]) -> None:
    if on_path(name, environ) is not None:
        return
    if os.path.exists(name):
        raise ProgramRefusedError(
            f'"{name}" is not executable', hint=f"`chmod +x {quote(name)}`, or start it with its interpreter"
        )
    raise ProgramMissingError(f'the program "{name}" is not there', hint="give a path, or a name on PATH")


def _is_ours(path: str) -> bool:
    """Tell whether a path is the interpreter that runs us, in the same (virtual) environment."""
    ours = sys.executable
    same_place = os.path.realpath(os.path.dirname(path)) == os.path.realpath(os.path.dirname(ours))
    return same_place and os.path.realpath(path) == os.path.realpath(ours)


def _is_shell_script(path: str) -> bool:
    """Tell whether a Python is a script in front of the real one (pyenv's take 0.1 s at every start)."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def _asked(path: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Ask an interpreter who it really is (a pyenv shim is a slow shell script) and where it imports from."""
    import subprocess  # noqa: PLC0415  (only for an interpreter that is not ours)

    try:
        done = subprocess.run(
            [path, "-c", _ASK], env=dict(environ), capture_output=True, text=True, timeout=30, check=True
        )
    except BlockingIOError as error:
        why = why_not_started(error.errno or 0)
        raise LaunchError(f"the ranks' Python {path} cannot be asked for its packages: {why}") from error
    except (OSError, subprocess.SubprocessError) as error:
        lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines() or [str(error)]
        # A traceback ends with what is wrong; others (pyenv) say that first, and advice after it.
        said = lines[-1] if lines[0].startswith("Traceback") else lines[0]
        raise ProgramRefusedError(
            f"the ranks' Python {path} does not run: {said}",
            hint="name another with --python",
        ) from error
    answer = done.stdout.splitlines()
    return answer[0], answer[1:]
