"""Check that the script, module or program of the ranks exists, without importing or running it.

Files that are typed in place of a Python script are recognised: tables, other data, shell scripts, programs.
"""

from __future__ import annotations

import os
import re
import shlex
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools import load_part
from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.launch.planning.local_server import this_server
from hccl_tools.notation.phrases import EXAMPLE_PROGRAM, operand
from hccl_tools.programs.lookup import ProgramMissingError, ProgramRefusedError, on_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.request import Program, ProgramKind
    from hccl_tools.launch.planning.suggestions import Suggestions
    from hccl_tools.programs.bounded_run import Ended

#: Bytes of a file that are looked at.
_HEAD = 65_536
_ELF = b"\x7fELF"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Keys, one of which each rank table and service table has.
_TABLE_KEYS = (b'"server_list"', b'"super_pod_list"', b'"rank_list"', b'"group_list"', b'"server_group_list"')
_TABLE = "a rank table"
#: Ends of the names of files that are not programs, and what they are.
_DATA = {
    ".json": "a JSON file",
    ".yaml": "a YAML file",
    ".yml": "a YAML file",
    ".txt": "a text file",
    ".csv": "a CSV file",
    ".toml": "a settings file",
    ".ini": "a settings file",
    ".cfg": "a settings file",
    ".conf": "a settings file",
    ".log": "a log",
}
_SHELL = (".sh", ".bash")
#: Ranks that ``--all-here`` starts without ``--max-ranks``.
_MOST_RANKS = 16
#: A list of devices.
_DEVICES = r"[0-9]{1,4}(?:[-,][0-9]{1,4}){1,64}"
_ASSIGNMENT = r"[A-Za-z_][A-Za-z0-9_]{0,100}="
#: Options with the number of ranks.
_NUMBER = ("-n", "--np", "--worker-num", "--worker_num")

#: Programs and modules that start ranks, whose options ``launch`` accepts too.
_SAME_OPTIONS = {
    "torchrun", "torch.distributed.run", "torch.distributed.launch", "msrun",
    "fleetrun", "paddle.distributed.launch", "paddle.distributed.fleet.launch",
}  # fmt: skip
#: Others: what belongs to them ends where the program begins.
_OTHERS = {
    "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "srun", "prun", "horovodrun",
    "deepspeed", "accelerate", "accelerate.commands.launch", "deepspeed.launcher.runner",
}  # fmt: skip
#: Entries of a folder that are compared with the name of a script.
_MOST_LOOKED_AT = 1000
#: Time limit for the check by the ranks' Python, in seconds.
ANSWER_SECONDS = 30
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


def refuse_word(program: Sequence[str], call: Sequence[str]) -> None:
    """Refuse a number, a list of devices or a second value of an option in place of a script.

    Args:
        program: The file and its arguments.
        call: The command line before the file, for the command to type.

    Raises:
        UsageError: The word is not a program.
    """
    name, *rest = program
    if os.path.exists(name):
        return
    if call[-2:-1] == ("--hosts",) and rest and os.path.exists(rest[0]):
        hosts = shlex.join(["--hosts", f"{call[-1]},{name}"])
        raise UsageError(f'"{name}" is not a program', hint=f"a list of hosts has commas: `{hosts}`")
    if call[-2:-1] == ("--env",) and rest and re.match(_ASSIGNMENT, name):
        raise UsageError(
            f'"{name}" is not a program', hint=f"each variable has its option: `--env {shlex.quote(name)}`"
        )
    is_number = name.isdecimal() and name.isascii()
    given = _names(call) & {*_NUMBER, "--devices", "--rank-table"}
    if rest and not given and (is_number or re.fullmatch(_DEVICES, name)):
        words = [*call, "-n" if is_number else "--devices", name, *rest]
        raise UsageError(f'"{name}" is not a program', hint=f"type `{shlex.join(words)}`")


