"""Before a job that failed, hung or exceeded its time is ended, it leaves evidence of what its ranks did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import published
from tests.support.hanging import without_py_spy
from tests.support.jobs import LONG
from tests.support.three_by import STARTS, Job, Start, host_of

if TYPE_CHECKING:
    from tests.beds.three_hosts import ThreeHosts

#: Rank 1 waits until the others are there, and does what its argument says; the others wait in a function.
PROGRAM = """\
import os, sys, time
rank, here = int(os.environ["RANK"]), os.environ["HCCL_TOOLS_RUN_DIR"]
def wait_for_others(): time.sleep(600)
def misbehave():
    if sys.argv[1] == "fail":
        raise ValueError("no data")
    time.sleep(600)
print("step", rank, flush=True)
if rank == 1:
    while not all(os.path.exists(f"{here}/heartbeat_{n}") for n in (0, 2)):
        time.sleep(0.01)
    misbehave()
open(f"{here}/heartbeat_{rank}", "w").close()
wait_for_others()
"""


@pytest.fixture(autouse=True)
def _program(own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_directory / "train.py").write_text(PROGRAM)
    without_py_spy(monkeypatch)


def launch(kind: str, *options: str) -> subprocess.CompletedProcess[str]:
    here = ("--no-table", "--cpu", "--start", "torch", "-n", "3", "--grace", "2", "--tail", "none")
    python = ("--python", sys.executable, "--faulthandler")
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools", "launch", *here, *python, *options, "train.py", kind],
        capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip


def report() -> dict[str, Any]:
    found: dict[str, Any] = published.read("report", Path("log/latest/report.json"))
    return found


def evidence() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("log/latest/evidence_0.json").read_text())
    return found


@pytest.mark.parametrize(
    ("options", "kind", "code", "reason"),
    [
        ((), "fail", 1, "failed"),
        (("--timeout", "3"), "wait", 124, "timeout"),
        (("--hang-timeout", "1.5"), "wait", 124, "hang"),
    ],
)
@pytest.mark.slow
def test_stacks_and_last_lines_of_all_ranks_are_kept(
    options: tuple[str, ...], kind: str, code: int, reason: str
) -> None:
    job = launch(kind, *options)

    assert job.returncode == code, job.stderr
    (note,) = report()["evidence"]
    found = evidence()
    assert (found["reason"], found["host"]) == (reason, "localhost")
    assert [one["last_lines"][:1] for one in found["ranks"]] == [["step 0"], ["step 1"], ["step 2"]]
    stacks = {one["rank"]: one["stack"] for one in found["ranks"] if one["stack"]}
    assert stacks[0][0].endswith(" in wait_for_others")
    if kind == "fail":
        assert (set(stacks), found["ranks"][1]["problem"]) == ({0, 2}, "exit code 1")
    else:
        assert stacks[1][0].endswith(" in misbehave")
    assert (note["stacks"], note["problems"]) == (len(stacks), [])
    assert note["file"] == str(Path("log/latest").resolve() / "evidence_0.json")
    assert f"  evidence: {len(stacks)} stacks (evidence_0.json)\n" in job.stderr
    assert Path(note["file"]).stat().st_mode & 0o777 == 0o600
    ends = {end["rank"]: end["how"] for end in report()["ranks"]}
    assert ends[0] == "killed by SIGTERM"


def test_zero_switches_it_off() -> None:
    job = launch("fail", "--evidence-timeout", "0")

    assert job.returncode == 1, job.stderr
    assert report()["evidence"] == []
    assert "evidence" not in job.stderr
    assert not Path("log/latest/evidence_0.json").exists()


def tool(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put an npu-smi before all others on PATH."""
    path = folder / "bin" / "npu-smi"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")


