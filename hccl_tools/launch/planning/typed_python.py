"""``python train.py`` in place of ``train.py``: an interpreter that was typed before the program."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import ProgramKind

_PYTHON = re.compile(r"python([23](\.[0-9]+)?)?", re.ASCII)


def split(
    kind: ProgramKind, program: tuple[str, ...], python: str | None
) -> tuple[ProgramKind, tuple[str, ...], str | None]:
    """Return kind, program and Python where an interpreter stands before the program, else what was given.

    Args:
        kind: What the program is.
        program: It and its arguments: ``python -u train.py --epochs 3``.
        python: What ``--python`` names.

    Raises:
        UsageError: ``--python`` names another interpreter, or an option of Python's stands there that the
            ranks would not get.
    """
    name = program[0] if program else ""
    if kind != "script" or not _PYTHON.fullmatch(os.path.basename(name)) or not _is_program(name):
        return kind, program, python
    if python not in {None, name}:
        raise UsageError(f"--python {python}, but {name} stands before the program", hint="leave one out")
    # Output is unbuffered all the same.
    rest = program[2:] if program[1:2] == ("-u",) else program[1:]
    if rest[:1] == ("-m",):
        kind, rest = "module", rest[1:]
    if not rest or rest[0].startswith("-"):
        what = f"{name} {rest[0]}" if rest else name
        raise UsageError(
            f"{what}: only -u and -m can stand between {name} and the program",
            hint=f"--no-python {name} ... starts it as any other program",
        )
    return kind, rest, name


def _is_program(name: str) -> bool:
    """Return whether a name is looked up on PATH, or is the path of a program."""
    return os.access(name, os.X_OK) if "/" in name else not os.path.exists(name)
