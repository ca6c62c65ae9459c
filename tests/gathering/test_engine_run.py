"""An engine whose processes print without end or stay: it ends in time, and no process is left."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from hccl_tools.gathering import coordinator, engine_run
from hccl_tools.gathering.options import GatherOptions
from hccl_tools.gathering.stdout_framing import SRUN_LABEL, EngineOutput
from hccl_tools.host.observation import ObservationRequest
from hccl_tools.processes import procfs
from tests.support.mpiruns import MPIRUNS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.mpiruns import Mpirun

#: An engine that starts a process in a group of its own, as Open MPI starts ssh, and writes its number.
_ENGINE = """\
import os, signal, sys, time
file, inner, own = sys.argv[1:]
child = os.fork()
if not child:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    exec(inner)
with open(file, "w") as written:
    written.write(str(child))
exec(own)
"""
_FLOOD = "while True: os.write(1, b'x' * 70 + b'\\n')"
_HANG = "time.sleep(600)"


def run(tmp_path: Path, inner: str, own: str, seconds: float) -> engine_run.EngineRun:
    command = [sys.executable, "-I", "-S", "-c", _ENGINE, str(tmp_path / "pid"), inner, own]
    return engine_run.run(command, seconds, os.environ)


@pytest.mark.parametrize("inner", [_FLOOD, _HANG])
@pytest.mark.parametrize("own", [_HANG, "print('done')"])
def test_no_process_of_an_engine_is_left(tmp_path: Path, inner: str, own: str) -> None:
    threads, began = threading.active_count(), time.monotonic()

    ended = run(tmp_path, inner, own, 2)

    assert ended.status == (None if own == _HANG else 0)
    assert time.monotonic() - began < 12
    left = procfs.status(int((tmp_path / "pid").read_text()))
    assert left is None or left.state in procfs.ENDED_STATES
    assert threading.active_count() == threads
    before = list(ended.output.other)
    ended.last_lines()
    time.sleep(0.1)
    assert list(ended.output.other) == before


def test_the_last_lines_of_an_engine_that_is_ended_are_read(tmp_path: Path) -> None:
    own = "signal.signal(signal.SIGTERM, lambda *_: (print('ended by a signal'), sys.exit(3)));" + _HANG

    ended = run(tmp_path, _HANG, own, 1)

    assert ended.last_lines() == ["ended by a signal"]
    assert ended.status is None


def test_lines_are_split_at_line_breaks_and_at_the_greatest_length(tmp_path: Path) -> None:
    own = "os.write(1, b'0: a\\r1: b\\n0: ' + b'x' * 9000 + b'\\n1: end')"
    output = EngineOutput(["h1", "h2"], label=SRUN_LABEL)
    command = [sys.executable, "-I", "-S", "-c", f"import os; {own}"]

    ended = engine_run.run(command, 30, os.environ, output)

    assert ended.status == 0
    found = [(sender, len(line)) for sender, line in ended.output.other]
    assert found == [("h1", 7), ("h1", 8189), ("h1", 812), ("h2", 3)]


#: The ssh of a host that prints without end, or hangs, whatever it is asked; it writes its number.
_SSH = "#!/bin/sh\necho $$ >> {folder}/pids\nexec {program}\n"


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("mpirun", [one for one in MPIRUNS if not one.is_mpich], ids=str)
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("yes '[[1,1],0]<stdout>: x'", "it sent more than 4 MiB instead of an answer"),
        ("sleep 601", "no answer over ssh within 2 s"),
    ],
)
def test_a_host_in_place_of_whose_daemon_another_program_runs(
    tmp_path: Path, mpirun: Mpirun, program: str, message: str
) -> None:
    pytest.importorskip("mpi4py")
    (tmp_path / "ssh").write_text(_SSH.format(folder=tmp_path, program=program))
    (tmp_path / "ssh").chmod(0o755)
    environ = {**os.environ, "PATH": f"{mpirun.path.parent}:/usr/bin:/bin"}
    how = GatherOptions("mpirun", 10, allow_missing=True, ssh=str(tmp_path / "ssh"), environ=environ)
    own = os.uname().nodename

    found = coordinator.observe_hosts([own, "192.0.2.3"], ObservationRequest(), how)

    assert {one.host: one.message for one in found.left_out}["192.0.2.3"] == message
    if program.startswith("yes"):
        assert [one.host for one in found.answers] == [own]
    pids = list(map(int, (tmp_path / "pids").read_text().split()))
    left = [status for pid in pids if (status := procfs.status(pid)) is not None]
    assert all(status.state in procfs.ENDED_STATES for status in left)
