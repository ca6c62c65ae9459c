"""On a terminal of 80 columns and 24 lines: real commands, as the foreground process of one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.screens import Shown, on_terminal
from tests.support.tables import table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("folder")]

REHEARSAL = ("launch", "--cpu", "--all-here", "--start", "table", "--python", sys.executable)
NO_TABLE = ("launch", "--no-table", "--start", "table", "--no-python")
DEEP = """\
import os, pathlib, time
def step(n):
    if n == 0:
        raise RuntimeError("the loss of this rank is not a number: " + "the rate is too high, " * 4)
    step(n - 1)
    return n  # a line
pathlib.Path("started_" + os.environ["RANK_ID"]).touch()
if os.environ["RANK_ID"] == "5":  # fails when all ranks run, so that all are ended by it
    while len([*pathlib.Path().glob("started_*")]) < int(os.environ["RANK_SIZE"]): time.sleep(0.01)
    step(2); step(30)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, value: object) -> str:
    Path(name).write_text(value if isinstance(value, str) else json.dumps(value, indent=4))
    return name


@pytest.fixture
def failed(folder: Path) -> Shown:
    write("t.json", table("1.0", 2, 8))
    write("train.py", DEEP.replace("step(n - 1)", "step(n - 1) if n % 2 else (lambda: step(n - 1))()"))
    return on_terminal(*REHEARSAL, "--rank-table", "t.json", "train.py")


def test_the_report_of_a_failure_fits_a_screen_and_says_the_cause_once(failed: Shown) -> None:
    report = failed.lines[failed.text[: failed.text.index("rank 5 failed first")].count("\n") :]

    assert failed.code == 1
    assert failed.wider_than(80) == []
    assert len(report) <= 24, report
    assert failed.joined.count("RuntimeError: the loss of this rank is not a number") == 1
    assert "  as a consequence: ranks 0-4,6-15: killed by SIGTERM" in report
    assert failed.text.count(str(Path.cwd() / "log")) == 0
    assert report[-1] == "hccl-tools: exit code 1, from rank 5"


def test_explain_has_short_paths_and_does_not_repeat_the_end_of_the_failed_rank(failed: Shown) -> None:
    shown = on_terminal("explain")

    assert failed.code == 1
    cause = "Rank 5 (device 5 of 10.0.0.1, address 192.168.0.105): the program raised"
    assert re.match(rf"run [0-9-]{{15}}-\w{{4}}: {re.escape(cause)}", shown.joined)
    assert str(Path.cwd()) not in shown.text.replace(f"{Path.cwd()}/train.py", "")
    assert "consequences:" not in shown.lines
    assert [line for line in shown.wider_than(80) if not line.startswith("    | ")] == []


@pytest.mark.parametrize(
    "call",
    ["explain EI0006", "explain 507018", "rules HCC203", "rules HCD202", "rules duplicate", "rules HCC102"],
)
def test_the_pages_of_codes_and_rules_fit(call: str) -> None:
    narrow, wide = on_terminal(*call.split()), on_terminal(*call.split(), columns=2000)

    assert narrow.code == 0
    assert [line for line in narrow.wider_than(80) if not line.startswith("    ")] == []
    assert narrow.joined == re.sub(r"\s+", " ", wide.text)


def test_what_to_do_about_a_code_is_said_once_and_the_picture_of_a_table_fits(folder: Path) -> None:
    write("hccl_8p_01234567_with_a_name.json", table("1.0", 2, 8))
    write("train.py", DEEP.replace("step(2); step(30)", 'raise RuntimeError("EI0006: no socket")'))
    shown = on_terminal(*REHEARSAL, "--rank-table", "hccl_8p_01234567_with_a_name.json", "train.py")

    assert "hint: EI0006: a rank waited longer" in shown.joined
    assert "explain: Rank 5" in shown.joined
    assert shown.joined.count("check the rank that the message names") == 1
    assert on_terminal("show", "hccl_8p_01234567_with_a_name.json").wider_than(80) == []


def test_the_report_is_coloured_as_the_findings_are(failed: Shown) -> None:
    assert "\x1b[1;31mhccl-tools: rank 5 failed first" in failed.raw
    assert "\x1b[1;31mhccl-tools: exit code 1" in failed.raw


def test_a_traceback_that_is_on_the_screen_is_not_repeated() -> None:
    write("train.py", 'raise ValueError("bad batch")\n')
    shown = on_terminal(
        "launch", "--no-table", "-n", "1", "--start", "table", "--python", sys.executable, "train.py"
    )

    assert shown.text.count("Traceback") == 1
    assert shown.text.count("ValueError: bad batch") == 2  # by the rank, and in the report
    assert "  the end of rank_0.log:\n    | ValueError: bad batch\n" in shown.text


