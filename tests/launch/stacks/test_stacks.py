"""``hccl-tools stacks``: what the ranks of a running job do."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.codec import DecodeError, decode
from hccl_tools.launch import stacks
from hccl_tools.launch.stacks import RankStack
from hccl_tools.runs import index, remote
from hccl_tools.runs.remote import RemoteLogs
from tests.support.hanging import without_py_spy
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

RANK = Path(__file__).parents[2] / "support" / "hanging_rank.py"
HCCL_TOOLS = (sys.executable, "-m", "hccl_tools")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    without_py_spy(monkeypatch)


@contextmanager
def hanging(kind: str, *options: str) -> Iterator[None]:
    """Run a job of 4 ranks that hangs in step 5."""
    here = ("--no-table", "--start", "table", "-n", "4", "--python", sys.executable, "--grace", "1")
    job = subprocess.Popen(
        [*HCCL_TOOLS, "launch", *here, *options, str(RANK), kind],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        log = Path("log/latest/rank_1.log")
        assert eventually(lambda: log.exists() and "step 5" in log.read_text())
        yield
    finally:
        job.terminate()
        job.wait(60)


def show_stacks(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HCCL_TOOLS, "stacks", *options], capture_output=True, text=True, check=False, timeout=120
    )


def as_json() -> dict[int, dict[str, Any]]:
    return {one["rank"]: one for one in json.loads(show_stacks("-f", "json").stdout)["ranks"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "doing", "function"),
    [
        ("read", "sleeping in read() on a pipe", "endless_read"),
        ("loop", "running", "endless_loop"),
        ("deadlock", "sleeping in recvfrom() on a socket", "deadlock"),
    ],
)
def test_each_rank_is_shown_with_its_stack(kind: str, doing: str, function: str) -> None:
    with hanging(kind, "--faulthandler"):
        assert eventually(lambda: as_json()[1]["doing"] == doing)
        found = as_json()
        text = show_stacks()

    assert [one["source"] for one in found.values()] == ["faulthandler"] * 4
    assert found[1]["stack"][0].endswith(f" in {function}")
    assert found[0]["stack"][0].endswith(" in all_reduce")
    assert found[2]["stack"] == found[3]["stack"]
    assert (text.returncode, text.stderr) == (0, "")
    assert re.search(rf"^rank 1 \(localhost, pid \d+\): {re.escape(doing)}$", text.stdout, re.MULTILINE)
    assert "\nranks 2-3 (localhost): sleeping in recvfrom() on a socket\n    File " in text.stdout


@pytest.mark.slow
def test_a_stopped_rank_is_shown_as_such_and_stays_stopped() -> None:
    with hanging("stopped", "--faulthandler"):
        assert eventually(lambda: as_json()[1]["doing"] == "stopped")
        again = show_stacks()

    assert again.returncode == 0
    assert "): stopped\n  no Python stack: it is stopped, and py-spy is not installed\n" in again.stdout
    assert "step 6" not in Path("log/latest/rank_1.log").read_text()


@pytest.mark.slow
def test_without_the_option_the_states_are_shown() -> None:
    with hanging("read"):
        assert eventually(lambda: "sleeping in read() on a pipe" in show_stacks().stdout)
        found = show_stacks()

    assert found.returncode == 0
    why = "Python was not started with `launch --faulthandler`, and py-spy is not installed"
    assert " ".join(found.stdout.split()).count(why) == 1
    assert "ranks 0, 2-3 (localhost): " in found.stdout


@pytest.mark.slow
def test_a_py_spy_that_is_denied_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "py-spy").write_text("#!/bin/sh\necho 'Error: Permission Denied'\nexit 1\n")
    (tmp_path / "bin" / "py-spy").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with hanging("read"):
        found = show_stacks()

    why = "py-spy may not look at it: ptrace is denied here (Error: Permission Denied)"
    assert f"no Python stack of ranks 0-3: {why}" in " ".join(found.stdout.split())


@pytest.mark.slow
def test_a_run_that_has_ended_is_refused() -> None:
    with hanging("read"):
        pass
    assert eventually(lambda: Path("log/latest/report.json").exists())

    done = show_stacks()

    assert done.returncode == 2
    assert "has ended: only a running job has stacks\n  help: `hccl-tools logs`" in done.stderr


@pytest.mark.slow
def test_a_host_that_hangs_or_floods_does_not_delay_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read one after another, the first host would use up the time of all."""
    answer = json.dumps([RankStack(2, "x", 7, "running")._asdict()])
    does = {"hosta": "sleep 300", "hostb": "exec cat /dev/zero", "hostc": f"echo {shlex.quote(answer)}"}
    processes = [
        {"rank": rank, "host": host, "log": f"rank_{rank}.log", "argv": ["x"], "here": False}
        for rank, host in enumerate(does)
    ]
    (tmp_path / "plan.json").write_text(json.dumps({"processes": processes, "hosts": list(does)}))

    def run_there(_run: index.Run, host: str, *_: object) -> RemoteLogs:
        return RemoteLogs(host, ["sh", "-c", does[host]], "/run")

    monkeypatch.setattr(remote, "run_there", run_there)
    monkeypatch.setattr(index, "is_over", lambda _run: False)
    monkeypatch.setattr(stacks, "_HOST_SECONDS", 15.0)
    found = stacks.collect(index.read(str(tmp_path)))

    assert [one.problem for one in found] == [
        "hosta has not answered within 15 s",
        "hostb has sent more than 64 MiB: its answer was not read",
        "",
    ]
    assert (found[2].host, found[2].pid, found[2].doing) == ("hostc", 7, "running")


