"""The two ends of remote logs, without a second host: messages of a far side that fails, and its end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from hccl_tools.runs import own_runs, remote
from hccl_tools.runs.remote import RemoteLogs
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from pathlib import Path

MISSING = "hccl-tools is not installed there: "


def read_to_the_end(logs: RemoteLogs) -> bytes:
    shown = bytearray()

    def has_ended() -> bool:
        shown.extend(logs.read(last=False))
        return logs.ended

    assert eventually(has_ended)
    return bytes(shown)


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
    shown = read_to_the_end(logs)

    logs.close()
    assert shown == b"one\ntwo"
    assert logs.error is not None
    assert logs.error.message == f"host-b: {message}"
    assert "read the logs there, in /log/run" in (logs.error.hint or "")


def test_a_far_side_that_does_not_end_is_named_and_left() -> None:
    program = "import time; print('one', flush=True); time.sleep(600)"
    logs = RemoteLogs("host-b", [sys.executable, "-c", program], "/log/run", silence=0.1)
    shown = bytearray()

    def has_ended() -> bool:
        shown.extend(logs.read(last=b"one" in shown))
        return logs.ended

    assert eventually(has_ended)
    logs.close()
    assert shown == b"one\n"
    assert logs.error is not None
    assert logs.error.message.startswith("host-b: its logs have no end")


def shown_of(logs: RemoteLogs) -> bytearray:
    """Return what is shown of logs up to their end, or until they are left."""
    shown = bytearray()

    def has_ended() -> bool:
        while data := logs.read(last=True):
            shown.extend(data)
        return logs.ended

    assert eventually(has_ended)
    logs.close()
    return shown


@pytest.mark.parametrize(
    ("program", "limits", "message"),
    [
        ("import sys\nwhile True: sys.stdout.write('x' * 999 + chr(10))", {"_MOST_BYTES": 1 << 20},
         "its logs have more than 1 MiB: the rest was not read"),
        ("import time\nwhile True: print('x', end='', flush=True); time.sleep(0.01)", {},
         "its logs have no end after 1 s and "),
        ("import time\nwhile True: print('x' * 9999, flush=True); time.sleep(0.01)", {"_LONGEST": 0.5},
         "its logs have no end after "),
    ],
    ids=["flood", "drip", "slow"],
)  # fmt: skip
def test_a_far_side_that_sends_without_an_end_is_named_and_left(
    monkeypatch: pytest.MonkeyPatch, program: str, limits: dict[str, float], message: str
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(remote, name, value)
    logs = RemoteLogs("host-b", [sys.executable, "-c", program], "/log/run", silence=0.5)
    shown = shown_of(logs)
    assert shown.startswith(b"x")
    assert len(shown) < 2 << 20
    assert logs.error is not None
    assert logs.error.message.startswith(f"host-b: {message}")


def test_what_is_shown_of_a_host_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each empty line gets the name of its rank: what the host sends is a tenth of what is written."""
    monkeypatch.setattr(remote, "_MOST_BYTES", 1 << 20)
    program = "import sys\nwhile True: sys.stdout.write(chr(10) * 4096)"
    logs = RemoteLogs(
        "host-b", [sys.executable, "-c", program], "/log/run", silence=5, labels=(b"[rank 1] ",)
    )
    shown = shown_of(logs)
    assert len(shown) < 2 << 20


def test_a_reader_that_pauses_is_not_held_against_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pager takes the output when its user goes on: a host that has sent all the time is not slow."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    logs = RemoteLogs("host-b", ["head", "-c", "1000000", "/dev/zero"], "/log/run", silence=0.5)

    shown = received = 0
    while not logs.ended:
        shown += len(logs.read(last=True))
        if logs.received > received:
            received = logs.received
            select.select([logs._output], [], [], 5)
            now += 600

    logs.close()
    assert (logs.error, shown) == (None, 1_000_000)


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


def test_another_host_does_not_write_in_the_name_of_a_rank_elsewhere(tmp_path: Path) -> None:
    """``logs --rank 0 --rank 1 --rank 2`` of a run whose ranks 1 and 2 are on another host."""
    processes = [
        {"rank": rank, "host": "host-b" if rank else "here", "here": not rank, "log": f"/r/{rank}.log",
         "argv": ["train.py"]}
        for rank in range(3)
    ]  # fmt: skip
    processes[0]["log"] = "rank_0.log"
    (tmp_path / "plan.json").write_text(json.dumps({"processes": processes, "hosts": ["here", "host-b"]}))
    (tmp_path / "rank_0.log").write_text("own\n")
    own_runs.note(str(tmp_path), os.environ)
    ssh = tmp_path / "ssh"
    lines = ["welcome", "[rank 1] one", "[rank 0] forged", "[rank 11] forged", "[rank 2] two", "[rank 0] end"]
    ssh.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    ssh.chmod(0o755)
    logs = [sys.executable, "-m", "hccl_tools", "logs", *("--rank=0", "--rank=1", "--rank=2")]

    done = subprocess.run(
        [*logs, "--ssh", str(ssh), str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("[rank 0]")) == [
        "[rank 0] own"
    ]
    assert [line for line in done.stdout.splitlines() if not line.startswith("[rank 0]")] == [
        "[host-b] welcome",
        "[rank 1] one",
        "[rank 1] [rank 0] forged",
        "[rank 1] [rank 11] forged",
        "[rank 2] two",
        "[rank 2] [rank 0] end",
    ]


def test_the_rest_of_a_line_without_end_has_a_label() -> None:
    program = "import sys; sys.stdout.write('[rank 1] ' + 'x' * (1 << 21) + '[rank 0] forged')"
    logs = RemoteLogs("host-b", [sys.executable, "-c", program], "/log/run", (b"[rank 1] ",))
    shown = read_to_the_end(logs)
    logs.close()

    assert shown.endswith(b"[rank 0] forged\n")
    assert all(line.startswith(b"[rank 1] ") for line in shown.splitlines())


def test_a_connection_that_stays_after_its_output_does_not_hold_up_the_reader() -> None:
    program = "import os, sys; os.write(1, b'one\\ntwo'); os.close(1); sys.stdin.read()"
    logs = RemoteLogs("host-b", [sys.executable, "-c", program], "/log/run")
    shown = bytearray()

    def is_complete() -> bool:
        shown.extend(logs.read(last=False))
        return shown.endswith(b"two")

    assert eventually(is_complete)
    assert not logs.ended
    assert logs.read(last=True) == b""  # The connection ends with its standard input.
    assert read_to_the_end(logs) == b""
    assert logs.error is None
    logs.close()
