"""``spawn`` as paddle's guide uses it, in a real caller with real children."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hccl_tools
from hccl_tools.launch.spawn.errors import RankFacts, RankFailedError, failure
from tests.support import published
from tests.support.jobs import eventually

pytestmark = pytest.mark.slow

WORK = """\
import json, os, signal, subprocess, sys, time
import hccl_tools

# Whatever the child's interpreter sees at its very start.
AT_IMPORT = (os.environ.get("RANK_ID"), os.environ.get("DEVICE_ID"), os.environ.get("RANK_SIZE"))

class Two(Exception):
    def __init__(self, text, number):
        super().__init__(text)
        self.number = number

def who(*args):
    print("rank at work", flush=True)
    return AT_IMPORT, args, hccl_tools.current_rank().rank

def large(size):
    return bytes(size)

def fails(rank, what):
    if hccl_tools.current_rank().rank != rank:
        time.sleep(600)
    if what == "value":
        raise ValueError("boom", 42)
    if what == "long":
        raise RuntimeError("x" * 200_000)
    if what == "local":
        class Own(LookupError):
            pass
        raise Own("mine")
    if what == "two":
        raise Two("first", 2)
    if what == "unsendable":
        raise OSError(2, lambda: 1)
    if what == "exit":
        sys.exit(3)
    os.kill(os.getpid(), signal.SIGKILL)

def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    program = "trap '' TERM; echo $$ > child_$RANK_ID.pid; sleep 600"
    subprocess.Popen(["sh", "-c", program], start_new_session=True)
    with open(f"own_{os.environ['RANK_ID']}.pid", "w") as file:
        print(os.getpid(), file=file)
    if hccl_tools.current_rank().rank == 0:
        while len([name for name in os.listdir(".") if name.endswith(".pid")]) < 4:
            time.sleep(0.01)
        raise ValueError("ended")
    time.sleep(600)

def parents():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 60 & wait"])
    print("up", flush=True)
    time.sleep(60)

def holds(root):
    device = open(f"{root}/dev/davinci{4 + hccl_tools.current_rank().rank}")
    if hccl_tools.current_rank().rank == 0:
        open("held", "w").close()
    time.sleep(60)

def leaves_early():
    sys.exit(0)

def stays(rank):
    if hccl_tools.current_rank().rank == rank:
        time.sleep(60)

def interrupted():
    if hccl_tools.current_rank().rank == 1:
        raise KeyboardInterrupt
    time.sleep(60)

def paddles():
    return {name: text for name, text in os.environ.items() if name.startswith(("PADDLE_", "FLAGS_"))}

def inner():
    def train():
        return 1
    return train

def says(size):
    print("first line", flush=True)
    print("last words", flush=True)
    if size < 0:
        os._exit(9)
    return lambda: size

def workers():
    import multiprocessing
    with multiprocessing.Pool(2) as pool:
        return sum(pool.map(abs, [-1, -2, -3]))
"""


def caller(program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program that calls spawn; it may use the functions of ``work``."""
    Path("work.py").write_text(WORK)
    lines = ["import hccl_tools, json, os, time, work", "if __name__ == '__main__':"]
    lines += [f"    {line}" for line in program.strip().splitlines()]
    Path("main.py").write_text("\n".join(lines) + "\n")
    return subprocess.run(
        [sys.executable, "main.py"], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, **environ},
    )  # fmt: skip


