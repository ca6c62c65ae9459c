"""No table, however wrong, ends a command in a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.clusters import host

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

CASES = sorted((Path(__file__).parents[1] / "data" / "corpus" / "cases").glob("*.json"))
COMMANDS = {
    "show": ("show", "CASE"),
    "show here": ("show", "CASE", "--here", "-f", "json"),
    "diff": ("diff", "job.json", "CASE"),
    "convert": ("convert", "CASE", "--to", "1.0", "-o", "-"),
    "convert to a group_list": ("convert", "CASE", "--to", "group_list", "--renumber", "-o", "-"),
    "super pods from it": ("convert", "job.json", "--to", "1.2", "--super-pods", "CASE", "-o", "-"),
    "merge": ("merge", "job.json", "CASE", "--order", "ip", "-o", "-"),
    "subset": ("subset", "CASE", "--devices", "0", "-o", "-"),
    "replace": ("replace", "CASE", "--server", "10.0.0.1", "--with", "job.json", "-o", "-"),
    "spare": ("replace", "job.json", "--server", "10.1.0.1", "--with", "CASE", "-o", "-"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_no_traceback(name: str, command_line: CommandLine) -> None:
    command_line.write("job.json", host(1))

    codes = {
        command_line(*(str(case) if word == "CASE" else word for word in COMMANDS[name])).code
        for case in CASES
    }

    assert len(CASES) > 400
    assert codes <= {0, 1, 2}
    assert 1 in codes
