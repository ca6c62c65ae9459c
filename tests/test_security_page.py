"""SECURITY.md: each promise names tests that exist, and none is only prose."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PAGE = Path("SECURITY.md")
ROOT = Path(__file__).parent.parent
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def promises() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return each promise with the files and functions of its tests."""
    _, _, rest = (ROOT / PAGE).read_text(encoding="utf-8").partition("## Promises")
    section, *_ = rest.split("\n## ")
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [(row[0], _TEST.findall(row[1])) for row in rows if row[0] not in {"promise", "---"}]


def names_of_tests(path: Path) -> set[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in names if name.startswith("test_")}


def test_each_promise_names_tests_that_exist() -> None:
    assert [promise for promise, tests in promises() if not tests] == []
    named = [one for _, tests in promises() for one in tests]
    missing = [
        f"{file}::{function}"
        for file, function in named
        if not ({function} if function else names_of_tests(ROOT / file)) & names_of_tests(ROOT / file)
    ]
    assert missing == []


def test_readme_and_contributing_link_to_the_page() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        assert "(SECURITY.md)" in (ROOT / name).read_text(encoding="utf-8"), name