def answer(program: str, **environ: str) -> object:
    done = caller(program, **environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


OPTIONS = 'cpu=True, start="table"'


def test_environment_is_complete_before_the_interpreter_starts() -> None:
    results = answer(f"""
context = hccl_tools.spawn(work.who, args=("a", 2), nprocs=2, {OPTIONS})
print(json.dumps(context.results))""")

    assert results == [[["0", "0", "2"], ["a", 2], 0], [["1", "1", "2"], ["a", 2], 1]]
    assert Path("log/latest/rank_1.log").read_text() == "rank at work\n"


def test_all_visible_devices() -> None:
    results = answer('print(json.dumps(hccl_tools.spawn(work.who, start="torch", env={"A": 1}).results))',
                     ASCEND_RT_VISIBLE_DEVICES="4,5,6,7")  # fmt: skip

    assert isinstance(results, list)
    assert [result[0][:2] for result in results] == [["0", "0"], ["1", "1"], ["2", "2"], ["3", "3"]]


def test_a_rehearsal_without_a_number_takes_what_a_variable_names_else_two() -> None:
    for environ, count in (({}, 2), ({"CUDA_VISIBLE_DEVICES": "0,1,2"}, 3)):
        done = caller(f"print(len(hccl_tools.spawn(work.who, {OPTIONS}).results))", **environ)

        assert done.stdout.splitlines()[-1] == str(count), done.stderr
        assert f"cpu=True without a number of ranks: {count}" in done.stderr


def test_devices_by_their_own_numbers() -> None:
    results = answer(f'print(json.dumps(hccl_tools.spawn(work.who, gpus="4,5", {OPTIONS}).results))')

    assert isinstance(results, list)
    assert [result[0][:2] for result in results] == [["0", "4"], ["1", "5"]]


def test_function_of_the_main_script() -> None:
    Path("main2.py").write_text(
        "import hccl_tools\n"
        "def train(x):\n    return x + hccl_tools.current_rank().rank\n"
        "if __name__ == '__main__':\n"
        f"    print(hccl_tools.spawn(train, (10,), 2, {OPTIONS}).results)\n"
    )
    done = subprocess.run(
        [sys.executable, "main2.py"], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "[10, 11]\n"


def test_results_of_any_size() -> None:
    sizes = answer(f"""
context = hccl_tools.spawn(work.large, (3_000_000,), 2, {OPTIONS})
print(json.dumps([len(context.return_queues[rank].get()) for rank in range(2)]))""")

    assert sizes == [3_000_000, 3_000_000]


@pytest.mark.parametrize(
    ("what", "kind", "code", "name"),
    [
        ("value", "ValueError", 1, None),
        ("long", "RuntimeError", 1, None),
        ("local", "LookupError", 1, None),
        ("two", "work.Two", 1, None),
        ("unsendable", "OSError", 1, None),
        ("exit", "hccl_tools.RankFailedError", 3, None),
        ("kill", "hccl_tools.RankFailedError", 137, "SIGKILL"),
    ],
)
def test_failure_keeps_its_type_and_everything_known(
    what: str, kind: str, code: int, name: str | None
) -> None:
    found = answer(f"""
try:
    hccl_tools.spawn(work.fails, (1, {what!r}), 2, gpus="4,5", {OPTIONS})
except {kind} as error:
    assert isinstance(error, hccl_tools.RankFailedError)
    if hasattr(error, "number"):
        open("number", "w").write(str(error.number))
    print(json.dumps([error.rank, error.device, error.pid > 0, error.rank_exit_code, error.signal,
                      "in fails" in str(error), getattr(error.__cause__, "args", None)]))""")

    assert what != "two" or Path("number").read_text() == "2"
    args = {"value": ["boom", 42], "long": ["x" * 200_000], "local": ["mine"], "two": ["first"]}.get(what)
    assert isinstance(found, list)
    if what == "unsendable":
        args = found[-1]
        assert args[0] == "2"
        assert "<lambda>" in args[1]
    assert found == [1, 5, True, code, name, what not in {"exit", "kill"}, args]


def test_end_is_bounded_and_leaves_nothing() -> None:
    done = caller(f"hccl_tools.spawn(work.stubborn, (), 2, grace=0.3, {OPTIONS})")

    assert "ValueError" in done.stderr
    pids = [path.read_text().strip() for path in Path.cwd().glob("*.pid")]
    assert len(pids) == 4
    assert not [pid for pid in pids if Path("/proc", pid).exists()]


def test_nothing_outlives_a_killed_caller() -> None:
    Path("work.py").write_text(WORK)
    Path("main.py").write_text(
        "import hccl_tools, work\nif __name__ == '__main__':\n"
        f"    hccl_tools.spawn(work.parents, nprocs=2, {OPTIONS})\n"
    )
    with subprocess.Popen([sys.executable, "main.py"], stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "up\n"
        run_dir = str(Path("log/latest").resolve())
        # Each rank, its two children and a grandchild.
        assert eventually(lambda: len(_processes_of(run_dir)) == 8)
        job.send_signal(signal.SIGKILL)
    assert eventually(lambda: not _processes_of(run_dir))


def _processes_of(run_dir: str) -> list[str]:
    wanted = f"HCCL_TOOLS_RUN_DIR={run_dir}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
    return found


def test_join_later_with_a_time_limit() -> None:
    found = answer(f"""
context = hccl_tools.spawn(work.who, nprocs=2, join=False, {OPTIONS})
early = context.join(timeout=0)
print(json.dumps([early, context.join(), context.join(), [one.exitcode for one in context.processes]]))""")

    assert found == [False, True, True, [0, 0]]


def test_caller_that_ends_waits_for_its_ranks_unless_they_are_daemons() -> None:
    assert caller(f"hccl_tools.spawn(work.who, nprocs=1, join=False, {OPTIONS})").returncode == 0
    assert "rank at work" in Path("log/latest/rank_0.log").read_text()
    caller(f"hccl_tools.spawn(work.fails, (9, 'value'), 1, False, True, {OPTIONS})")


def test_sys_exit_0_is_a_good_end_without_a_result() -> None:
    assert answer(f"print(json.dumps(hccl_tools.spawn(work.leaves_early, (), 1, {OPTIONS}).results))") == [
        None
    ]


def test_what_rank_0_writes_is_shown() -> None:
    done = caller(f"hccl_tools.spawn(work.who, nprocs=2, {OPTIONS})")
    everyone = caller(f"hccl_tools.spawn(work.who, nprocs=2, tail='all', {OPTIONS})")
    nobody = caller(f"hccl_tools.spawn(work.who, nprocs=2, tail=None, {OPTIONS})")

    assert done.stdout == "rank at work\n"
    assert sorted(everyone.stdout.splitlines()) == ["[rank 0] rank at work", "[rank 1] rank at work"]
    assert nobody.stdout == ""


def test_last_lines_of_a_rank_that_says_nothing_else() -> None:
    done = caller(f"hccl_tools.spawn(work.says, (-1,), 1, tail=None, {OPTIONS})")

    assert "rank 0 (device 0, pid " in done.stderr
    assert "exited with code 9" in done.stderr
    assert "| last words" in done.stderr


def test_result_that_cannot_be_sent() -> None:
    done = caller(f"hccl_tools.spawn(work.says, (1,), 1, {OPTIONS})")

    assert "TypeError: rank 0" in done.stderr
    assert "the result (function) cannot be sent to the caller" in done.stderr


def test_run_directory_tells_how_it_went() -> None:
    caller(f"hccl_tools.spawn(work.fails, (1, 'exit'), 2, {OPTIONS})")
    report = published.read("report", Path("log/latest/report.json"))
    plan = json.loads(Path("log/latest/plan.json").read_text())

    assert (report["exit_code"], report["reason"], report["first_failure"]["rank"]) == (3, "failed", 1)
    assert [process["rank"] for process in plan["processes"]] == [0, 1]


def test_pids_are_known_at_once_and_ctrl_c_ends_everything() -> None:
    Path("work.py").write_text(WORK)
    Path("main.py").write_text(
        "import hccl_tools, work\nif __name__ == '__main__':\n"
        f"    context = hccl_tools.spawn(work.fails, (9, 'value'), 2, join=False, grace=60, {OPTIONS})\n"
        "    print(*context.pids(), flush=True)\n    context.join()\n"
    )
    with subprocess.Popen([sys.executable, "main.py"], stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        pids = job.stdout.readline().split()
        assert all(Path("/proc", pid).exists() for pid in pids)
        assert len(pids) == 2
        job.send_signal(signal.SIGINT)
        assert job.wait(30) == -signal.SIGINT
    assert not [pid for pid in pids if Path("/proc", pid).exists()]


def test_error_crosses_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(failure(FACTS, "Traceback: ...", ValueError("x"))))  # noqa: S301

    assert isinstance(error, ValueError)
    assert isinstance(error, RankFailedError)
    assert error.rank == 1


def test_ranks_may_have_workers_of_their_own() -> None:
    assert answer(
        f"print(json.dumps(hccl_tools.spawn(work.workers, (), 1, daemon=True, {OPTIONS}).results))"
    ) == [6]


def test_table_decides_ranks_and_devices() -> None:
    devices = [
        {"device_id": str(device), "device_ip": f"192.168.0.{device}", "rank_id": str(rank)}
        for rank, device in enumerate((5, 4))
    ]
    value = {
        "version": "1.0", "server_count": "1", "status": "completed",
        "server_list": [{"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}],
    }  # fmt: skip
    Path("table.json").write_text(json.dumps(value))
    call = f'hccl_tools.spawn(work.who, rank_table="table.json", {OPTIONS})'

    # The second rehearsal of the table starts while the first is not joined.
    results = answer(f"""
first = {call[:-1]}, join=False)
second = {call}
first.join()
print(json.dumps(second.results))
""")

    assert isinstance(results, list)
    assert [result[0][:2] for result in results] == [["0", "5"], ["1", "4"]]


def test_variables_that_paddles_spawn_sets() -> None:
    for start in ("table", "torch"):
        found = answer(
            "print(json.dumps(hccl_tools.spawn("
            f"work.paddles, gpus='4,5', cpu=True, start={start!r}).results))",
            PADDLE_TRAINER_ID="7", PADDLE_MASTER="10.0.0.9:1",
        )  # fmt: skip

        assert isinstance(found, list)
        everyone = found[0]["PADDLE_TRAINER_ENDPOINTS"]
        for rank, endpoint in enumerate(everyone.split(",")):
            assert found[rank] == {
                "PADDLE_TRAINER_ID": str(rank), "PADDLE_TRAINERS_NUM": "2", "PADDLE_RANK_IN_NODE": str(rank),
                "PADDLE_GLOBAL_RANK": str(rank), "PADDLE_GLOBAL_SIZE": "2",
                "PADDLE_LOCAL_RANK": str(rank), "PADDLE_LOCAL_SIZE": "2", "PADDLE_NNODES": "1",
                "PADDLE_CURRENT_ENDPOINT": endpoint, "PADDLE_TRAINER_ENDPOINTS": everyone,
                "PADDLE_MASTER": everyone.split(",")[0], "PADDLE_LOG_DIR": found[0]["PADDLE_LOG_DIR"],
                "FLAGS_selected_npus": str(4 + rank if start == "table" else rank),
                "PADDLE_DISTRI_BACKEND": "gloo",
            }  # fmt: skip


def test_processes_can_be_waited_for_and_ended_one_by_one() -> None:
    found = answer(f"""
context = hccl_tools.spawn(work.stays, (1,), 2, join=False, grace=1, {OPTIONS})
first, second = context.processes
first.join(30)
second.join(0.01)
codes = [first.exitcode, second.exitcode]
second.terminate()
second.join()
try:
    context.join()
except hccl_tools.RankFailedError as error:
    print(json.dumps([codes, second.exitcode, error.rank, error.signal, context.error_queues[1].empty()]))""")

    assert found == [[0, None], -signal.SIGTERM, 1, "SIGTERM", True]


def test_waiting_for_one_rank_ends_with_the_failure_of_another() -> None:
    found = answer(f"""
context = hccl_tools.spawn(work.fails, (1, "value"), 2, join=False, grace=1, {OPTIONS})
context.processes[0].join()
text = context.error_queues[1].get()
print(json.dumps([context.processes[0].exitcode, text.splitlines()[1], text.splitlines()[-1]]))""")

    assert isinstance(found, list)
    # The traceback begins in the caller's own function.
    assert (found[0], found[2]) == (-signal.SIGTERM, "ValueError: ('boom', 42)")
    assert "work.py" in found[1]


def test_waiting_for_a_rank_that_fails_ends_the_others() -> None:
    found = answer(f"""
context = hccl_tools.spawn(work.fails, (1, "value"), 2, join=False, grace=1, {OPTIONS})
context.processes[1].join()
print(json.dumps([process.exitcode for process in context.processes]))""")

    assert found == [-signal.SIGTERM, 1]


def test_a_rank_that_was_killed_with_its_keeper_has_failed() -> None:
    found = answer(f"""
context = hccl_tools.spawn(work.parents, (), 2, join=False, grace=1, {OPTIONS})
from hccl_tools.processes import procfs
os.kill(procfs.status(context.pids()[0]).parent, 9)
try:
    context.join()
except hccl_tools.RankFailedError as error:
    report = json.load(open(context.run_dir + "/report.json"))
    print(json.dumps([error.rank, error.signal, report["reason"], report["exit_code"]]))""")

    assert found == [0, "SIGKILL", "failed", 137]


def test_interrupted_rank_is_no_good_end() -> None:
    done = caller(f"hccl_tools.spawn(work.interrupted, nprocs=2, {OPTIONS})")

    assert "RankFailedError: rank 1 (device 1, pid " in done.stderr
    assert "exited with code 130" in done.stderr


@pytest.fixture
def npus(own_directory: Path) -> str:
    """Make up devices 4 and 5; return the root of that host."""
    (own_directory / "root" / "dev").mkdir(parents=True)
    for device in (4, 5):
        (own_directory / "root" / "dev" / f"davinci{device}").touch()
    return str(own_directory / "root")


def test_device_that_another_process_holds_is_told_before_anything_starts(npus: str) -> None:
    call = "hccl_tools.spawn(work.who, start='torch')"
    program = "import sys; file = open(sys.argv[1]); print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, f"{npus}/dev/davinci5"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        other.stdout.readline()
        refused = caller(call, HCCL_TOOLS_ROOT=npus)
        logs = Path("log").exists()
        all_the_same = caller(call.replace(")", ", preflight=False)"), HCCL_TOOLS_ROOT=npus)
        rehearsed = caller(call.replace(")", ", nprocs=2, cpu=True)"), HCCL_TOOLS_ROOT=npus)
        other.communicate()

    assert f"LaunchError: device 5 is in use by process {other.pid}" in refused.stderr
    assert "preflight=False starts anyway" in refused.stderr
    assert not logs
    assert all_the_same.returncode == rehearsed.returncode == 0, all_the_same.stderr + rehearsed.stderr


def test_device_that_the_caller_itself_holds_is_no_obstacle(npus: str) -> None:
    opened = f"device = open({npus!r} + '/dev/davinci5')\n"
    done = caller(opened + "hccl_tools.spawn(work.who, start='torch')", HCCL_TOOLS_ROOT=npus)

    assert done.returncode == 0, done.stderr


def test_ranks_that_still_run_hold_their_devices(npus: str) -> None:
    done = caller(
        f"first = hccl_tools.spawn(work.holds, ({npus!r},), join=False, daemon=True, start='torch')\n"
        "while not os.path.exists('held'): time.sleep(0.01)\n"
        "hccl_tools.spawn(work.who, start='torch')",
        HCCL_TOOLS_ROOT=npus,
    )

    assert "device 4 is in use by process" in done.stderr
    assert "left over from run " in done.stderr


def test_the_variable_of_cuda_has_no_effect_and_is_named(npus: str) -> None:
    program = "hccl_tools.spawn(work.who, nprocs={}, start='torch', cpu={})"
    alone = {"HCCL_TOOLS_ROOT": npus, "CUDA_VISIBLE_DEVICES": "5"}

    named = caller(program.format(1, False), **alone)
    rehearsed = caller(program.format(1, True), **alone)

    note = 'use ASCEND_RT_VISIBLE_DEVICES=5, or devices="5"'
    assert named.stderr.splitlines()[0] == f"note: CUDA_VISIBLE_DEVICES=5 has no effect on NPUs: {note}"
    assert "CUDA" not in rehearsed.stderr


def test_device_that_is_not_here(npus: str) -> None:
    done = caller("hccl_tools.spawn(work.who, gpus='6,7', start='torch')", HCCL_TOOLS_ROOT=npus)

    assert "gpus: device 6 is not visible here" in done.stderr


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("selected_devices='4,5'", "selected_devices is an old name of devices"),
        ("nprocs=1, started_port=12000", "started_port is an old name of start_port"),
        ("nprocs=1, use_paddlecloud=False", "use_paddlecloud is an old name and has no effect"),
    ],
)
def test_old_names_of_options_are_taken_and_said(old: str, words: str) -> None:
    done = caller(f"hccl_tools.spawn(work.who, {old}, {OPTIONS})")

    assert done.returncode == 0
    assert f"main.py:3: DeprecationWarning: spawn: {words}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("foo=1", "option foo of spawn is not supported"),
        ("gpu='4'", "did you mean gpus"),
        ("gpus='4', npus='5'", "exclude each other"),
        ("nprocs=3, gpus='4,5'", "nprocs=3, but gpus names 2"),
        ("gpus='four'", "gpus='four': "),
        ("gpus=4, nprocs=2", "nprocs=2, but gpus names 1"),
        ("gpus='4,4'", 'device 4 is in "4,4" twice'),
        ("gpus='4-5', rank_table='table.json'", "exclude each other"),
        ("start_method='thread', nprocs=1", "one of spawn, fork, forkserver"),
        ("backend='tcp', nprocs=1", "one of auto, hccl"),
        ("backend='nccl', nprocs=1", "one of auto, hccl, xccl, gloo"),
        ("nproc=2", "the option nproc of spawn is not supported (did you mean nprocs?)"),
        ("start='here', nprocs=1", "one of table, cluster, torch"),
        ("ips='10.0.0.1,10.0.0.2'", "on this machine only"),
        ("nprocs=0", "nprocs=0: must be at least 1, or -1 for all visible devices"),
        ("nprocs='2'", "nprocs='2': must be at least 1"),
        ("args=5, nprocs=1", "write args=(5,)"),
        ("args='abc', nprocs=1", "write args=('abc',)"),
        ("grace='x', nprocs=1", "grace='x' is not a number of seconds"),
        ("env=3, nprocs=1", "env=3 is not a mapping"),
        ("env={'A B': 1}, nprocs=1", "is not NAME=VALUE"),
        ("env={'RANK_ID': 1}, nprocs=1", "RANK_ID is set for each rank"),
        ("env={'DEVICE_ID': 1}, nprocs=2, cpu=True", "but DEVICE_ID differs between ranks"),
        ("start_port=80, nprocs=1", "start_port=80 is not a port"),
        ("tail='first', nprocs=1", "tail='first' is not a list of ranks"),
    ],
)
def test_wrong_options_are_told_before_anything_starts(arguments: str, words: str) -> None:
    done = caller(f"hccl_tools.spawn(work.who, {arguments})")

    assert words in done.stderr
    assert "SpawnOptionError" in done.stderr
    assert not Path("log").exists()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("lambda: 1", "a lambda cannot be sent"),
        ("work.inner()", "defined inside a function"),
        ("5", "5 is not a function"),
        ("work.who, (open('main.py'),)", "must be picklable"),
    ],
)
def test_call_that_cannot_be_sent(function: str, words: str) -> None:
    done = caller(f"hccl_tools.spawn({function}, nprocs=1, {OPTIONS})")

    assert words in done.stderr
    assert not Path("log").exists()


