"""``hccl-tools scaling run``: real launches of a stand-in whose serial share is known."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import formats
from hccl_tools.errors import UsageError
from hccl_tools.scaling import series
from hccl_tools.scaling.measuring import Measures, Observer
from hccl_tools.scaling.single_run import _Lines
from tests.support.growth import least
from tests.support.jobs import MARK, eventually, none_left
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.table.model import RankTable
    from tests.support.commands import CommandLine

SHARE = 0.25
N = "--nproc-per-node"
#: Works for 0.6 s, of which a quarter cannot be divided, and says how fast it would be on an idle machine:
#: what is measured depends on what else the machine does.
WORK = f"""\
import json, os, sys, time
ranks = int(os.environ["RANK_SIZE"])
print("start-up", flush=True)
time.sleep(0.05)
print("step 1 of 2", flush=True)
time.sleep(0.6 * ({SHARE} + (1 - {SHARE}) / ranks))
print("step 2 of 2", flush=True)
print(f"speed: {{100 * ranks}} images/s", flush=True)
print(f"rate: {{100 / ({SHARE} + (1 - {SHARE}) / ranks)}} images/s", flush=True)
print(json.dumps({{"accuracy": 0.97 - ranks / 100}}), flush=True)
print("accuracy: 0.9", flush=True)
"""
BETWEEN = ("--from", "step 1", "--to", "step 2")
LAUNCH = ("--cpu", "--python", sys.executable)


def series_of(path: str = "scaling.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_bytes())
    return found


def counts_of(path: str = "scaling.json") -> list[tuple[int, int]]:
    return [(row["devices"], row["repeat"]) for row in series_of(path)["runs"]]


def wait_for_rows(number: int) -> None:
    assert eventually(lambda: Path("scaling.json").exists() and len(series_of()["runs"]) >= number)


@pytest.fixture
def work(command_line: CommandLine) -> str:
    return command_line.write("work.py", WORK)


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """What the environment of every process of the test has."""
    found = uuid.uuid4().hex
    monkeypatch.setenv(MARK, found)
    return found


def start(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "hccl_tools", "scaling", "run", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.slow
def test_a_known_serial_share(command_line: CommandLine, work: str) -> None:
    done = command_line(
        "scaling", "run", N, "1,2,4,8", "--repeat", "3", "--throughput", "rate:",
        "--metric-key", "accuracy", "-f", "json", "--", *LAUNCH, work,
    )  # fmt: skip

    assert done.code == 0, done.err
    (series,) = json.loads(done.out)["series"]
    share = series["serial_share"]
    assert share["value"] == pytest.approx(SHARE)
    assert [point["runs"] for point in series["points"]] == [3, 3, 3, 3]
    # The counts alternate, and every second repeat is in the reverse order.
    order = [(1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (4, 2), (2, 2), (1, 2), (1, 3), (2, 3), (4, 3), (8, 3)]
    assert counts_of() == order
    rows = series_of()["runs"]
    assert [row["metric"] for row in rows[:2]] == pytest.approx([0.96, 0.95])
    assert all(Path(row["run"], "rank_0.log").exists() for row in rows)
    assert len({row["run"] for row in rows}) == 12
    lines = done.err.splitlines()
    assert re.fullmatch(
        r"1/12  1 device, repeat 1 of 3: .*, metric 0\.96; log/scaling/devices-1/.*", lines[0]
    )
    assert lines[-1] == "wrote scaling.json"


@pytest.mark.slow
def test_the_time_between_two_lines(command_line: CommandLine, work: str) -> None:
    done = command_line("scaling", "run", N, "1,2", *BETWEEN, "-f", "json", "--", *LAUNCH, work)

    assert done.code == 0, done.err
    assert re.match(r"1/2  1 device, repeat 1 of 1: [\d.]+ m?s; log/scaling/devices-1/", done.err)
    assert all(0 <= row["time"] < row["whole_time"] for row in series_of()["runs"])


@pytest.mark.slow
def test_the_output_of_a_launch_is_readable_by_its_user_alone(command_line: CommandLine, work: str) -> None:
    """It has what the ranks write, as their logs have it."""
    done = command_line("scaling", "run", N, "1,2", *BETWEEN, "-f", "json", "--", *LAUNCH, work)

    assert done.code == 0, done.err
    outputs = [*Path().rglob("launch.log")]

    assert {output.stat().st_mode & 0o777 for output in outputs} == {0o600}


@pytest.mark.parametrize(
    ("path", "make", "why"),
    [
        ("log/scaling", os.mkfifo, "Not a directory"),
        ("log/scaling", lambda path: Path(path).write_text(""), "Not a directory"),
        ("log/scaling", lambda path: Path(path).symlink_to("absent"), "No such file or directory"),
        ("log/scaling", lambda path: Path(path).symlink_to("scaling"), "it is a symbolic link"),
        ("log/scaling/devices-1/launch.log", os.mkfifo, "it is not a regular file"),
        ("log/scaling/devices-1/launch.log", os.mkdir, "Is a directory"),
        (
            "log/scaling/devices-1/launch.log",
            lambda path: Path(path).symlink_to("x"),
            "it is a symbolic link",
        ),
    ],
)
def test_a_name_that_somebody_has_made_in_the_log_directory_is_named(
    command_line: CommandLine, work: str, path: str, make: Callable[[str], object], why: str
) -> None:
    """Another user can be the first in a log directory in which all may write."""
    Path(path).parent.mkdir(parents=True)
    make(path)

    done = command_line("scaling", "run", N, "1,2", *BETWEEN, "--", *LAUNCH, work)

    assert done.code == 2, done.err
    assert f": {why}\n  help: choose another directory with --log-dir" in done.err


@pytest.mark.slow
def test_throughput_and_a_metric_by_pattern(command_line: CommandLine, work: str) -> None:
    done = command_line(
        "scaling", "run", N, "1,2", "--throughput", "speed:", "--metric", r"^accuracy: (\S+)",
        "-o", "figures.json", "--", *LAUNCH, work,
    )  # fmt: skip

    assert done.code == 0, done.err
    first, second = series_of("figures.json")["runs"]
    assert (first["throughput"], second["throughput"], first["metric"]) == (100, 200, 0.9)
    assert first["whole_time"] > 0.65
    assert [line.split()[3] for line in done.out.splitlines()[1:3]] == ["1.00", "2.00"]
    again = command_line("scaling", "report", "figures.json")
    assert again.out == done.out


def test_a_launch_whose_series_is_killed_at_its_start_ends() -> None:
    another = "import os; from hccl_tools.scaling import single_run; single_run._end_with_parent(os.getpid())"

    done = subprocess.run([sys.executable, "-c", another], check=False)

    assert done.returncode == -signal.SIGTERM


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "interrupted", "terminated"])
@pytest.mark.rotates("how")
def test_a_series_that_ends_early_goes_on(command_line: CommandLine, work: str, mark: str, how: str) -> None:
    args = (N, "1,2,4", "--repeat", "2", *BETWEEN)
    going_on = command_line.folder / "going_on"
    wait = (
        f"while os.environ['RANK_SIZE'] == '4' and not os.path.exists({str(going_on)!r}): time.sleep(0.01)\n"
    )
    command_line.write(work, WORK.replace("print", f"{wait}print", 1))
    process = start(*args, "--", *LAUNCH, work)
    wait_for_rows(2)
    if how == "killed":
        process.kill()
    elif how == "interrupted":
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C in a terminal
    else:
        process.terminate()
    _, err = process.communicate()

    assert none_left(mark)
    assert process.returncode == {"killed": -9, "interrupted": 130, "terminated": 143}[how]
    assert how == "killed" or "stopped; scaling.json has the finished runs: --resume continues" in err
    kept = series_of()["runs"]
    assert len(kept) == 2
    going_on.touch()
    refused = command_line("scaling", "run", *args, "--", *LAUNCH, work)
    assert (refused.code, refused.sentence) == (2, "scaling.json exists")

    done = command_line("scaling", "run", *args, "--resume", "--", *LAUNCH, work)

    assert done.code == 0, done.err
    assert series_of()["runs"][: len(kept)] == kept
    assert sorted(counts_of()) == [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (4, 2)]
    rows = [line.split()[:2] for line in done.out.splitlines()[1:4]]
    assert rows == [["1", "2"], ["2", "2"], ["4", "2"]]


@pytest.mark.slow
def test_a_failed_run_is_a_row(command_line: CommandLine) -> None:
    command_line.write("fail.py", "import os, sys\nsys.exit(3 if os.environ['RANK_SIZE'] == '2' else 0)\n")

    done = command_line("scaling", "run", N, "1,2,4", "--", *LAUNCH, "fail.py")

    assert done.code == 1
    assert counts_of() == [(1, 1), (2, 1)]
    assert re.fullmatch(r"rank [01]: exit code 3", series_of()["runs"][1]["failed"])
    assert "2/3  2 devices, repeat 1 of 1: failed: rank " in done.err
    assert "the series ended before two numbers of devices were measured" in done.err

    done = command_line("scaling", "run", N, "1,2,4", "--keep-going", "--force", "--", *LAUNCH, "fail.py")

    assert done.code == 1
    assert counts_of() == [(1, 1), (2, 1), (4, 1)]
    assert "2 devices: 1 run failed: rank " in done.out


@pytest.mark.slow
def test_a_pattern_that_never_matches(command_line: CommandLine, work: str) -> None:
    done = command_line("scaling", "run", N, "1,2", "--from", "step 1", "--to", "step 9", "--", *LAUNCH, work)

    assert done.code == 2
    assert done.sentence.startswith(
        '--to "step 9" matches no line of rank 0\'s log after the line of --from: log/'
    )


@pytest.mark.slow
def test_a_table_is_cut(command_line: CommandLine, work: str) -> None:
    whole = table("1.0", 1, 8)
    whole["server_list"][0]["server_id"] = "127.0.0.1"
    command_line.write("hccl.json", whole)

    done = command_line(
        "scaling", "run", N, "2,4", "--", *LAUNCH, "--rank-table", "hccl.json", "--no-local-check",
        work,
    )  # fmt: skip

    assert done.code == 0, done.err
    for row in series_of()["runs"]:
        copy = formats.read(json.loads(Path(row["run"], "rank_table.json").read_bytes()))
        assert copy.device_numbers == list(range(row["devices"]))


def rank_table(table_format: str, servers: int, devices: int) -> RankTable:
    return formats.read(table(table_format, servers, devices))


def test_the_first_devices_that_the_rules_allow() -> None:
    value = table("1.0", 1, 8)
    order = (3, 4, 5, 6, 7, 0, 1, 2)
    for rank, device in enumerate(value["server_list"][0]["device"]):
        device["rank_id"] = str(order.index(rank))
    whole = formats.read(value)

    def ids(count: int) -> list[int | None]:
        return series.cut_table(whole, machines=1, per_machine=count, product="910a").device_numbers

    assert ids(1) == [3]
    assert ids(2) == [4, 5]  # 3 and 4 are in different groups
    assert ids(4) == [4, 5, 6, 7]


def test_several_machines() -> None:
    made = series.cut_table(rank_table("1.0", 4, 8), machines=2, per_machine=8, product="910a")

    assert [server.server_id for server in made.servers] == ["10.0.0.1", "10.0.0.2"]
    assert len(made) == 16


@pytest.mark.parametrize(
    ("machines", "devices", "said"),
    [
        (1, 3, "3 devices on 1 machine: the rules do not allow it (HCC"),
        (1, 16, "16 devices on 1 machine: the table has 8 devices on 10.0.0.1"),
        (5, 8, "8 devices on 5 machines: the table has 4 machines"),
        (2, 4, "4 devices on 2 machines: the rules do not allow it"),
    ],
)
def test_a_table_that_does_not_fit(machines: int, devices: int, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        series.cut_table(rank_table("1.0", 4, 8), machines=machines, per_machine=devices, product="910a")
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((N, "1,2"), "PROGRAM is missing"),
        ((N, "1,2", "--", "--cpu"), "PROGRAM is missing"),
        ((N, "1", "--", "work.py"), "a comparison needs two numbers or more"),
        ((N, "0,1", "--", "work.py"), '"0,1" is not a list of different numbers from 1'),
        ((N, "1,1", "--", "work.py"), '"1,1" is not a list of different numbers from 1'),
        ((N, "1-99999999", "--", "work.py"), '"1-99999999" has more than 1,000 numbers'),
        ((N, "1", "--nnodes", "1-999999999", "--", "work.py"), "has more than 1,000 numbers"),
        ((N, "a,b", "--", "work.py"), '"a,b" is not a list of different numbers from 1'),
        ((N, "1,2", "--repeat", "0", "--", "work.py"), '"0" is not a whole number, from 1 to 1000'),
        ((N, "1,2", "--from", "x", "--", "work.py"), "--from and --to belong together"),
        ((N, "1,2", "--metric", "(", "--", "work.py"), '--metric "(" is not a regular expression'),
        ((N, "1,2", "--metric", "a", "--metric-key", "b", "--", "work.py"), "exclude each other"),
        ((N, "1,2", "--plot", "x.gif", "--", "work.py"), "the name of a plot ends with"),
        ((N, "1,2", "--", N, "2", "work.py"), "--nproc-per-node cannot be given"),
        ((N, "1,2", "--", "-n", "2", "work.py"), "-n cannot be given to the launches of a series"),
        ((N, "1,2", "--", "--dry-run", "work.py"), "--dry-run cannot be given"),
        ((N, "1,2", "--", "--no-such", "work.py"), "no such option --no-such"),
        ((N, "1,2", "--", "--cpu", "absent.py"), "1 device: "),
        ((N, "1,3", "--", "--rank-table", "hccl.json", "work.py"), "3 devices on 1 machine"),
        ((N, "1,2", "--", "--rank-table", "none.json", "work.py"), "none.json"),
        ((N, "1,2", "--resume", "--", "--cpu", "work.py"), "--resume: scaling.json cannot be read"),
        (
            (N, "8", "--nnodes", "1,2", "--", "--engine", "loop", "--rank-table", "hccl.json", "work.py"),
            "--engine loop cannot",
        ),
        (("work.py",), N),
    ],
)  # fmt: skip
def test_wrong_calls(command_line: CommandLine, work: str, args: tuple[str, ...], said: str) -> None:
    command_line.write("hccl.json", table("1.0", 1, 8))

    done = command_line("scaling", "run", *args)

    assert (done.code, done.out) == (2, "")
    assert said in done.sentence
    assert command_line.names == ["hccl.json", "work.py"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "scaling.json is not a file of `scaling run`"),
        ("[1]", "scaling.json is not a file of `scaling run`"),
        ('{"runs": [1]}', "scaling.json is not a file of `scaling run`: runs[0]: 1 is not an object"),
        ('{"runs": [{}]}', "scaling.json is not a file of `scaling run`: runs[0]: devices is missing"),
        ('{"schema_version": 1, "runs": []}', "scaling.json has another command: null"),
    ],
)
def test_another_file_is_not_continued(command_line: CommandLine, work: str, text: str, said: str) -> None:
    command_line.write("scaling.json", text)

    done = command_line("scaling", "run", N, "1,2", "--resume", "--", "--cpu", work)

    assert done.code == 2
    assert said in done.sentence
    assert Path("scaling.json").read_text() == text


def observed(measures: Measures, *lines: str) -> dict[str, float]:
    observer = Observer(measures)
    for second, line in enumerate(lines):
        observer.line(line, float(second))
    return observer.result("rank_0.log")


def test_the_time_is_that_to_the_last_match() -> None:
    lines = ("epoch 0", "epoch 1", "other", "epoch 2", "end")

    assert observed(Measures("epoch", "epoch"), *lines) == {"time": 3.0}
    assert observed(Measures("epoch 1", "end"), *lines) == {"time": 3.0}


@pytest.mark.parametrize(
    ("pattern", "lines", "value"),
    [
        ("speed:", ("speed: 10", "speed: 30 x 99", "speed: 20"), 20.0),
        (r"(\d+) images", ("12 images of 40",), 12.0),
        ("speed", ("speed unknown", "speed -1.5e2/s"), -150.0),
    ],
)
def test_numbers(pattern: str, lines: tuple[str, ...], value: float) -> None:
    assert observed(Measures(throughput=pattern), *lines) == {"throughput": value}


def test_the_last_json_line_with_the_key() -> None:
    lines = (
        '{"acc": 0.5}',
        "{not json",
        '{"acc": "high"}',
        '{"acc": true}',
        ' {"acc": 0.75, "x": 1}',
        '{"b": 1}',
    )

    assert observed(Measures(metric_key="acc"), *lines) == {"metric": 0.75}


def test_a_number_that_no_float_can_hold_is_no_metric() -> None:
    lines = ['{"acc": 0.5}', '{"acc": 1%s}' % ("0" * 400), '{"acc": 1e999}', '{"acc": NaN}']

    assert observed(Measures(metric_key="acc"), *lines) == {"metric": 0.5}


def test_several_machines_have_the_engine_of_this_host(
    command_line: CommandLine, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command_line.write("hccl.json", table("1.0", 1, 8))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)

    done = command_line("scaling", "run", N, "8", "--nnodes", "1,2", "--", "--rank-table", "hccl.json", work)

    assert "ssh starts the jobs on several machines (no mpirun on PATH)" in done.err
    assert "2 machines" in done.sentence  # the table has one


def test_a_number_that_is_no_figure_is_not_measured() -> None:
    observer = Observer(Measures(throughput="speed", metric_key="loss"))
    for line in ("speed 1e999", "speed 5", '{"loss": 0.5}', '{"loss": 1e300}'):
        observer.line(line, 0)

    assert observer.result("rank_0.log") == {"throughput": 5, "metric": 0.5}


@pytest.mark.slow
def test_the_file_of_a_series_has_no_secrets_and_is_continued(command_line: CommandLine, work: str) -> None:
    call = ["scaling", "run", N, "1,2"]
    secret = ["--", *LAUNCH, "--env", "API_TOKEN=hf_secret1", work, "--password", "hunter2secret"]

    first = command_line(*call, *secret)
    text = Path("scaling.json").read_text()
    again = command_line(*call, "--resume", *secret)

    assert first.code == again.code == 0, first.err + again.err
    assert "hf_secret1" not in text
    assert "hunter2secret" not in text
    assert "--password" in text


def test_a_log_without_line_breaks_is_not_joined_at_each_read(tmp_path: Path) -> None:
    log = tmp_path / "rank_0.log"
    log.write_bytes(b"")
    lines = _Lines(log)

    def read(number: int) -> float:
        def grow() -> None:
            for _ in range(number):
                with log.open("ab") as file:
                    file.write(b"50%\r" * 5000)
                assert lines.read(last=False) == []

        return least(grow, tries=1)

    read(10)
    less = read(300)

    assert read(600) < 4 * less
    with log.open("ab") as file:
        file.write(b"end\nlast")
    first, last = lines.read(last=True)
    assert (first[-3:], last) == ("end", "last")