def test_the_state_of_the_devices_is_kept(own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(own_directory, monkeypatch, 'echo "npu-smi 25.2 $*"; echo "| 0 910B3 | OK |"')
    job = launch("fail")

    assert job.returncode == 1, job.stderr
    assert evidence()["devices"][:2] == ["npu-smi 25.2 info", "| 0 910B3 | OK |"]


def test_an_answer_that_does_not_come_delays_the_end_by_the_time_for_evidence_alone(
    own_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(own_directory, monkeypatch, "exec sleep 600")
    job = launch("fail", "--evidence-timeout", "1")

    assert job.returncode == 1, job.stderr
    (note,) = report()["evidence"]
    assert 0.8 <= note["seconds"] < 1.0
    assert note["problems"] == ["npu-smi has not answered in time"]
    assert {one["rank"] for one in evidence()["ranks"] if one["stack"]} == {0, 2}


@pytest.mark.slow
def test_a_rank_that_is_stopped_loses_its_own_part_only() -> None:
    state = "open('/proc/' + pid + '/stat').read().rpartition(')')[2].split()[0]"
    stops = f"pid = open('pid').read(); os.kill(int(pid), 19); list(iter(lambda: {state}, 'T')); 1 / 0"
    program = PROGRAM.replace('raise ValueError("no data")', stops)
    Path("train.py").write_text(
        program.replace("print(", 'rank == 2 and open("pid", "w").write(str(os.getpid()))\nprint(')
    )
    began = time.monotonic()
    job = launch("fail", "--evidence-timeout", "1.5")

    assert job.returncode == 1, job.stderr
    assert time.monotonic() - began < LONG
    found = {one["rank"]: one for one in evidence()["ranks"]}
    assert found[0]["stack"]
    assert (found[2]["stack"], found[2]["doing"]) == ([], "stopped")
    assert found[2]["problem"] == "it is stopped, and py-spy is not installed"


def test_evidence_that_cannot_be_written_is_told_and_the_job_ends() -> None:
    program = PROGRAM.replace("print(", 'os.makedirs(here + "/evidence_0.json", exist_ok=True)\nprint(')
    Path("train.py").write_text(program)
    job = launch("fail")

    assert job.returncode == 1, job.stderr
    (note,) = report()["evidence"]
    assert note["file"] == ""
    assert note["problems"] == ["evidence_0.json cannot be written: Is a directory"]


def test_nothing_is_loaded_for_it_by_a_job_that_succeeds() -> None:
    code = (
        "import atexit, sys\n"
        "names = ['hccl_tools.launch.supervise.evidence', 'hccl_tools.runs.evidence']\n"
        "atexit.register(lambda: print('loaded', [name for name in names if name in sys.modules]))\n"
        "from hccl_tools.__main__ import main\n"
        "sys.argv = ['hccl-tools', 'launch', '--no-table', '-n', '1', '--cpu', '--start', 'torch',"
        " '--flight-recorder', '--no-python', 'true']\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=LONG
    )

    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["loaded []"]), done.stderr


@pytest.mark.bed
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.rotates("start")
def test_each_host_leaves_its_evidence(three_hosts: ThreeHosts, start: Start) -> None:
    Path("fails.py").write_text(
        "import os, time\n"
        "rank = os.environ['RANK']\n"
        "def wait_for_others():\n"
        "    open(f'waits_{rank}', 'w').close()\n"
        "    time.sleep(600)\n"
        "if rank == '1':\n"
        "    while not (os.path.exists('waits_0') and os.path.exists('waits_2')): time.sleep(0.05)\n"
        "    raise ValueError('no data')\n"
        "wait_for_others()\n"
    )
    options = ("--start", "torch", "--grace", "2", "--faulthandler")
    job = Job(three_hosts, start, options, (str(Path("fails.py").resolve()),))

    codes, said = job.end(LONG)

    assert set(codes) == {1}, said
    notes = [note for found in job.reports() for note in found["evidence"]]
    assert {note["host"] for note in notes} == {job.names[host_of(rank)] for rank in range(3)}, said
    assert sum(note["stacks"] for note in notes) == 2
    for note in notes:
        (one,) = json.loads(Path(note["file"]).read_text())["ranks"]
        assert one["rank"] == 1 or one["stack"][0].endswith(" in wait_for_others")


#: A rank that notes when it is ended; rank 1 fails when the other five can note it, two on each host.
NOTES_ITS_END = """\
import os, signal, sys, time
rank = os.environ["RANK"]
def note(*_):
    with open("new_" + rank, "w") as file: print(time.time(), file=file)
    os.rename("new_" + rank, "ended_" + rank)
    sys.exit(1)
signal.signal(signal.SIGTERM, note)
if rank == "1":
    while sum(name.startswith("waits_") for name in os.listdir()) < 5: time.sleep(0.05)
    raise ValueError("no data")
open("waits_" + rank, "w").close()
time.sleep(600)
"""
#: One of three answers comes late.
LATE = "mkdir {folder}/late 2> /dev/null || exit 0; sleep 1; date +%s.%N > {folder}/answered"


@pytest.mark.bed
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.rotates("start")
def test_no_host_ends_its_ranks_before_all_have_their_evidence(
    three_hosts: ThreeHosts, start: Start, own_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(own_directory, monkeypatch, LATE.format(folder=own_directory))
    Path("fails.py").write_text(NOTES_ITS_END)
    options = ("--start", "torch", "--grace", "20", "--evidence-timeout", str(LONG))
    job = Job(three_hosts, start, options, (str(Path("fails.py").resolve()),), ranks=6)

    codes, said = job.end(LONG)

    assert set(codes) == {1}, said
    answered = float(Path("answered").read_text())
    ended = [float(Path(f"ended_{rank}").read_text()) for rank in (0, 2, 3, 4, 5)]
    assert min(ended) >= answered, said


#: Fills the disk of the run directory of rank 2, which then fails.
FILLS = """\
[ $RANK = 2 ] || { : > "waits_$RANK"; exec sleep 600; }
until [ -e waits_0 ] && [ -e waits_1 ]; do sleep 0.05; done
dd if=/dev/zero of="$HCCL_TOOLS_RUN_DIR/fill" bs=4096 2> /dev/null
exit 7
"""


@pytest.mark.bed
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.rotates("start")
def test_a_full_disk_loses_the_evidence_of_its_own_host_alone(three_hosts: ThreeHosts, start: Start) -> None:
    full = three_hosts.hosts[host_of(2)]
    folder = Path(f"log_{(three_hosts.hosts[0] if start.engine else full).namespace}").resolve()
    folder.mkdir()
    mounted = full.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(folder)])
    assert mounted.returncode == 0, mounted.stderr
    try:
        job = Job(
            three_hosts, start, ("--start", "torch", "--grace", "2"), ("--no-python", "sh", "-c", FILLS)
        )
        codes, said = job.end(LONG)
    finally:
        full.run(["umount", str(folder)])

    assert set(codes) == {7}, said
    notes = {note["host"]: note for found in job.reports() for note in found["evidence"]}
    here = job.names[host_of(2)]
    lost = notes.pop(here)["problems"] if start.engine else said  # The report of a launcher is lost as well.
    assert "No space left on device" in " ".join(lost), (notes, said)
    assert all(note["file"] and not note["problems"] for note in notes.values()), notes
    assert len(notes) == 2