def refuse_data(program: Sequence[str], call: Sequence[str]) -> None:
    """Refuse a rank table or another data file in place of a script: Python runs JSON without an error.

    Args:
        program: The file and its arguments.
        call: The command line before the file, for the command to type.

    Raises:
        UsageError: The file is not a program.
    """
    name = program[0]
    what = _data(name)
    if what is None:
        return
    if what != _TABLE:
        found = f"is {what}, not a program"
        missing = f"does not exist, and its name is that of {what}, not of a program"
        raise UsageError(
            f'"{name}" {found if os.path.exists(name) else missing}',
            hint="the program follows the options; a rank table needs --rank-table FILE",
        )
    words = _without_number(call)
    place = words.index("--rank-table") + 1 if "--rank-table" in words else len(words)
    if len(program) == 1 and place < len(words) and _is_python(words[place]):
        typed = shlex.join([*words[:place], name, *words[place + 1 :], words[place]])
        raise UsageError(f'"{name}" is a rank table, and {words[place]} a program', hint=f"type `{typed}`")
    if not {"--rank-table", "--rank-table-file"} & _names(words):
        words += ["--rank-table", name]
    options = _names([*words, *program[1:]])
    words += _of_rehearsal(name) if "--cpu" in options and "--all-here" not in options else []
    typed = shlex.join([*words, *(program[1:] or ("train.py",))])
    raise UsageError(f'"{name}" is a rank table, not a program', hint=f"type `{typed}`")


def _of_rehearsal(table_file: str) -> list[str]:
    """Return the options that a rehearsal on this host needs for a table of several or of other hosts."""
    table = suggestions().sound_table(table_file)
    if table is None:
        return []
    try:
        this_server(table, environ=os.environ)
    except LaunchError:
        is_here = False
    else:
        is_here = len(table.servers) == 1
    size = ["--max-ranks", str(len(table))] if len(table) > _MOST_RANKS else []
    return [] if is_here else ["--all-here", *size]


def _without_number(call: Sequence[str]) -> list[str]:
    """Return a command line without the number of ranks, which the table states, and without ``--``."""
    words: list[str] = []
    rest = iter(call)
    for word in rest:
        if word in _NUMBER:
            next(rest, None)
        elif word not in {"--", "--no-table"} and word.partition("=")[0] not in _NUMBER:
            words.append(word)
    return words


def require_python(program: Sequence[str]) -> None:
    """Refuse a shell script or a compiled program in place of a Python script.

    Args:
        program: The file and its arguments.

    Raises:
        ProgramRefusedError: The file is not a Python script.
    """
    name = program[0]
    head = beginning(name)
    if head.startswith(_ELF):
        raise ProgramRefusedError(
            f'"{name}" is a compiled program, not a Python script', hint=_without_python(program)
        )
    interpreter = _interpreter(head)
    if "python" in interpreter or (not interpreter and not name.endswith(_SHELL)):
        return
    kind = (
        "a shell script" if not interpreter or interpreter.endswith("sh") else f"a script for {interpreter}"
    )
    raise ProgramRefusedError(
        f'"{name}" is {kind}, not a Python script', hint=_without_python(program, interpreter or "bash")
    )


def _without_python(program: Sequence[str], interpreter: str = "") -> str:
    name, arguments = program[0], program[1:]
    path = name if "/" in name else f"./{name}"
    is_program = os.access(name, os.X_OK) or not interpreter
    words = [path] if is_program else [interpreter, name]
    return f"`--no-python {shlex.join([*words, *arguments])}` starts it"


def is_table(name: str) -> bool:
    """Return whether a file looks like a rank table."""
    return _data(name) == _TABLE


def _interpreter(head: bytes) -> str:
    """Return the name of the interpreter in the first line, such as ``bash``; "" without one."""
    if not head.startswith(b"#!"):
        return ""
    words = head[2:].partition(b"\n")[0].decode(errors="replace").split()
    names = [os.path.basename(word) for word in words if not word.startswith("-") and "=" not in word]
    if names[:1] == ["env"]:
        names = names[1:]
    return names[0] if names else ""


