"""Notes and warnings of commands contain text of tables, hosts and other users: one function escapes them."""

from __future__ import annotations

import ast
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools import cli
from hccl_tools.gathering import over_connections
from hccl_tools.gathering.engine_run import EngineOutcome
from hccl_tools.gathering.messages import SurveyAnswer
from hccl_tools.notation.printable import tell
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.commands import CommandLine


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


FORGED = "x\nerror: forged\n  help: run `evil`"


def lines_of(command_line: CommandLine, *args: str) -> list[str]:
    done = command_line(*args)
    assert done.code != 0
    return (done.out + done.err).splitlines()


LAUNCH, DISTRIBUTE = ("launch", "--cpu", "--rank-table", "t.json", "x.py"), ("distribute", "t.json")


@pytest.mark.parametrize("words", [LAUNCH, DISTRIBUTE])
def test_a_name_in_a_table_begins_no_line(command_line: CommandLine, words: tuple[str, ...]) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][0]["server_id"] = f"10.0.0.1{FORGED}"
    command_line.write("t.json", value)
    command_line.write("x.py", "")

    found = lines_of(command_line, *words, *(["--ssh", "false"] if words is DISTRIBUTE else []))

    assert not any(line.startswith(("error: forged", "  help: run `evil`")) for line in found)
    assert any("forged" in line for line in found)


@pytest.mark.parametrize("words", [("show",), ("validate",), ("scaling", "report"), ("explain", "a", "b")])
def test_the_name_of_a_file_begins_no_line(command_line: CommandLine, words: tuple[str, ...]) -> None:
    command_line.write(FORGED, "[]")

    found = lines_of(command_line, *words, FORGED)

    assert not any(line.startswith(("error: forged", "  help: run `evil`")) for line in found)


def test_the_reason_of_a_host_begins_no_line(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = SurveyAnswer("h1", message=FORGED, hint=FORGED)
    monkeypatch.setattr(
        over_connections, "survey", lambda *_: EngineOutcome({"h1": answer, "h2": answer}, [])
    )

    found = lines_of(command_line, "gen", "--hosts", "h1,h2", "--engine", "ssh")

    assert not any(line.startswith(("error: forged", "  help: run `evil`")) for line in found)
    assert sum("forged" in line for line in found) > 1


HOSTILE_ID = "10.0.0.1\x9b2J\u202e\u061c\u2066"


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("convert", "t.json", "--to", "1.0", "-o", "-"),
        ("convert", "t.json", "--to-configmap", "x", "-o", "-"),
        ("merge", "t.json", "u.json", "--ignore", "HCC308", "-o", "-"),
        ("show", "t.json", "-f", "json"),
        ("validate", "t.json", "-f", "json"),
    ],
)
def test_a_terminal_gets_no_control_character_and_a_pipe_the_text(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    for name, rank, server in (("t.json", "0", HOSTILE_ID), ("u.json", "1", "10.0.0.2")):
        device = {"device_id": "0", "device_ip": f"10.1.0.1{rank}", "rank_id": rank}
        servers = [{"server_id": server, "device": [device], "host_nic_ip": "reserve"}]
        value = {"status": "completed", "version": "1.0", "server_count": "1", "server_list": servers}
        (tmp_path / name).write_text(json.dumps(value, ensure_ascii=False))
    command = [sys.executable, "-m", "hccl_tools", *words]
    ours, theirs = pty.openpty()

    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the end of a terminal
            while piece := os.read(ours, 1 << 16):
                shown += piece
    os.close(ours)
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).stdout.decode()

    text = shown.decode().replace("\r\n", "\n")
    assert process.wait() >= 0
    assert [char for char in text if not char.isprintable() and char != "\n"] == []
    assert "\\u009b" in text
    if "-o" in words:
        assert HOSTILE_ID in piped
