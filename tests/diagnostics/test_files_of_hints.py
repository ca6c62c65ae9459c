"""The command of a hint runs as it is printed, in every output: it has the names of files."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools.diagnostics import FORMATS
from tests.support.commands import run_here
from tests.support.tables import table

LINES = json.dumps(table("1.0", 1, 8), indent=2).split("\n")
LOGGED = "".join(f"10:00:01 INFO main: {line}\n" for line in LINES)
COMMAND = "cut -b21- 'my log.json' > 'my log.new.json'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "2000")
    Path("my log.json").write_text(LOGGED)
    return tmp_path


@pytest.mark.parametrize("output_format", [one for one in FORMATS if one != "concise"])
def test_each_format_has_the_names(output_format: str) -> None:
    shown = html.unescape(run_here("validate", "--format", output_format, "my log.json").stdout)

    assert COMMAND in shown


@pytest.mark.parametrize("call", [("doctor",), ("show",), ("diff", "my log.json"), ("merge", "my log.json")])
def test_each_command_has_the_names(call: tuple[str, ...]) -> None:
    done = run_here(*call, "my log.json")

    assert COMMAND in done.stdout + done.stderr


def hint(*call: str, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", *call], input=text, capture_output=True, text=True, check=False
    )
    return (done.stdout + done.stderr).partition("help: ")[2].partition("\n")[0]


def test_a_text_without_a_file_is_to_be_in_one_that_does_not_exist() -> None:
    Path("table.json").write_text("mine")

    said = hint("validate", "-", text=LOGGED)

    first, _, command = said.partition(", remove it: ")
    assert first == "with the text in table.2.json"
    Path("table.2.json").write_text(LOGGED)
    subprocess.run(["sh", "-c", command], check=True)
    assert json.loads(Path("table.2.new.json").read_text()) == table("1.0", 1, 8)


def test_a_table_in_a_config_map_is_to_be_taken_out_of_it() -> None:
    data = {"hccl.json": LOGGED}
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job"}, "data": data}
    Path("cm.json").write_text(json.dumps(value))

    said = hint("validate", "cm.json")

    assert "> hccl.json\n" in run_here("validate", "cm.json").stdout
    assert said == "with the text in hccl.json, remove it: cut -b21- hccl.json > hccl.new.json"


def test_no_command_has_placeholders() -> None:
    assert "OLD" not in hint("diff", "-", "my log.json", text=LOGGED)
