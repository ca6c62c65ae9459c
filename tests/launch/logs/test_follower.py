"""What the ranks write reaches file and terminal: no line lost, torn or twice, and nobody waits for us."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.logs.follower import Follower, Followers
from hccl_tools.launch.logs.terminal import Console, Stream
from tests.support.jobs import LONG, eventually, python, sh
from tests.support.mpiruns import MPIRUNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.jobs import Job, Jobs

#: Writes numbered lines of 120 characters, text and line end in one go or (like print under -u) in two.
WRITER = (
    "import os, sys; rank, count, pieces = os.environ['RANK_ID'], {count}, {pieces}\n"
    "for n in range(count):\n"
    "    line = ('%s %06d ' % (rank, n)).ljust(120, 'x')\n"
    "    if pieces == 1: sys.stdout.write(line + '\\n')\n"
    "    else: sys.stdout.write(line); sys.stdout.flush(); sys.stdout.write('\\n'); sys.stdout.flush()\n"
)


@pytest.mark.parametrize(("count", "pieces"), [(20_000, 1), (3_000, 2)])
def test_no_line_of_four_ranks_is_lost_torn_or_doubled(jobs: Jobs, count: int, pieces: int) -> None:
    code, job = jobs.run(*[python(WRITER.format(count=count, pieces=pieces))] * 4, tail="all")
    assert code == 0
    lines = job.out.splitlines()
    pattern = re.compile(r"\[rank (\d)\] (\1 \d{6}) x+")
    found = [pattern.fullmatch(line) for line in lines]
    assert all(match is not None and len(match.string) == 129 for match in found)
    seen = Counter(match[2] for match in found if match)
    assert len(seen) == len(lines) == 4 * count
    for rank in range(4):
        order = [match[2] for match in found if match and match[1] == str(rank)]
        assert order == sorted(order)
        assert len(job.log(rank).splitlines()) == count


def test_one_rank_is_shown_as_it_writes(jobs: Jobs) -> None:
    code, job = jobs.run(sh("echo zero"), sh("echo one; printf 'no end'"), sh("echo two"), tail=[1])
    assert code == 0
    assert job.out == "one\nno end"


def test_nothing_is_shown_when_nothing_is_asked_for(jobs: Jobs) -> None:
    code, job = jobs.run(sh("echo zero"), tail=[])
    assert code == 0
    assert job.out == ""


def test_stdout_and_stderr_are_in_order_of_writing(jobs: Jobs) -> None:
    script = "import os\nfor n in range(50): os.write(1 + n % 2, b'%d\\n' % n)"
    _, job = jobs.run(python(script))
    assert job.log(0) == job.out == "".join(f"{n}\n" for n in range(50))


def test_a_last_line_without_end_does_not_run_into_the_next(jobs: Jobs) -> None:
    code, job = jobs.run(*[sh("printf half")] * 3, tail="all")
    assert code == 0
    assert sorted(job.out.splitlines()) == ["[rank 0] half", "[rank 1] half", "[rank 2] half"]


def test_what_a_failing_rank_said_last_is_shown_before_the_report(jobs: Jobs) -> None:
    code, job = jobs.run(sh("echo the reason; exit 3"), popen={"stderr": subprocess.STDOUT})
    assert code == 3
    assert job.out.index("the reason") < job.out.index("failed first")


def test_of_a_progress_bar_several_ranks_show_the_last_state(jobs: Jobs) -> None:
    bar = sh(r"printf '10%%\r50%%\r100%%\n'; printf 'dos\r\n'")
    _, job = jobs.run(bar, bar, tail="all")
    assert sorted(job.out.splitlines()) == [
        *("[rank 0] 100%", "[rank 0] dos"),
        *("[rank 1] 100%", "[rank 1] dos"),
    ]


def test_a_very_long_line_is_whole(jobs: Jobs) -> None:
    code, job = jobs.run(python("print('a' * 900_000); print('b')"), sh("echo c"), tail="all")
    assert code == 0
    assert sorted(len(line) for line in job.out.splitlines()) == [10, 10, 900_009]


def test_a_reader_that_does_not_read_holds_nobody_back(jobs: Jobs) -> None:
    """The rank writes on and ends, its death is seen; the reader then gets everything."""
    job = jobs.start(python(WRITER.format(count=20_000, pieces=1)), sh("echo over"))
    assert job.says("over", 1)
    assert eventually(lambda: job.log(0).count("\n") == 20_000)
    memory = Path(f"/proc/{job.launcher.pid}/status").read_text()
    assert int(memory.partition("VmHWM:")[2].split()[0]) < 40_000
    assert job.end() == 0
    assert job.out.count("\n") == 20_000


def test_a_failure_is_acted_on_while_the_reader_does_not_read(jobs: Jobs) -> None:
    job = jobs.start(
        python(WRITER.format(count=20_000, pieces=1) + "import time; time.sleep(300)"),
        sh("until [ $(wc -l < run_0/rank_0.log) -ge 10000 ]; do sleep 0.05; done; echo more; exit 5"),
    )
    assert job.says("more", 1)
    assert job.ranks_are_gone()
    assert job.end() == 5


def test_a_reader_that_goes_away_does_not_end_the_job(jobs: Jobs) -> None:
    job = jobs.start(sh("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.05; done"))
    assert job.launcher.stdout is not None
    job.launcher.stdout.readline()
    job.launcher.stdout.close()
    assert job.launcher.wait(LONG) == 0
    assert job.log(0).endswith("10\n")
    job.launcher.stdout = None


def test_interrupting_the_last_output_ends_at_once(jobs: Jobs) -> None:
    job = jobs.start(python(WRITER.format(count=20_000, pieces=1)))
    assert eventually(lambda: job.log(0).count("\n") == 20_000)
    assert eventually((job.run_dir / "report.json").exists)  # Then nothing is left but the output.
    job.launcher.send_signal(signal.SIGINT)
    assert job.launcher.wait(LONG) == 0


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a pseudo-terminal: ours and the program's."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def read_until(descriptor: int, text: str) -> str:
    """What is written to a terminal until a text."""
    data = b""
    while text.encode() not in data:
        assert select.select([descriptor], [], [], LONG)[0], data
        data += os.read(descriptor, 65536)
    return data.decode()


def read_all(descriptor: int, job: Job) -> str:
    """What is written to a terminal until the job is over."""
    data = b""
    while job.launcher.poll() is None or select.select([descriptor], [], [], 0.2)[0]:
        if select.select([descriptor], [], [], 0.2)[0]:
            data += os.read(descriptor, 65536)
    return data.decode()


def on_terminal(terminal: tuple[int, int], **more: object) -> dict[str, object]:
    """Arguments of Popen for a launcher in the foreground of a terminal."""
    theirs = terminal[1]

    def take_terminal() -> None:
        os.setsid()
        import fcntl

        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    return {"stdin": theirs, "stdout": theirs, "stderr": theirs, "preexec_fn": take_terminal, **more}


def test_a_terminal_gets_colours_and_a_progress_line(
    jobs: Jobs, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    waiting = sh("echo a; until [ -e go ]; do sleep 0.02; done")
    job = jobs.start(waiting, sh("echo b"), tail="all", popen=on_terminal(terminal))
    shown = read_until(terminal[0], "1 of 2 ranks running, 0:00:01")
    (jobs.folder / "go").touch()
    shown += read_all(terminal[0], job)
    assert "\x1b[36m[rank 0] \x1b[0ma" in shown
    assert "\x1b[33m[rank 1] \x1b[0mb" in shown
    assert shown.endswith("\x1b[K")


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUNS, reason="no mpirun")
def test_the_progress_line_counts_the_ranks_of_an_engine(
    own_directory: Path, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    waiting = "[ $RANK_ID = 1 ] || until [ -e go ]; do sleep 0.02; done"
    options: Any = on_terminal(terminal)
    job: subprocess.Popen[bytes] = subprocess.Popen(
        [sys.executable, "-m", "hccl_tools", "launch", "-n", "3", "--cpu", "--start", "torch",
         *MPIRUNS[0].for_launch, "--no-python", "sh", "-c", waiting],
        **options,
    )  # fmt: skip
    read_until(terminal[0], "2 of 3 ranks running")
    (own_directory / "go").touch()
    assert job.wait(LONG) == 0


@pytest.mark.parametrize("variable", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_switched_off(
    jobs: Jobs, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch, variable: tuple[str, str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(*variable)
    job = jobs.start(sh("echo a"), sh("echo b"), tail="all", popen=on_terminal(terminal))
    shown = read_all(terminal[0], job)
    assert "[rank 0] a" in shown
    assert "\x1b[3" not in shown


def test_ctrl_c_on_the_terminal_ends_the_job(jobs: Jobs, terminal: tuple[int, int]) -> None:
    job = jobs.start(sh("echo up; exec sleep 300"), popen=on_terminal(terminal))
    assert job.says("up", 0)
    os.write(terminal[0], b"\x03")
    read_all(terminal[0], job)
    assert job.launcher.wait() == 130
    assert not job.living()


def test_in_the_background_there_is_neither_colour_nor_sigttou(
    jobs: Jobs, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``hccl-tools launch ... &`` on a terminal under ``stty tostop``."""
    monkeypatch.setenv("TERM", "xterm")
    settings = termios.tcgetattr(terminal[1])
    settings[3] |= termios.TOSTOP
    termios.tcsetattr(terminal[1], termios.TCSANOW, settings)
    # A shell with job control owns the terminal; the launcher is its background job.
    prefix = ("/bin/sh", "-mc", '"$@" & wait $!', "sh")
    job = jobs.start(
        sh("echo a; sleep 1.2"), sh("echo b"), tail="all", prefix=prefix, popen=on_terminal(terminal)
    )
    shown = read_all(terminal[0], job)
    assert job.launcher.wait() == 0
    assert "[rank 0] a\r\n" in shown
    assert "\x1b[" not in shown
    assert "ranks running" not in shown


