"""Find the Python of the ranks and its frameworks, and choose the start method for them."""

from __future__ import annotations

import os
import re
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch.planning import program_check
from hccl_tools.processes.limits import why_not_started
from hccl_tools.programs.lookup import ProgramMissingError, ProgramRefusedError, on_path
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hccl_tools.launch.model.plan import Start
    from hccl_tools.launch.model.request import Program, ProgramKind, StartChoice

#: The metadata of installed distributions in site-packages, which importlib.metadata reads too.
_INSTALLED = r"([A-Za-z_-]+)-([0-9][^-]*?)(?:-py[0-9.]+)?\.(?:dist|egg)-info"
#: The frameworks in each package: mindspore-ascend and mindspore-gpu are MindSpore's older names. Paddle
#: finds NPUs by its plug-in, the NPU build of older versions without it.
_FRAMEWORKS_OF = {
    "mindspore": ("mindspore",),
    "mindspore_ascend": ("mindspore",),
    "mindspore_gpu": ("mindspore",),
    "mindspore_dev": ("mindspore",),
    "torch": ("torch",),
    "torch_npu": ("torch_npu",),
    "paddlepaddle": ("paddle",),
    "paddlepaddle_gpu": ("paddle",),
    "paddlepaddle_npu": ("paddle", "paddle_custom_npu"),
    "paddle_custom_npu": ("paddle_custom_npu",),
}
#: Where Paddle looks for plug-ins besides its packages.
_PLUG_INS_VARIABLE = "CUSTOM_DEVICE_ROOT"
#: The interpreters that a user may type before the program: ``python``, ``python3``, ``python3.11``.
_PYTHON_NAME = r"(?a)python([23](\.[0-9]+)?)?"
_ASK = "import sys; print(sys.executable); print('\\n'.join(sys.path))"
_MOST_SHOWN = 300
#: Strings of a script without a framework: the variables of torchrun, and those of a job with a rank table.
_TORCHRUNS = rb"""["'](RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT)["']"""
_TABLES = rb"""["'](?:RANK_ID|RANK_SIZE|DEVICE_ID|RANK_TABLE_FILE)["']"""
_SCRIPT_BYTES = 1 << 18


#: The reason for the start ``table`` if no framework is installed.
NO_FRAMEWORK = "the ranks' Python has no MindSpore, torch or paddle"


class Interpreter(NamedTuple):
    """The Python of the ranks: its path, the reason for it, and its frameworks with their versions."""

    path: str
    reason: str
    frameworks: Mapping[str, str] = MappingProxyType({})


def find(program: Program, environ: Mapping[str, str], *, ask: bool) -> Interpreter:
    """Return the interpreter of the ranks, with its frameworks if ``ask`` is set.

    Raises:
        ProgramMissingError: The Python does not exist.
        ProgramRefusedError: The Python is a directory or is not executable.
    """
    python = program.python
    if python is not None:
        path, reason = on_path(python, environ), "--python"
        if path is None:
            if os.path.exists(python):
                what = "a directory" if os.path.isdir(python) else "not executable"
                raise ProgramRefusedError(
                    f'--python: "{python}" is {what}', hint="give the path of a Python interpreter"
                )
            raise ProgramMissingError(
                f'--python: "{python}" does not exist', hint="give a path, or a name on PATH"
            )
    elif program.own_python:
        path, reason = sys.executable, "the one that runs the launcher"
    else:
        path = on_path("python", environ) or on_path("python3", environ)
        reason = "your shell's"
        if path is None:
            path, reason = sys.executable, "the launcher's own, as there is no `python` on PATH"
    if not ask and not _is_shell_script(path):
        return Interpreter(path, reason)
    real, paths = (sys.executable, sys.path) if _is_ours(path) else _asked(path, environ)
    return Interpreter(real or path, reason, installed_frameworks(paths))


def installed_frameworks(paths: Iterable[str]) -> dict[str, str]:
    """Return ``{"mindspore": "2.10.0", "torch": ...}`` for a ``sys.path``, without importing anything.

    This reads what ``importlib.metadata.version`` would read, the names of the installed ``.dist-info``
    directories, for another interpreter and in a twentieth of the time.
    """
    found: dict[str, str] = {}
    for path in paths:
        try:
            names = os.listdir(path)
        except OSError:
            continue
        for name in names:
            if name[:1] in "mMtTp" and (match := re.fullmatch(_INSTALLED, name)):
                package = match[1].lower().replace("-", "_")
                for framework in _FRAMEWORKS_OF.get(package, ()):
                    found.setdefault(framework, match[2])
    return found


def is_at_least(version: str, wanted: tuple[int, int]) -> bool:
    """Return whether a version such as ``2.10.0rc1`` is at least ``(2, 4)``."""
    match = re.match(r"([0-9]+)\.([0-9]+)", version)
    return match is not None and (int(match[1]), int(match[2])) >= wanted