def test_equal_stacks_are_shown_once() -> None:
    recv = ("  File a.py, line 3 in recv",)
    shown = stacks.as_text(
        [
            RankStack(0, "a", 10, "sleeping in futex()", recv, "py-spy"),
            RankStack(1, "a", 11, "stopped", problem="no py-spy"),
            RankStack(2, "b", 12, "running", recv, "py-spy"),
            RankStack(3, "b", 13, "sleeping in futex()", recv, "py-spy"),
            RankStack(4, "c", problem="c has not answered"),
        ]
    )
    assert shown == (
        "ranks 0, 2-3 (a, b): ranks 0, 3 sleeping in futex(); rank 2 running\n"
        "    File a.py, line 3 in recv\n\n"
        "rank 1 (a, pid 11): stopped\n  no Python stack: no py-spy\n\n"
        "rank 4 (c):\n  c has not answered\n"
    )


@pytest.mark.parametrize("stack", [(), ("  File a.py\nrank 1 (b):",)], ids=["without stack", "with stack"])
def test_the_text_of_a_host_is_no_line_of_its_own(stack: tuple[str, ...]) -> None:
    forged = "running\nrank 1 (b, pid 8): running\x1b[2J"
    one = RankStack(0, "a\nrank 2 (c):", 7, forged, stack, problem="" if stack else forged)
    shown = stacks.as_text([one])

    assert [line for line in shown.splitlines() if not line.startswith(" ")] == [
        "rank 0 (a\\u000arank 2 (c):, pid 7): running\\u000arank 1 (b, pid 8): running\\u001b[2J"
    ]
    assert len(shown.splitlines()) == 2


_ANY = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=9)
    | st.lists(st.text(max_size=3), max_size=2)
)


@given(st.dictionaries(st.sampled_from([*RankStack._fields, "more"]), _ANY))
def test_a_record_of_another_host_is_read_or_refused(value: dict[str, Any]) -> None:
    try:
        read = decode(RankStack, value)
    except DecodeError:
        return
    assert stacks.as_text([read])
    assert json.loads(stacks.as_json("/run", [read]))["ranks"][0]["rank"] == read.rank


def test_ranks_that_have_done_their_work_are_no_fault() -> None:
    shown = stacks.as_text(
        [RankStack(rank, "localhost", problem=stacks._ENDED, ended=True) for rank in (0, 2)]
    )

    assert shown == "ranks 0, 2 (localhost): ended with exit code 0 (a rank that fails ends the job)\n"


def test_on_a_terminal_the_reason_for_no_stack_is_broken_and_a_stack_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    frame = '  File "/usr/lib/python3.11/site-packages/torch/distributed/run.py", line 3 in wait'
    shown = stacks.as_text(
        [
            RankStack(0, "a", 10, "running", (frame,), "py-spy"),
            RankStack(1, "a", 11, "running", problem="word " * 30),
        ]
    ).splitlines()

    assert f"  {frame}" in shown
    assert all(len(line) <= 60 for line in shown if "File" not in line)