def test_a_stopped_terminal_stops_neither_the_job_nor_its_supervision(
    jobs: Jobs, terminal: tuple[int, int]
) -> None:
    """Ctrl-S."""
    job = jobs.start(
        sh("echo up; while :; do echo more; sleep 0.01; done"),
        sh("until [ -e stopped ]; do sleep 0.02; done; exit 5"),
        popen=on_terminal(terminal),
    )
    assert job.says("up", 0)
    os.write(terminal[0], b"\x13")
    (jobs.folder / "stopped").touch()
    assert job.ranks_are_gone()
    os.write(terminal[0], b"\x11")
    assert "exit code 5, from rank 1" in read_all(terminal[0], job)
    assert job.launcher.wait() == 5


def test_a_log_that_is_emptied_is_followed_from_its_new_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n")
    follower = Follower(str(log))
    assert follower.read() == b"one\ntwo\n"
    log.write_text("")
    assert follower.read() == b""
    log.write_text("new\n")
    assert follower.read() == b"new\n"
    follower.close()


def test_a_line_is_shown_when_it_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntw")
    follower = Follower(str(log), b"[rank 3] ")
    assert follower.read() == b"[rank 3] one\n"
    assert follower.read() == b""
    with log.open("a") as file:
        file.write("o\nthree")
    assert follower.read() == b"[rank 3] two\n"
    assert follower.read(last=True) == b"[rank 3] three\n"
    follower.close()