def _data(name: str) -> str | None:
    """Return what a data file is, as a phrase; ``None`` for a file that may be a program."""
    head = beginning(name).removeprefix(_BYTE_ORDER_MARK).lstrip()
    if head.startswith(b"{") and (any(key in head for key in _TABLE_KEYS) or not _is_python(name)):
        return _TABLE if any(key in head for key in _TABLE_KEYS) else "a JSON file"
    if head.startswith(b"#!"):
        return None
    return next((what for ending, what in _DATA.items() if name.lower().endswith(ending)), None)


def _is_python(name: str) -> bool:
    return name.endswith((".py", ".pyw"))


def _names(options: Sequence[str]) -> set[str]:
    return {option.partition("=")[0].replace("_", "-") for option in options}


def beginning(name: str, size: int = _HEAD) -> bytes:
    """Return the first bytes of a regular file, at most ``size``: to read a pipe would take its content."""
    if not os.path.isfile(name):
        return b""
    try:
        with open(name, "rb") as file:
            return file.read(size)
    except OSError:
        return b""


def refuse(kind: ProgramKind, argv: Sequence[str], call: Sequence[str]) -> None:
    """Refuse a program that is a launcher.

    Args:
        argv: The program and its arguments.
        call: The command line before the program, for the command to type. A ``--`` at its end means that
            the program is what is wanted, and nothing is refused.

    Raises:
        UsageError: The program starts the ranks of a job.
    """
    name = argv[0] if kind == "module" else os.path.basename(argv[0])
    if name not in _SAME_OPTIONS | _OTHERS or call[-1:] == ("--",):
        return
    own = [word for word in call if word not in {"-m", "--module", "--no-python"}]
    rest = argv[1:] if name in _SAME_OPTIONS else _from_script(argv[1:])
    words = [*own, *(rest or ("train.py",))]
    raise UsageError(
        f'"{name}" starts the ranks of a job itself: every rank of `launch` would start a whole job',
        hint=f"leave it out: `{shlex.join(words)}`; `--` before it starts it all the same",
    )


def _from_script(words: Sequence[str]) -> Sequence[str]:
    """Return the words from the first Python script on; () without one."""
    return next((words[at:] for at, word in enumerate(words) if word.endswith(".py")), ())


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
    require_python(argv)


def _misspelt(name: str) -> str:
    """Return the script of the folder that a name means: without its ``.py``, or misspelt; "" if none."""
    if os.path.isfile(f"{name}.py"):
        return f"{name}.py"
    folder, typed = os.path.split(name)
    if not typed.endswith(".py"):
        return ""
    try:
        with os.scandir(folder or ".") as entries:
            scripts = [one.name for one in islice(entries, _MOST_LOOKED_AT) if one.name.endswith(".py")]
    except OSError:
        return ""
    stems = [one.removesuffix(".py") for one in scripts]
    alike = suggestions().get_close_matches(typed.removesuffix(".py"), stems, n=1)
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
    try:
        asked = ask_python([python, "-c", _ASK, name], environ)
    except OSError:
        return None
    answer = asked.output.strip() if asked is not None and asked.code == 0 else ""
    if answer == "package":
        return f"{name} is a package without __main__"
    return answer if answer.startswith("no module") else None


def suggestions() -> type[Suggestions]:
    """Load what finds the right file or table for a refusal."""
    loaded: type[Suggestions] = load_part("launch.planning.suggestions").Suggestions
    return loaded


def ask_python(argv: Sequence[str], environ: Mapping[str, str]) -> Ended | None:
    """Run a Python for an answer; ``None`` if it does not end within ``ANSWER_SECONDS``.

    Raises:
        OSError: It cannot be started.
    """
    from hccl_tools.programs import bounded_run  # noqa: PLC0415  (3 ms; only for a Python or a module that is not ours)

    return bounded_run.answer(argv, ANSWER_SECONDS, environ)


def _is_local_file(name: str, environ: Mapping[str, str]) -> bool:
    inside = name.replace(".", "/")
    folders = [""] if not environ.get("PYTHONSAFEPATH") else []
    folders += [folder for folder in environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return any(
        os.path.isfile(os.path.join(folder, inside + ending))
        for folder in folders
        for ending in (".py", "/__main__.py")
    )
