"""A folder of logs and other files, and what ``explain`` says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.commands import CommandLine


def explained(command_line: CommandLine, files: Mapping[str, str]) -> str:
    """Write files below ``logs``, and return the answer on all of them."""
    for name, text in files.items():
        path = command_line.folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return command_line("explain", "logs").out
