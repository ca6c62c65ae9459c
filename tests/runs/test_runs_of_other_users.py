"""What commands on the run of another user read, ask and print: that user's files and processes, as text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.logs import viewer
from hccl_tools.processes import procfs
from hccl_tools.processes.stack_dump import StackDump, Target
from hccl_tools.runs import directory, files, hosts, index, own_runs, run_processes
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.strangers import Stranger

#: An ordinary user, other than the stranger.
OTHER = 65533
#: Makes a run: argv has the run directory, the log of rank 0, and the number of further values.
RUN = """\
import json, os, sys
run, log, filler = sys.argv[1:]
os.mkdir(run, 0o755)
process = {"rank": 0, "host": os.uname().nodename, "here": True, "log": log, "argv": ["true"]}
plan = json.dumps({"processes": [process], "hosts": [os.uname().nodename], "filler": 1})
with open(os.path.join(run, "plan.json"), "w") as file:
    file.write(plan.replace('"filler": 1', '"filler": [' + "[]," * int(filler) + "1]"))
with open(os.path.join(run, "launcher"), "w") as file:
    file.write(f"0\\n{os.uname().nodename}\\n1.0\\nlaunch\\n1\\n")
with open(os.path.join(run, "rank_0.log"), "w") as file:
    file.write("a line\\n")
"""


def tools(stranger: Stranger, uid: int, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [stranger.interpreter, "-m", "hccl_tools", *args], cwd=stranger.folder, user=uid, group=uid,
        extra_groups=[], text=True, timeout=120, check=False, capture_output=True, env=stranger.environ(),
    )  # fmt: skip


@contextmanager
def rank(uid: int, run: Path, number: str) -> Iterator[int]:
    """A process of a user that says to be a rank of a run."""
    variables = {"HCCL_TOOLS_RUN_DIR": str(run), "RANK_ID": number}
    with subprocess.Popen(["sleep", "1000"], user=uid, group=uid, extra_groups=[], env=variables) as process:
        try:
            environment = Path(f"/proc/{process.pid}/environ")
            assert eventually(lambda: b"RANK_ID" in environment.read_bytes())
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("user", "made_here", "asked"),
    [("", True, ["node7.example"]), ("", False, []), ("someone", True, [])],
)
def test_no_name_server_is_asked_for_the_hosts_of_the_run_of_another_author(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, user: str, made_here: bool, asked: list[str]
) -> None:
    """That author chooses the names, and whose servers answer."""
    names: list[str] = []

    def look_up(name: str) -> str:
        names.append(name)
        raise OSError

    monkeypatch.setattr("_socket.gethostbyname", look_up)
    process = {"rank": 0, "host": "node7.example", "here": False, "log": "rank_0.log", "argv": ["true"]}
    hosts_of_plan = ["node7.example", "node8.example"]
    (tmp_path / "plan.json").write_text(json.dumps({"processes": [process], "hosts": hosts_of_plan}))
    run = index.Run(str(tmp_path), "elsewhere", host="node1", user=user)
    saved = files.plan(str(tmp_path)).processes[0]
    hosts._is_name_of_this_host.cache_clear()
    if made_here:
        own_runs.note(str(tmp_path), os.environ)

    assert not hosts.is_on_this_host(run, saved)
    assert not hosts.is_on_this_host(run, saved)
    assert names == asked


@pytest.mark.slow
def test_a_start_in_the_future_keeps_logs_waiting_for_seconds_only(tmp_path: Path) -> None:
    """The clock of the launcher's host may be ahead, or another user has written the time."""
    process = {"rank": 0, "host": "10.99.0.9", "here": False, "log": "rank_0.log", "argv": ["true"]}
    (tmp_path / "plan.json").write_text(json.dumps({"processes": [process], "hosts": ["a", "10.99.0.9"]}))
    run = index.Run(str(tmp_path), "running", host="a", started=time.time() + 1e6)

    assert not viewer._is_read_here(run, files.plan(str(tmp_path)).processes[0])