def test_jobs_fits_beside_the_runs_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(*NO_TABLE, "-n", "2", "sh", "-c", "exit 3 # " + "x" * 90)
    there = tmp_path / "there"
    there.mkdir()
    argv = [sys.executable, "-m", "hccl_tools", *NO_TABLE, "-n", "1", "sh", "-c", "echo up; exec sleep 60"]
    with subprocess.Popen(argv, cwd=there, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert any("up" in line for line in other.stdout)
        shown = on_terminal("jobs")
        other.terminate()

    assert shown.wider_than(80) == []
    assert any(" running " in line for line in shown.lines)


def test_jobs_fits_and_its_names_are_taken_by_every_command() -> None:
    on_terminal(*NO_TABLE, "-n", "2", "sh", "-c", "echo up; exit 3 # " + "x" * 90)
    shown = on_terminal("jobs", alone=True)  # Without the runs of other tests.
    (path,) = (one for one in Path("log").iterdir() if not one.is_symlink())
    (row,) = (line for line in shown.lines if line.startswith(path.name[:20]))
    name = row.split()[0]

    assert shown.wider_than(80) == []
    assert len(name) == 20
    assert len(path.name) > 40  # other users cannot guess it
    for words in (("stop",), ("stacks",), ("logs",), ("explain",), ("logs", "--rank", "1")):
        assert "no run" not in on_terminal(*words, name).text
    assert "up" in on_terminal("logs", name).lines


def test_names_that_begin_alike_get_as_many_digits_as_they_need() -> None:
    on_terminal(*NO_TABLE, "-n", "1", "true")
    (path,) = (one for one in Path("log").iterdir() if not one.is_symlink())
    twin = path.with_name(path.name[:22] + ("0" if path.name[22] != "0" else "1") + path.name[23:])
    twin.mkdir()
    for file in path.iterdir():
        (twin / file.name).write_bytes(file.read_bytes())
    lines = on_terminal("jobs", alone=True).lines
    rows = [line.split()[0] for line in lines if line.startswith(path.name[:20])]

    assert sorted(rows) == sorted([path.name[:23], twin.name[:23]])
    assert all("exit code 0" in on_terminal("stop", row).joined for row in rows)


def test_a_dry_run_prints_what_is_equal_once() -> None:
    write("t.json", table("1.0", 8, 8))
    write("train.py", "")
    options = ("--max-ranks", "64", "--rank-table", "t.json", "--dry-run")
    shown = on_terminal(*REHEARSAL, *options, "train.py")

    assert shown.code == 0, shown.text
    assert shown.wider_than(80) == []
    assert len(shown.lines) < 64 + 40
    assert shown.text.count("RANK_SIZE=64") == 1
    assert "RANK_ID={rank}" in shown.text
    assert "SERVER_ID={SERVER_ID}" in shown.text
    row = next(line for line in shown.lines if line.startswith("  63 "))
    assert row.split() == ["63", "10.0.0.8", "7", "7", "7", "rank_63.log"]


def test_hosts_that_have_answered_are_counted() -> None:
    """The second waits for the first, and is named meanwhile; the line is gone at the end."""
    go = '[ $1 = h1 ] || until [ -e go ]; do sleep 0.05; done; [ $1 = h2 ] || trap "touch go" EXIT'
    write("go.sh", f'#!/bin/sh\n{go}\nshift\n"$@"\n')
    Path("go.sh").chmod(0o755)
    asked = ("--hosts", "h1,h2", "--via", "./go.sh {host}")
    shown = on_terminal("gen", "--simulate", "910a", *asked, "-o", "t.json")

    assert shown.code == 0, shown.text
    states = shown.raw.split("\r")
    assert any("0 of 2 hosts have answered, 0 s; waiting for h[1-2]" in state for state in states)
    assert any("1 of 2 hosts have answered" in state and "waiting for h2" in state for state in states)
    assert "hosts have answered" not in shown.text
    assert "wrote t.json" in shown.lines


@pytest.mark.parametrize("product", ["910a", "a3"])
def test_a_matrix_fits_with_blocks_of_columns(product: str) -> None:
    on_terminal("gen", "--simulate", product, "--servers", "2", "-o", "t.json")

    shown = on_terminal("show", "-f", "matrix", "t.json")

    assert shown.wider_than(80) == []
    words = [line.split() for line in shown.lines]
    assert sum(line[:1] == ["NPU7"] for line in words) == (2 if product == "a3" else 1)
    assert {name for line in words for name in line if name.startswith("NPU")} >= {"NPU0", "NPU7"}


@pytest.mark.parametrize("call", ["doctor --list", "rules HCM046", "rules"])
def test_lists_and_pages_fit(call: str) -> None:
    shown = on_terminal(*call.split())

    assert shown.wider_than(80) == []
    assert call != "doctor --list" or "    Can this user open the device nodes?" in shown.lines


def test_addresses_of_a_super_pod_are_aligned() -> None:
    on_terminal("gen", "--simulate", "a3", "-o", "t.json")

    shown = on_terminal("show", "t.json")

    assert len({line.index("  SDID ") for line in shown.lines if "SDID" in line}) == 1


def test_an_explanation_below_its_command_is_indented_more() -> None:
    lines = on_terminal("subset", "--help").lines
    command = next(place for place, line in enumerate(lines) if "subset job.json --servers 10.0.0.1 " in line)

    assert lines[command].startswith("    hccl-tools")
    assert lines[command + 1] == "        four devices of one server"


def test_the_json_of_an_example_is_valid_when_it_is_broken() -> None:
    text = "\n".join(on_terminal("convert", "--help").lines)
    example = text[text.index('{"10.0.0.1"') :].partition("pods.json can")[0]

    assert json.loads(example)["10.0.0.1"]["super_device_ids"] == {"0": "0", "1": "65537"}


def test_the_guide_marks_output_and_names_the_page_of_a_link() -> None:
    shown = on_terminal("guide", "tutorial", PAGER="cat")

    assert '    hccl-tools gen --simulate 910a --device_num "[0,4)"' in shown.lines
    assert "    | device 0: 192.168.100.101 (simulated)" in shown.lines
    assert "Do you need one? (guide what-is-a-rank-table)" in shown.lines


def test_a_command_that_corrects_a_file_can_be_pasted(folder: Path) -> None:
    write("mine.json", str(table("1.0", 1, 8)))

    shown = on_terminal("validate", "mine.json").text
    line = next(line for line in shown.splitlines() if "ast.literal_eval" in line)
    command = line[line.index("python3 -I -c") :].replace("python3", sys.executable, 1)

    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    assert json.loads((folder / "mine.new.json").read_text()) == table("1.0", 1, 8)
