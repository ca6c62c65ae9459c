"""The command blocks of a page of the documentation, and what a reader sees who types them.

A block in ``bash`` is typed; the block in ``text`` below it is what the reader sees. A comment before a block
changes that: ``<!-- exit code: 1 -->``, ``<!-- typed on: 2 hosts -->`` (at the same time; what is seen is
that of the first), or ``<!-- not run: WHY -->``. Blocks of ``DATA`` show a file.

Comments at the beginning of a page state where its blocks are typed: ``<!-- folder: examples/tables -->``
in a copy of that folder, ``<!-- hosts: a2 -->`` on the first of three hosts with eight devices of that
product each, ``<!-- also: mpirun -->`` where that program is on PATH, too.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_SETTING = re.compile(r"^<!-- (folder|hosts|also): (\S+) -->$", re.MULTILINE)
#: Kinds of blocks that show a file or a part of it, and are not typed.
DATA = ("ini", "json", "python", "yaml")
#: The folder of the reader in the texts of the pages.
READER = "/home/me/tutorial"
#: What differs from run to run -> what stands for it in a comparison.
_VARIABLE = (
    (re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4,32}"), "RUN"),
    (re.compile(r"\b[0-9]+(\.[0-9]+)? +(m?s)\b"), r"N \2"),
    (re.compile(r"\b0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"master_port=[0-9]+"), "master_port=N"),
    (re.compile(r"as a consequence: .*"), "as a consequence: RANKS"),  # some may not have been started yet
    (re.compile(r"\bpid [0-9]+"), "pid N"),
    (re.compile(r"0\.1\.0(\+g[0-9a-f]+)?"), "VERSION"),
)
#: A line of the page that stands for any number of lines.
_ANY = "..."


@dataclass(frozen=True)
class Block:
    """A block to type, and what is seen then.

    Attributes:
        line: Where it begins in the page, from 1.
        seen: The output; ``None`` if the page shows none.
        code: The exit code.
        hosts: On how many hosts it is typed.
        why_not: Why it cannot be run; "" if it is run.
        shown_at: Where the output is in the page, as a range of characters.
    """

    line: int
    typed: str
    seen: str | None
    code: int = 0
    hosts: int = 1
    why_not: str = ""
    shown_at: tuple[int, int] = (0, 0)


def settings(text: str) -> dict[str, str]:
    """Return where the blocks of a page are typed: ``folder``, ``hosts`` and ``also``, if it states them."""
    return dict(_SETTING.findall(text.partition("```")[0]))


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page that are typed, in their order.

    Raises:
        ValueError: A block has another kind, or a comment says something else.
    """
    found = list(_BLOCK.finditer(text))
    for one, below in pairwise([*found, None]):
        assert one is not None
        kind, note = one["kind"], one["note"] or ""
        if kind == "text" or kind in DATA:
            continue
        if kind != "bash":
            raise ValueError(f"a block of the kind {kind!r}: {one['text'][:40]!r}")
        name, _, value = note.partition(": ")
        if name in {"folder", "hosts", "also"}:
            name = value = ""
        if name not in {"", "exit code", "typed on", "not run"} or bool(name) != bool(value):
            raise ValueError(f"unknown comment before a block: {note!r}")
        shown = below if below is not None and below["kind"] == "text" else None
        yield Block(
            text.count("\n", 0, one.start("text")),
            one["text"],
            None if shown is None else shown["text"],
            code=int(value) if name == "exit code" else 0,
            hosts=int(value.partition(" ")[0]) if name == "typed on" else 1,
            why_not=value if name == "not run" else "",
            shown_at=shown.span("text") if shown else (0, 0),
        )


@dataclass(frozen=True)
class Shell:
    """Where blocks are typed.

    Attributes:
        folder: The current folder.
        environ: All variables.
        on: Returns the command line that runs another one, given as words, on a host (``Host.command``).
        paths: Names of folders in the texts of the pages -> those that take their place.
    """

    folder: Path
    environ: Mapping[str, str]
    on: Callable[..., list[str]] | None = None
    paths: Mapping[str, str] = field(default_factory=dict)

    def start(self, block: Block) -> subprocess.Popen[str]:
        """Start to type a block."""
        text = block.typed
        for name, path in self.paths.items():
            text = text.replace(name, path)
        argv = ["bash", "-e", "-c", text]
        return subprocess.Popen(
            self.on(argv, cwd=self.folder) if self.on else argv,
            cwd=self.folder, env=dict(self.environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def end(self, started: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for the end of a block; return its exit code and what is seen, as the pages write it."""
        seen, _ = started.communicate(timeout=120)
        for name, path in self.paths.items():
            seen = seen.replace(path, name)
        if root := self.environ.get("HCCL_TOOLS_ROOT"):
            seen = seen.replace(root, "")
        return started.returncode, seen.replace(str(self.folder), READER)


def typed(block: Block, shells: Sequence[Shell]) -> tuple[int, str]:
    """Type a block into as many shells as it states; return exit code and output of the first."""
    started = [shell.start(block) for shell in shells[: block.hosts]]
    ended = [shell.end(one) for shell, one in zip(shells, started, strict=False)]
    return max(code for code, _ in ended), ended[0][1]


def is_shown(page: str, seen: str) -> bool:
    """Return whether a page shows what is seen: equal but for what differs from run to run."""
    parts = [_constant(part) for part in re.split(rf"^{re.escape(_ANY)}\n", page, flags=re.MULTILINE)]
    return re.fullmatch(r"(?:.*\n)*?".join(map(re.escape, parts)), _constant(seen)) is not None


def corrected(text: str, outputs: Mapping[int, str]) -> str:
    """Return a page that shows what is seen: by the line of the block, in ``outputs``, where it differs."""
    parts, at = [], 0
    for block in blocks(text):
        if block.line in outputs and block.seen is not None:
            start, end = block.shown_at
            parts += [text[at:start], outputs[block.line]]
            at = end
    return "".join([*parts, text[at:]])


def _constant(text: str) -> str:
    for pattern, stands_for in _VARIABLE:
        text = pattern.sub(stands_for, text)
    return text
