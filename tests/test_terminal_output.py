"""Notes and warnings of commands contain text of tables, hosts and other users: one function escapes them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools import cli
from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

#: Texts that a renderer has made, which escapes what it does not colour.
RENDERED = {"findings_text", "render"}


def unescaped(path: Path) -> Iterator[str]:
    """Yield the calls of click.echo that print on standard error without `tell`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.echo":
            names = {one.attr for one in ast.walk(node.args[0]) if isinstance(one, ast.Attribute)}
            if any(keyword.arg == "err" for keyword in node.keywords) and not names & RENDERED:
                yield f"{path.name}:{node.lineno}"


def test_commands_print_on_standard_error_by_one_function() -> None:
    found = [one for path in Path(cli.__file__).parent.glob("*.py") for one in unescaped(path)]

    assert found == []


def test_lines_are_escaped_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    tell("note: a\x1b[31m\nerror: forged", "b")

    assert capsys.readouterr().err == "note: a\\u001b[31m\\u000aerror: forged\nb\n"
