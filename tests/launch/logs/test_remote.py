"""The two ends of remote logs, without a second host: messages of a far side that fails, and its end."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.logs.remote import RemoteLogs
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from pathlib import Path

MISSING = "hccl-tools is not installed there: "


@pytest.mark.parametrize(
    ("said", "status", "message"),
    [
        ("sh: 1: /venv/bin/python: not found", 127, f"{MISSING}sh: 1: /venv/bin/python: not found"),
        ("/venv/bin/python: No module named hccl_tools", 1,
         f"{MISSING}/venv/bin/python: No module named hccl_tools"),
        ("error: no such option: --serve\n  help: see `hccl-tools logs --help`", 2,
         "hccl-tools has another version there: no such option: --serve"),
        ("error: there is no run in /log on this host\n  help: see jobs", 2,
         "there is no run in /log on this host"),
        ("ssh: connect to host b port 22: No route to host", 255,
         "ssh: connect to host b port 22: No route to host"),
        ("", 255, "the connection was lost"),
    ],
)  # fmt: skip
def test_a_far_side_that_fails_is_explained(said: str, status: int, message: str) -> None:
    program = f"import sys; sys.stdout.write('one\\ntwo'); sys.stderr.write({said!r}); sys.exit({status})"
    logs = RemoteLogs("host-b", [sys.executable, "-c", program], "/log/run")
    shown = bytearray()

    def has_ended() -> bool:
        shown.extend(logs.read(last=False))
        return logs.ended

    assert eventually(has_ended)

    logs.close()
    assert shown == b"one\ntwo"
    assert logs.error is not None
    assert logs.error.message == f"host-b: {message}"
    assert "read the logs there, in /log/run" in (logs.error.hint or "")


def test_the_far_side_ends_with_its_input_and_shows_what_is_left(tmp_path: Path) -> None:
    process = {"rank": 3, "host": "host-b", "here": False, "log": "rank_3.log", "argv": ["train.py"]}
    (tmp_path / "plan.json").write_text(json.dumps({"processes": [process], "hosts": ["host-b"]}))
    log = tmp_path / "rank_3.log"
    log.write_text("one\n")
    logs = [sys.executable, "-m", "hccl_tools", "logs", "--serve=prefix", "--follow", "--rank=3"]
    with subprocess.Popen(
        [*logs, "--", str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as far:
        assert far.stdin is not None
        assert far.stdout is not None
        assert far.stdout.readline() == "[rank 3] one\n"
        with log.open("a") as more:
            more.write("two\nthree")
        far.stdin.close()
        assert far.stdout.read() == "[rank 3] two\n[rank 3] three\n"
        assert far.wait(10) == 0