@pytest.mark.bed
def test_only_processes_of_the_owner_are_ranks(stranger: Stranger) -> None:
    run = stranger.folder / "run"
    run.mkdir()
    with rank(OTHER, run, "0") as one, rank(65534, run, "1") as other:
        assert run_processes.find(str(run)) == {0: one, 1: other}
        assert run_processes.find(str(run), owner=OTHER) == {0: one}


@pytest.mark.bed
def test_a_rank_of_thousands_of_digits_is_none(stranger: Stranger) -> None:
    with rank(OTHER, stranger.folder, "1" * 5000), rank(OTHER, stranger.folder, "3") as third:
        assert run_processes.find(str(stranger.folder)) == {3: third}


@pytest.mark.bed
@pytest.mark.parametrize("uid", [OTHER, 0], ids=["user", "root"])
def test_logs_shows_nothing_elsewhere(stranger: Stranger, uid: int) -> None:
    secret = stranger.folder / "secret"
    secret.write_text("precious\n")
    secret.chmod(0o600)
    os.chown(secret, uid, uid)
    for number, log in enumerate([str(secret), "../secret", "link.log"]):
        run = stranger.folder / f"run{number}"
        stranger.python(RUN, str(run), log, "0")
        (run / "link.log").symlink_to(secret)

        done = tools(stranger, uid, "logs", str(run))

        assert (done.returncode != 0, done.stdout) == (True, "")
        assert "precious" not in done.stderr
        assert "the log of rank 0" in done.stderr


@pytest.mark.bed
@pytest.mark.parametrize("uid", [OTHER, 0], ids=["user", "root"])
def test_a_plan_of_millions_of_values_is_not_read(stranger: Stranger, uid: int) -> None:
    logs = stranger.folder / "log"
    logs.mkdir()
    logs.chmod(0o1777)
    for name, filler in (("run-large", "6000000"), ("run-many", "900000"), ("run-good", "1000")):
        stranger.python(RUN, str(logs / name), "rank_0.log", filler)

    done = tools(stranger, uid, "jobs")

    assert done.returncode == 0
    # Other jobs of this host are listed as well.
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("run-")]
    assert listed == ["run-good"]
    assert "run-large/plan.json is larger than 16 MiB, the limit for the run of another user" in done.stderr
    assert "run-many/plan.json has more than 1,000,000 values" in done.stderr


@pytest.mark.bed
def test_the_name_of_a_run_is_printed_as_text(stranger: Stranger) -> None:
    run = stranger.folder / "run\n\x1b]0;title\x07"
    stranger.python(RUN, str(run), "rank_0.log", "0")

    for words in (["jobs", "--log-dir", "."], ["stop", str(run)], ["stacks", str(run)], ["logs", str(run)],
                  ["explain", str(run)], ["logs", str(run), "--rank", "7"]):  # fmt: skip
        done = tools(stranger, 0, *words)

        assert {"\x1b", "\x07"}.isdisjoint(done.stdout + done.stderr), words
        assert words[0] not in {"jobs", "stop"} or "\n\\u001b" not in done.stdout + done.stderr


@pytest.mark.bed
def test_a_list_of_runs_reads_a_bounded_part_of_those_of_others(stranger: Stranger) -> None:
    """Each plan is as large as one may be; the newest runs are listed, and all of this user."""
    names = [f"2001010{number}-101530-ab" for number in range(1, 7)]
    stranger.python("import os; os.mkdir('log', 0o777)")
    for name in names:
        run = stranger.folder / "log" / name
        stranger.python(RUN, str(run), "rank_0.log", "0")
        if name == names[2]:
            for path in (run, *run.iterdir()):
                os.chown(path, OTHER, OTHER)
        with (run / "plan.json").open("a") as file:
            file.write(" " * (12 << 20))

    done = tools(stranger, OTHER, "jobs")

    listed = [name for name in names if f"{name} " in done.stdout]
    assert listed == [names[2], *names[4:]], done.stdout + done.stderr
    for name in (names[0], names[1], names[3]):
        assert (
            f"{name} is skipped: the newer runs of this user have more than 32 MiB of plans and reports"
            in done.stderr
        )


