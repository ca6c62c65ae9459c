"""What a copied or unpacked run names outside of its directory is not read, not packed, and no host is asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain import sources
from hccl_tools.runs import own_runs
from tests.support.hostile_inputs import saved_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine

#: What only its owner may read.
_NOTE = "a private note"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder outside of the run with private files."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "notes.txt").write_text(f"RuntimeError: {_NOTE}\n")
    (folder / "plog-1_2.log").write_text(f"[ERROR] HCCL {_NOTE}\n")
    return folder


@pytest.fixture
def run_dir(command_line: CommandLine, private: Path) -> Path:
    """An unpacked run that names a file, a folder and a host."""
    run = command_line.folder / "log" / "20261121-101530-abcdef"
    run.mkdir(parents=True)
    plan, report = saved_run()
    first, second = plan["processes"]
    first["log"] = str(private / "notes.txt")
    second["host"], second["here"] = "10.96.0.3", False
    plan["hosts"] = [os.uname().nodename, "10.96.0.3"]
    for end in report["ranks"]:
        end["plog"] = str(private)
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "report.json").write_text(json.dumps(report))
    (run / "run_dirs.json").write_text(json.dumps({"10.96.0.3": "/home/someone"}))
    (run / "launcher").write_text(f"1\n{os.uname().nodename}\n1.0\nlaunch\n1\n")
    return run


@pytest.fixture
def asked(command_line: CommandLine) -> str:
    """A program in place of ssh, which makes a file."""
    program = command_line.folder / "ssh"
    program.write_text(f"#!/bin/sh\n: > {command_line.folder}/asked\nexit 1\n")
    program.chmod(0o755)
    return str(program)


def packed(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        return {one.name: file.read().decode() for one in archive if (file := archive.extractfile(one))}


def test_a_copied_run_names_nothing_that_is_read(
    command_line: CommandLine, run_dir: Path, private: Path, asked: str
) -> None:
    done = command_line("explain", str(run_dir), "--ssh", asked, "--bundle", "bug.tar.gz")

    assert _NOTE not in done.out + done.err + "".join(packed(command_line.folder / "bug.tar.gz").values())
    assert (
        f"the log of rank 0, {private}/notes.txt, was not read: it is outside of the run directory"
        in done.out
    )
    assert f"the folder of CANN's logs, {private}, was not read" in done.out
    assert "is not in the record of your launches" in done.out
    assert not (command_line.folder / "asked").exists()


def test_a_copied_run_among_files_names_nothing_that_is_read(
    command_line: CommandLine, run_dir: Path, asked: str
) -> None:
    command_line.write("screen.txt", "RuntimeError: on the screen")

    done = command_line("explain", str(run_dir), "screen.txt", "--ssh", asked)

    assert _NOTE not in done.out + done.err
    assert not (command_line.folder / "asked").exists()


def test_logs_of_a_copied_run_shows_no_other_file_and_asks_no_host(
    command_line: CommandLine, run_dir: Path, asked: str
) -> None:
    here = command_line("logs", str(run_dir), "--rank", "0")
    there = command_line("logs", str(run_dir), "--rank", "1", "--ssh", asked)

    assert here.code == there.code == 2
    assert _NOTE not in here.out + here.err
    assert "it is outside of the run directory" in here.sentence
    assert "is not in the record of your launches" in there.sentence
    assert not (command_line.folder / "asked").exists()


def test_a_run_of_ones_own_is_read_and_its_hosts_are_asked(
    command_line: CommandLine, run_dir: Path, asked: str
) -> None:
    own_runs.note(str(run_dir), os.environ)

    done = command_line("explain", str(run_dir), "--ssh", asked, "--bundle", "bug.tar.gz")

    assert _NOTE in done.out
    assert (command_line.folder / "asked").exists()
    files = packed(command_line.folder / "bug.tar.gz")
    assert not [name for name in files if _NOTE in files[name] and name.startswith("explain/logs/")]
    assert f"packed if you type the run and these paths: {run_dir.parents[2]}/private/" in done.err


@pytest.mark.parametrize("folder", ["/", "home", "."])
def test_a_folder_with_more_than_logs_is_not_read(
    command_line: CommandLine, run_dir: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (command_line.folder / "home").mkdir()
    (command_line.folder / "home" / "notes.log").write_text(f"RuntimeError: {_NOTE}\n")
    monkeypatch.setenv("HOME", str(command_line.folder / "home"))
    named = folder if folder == "/" else str(command_line.folder / folder)
    report = json.loads((run_dir / "report.json").read_text())
    for end in report["ranks"]:
        end["plog"] = named
    (run_dir / "report.json").write_text(json.dumps(report))
    plan = json.loads((run_dir / "plan.json").read_text())
    plan["processes"][0]["log"] = "rank_0.log"
    (run_dir / "plan.json").write_text(json.dumps(plan))
    own_runs.note(str(run_dir), os.environ)

    done = command_line("explain", str(run_dir), "--ssh", "false")

    assert _NOTE not in done.out
    assert "was not read: it has more than CANN's logs" in done.out


def test_launch_records_its_run_and_a_copy_is_another_one(command_line: CommandLine) -> None:
    launch = (sys.executable, "-m", "hccl_tools", "launch", "-n", "1", "--cpu", "--start", "table")
    subprocess.run([*launch, "--no-python", "true"], check=True, capture_output=True)
    run = (command_line.folder / "log" / "latest").resolve()
    copy = command_line.folder / "copy" / run.name
    shutil.copytree(run, copy)

    assert own_runs.is_known(str(run), os.environ)
    assert not own_runs.is_known(str(copy), os.environ)


@pytest.mark.parametrize("name", ["plan.json", "report.json"])
def test_a_run_with_another_plan_or_report_in_its_place_is_not_known(
    command_line: CommandLine, run_dir: Path, asked: str, name: str
) -> None:
    strange = (run_dir / name).read_text()
    (run_dir / name).write_text(strange.replace("private", "another").replace("10.96.0.3", "10.96.0.4"))
    own_runs.note(str(run_dir), os.environ)
    assert own_runs.is_known(str(run_dir), os.environ)
    (run_dir / name).write_text(strange)  # The directory keeps its inode, as under `tar xf`.

    done = command_line("explain", str(run_dir), "--ssh", asked)

    assert _NOTE not in done.out
    assert not (command_line.folder / "asked").exists()
    assert "is not in the record of your launches" in done.out


def test_a_report_beside_the_plan_of_a_launch_is_not_known(run_dir: Path) -> None:
    report = (run_dir / "report.json").read_bytes()
    (run_dir / "report.json").unlink()
    own_runs.note(str(run_dir), os.environ)
    assert own_runs.is_known(str(run_dir), os.environ)

    (run_dir / "report.json").write_bytes(report)
    assert not own_runs.is_known(str(run_dir), os.environ)

    own_runs.note_report(str(run_dir), os.environ)
    assert own_runs.is_known(str(run_dir), os.environ)


def test_no_report_makes_a_run_known(run_dir: Path) -> None:
    own_runs.note_report(str(run_dir), os.environ)

    assert not own_runs.is_known(str(run_dir), os.environ)


def test_an_entry_of_an_earlier_version_is_not_known(tmp_path: Path, run_dir: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path / "none")}
    own_runs.note(str(run_dir), environ)
    (entry,) = (tmp_path / "state" / "hccl-tools" / "runs").iterdir()
    entry.write_bytes(b"")

    own_runs.note_report(str(run_dir), environ)

    assert not own_runs.is_known(str(run_dir), environ)


def test_a_record_in_which_others_can_write_does_not_count(tmp_path: Path, run_dir: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path / "none")}
    own_runs.note(str(run_dir), environ)
    assert own_runs.is_known(str(run_dir), environ)

    (tmp_path / "state" / "hccl-tools" / "runs").chmod(0o777)

    assert not own_runs.is_known(str(run_dir), environ)


def test_a_user_without_a_home_has_the_record_on_this_host(tmp_path: Path, run_dir: Path) -> None:
    (tmp_path / "file").touch()
    environ = {"XDG_STATE_HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}

    own_runs.note(str(run_dir), environ)

    assert own_runs.is_known(str(run_dir), environ)


def test_a_part_of_a_job_is_recorded_on_its_host(tmp_path: Path, run_dir: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path)}

    own_runs.note(str(run_dir), environ, is_part=True)

    assert own_runs.is_known(str(run_dir), environ)
    assert not (tmp_path / "state").exists()


def test_the_record_does_not_grow_without_limit(
    tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_runs, "_MOST", 4)
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    folder = tmp_path / "state" / "hccl-tools" / "runs"
    folder.mkdir(parents=True, mode=0o700)
    for number in range(4):
        (folder / f"20251121-10153{number}-a-{number}").touch()

    own_runs.note(str(run_dir), environ)
    (run_dir / "report.json").touch()
    own_runs.note_report(str(run_dir), environ)

    assert len(list(folder.iterdir())) == 3
    assert own_runs.is_known(str(run_dir), environ)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (sources.Limits(files=2), "more than 2 logs"),
        (sources.Limits(size=0), "more than 262,144 logs, 0 GiB"),
        (sources.Limits(deepest=1), "more than 1 levels deep"),
    ],
)
def test_folders_are_read_up_to_a_limit(tmp_path: Path, limits: sources.Limits, said: str) -> None:
    for number in range(4):
        (tmp_path / f"a{number}" / "b").mkdir(parents=True)
        (tmp_path / f"a{number}" / f"rank_{number}.log").write_text("text\n")

    found, notes = sources.collect([str(tmp_path)], limits)

    assert len(found) < 4 or limits.deepest == 1
    assert said in " ".join(notes)


@pytest.mark.parametrize(
    "text",
    ["0123456789abcdef" * 4 + "\n", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "QUFB" * 11 + "=\n"],
)
def test_a_file_with_a_key_is_not_packed(command_line: CommandLine, text: str) -> None:
    command_line.write("logs/rank_0.log", "RuntimeError: one\n")
    command_line.write("logs/some-key", text)

    done = command_line("explain", "logs", "--bundle", "bug.tar.gz")

    files = packed(command_line.folder / "bug.tar.gz")
    assert text.strip() not in "".join(files.values())
    assert "logs/some-key is a file with a key" in done.err


def test_the_job_key_is_not_packed_under_another_name(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(command_line.folder))
    command_line.write("hccl-tools/job-key", "not yet a key, but its file\n")
    command_line.write("logs/rank_0.log", "RuntimeError: one\n")
    subprocess.run(["ln", "hccl-tools/job-key", "logs/a.log"], check=True, cwd=command_line.folder)

    done = command_line("explain", "logs", "--bundle", "bug.tar.gz")

    assert "not yet a key" not in "".join(packed(command_line.folder / "bug.tar.gz").values())
    assert "logs/a.log is a file with a key" in done.err
