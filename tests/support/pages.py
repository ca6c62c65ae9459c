"""The command blocks of a page of the documentation, and what a reader sees who types them.

A block in ``bash`` is typed; the block in ``text`` below it is what the reader sees. A comment before a block
changes that: ``<!-- exit code: 1 -->``, or ``<!-- not run: WHY -->``.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
#: The folder of the reader in the texts of the pages.
READER = "/home/me/tutorial"
#: What differs from run to run -> what stands for it in a comparison.
_VARIABLE = (
    (re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4,32}"), "RUN"),
    (re.compile(r"after [0-9.]+ s\b"), "after N s"),
    (re.compile(r"\bpid [0-9]+"), "pid N"),
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
        why_not: Why it cannot be run; "" if it is run.
    """

    line: int
    typed: str
    seen: str | None
    code: int = 0
    why_not: str = ""


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page that are typed, in their order.

    Raises:
        ValueError: A block has another kind, or a comment says something else.
    """
    found = list(_BLOCK.finditer(text))
    for place, one in enumerate(found):
        kind, note = one["kind"], one["note"] or ""
        if kind == "text":
            continue
        if kind != "bash":
            raise ValueError(f"a block of the kind {kind!r}: {one['text'][:40]!r}")
        name, _, value = note.partition(": ")
        if name not in {"", "exit code", "not run"} or bool(name) != bool(value):
            raise ValueError(f"unknown comment before a block: {note!r}")
        below = found[place + 1] if place + 1 < len(found) else None
        seen = below["text"] if below is not None and below["kind"] == "text" else None
        yield Block(
            text.count("\n", 0, one.start("text")),
            one["text"],
            seen,
            code=int(value) if name == "exit code" else 0,
            why_not=value if name == "not run" else "",
        )


def typed(block: Block, folder: Path, environ: Mapping[str, str]) -> tuple[int, str]:
    """Type a block into a shell; return its exit code and what is seen, with the folder of the reader."""
    done = subprocess.run(
        ["bash", "-e", "-c", block.typed],
        cwd=folder, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.replace(str(folder), READER)


def is_shown(page: str, seen: str) -> bool:
    """Return whether a page shows what is seen: equal but for what differs from run to run."""
    parts = [_constant(part) for part in re.split(rf"^{re.escape(_ANY)}\n", page, flags=re.MULTILINE)]
    return re.fullmatch(r"(?:.*\n)*?".join(map(re.escape, parts)), _constant(seen)) is not None


def _constant(text: str) -> str:
    for pattern, stands_for in _VARIABLE:
        text = pattern.sub(stands_for, text)
    return text
