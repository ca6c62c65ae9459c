"""The answer as text for a screen: its lines broken between words, with colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.explain.answer import text
from hccl_tools.notation.printable import escaped
from hccl_tools.notation.screen import Pen, width, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.explain.answer import Answer


def as_text(answer: Answer, *, color: bool = False) -> Iterator[str]:
    """Yield the lines of the answer; on a terminal, long ones are broken, except those of a log."""
    pen, columns = Pen(color), width()
    style = "good" if answer.has_finished or answer.finished else "message" if answer.causes else "warning"
    for number, line in enumerate(text(answer)):
        shown = "\n".join(wrapped(escaped(line), columns))
        is_title = line.endswith(":") and not line.startswith(" ")
        yield pen("message" if is_title else style, shown) + "\n" if is_title or not number else f"{shown}\n"
