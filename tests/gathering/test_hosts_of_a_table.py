"""The hosts that a table names are asked only if their names cannot be taken for something else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.commands import run_here
from tests.support.tables import table

if TYPE_CHECKING:
    from pathlib import Path

#: What a program would take for an option, a command or nothing.
NAMES = (
    "-oProxyCommand=touch made",
    "--kubeconfig=/tmp/x",
    "a;touch made",
    "$(touch made)",
    "a b",
    "",
    "u@h",
    "a\0b",
)


def table_with(folder: Path, name: str) -> str:
    value = table("1.0", 2, 8)
    value["server_list"][1]["server_id"] = name
    path = folder / "table.json"
    path.write_text(json.dumps(value))
    return str(path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("via", ["sh -c 'echo {host} >> asked' {host}", ""])
def test_a_name_that_no_host_can_have_is_not_asked(tmp_path: Path, name: str, via: str) -> None:
    how = ["--via", via] if via else ["--engine", "ssh", "--ssh", "sh -c 'echo >> asked'"]

    done = run_here("doctor", table_with(tmp_path, name), *how, folder=tmp_path)

    assert done.returncode == 2
    assert "of the table cannot be asked: its name" in done.stderr
    assert "Traceback" not in done.stderr
    assert not {path.name for path in tmp_path.iterdir()} & {"asked", "made"}


def test_this_host_alone_needs_no_name(tmp_path: Path) -> None:
    done = run_here("doctor", "--local", table_with(tmp_path, NAMES[0]))

    assert done.returncode in {0, 1}
    assert "cannot be asked" not in done.stderr
