"""What tables, other hosts, ranks and other users had to say does not steer the terminal of this user."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from tests.support.strangers import Stranger

ESC = "\x1b]0;owned\x07\x9b31m\u202e"
SHOWN = "\\u001b]0;owned\\u0007\\u009b31m\\u202e"
LAUNCH = ("launch", "--no-table", "-n", "1", "--start", "table", "--no-python")


def tools(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", *args],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **variables},
    )  # fmt: skip
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*done.stderr, *done.stdout}, done
    return done


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_plan(form: str) -> None:
    done = tools(*LAUNCH[:1], f"--dry-run={form}", *LAUNCH[1:], "--env", f"A={ESC}", "echo", ESC)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\\u202e") >= 2


def test_runs_in_a_list() -> None:
    assert tools(*LAUNCH, "true", ESC).returncode == 0

    assert SHOWN in tools("jobs", COLUMNS="120").stdout
    assert tools("jobs", "-f", "json").returncode == 0


@pytest.mark.parametrize(
    "args",
    [("stop", ESC), ("logs", ESC), ("validate", ESC), ("launch", "--no-table", "-n1", ESC), (f"x{ESC}",)],
)
def test_a_refusal(args: tuple[str, ...]) -> None:
    assert SHOWN in tools(*args).stderr


def test_a_note() -> None:
    Path(ESC).mkdir()
    done = tools("gen", "--simulate", "910a", "--device_num", "[0,2)", "-o", f"{ESC}/t.json")

    assert (done.returncode, SHOWN in done.stderr) == (0, True)


def test_the_last_lines_of_a_rank_in_a_report() -> None:
    done = tools(*LAUNCH[:1], "--tail", "none", *LAUNCH[1:], "sh", "-c", f"echo '{ESC}'; exit 3")

    assert done.returncode == 3
    assert "  its last lines" in done.stderr


def test_what_a_launcher_passes_on_of_others() -> None:
    """A cause that another host has sent comes out here."""
    script = (
        f"from hccl_tools.launch.logs.terminal import Console\nConsole().say('host a: {ESC}\\n  and\\tmore')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stderr == f"hccl-tools: host a: {SHOWN}\n  and\tmore\n"


def test_ranks_by_hand() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools.launch.rank", f"--{ESC}", "true"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert SHOWN in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.bed
def test_a_log_of_another_user(stranger: Stranger) -> None:
    log_dir = str(stranger.folder / "log")
    done = stranger.tools(*LAUNCH[:-1], "--log-dir", log_dir, LAUNCH[-1], "echo", ESC)
    assert done.returncode == 0, done.stderr
    ours, theirs = pty.openpty()

    command = [sys.executable, "-m", "hccl_tools", "logs", "--log-dir", log_dir]
    subprocess.run(command, stdout=theirs, stderr=subprocess.STDOUT, check=True, timeout=60)

    os.close(theirs)
    owner, _, log = os.read(ours, 4096).decode().rstrip().rpartition("\n")
    assert " of nobody" in owner
    assert log == SHOWN
    os.close(ours)
    piped = subprocess.run(command, capture_output=True, text=True, check=True)
    assert piped.stdout == f"{ESC}\n"


def test_what_prints_stays() -> None:
    assert escaped("ümläut 机\tx\n", keep="\n\t") == "ümläut 机\tx\n"
    assert escaped("机", ascii_only=True) == "\\u673a"
    assert escaped("\U000e0001") == "\\U000e0001"