#: A rank whose main thread keeps the lock of Python, as compiled code may do; another process reads a pipe.
KEEPS_THE_LOCK = """\
import os, pickle, re, subprocess
path = f"{os.environ['HCCL_TOOLS_RUN_DIR']}/hccl_trace_rank_{os.environ['RANK_ID']}"
os.mkfifo(path + ".pipe")
with open(path + ".new", "wb") as file:
    pickle.dump({"version": "2.4", "pg_config": {}, "pg_status": {}, "entries": []}, file)
subprocess.Popen(["sh", "-c", f"read x < {path}.pipe; mv {path}.new {path}"])
print("step 0", flush=True)
re.match("(a+)+$", "a" * 60 + "b")
"""


@pytest.mark.slow
def test_a_rank_that_keeps_the_interpreter_is_asked_through_the_pipe_of_torch_npu() -> None:
    Path("train.py").write_text(KEEPS_THE_LOCK)
    job = launch("wait", "--timeout", "2", "--flight-recorder")

    assert job.returncode == 124, job.stderr
    found = evidence()["ranks"]
    assert [one["recorder"] for one in found] == [f"hccl_trace_rank_{rank}" for rank in range(3)]
    assert all(one["stack"] for one in found)
    assert report()["evidence"][0]["recorders"] == 3


#: A rank whose stacks take long to write; a dump is asked for by another signal.
MANY_STACKS = """\
import threading, time
def wait(depth):
    if depth: wait(depth - 1)
    else: time.sleep(600)
for _ in range(60): threading.Thread(target=wait, args=(60,), daemon=True).start()
print("step", flush=True)
wait(60)
"""


@pytest.mark.slow
def test_a_rank_with_many_threads_leaves_its_stack_and_answers_for_its_recorder() -> None:
    Path("train.py").write_text(MANY_STACKS)
    job = launch("wait", "--timeout", "3", "--flight-recorder")

    assert job.returncode == 124, job.stderr
    found = evidence()["ranks"]
    assert all(one["stack"] for one in found)
    assert {one["recorder_problem"] for one in found} == {"it has not loaded torch"}


def test_a_rank_without_torch_says_so() -> None:
    job = launch("fail", "--flight-recorder")

    assert job.returncode == 1, job.stderr
    found = evidence()["ranks"]
    assert {one["recorder_problem"] for one in found if one["pid"]} == {"it has not loaded torch"}
    # A rank that is asked again, as its answer is late, may write it once more after it was read.
    left = [json.loads(one.read_text()) for one in Path("log/latest/").glob("recorder_rank_*")]
    assert [one for one in left if "problem" not in one] == []


#: A rank at whose exit Python has ended faulthandler when it is asked for its stack and its recorder.
ENDS_WHEN_ASKED = """import faulthandler, os, signal
for number in (signal.SIGUSR2, int(os.environ["HCCL_TOOLS_RECORDER"])):
    faulthandler.unregister(number)
    os.kill(os.getpid(), number)
"""


def test_a_rank_that_ends_while_it_is_asked_is_not_killed() -> None:
    Path("train.py").write_text(ENDS_WHEN_ASKED)
    job = launch("wait", "--faulthandler", "--flight-recorder")

    assert job.returncode == 0, job.stderr