def choose(
    program: Program,
    start: StartChoice,
    environ: Mapping[str, str],
    *,
    engine_starts_mpi: bool,
    has_table: bool,
    is_part: bool = False,
) -> tuple[Interpreter, Start, str]:
    """Return the ranks' Python, how the framework finds its peers, and the reason for this start.

    ``engine_starts_mpi`` tells whether the engine starts MPI processes for a job without a table. With
    ``is_part``, the launcher of the whole job has chosen the start and the port.

    Raises:
        ProgramMissingError: The Python does not exist.
        ProgramRefusedError: The Python is a directory or is not executable.
    """
    mpi_ranks = engine_starts_mpi and not has_table
    plain = program.kind == "program" and not has_table and not start.cpu
    settled = start.method or ("mpi" if mpi_ranks else "table" if plain else None)
    # With an MPI start on the CPU, an installed MindSpore needs its scheduler. What the user has chosen may
    # not suit the frameworks, and an installed Paddle needs a rendezvous port under each start.
    typed = bool(start.method) and not plain and not is_part
    ask = settled is None or (settled == "mpi" and start.cpu) or typed
    python = find(program, environ, ask=ask)
    if settled is None:
        chosen, reason = choose_start(python.frameworks, cpu=start.cpu)
        if reason == NO_FRAMEWORK and (variable := _torchruns_variable(program)):
            return python, "torch", f"{program.argv[0]} reads {variable}, as torchrun sets it"
        return python, chosen, reason
    reason = "--start" if start.method else "ranks are MPI processes" if mpi_ranks else "a plain program"
    return python, settled, reason


def choose_start(frameworks: Mapping[str, str], *, cpu: bool) -> tuple[Start, str]:
    """Return the start for ``--start auto`` for the frameworks of the ranks' Python, and the reason.

    MindSpore has precedence if several frameworks are installed: rank tables are its format.
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
        return "torch", f"paddle {frameworks['paddle']}, which uses a rendezvous port as torch does"
    return "table", NO_FRAMEWORK


def _torchruns_variable(program: Program) -> str:
    """Return a variable of torchrun that a script reads; "" if none, or if it reads those of a table."""
    if program.kind != "script":
        return ""
    text = program_check.beginning(program.argv[0], _SCRIPT_BYTES)
    found = re.search(_TORCHRUNS, text)
    return found[1].decode() if found and not re.search(_TABLES, text) else ""


def warnings(python: Interpreter, start: Start, environ: Mapping[str, str], *, cpu: bool) -> list[str]:
    """Return notes for the user if the ranks' frameworks do not suit the start or the devices."""
    found = python.frameworks
    if found and start == "cluster" and "mindspore" not in found:
        others = " and ".join(f"{name} {version}" for name, version in sorted(found.items()))
        lacks = f"--start cluster is for MindSpore, which {python.path} lacks (it has {others})"
        return [f"{lacks}: leave --start out, or select another Python with --python"]
    has_plug_in = "paddle_custom_npu" in found or environ.get(_PLUG_INS_VARIABLE)
    if "paddle" in found and not ({"mindspore", "torch"} & found.keys() or cpu or has_plug_in):
        lacks = f"paddle {found['paddle']} of the ranks knows no NPU: paddle-custom-npu is not installed"
        return [f"{lacks} for {python.path}; --cpu rehearses on the CPU"]
    return []


def command(program: Program, python: str) -> tuple[str, ...]:
    """Return the argv of a rank."""
    if program.kind == "program":
        return program.argv
    return (python, *(("-m",) if program.kind == "module" else ()), *program.argv)


def _is_ours(path: str) -> bool:
    ours = sys.executable
    same_place = os.path.realpath(os.path.dirname(path)) == os.path.realpath(os.path.dirname(ours))
    return same_place and os.path.realpath(path) == os.path.realpath(ours)


def _is_shell_script(path: str) -> bool:
    """Return whether a Python is a wrapper script (pyenv's wrapper adds 0.1 s to every start)."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def _asked(path: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Run an interpreter to get its own path and its ``sys.path``."""
    try:
        done = program_check.ask_python([path, "-c", _ASK], environ)
    except BlockingIOError as error:
        why = why_not_started(error.errno or 0)
        raise LaunchError(f"the ranks' Python {path} does not report its packages: {why}") from error
    except OSError as error:
        raise _not_running(path, str(error)) from error
    if done is None:
        raise _not_running(path, f"no answer within {program_check.ANSWER_SECONDS} s")
    answer = done.output.splitlines()
    if done.code or not answer:
        lines = done.errors.strip().splitlines() or [f"exit code {done.code}, without a message"]
        # A traceback ends with the reason; other errors (pyenv's) begin with the reason, and advice follows.
        raise _not_running(path, lines[-1] if lines[0].startswith("Traceback") else lines[0])
    return answer[0], answer[1:]


def _not_running(path: str, reason: str) -> ProgramRefusedError:
    return ProgramRefusedError(
        f"the ranks' Python {path} does not run: {reason[:_MOST_SHOWN]}",
        hint="use another interpreter with --python",
    )


def split_typed_python(
    kind: ProgramKind, program: tuple[str, ...], python: str | None
) -> tuple[ProgramKind, tuple[str, ...], str | None]:
    """Return kind, program and Python; an interpreter before the program is split off.

    ``program`` includes its arguments: ``python -u train.py --epochs 3``.

    Raises:
        UsageError: ``--python`` names another interpreter, or the interpreter has an option that the
            ranks would not get.
    """
    name = program[0] if program else ""
    if kind != "script" or not re.fullmatch(_PYTHON_NAME, os.path.basename(name)) or not _is_program(name):
        return kind, program, python
    if python not in {None, name}:
        raise UsageError(f"--python {python}, but {name} precedes the program", hint="leave one of them out")
    # -u is dropped: output is always unbuffered.
    rest = program[2:] if program[1:2] == ("-u",) else program[1:]
    if rest[:1] == ("-m",):
        kind, rest = "module", rest[1:]
    if not rest or rest[0].startswith("-"):
        what = f"{name} {rest[0]}" if rest else name
        raise UsageError(
            f"{what}: only -u and -m are allowed between {name} and the program",
            hint=f"--no-python {name} ... starts {name} like any other program",
        )
    return kind, rest, name


def _is_program(name: str) -> bool:
    return os.access(name, os.X_OK) if "/" in name else not os.path.exists(name)