#: Makes many copies of a run: argv has the run, and the number.
MANY = """\
import os, shutil, sys
for number in range(int(sys.argv[2])):
    shutil.copytree(sys.argv[1], f"log/20010101-{number:06}-ab")
"""


@pytest.mark.bed
def test_a_list_of_runs_looks_at_a_bounded_number_of_those_of_others(stranger: Stranger) -> None:
    stranger.python("import os; os.mkdir('log', 0o777); os.chmod('log', 0o777)")
    stranger.python(RUN, str(stranger.folder / "run"), "rank_0.log", "0")
    stranger.python(MANY, str(stranger.folder / "run"), "1040")
    stranger.as_user(OTHER).python(
        RUN, str(stranger.folder / "log" / "20000101-000000-cd"), "rank_0.log", "0"
    )

    done = tools(stranger, OTHER, "jobs", "-f", "json")

    listed = [run["name"] for run in json.loads(done.stdout)["runs"]]
    kept = [name for name in listed if name.startswith("2001")]
    assert sorted(kept) == [f"20010101-{number:06}-ab" for number in range(40, 1040)]
    assert "20000101-000000-cd" in listed
    assert "nobody: 40 older runs are left out; of another user, the newest 1,000 are listed" in done.stderr

    for name in ("20010101-000003-ab", "20010101-000003"):
        shown = tools(stranger, OTHER, "logs", "--log-dir", "log", name)
        assert (shown.returncode, shown.stdout) == (0, "a line\n"), shown.stderr
        assert "left out" not in shown.stderr
    absent = tools(stranger, OTHER, "logs", "--log-dir", "log", "1999-x")
    assert (absent.returncode, absent.stdout) == (2, "")
    assert "lists the 1,001 runs there" in " ".join(absent.stderr.split())


#: Lets a mapping of argv[1] bytes, with argv[2] in it, be the environment of a process (PR_SET_MM_MAP).
LARGE = """\
import ctypes, struct, sys
size, variable = int(sys.argv[1]), sys.argv[2].encode() + bytes(1)
libc = ctypes.CDLL(None)
libc.mmap.restype = libc.sbrk.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
begin = libc.mmap(None, size, 3, 0x4022, -1, 0)
ctypes.memmove(begin, variable, len(variable))
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
code_1, code_2, stack, data_1, data_2, heap, arg_1, arg_2 = (
    int(fields[number - 3]) for number in (26, 27, 28, 45, 46, 47, 48, 49))
places = code_1, code_2, data_1, data_2, heap, libc.sbrk(0), stack, arg_1, arg_2, begin, begin + size, 0
packed = struct.pack("=12QIi", *places, 0, -1)
print(libc.prctl(35, 14, packed, ctypes.c_ulong(len(packed)), 0), flush=True)
sys.stdin.read()
"""


@contextmanager
def large_environments(stranger: Stranger, number: int, size: int, variable: str) -> Iterator[list[int]]:
    """Processes of the stranger; yield their ids."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [stranger.interpreter, "-I", "-c", LARGE, str(size), variable], user=stranger.user,
                    group=stranger.user, extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                )
            )
            for _ in range(number)
        ]  # fmt: skip
        stack.callback(lambda: [one.communicate() for one in started])
        if {one.stdout.readline() for one in started if one.stdout} != {b"0\n"}:
            pytest.skip("this kernel does not let a process choose its environment")
        yield [one.pid for one in started]


def bytes_read() -> int:
    """Return the bytes that this process has read, from /proc as well."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.bed
