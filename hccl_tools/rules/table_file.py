"""What readers require of the file of a table. This module declares no rules."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import operand
from hccl_tools.rules.registry import Finding, Input

if TYPE_CHECKING:
    from collections.abc import Iterator


def name_of(subject: Input) -> str:
    """Return the name of the file for a shell command."""
    return operand(Path(subject.path or "").name)


def mode_of(subject: Input) -> int | None:
    """Return the permissions of the file, None for standard input and tables in memory."""
    if subject.path is None or not Path(subject.path).is_file():
        return None
    return stat.S_IMODE(Path(subject.path).stat().st_mode)


def link(subject: Input) -> Iterator[Finding]:
    """Yield a finding if the file is a symbolic link."""
    if subject.path is not None and Path(subject.path).is_symlink():
        yield Finding(
            "the file is a symbolic link",
            hint=f"name the file itself, or copy it: `cp -L {name_of(subject)} FILE`",
        )


def unreadable(subject: Input) -> Iterator[Finding]:
    """Yield a finding if the owner of the file may not read it; root reads it all the same."""
    mode = mode_of(subject)
    if mode is not None and not mode & stat.S_IRUSR:
        yield Finding("the owner of the file may not read it", hint=f"chmod u+r {name_of(subject)}")