@pytest.mark.parametrize("way", [("-c",), ("-",), ("-i",)])
def test_function_that_was_typed_in(way: tuple[str, ...]) -> None:
    program = f"import hccl_tools\ndef f(): return 1\n\nhccl_tools.spawn(f, nprocs=1, {OPTIONS})\n"
    argv = [*way, program] if way == ("-c",) else way
    done = subprocess.run(
        [sys.executable, *argv], input=program, capture_output=True, text=True, timeout=60, check=False
    )

    assert "f was typed into an interactive session, python -c or stdin" in done.stderr
    assert not Path("log").exists()


def test_function_of_a_module_from_an_interactive_session() -> None:
    Path("work.py").write_text(WORK)
    program = f"import hccl_tools, work\nprint(hccl_tools.spawn(work.large, (3,), 1, {OPTIONS}).results)\n"
    done = subprocess.run(
        [sys.executable, "-"], input=program, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout == "[b'\\x00\\x00\\x00']\n"


@pytest.mark.parametrize("way", [("-m", "package"), ("package",)])
def test_function_of_a_packages_main_module(way: tuple[str, ...]) -> None:
    Path("package").mkdir()
    Path("package/__main__.py").write_text(
        "import hccl_tools\ndef f(): return 1\n"
        f"if __name__ == '__main__':\n    hccl_tools.spawn(f, (), 2, {OPTIONS})\n"
    )
    done = subprocess.run([sys.executable, *way], capture_output=True, text=True, timeout=60, check=False)

    assert "f is defined in the __main__.py of a package, where other processes cannot find it" in done.stderr
    assert not Path("log").exists()


def test_script_without_its_guard_is_told_so() -> None:
    Path("bare.py").write_text(
        f"import hccl_tools\ndef f(): return 1\nhccl_tools.spawn(f, (), 2, {OPTIONS})\n"
    )
    done = subprocess.run(
        [sys.executable, "bare.py"], capture_output=True, text=True, timeout=60, check=False
    )

    assert 'put the call below if __name__ == "__main__":' in done.stderr
    assert done.stderr.count("RankFailedError: rank") == 1
    assert len([path for path in Path("log").iterdir() if not path.is_symlink()]) == 1


def test_option_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="foo"):
        hccl_tools.spawn(print, foo=1)  # type: ignore[call-arg]


FACTS = RankFacts(1, 5, 4711, 1, None, "/run/rank_1.log")


@pytest.mark.parametrize("original", [ValueError("x"), KeyError("k"), OSError(2, "gone"), UnicodeError("u")])
def test_error_is_of_the_originals_type(original: Exception) -> None:
    error = failure(FACTS, "Traceback: ...", original)

    assert isinstance(error, type(original))
    assert isinstance(error, RankFailedError)
    assert error.__cause__ is original
    assert "rank 1 (device 5, pid 4711)" in str(error)