def test_a_bounded_part_of_the_environments_of_a_user_is_read(stranger: Stranger) -> None:
    """An environment of any size costs the process nothing; each process is a member of its run."""
    run = str(stranger.folder / "run")
    stranger.python(RUN, run, "rank_0.log", "0")
    with large_environments(stranger, 40, 1 << 31, f"HCCL_TOOLS_RUN_DIR={run}") as pids:
        before = bytes_read()
        found = [one.pid for one in run_processes.members() if one.path == run]
        assert sorted(found) == sorted(pids)
        assert bytes_read() - before < 128 << 20


#: Makes a run whose launcher is alive, with a rank that has started a setuid program.
RUNNING = """\
import fcntl, json, os, signal, subprocess, sys, time
run = sys.argv[1]
os.mkdir(run, 0o755)
host = os.uname().nodename
process = {"rank": 0, "host": host, "here": True, "log": "rank_0.log", "argv": ["true"]}
with open(os.path.join(run, "plan.json"), "w") as file:
    json.dump({"processes": [process], "hosts": [host]}, file)
open(os.path.join(run, "rank_0.log"), "w").close()
launcher = open(os.path.join(run, "launcher"), "w")
launcher.write(f"{os.getpid()}\\n{host}\\n1.0\\nlaunch\\n1\\n")
launcher.flush()
fcntl.flock(launcher, fcntl.LOCK_EX)
variables = {"HCCL_TOOLS_RUN_DIR": run, "RANK_ID": "0"}
rank = "import subprocess, sys; print(subprocess.Popen(['./program', '1000']).pid, flush=True); input()"
ranks = subprocess.Popen([sys.executable, "-I", "-c", rank], env=variables, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
program = int(ranks.stdout.readline())
while open(f"/proc/{program}/comm").read() != "program\\n":
    time.sleep(0.01)
os.kill(program, signal.SIGSTOP)
while open(f"/proc/{program}/stat").read().rpartition(")")[2].split()[0] != "T":
    time.sleep(0.01)
print(program, ranks.pid, flush=True)
sys.stdin.read()
os.kill(program, signal.SIGKILL)
"""
PY_SPY = "#!/bin/sh\necho $4 >> {asked}\necho 'Thread 1 (idle): \"MainThread\"'\necho '    main (a.py:1)'\n"


