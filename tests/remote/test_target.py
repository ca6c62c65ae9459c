"""The end of an archive at the other end of a connection."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from hccl_tools.remote import target
from tests.support.jobs import eventually
from tests.support.processes import has_ended

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

#: Starts a tool in a session of its own, which writes its process id, and does what ``{}`` says.
STARTS_A_TOOL = (
    "import signal, subprocess, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "subprocess.Popen(['sh', '-c', 'echo $$ > new; mv new tool; exec sleep 600'], start_new_session=True)\n"
    "{}\n"
)


def test_a_tool_in_its_own_session_ends_with_an_archive_that_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "_GRACE_SECONDS", 0.2)
    tool = tmp_path / "tool"
    stubborn = [sys.executable, "-c", STARTS_A_TOOL.format("time.sleep(600)")]
    child = subprocess.Popen(stubborn, cwd=tmp_path, start_new_session=True)
    assert eventually(tool.exists)

    target._end(child)

    assert child.wait(60) == -9
    assert eventually(lambda: has_ended(int(tool.read_text())))


def test_a_tool_that_its_archive_leaves_behind_is_killed(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    leaves = f"import os; os.chdir({str(tmp_path)!r})\n" + STARTS_A_TOOL.format(
        "while not os.path.exists('tool'): time.sleep(0.01)"
    )
    run = (
        "import pathlib, sys, time\n"
        "from hccl_tools.remote import target\n"
        "woken = target._wake_on_signals()\n"
        f"path = pathlib.Path({str(tmp_path / 'archive')!r})\n"
        f"sys.exit(target._run({leaves.encode()!r}, path, [], woken, time.monotonic() + 60))"
    )
    with subprocess.Popen([sys.executable, "-c", run], stdin=subprocess.PIPE) as process:
        assert eventually(lambda: process.poll() is not None)

    assert process.returncode == 0
    assert eventually(lambda: has_ended(int(tool.read_text())))