def test_a_bar_that_never_ends_its_line_is_shown_now_and_then(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("10%\r20%\r30%\r4")
    follower = Follower(str(log), b"> ")
    assert follower.read() == b""
    follower.redrawn_every = 0.0
    assert follower.read() == b"> 30%\n"
    assert follower.read() == b""
    assert follower.read(last=True) == b"> 4\n"
    follower.close()


def test_both_outputs_are_one_where_they_lead_to_one_place(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as one, (tmp_path / "b").open("wb") as other:
        apart = Console(out=one.fileno(), err=other.fileno())
        together = Console(out=one.fileno(), err=one.fileno())
        assert apart.out is not apart.err
        assert together.out is together.err
        together.out.send(b"half a line")
        together.say("first\n  second")
    assert (tmp_path / "a").read_text() == "half a line\nhccl-tools: first\n  second\n"


def test_a_full_pipe_makes_the_stream_wait_and_only_it() -> None:
    reading, writing = os.pipe()
    stream = Stream(writing)
    stream.send(b"x" * 1_000_000)
    assert stream.waiting
    assert os.get_blocking(writing)
    got = b""
    while len(got) < 1_000_000:
        got += os.read(reading, 65536)
        stream.pump()
    assert got == b"x" * 1_000_000
    stream.close()
    os.close(reading)
    os.close(writing)


def test_ranks_take_turns_on_a_slow_stream(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    stream = Stream(writing)
    followers = Followers(stream, several=True)
    for rank in range(2):
        (tmp_path / f"{rank}").write_text(f"{rank}\n" * 100_000)
        followers.follow(str(tmp_path / f"{rank}"), rank)
    got = b""
    while b"[rank 1]" not in got:
        followers.show()
        got += os.read(reading, 65536)
        stream.pump()
    assert len(got) < 3_000_000
    followers.close()
    stream.close()
    os.close(reading)
    os.close(writing)