@contextmanager
def running_with_a_program_of(uid: int, stranger: Stranger) -> Iterator[tuple[int, int]]:
    """Run a job whose rank has started a setuid program of a user; yield the ids of program and rank."""
    program = stranger.folder / "program"
    shutil.copy("/bin/sleep", program)
    os.chown(program, uid, uid)
    program.chmod(0o4755)
    with subprocess.Popen(
        [stranger.interpreter, "-I", "-c", RUNNING, str(stranger.folder / "run")], cwd=stranger.folder,
        user=stranger.user, group=stranger.user, extra_groups=[], env=stranger.environ(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as job:  # fmt: skip
        assert job.stdout is not None
        found = job.stdout.readline().split()
        yield int(found[0]), int(found[1])
        job.communicate()


@pytest.mark.bed
@pytest.mark.parametrize("uid", [OTHER, 0], ids=["user", "root"])
def test_stacks_does_not_ask_a_setuid_program_of_a_third_user(
    stranger: Stranger, uid: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    (tmp_path / "py-spy").write_text(PY_SPY.format(asked=asked))
    (tmp_path / "py-spy").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with running_with_a_program_of(uid, stranger) as (program, rank_pid):
        if procfs.user(program) != uid:
            pytest.skip("this file system is mounted without setuid programs")
        done = tools(stranger, 0, "stacks", str(stranger.folder / "run"))

        assert done.returncode == 0, done.stderr
        assert f"pid {rank_pid})" in done.stdout
        assert str(program) not in done.stdout
        assert asked.read_text().split() == [str(rank_pid)]

        log = tmp_path / "log"
        log.touch()
        target = Target(program, str(log))
        stack = StackDump([target], wake=True, owner=stranger.user).finish()[target]
        assert "another user" in stack.problem
        assert asked.read_text().split() == [str(rank_pid)]


#: Starts a member of a run below a setuid program whose name is that of a keeper; argv has the run directory.
BELOW_A_PROGRAM = """\
import os, signal, subprocess, sys, time
member = "import os; os.setreuid(os.getuid(), os.getuid()); os.execvp('sleep', ['sleep', '1000'])"
start = f'{sys.executable} -I -c "{member}" & wait'
variables = {"HCCL_TOOLS_RUN_DIR": sys.argv[1], "PATH": os.defpath}
program = subprocess.Popen(["./hccl-program", "-p", "-c", start], env=variables).pid
def inside():
    return open(f"/proc/{program}/task/{program}/children").read().split()
while not inside() or open(f"/proc/{inside()[0]}/comm").read() != "sleep\\n":
    time.sleep(0.01)
os.kill(program, signal.SIGSTOP)
print(program, inside()[0], flush=True)
sys.stdin.read()
os.kill(program, signal.SIGKILL)
"""


@pytest.mark.bed
def test_stop_does_not_resume_a_setuid_program_of_a_third_user(stranger: Stranger) -> None:
    run, program = stranger.folder / "run", stranger.folder / "hccl-program"
    stranger.python(RUN, str(run), "rank_0.log", "0")
    shutil.copy("/bin/sh", program)
    os.chown(program, OTHER, OTHER)
    program.chmod(0o4755)
    with subprocess.Popen(
        [stranger.interpreter, "-I", "-c", BELOW_A_PROGRAM, str(run)], cwd=stranger.folder,
        user=stranger.user, group=stranger.user, extra_groups=[], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as job:  # fmt: skip
        assert job.stdout is not None
        above, member = map(int, job.stdout.readline().split())
        if procfs.user(above) != OTHER:
            pytest.skip("this file system is mounted without setuid programs")
        assert eventually(lambda: (status := procfs.status(above)) is not None and status.state == "T")

        done = tools(stranger, 0, "stop", str(run))

        assert "killed 1 remaining process" in done.stderr, done.stderr
        ended = procfs.status(member)
        assert ended is None or ended.state in procfs.ENDED_STATES
        left = procfs.status(above)
        assert left is not None
        assert left.state == "T"
        job.communicate()


#: Starts setuid programs that name run directories: argv has the program, and a path for each.
CLAIMS = """\
import os, subprocess, sys
program, *paths = sys.argv[1:]
started = [subprocess.Popen([program, "1000"], env={"HCCL_TOOLS_RUN_DIR": path}) for path in paths]
print(*(one.pid for one in started), flush=True)
sys.stdin.read()
for one in started:
    one.kill()
"""


@contextmanager
def claiming(
    stranger: Stranger, program: str, paths: list[str], user: int | None = None
) -> Iterator[list[int]]:
    """Processes of the stranger that name run directories; yield their ids."""
    uid = stranger.user if user is None else user
    with subprocess.Popen(
        [stranger.interpreter, "-I", "-c", CLAIMS, program, *paths], user=uid, group=uid, extra_groups=[],
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdout is not None
        pids = [int(pid) for pid in started.stdout.readline().split()]
        for pid in pids:
            assert eventually(lambda: b"HCCL_TOOLS" in Path(f"/proc/{pid}/environ").read_bytes())  # noqa: B023
        yield pids
        started.communicate()


@pytest.mark.bed
@pytest.mark.parametrize("is_sudo", [False, True], ids=["su", "sudo"])
def test_a_setuid_program_names_no_run(stranger: Stranger, is_sudo: bool) -> None:
    """Another user has chosen its environment; ``sudo`` gives itself the real user id of root, too."""
    run, program = stranger.folder / "run", stranger.folder / "program"
    stranger.as_user(OTHER).python(RUN, str(run), "rank_0.log", "0")
    shutil.copy(Path(stranger.interpreter).resolve() if is_sudo else "/bin/sleep", program)
    os.chown(program, 0, 0)
    program.chmod(0o4755)
    words = [str(program), "1000"]
    if is_sudo:
        words[1] = str(stranger.folder / "program.py")
        Path(words[1]).write_text("import os, time; os.setresuid(0, 0, 0); time.sleep(1000)\n")
    with subprocess.Popen(
        words, user=stranger.user, group=stranger.user, extra_groups=[], stderr=subprocess.DEVNULL,
        env={"HCCL_TOOLS_RUN_DIR": str(run)},
    ) as started:  # fmt: skip
        try:
            if not eventually(lambda: procfs.user(started.pid) == 0):
                pytest.skip("this file system is mounted without setuid programs")
            ids = f"/proc/{started.pid}/status"
            assert not is_sudo or eventually(lambda: "Uid:\t0\t0\t0\t0" in Path(ids).read_text())
            assert [one for one in run_processes.members() if one.path == str(run)] == []
        finally:
            started.kill()


@pytest.mark.bed
def test_processes_name_runs_by_the_path_that_launch_gives_them(stranger: Stranger) -> None:
    run = f"{stranger.folder}/run"
    stranger.python(RUN, run, "rank_0.log", "0")
    spellings = [
        run,
        f"{run}/",
        f"/{run}",
        f"{stranger.folder}/./run",
        f"{stranger.folder}/x/../run",
        "run",
        "/",
        "",
    ]

    with claiming(stranger, "sleep", spellings) as pids:
        found = [one for one in run_processes.members() if one.pid in pids]
        jobs = tools(stranger, 0, "jobs", "--log-dir", "/proc")

    assert found == [run_processes.Member(pids[0], stranger.user, run)]
    # Other tests can have runs of others at the same time.
    rows = [
        line for line in jobs.stdout.splitlines() if line.startswith("run ") and "launcher killed" in line
    ]
    assert len(rows) == 1, jobs.stdout


@pytest.mark.bed
def test_runs_that_processes_name_are_counted_apart(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a user with many processes hides the runs in the log directory."""
    monkeypatch.setattr(index, "_MOST_OF_OTHERS", 3)
    stranger.python("import os; os.mkdir('log'); os.mkdir('attack')")
    for number in range(3):
        stranger.python(RUN, f"{stranger.folder}/log/20010101-00000{number}-ab", "rank_0.log", "0")
    claimed = [f"{stranger.folder}/attack/20010101-00000{number}-cd" for number in range(5)]
    for path in claimed:
        stranger.python(RUN, path, "rank_0.log", "0")

    with claiming(stranger, "sleep", claimed):
        found = [run.path for run in index.find(f"{stranger.folder}/log")]

    assert [path for path in found if path.startswith(f"{stranger.folder}/log/")] == [
        f"{stranger.folder}/log/20010101-00000{number}-ab" for number in range(3)
    ]
    assert len([path for path in found if path in claimed]) <= 3  # Other tests use this user as well.


def test_a_run_that_is_gone_after_its_file_was_read_is_malformed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user can rename a directory at any time; `jobs` then leaves the run out."""
    run = tmp_path / "20261127-210000-dead"
    run.mkdir()
    (run / "plan.json").write_text("{}")
    read = files._read

    def read_and_rename(path: str, name: str, most: int) -> bytes:
        data = read(path, name, most)
        if run.exists():
            run.rename(tmp_path / "elsewhere")
        return data

    monkeypatch.setattr(files, "_read", read_and_rename)
    monkeypatch.setattr(directory, "is_own", lambda _path: False)
    with files.limited_in_all(), pytest.raises(files.MalformedRunError):
        files.plan(str(run))
