"""Wrong calls of a new user: the answer says what to type, and what it says is taken by the command line."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.screens import on_terminal
from tests.support.suggestions import refusal, suggested

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


@pytest.fixture
def files(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    for variable in ("RANK_TABLE_FILE", "HCCL_TOOLS_PRODUCT"):
        monkeypatch.delenv(variable, raising=False)
    assert command_line("gen", "--simulate", "910a:3", "-o", "spare.json").code == 0
    assert command_line("gen", "--simulate", "910a", "--servers", "2", "-o", "job.json").code == 0
    command_line.write("train.py", "")
    return command_line


def answer(files: CommandLine, call: str) -> str:
    """Return the help for a call; each command in it is taken by the command line."""
    done = files(*shlex.split(call))
    assert done.code in {1, 2, 125, 126, 127}, (call, done)
    text = " ".join(done.err.split())
    for words in suggested(done.err):
        assert refusal(words) == "", (call, words)
    assert "help: " in text, call
    return text.partition("help: ")[2]


@pytest.mark.parametrize(
    ("call", "typed"),
    [
        ("launch", "`hccl-tools launch --rank-table job.json train.py`"),
        ("launch -n 2 --cpu", "`hccl-tools launch -n 2 --cpu train.py`"),
        ("launch 4 train.py", "`hccl-tools launch -n 4 train.py`"),
        ("launch --cpu 0-3 train.py --lr 3", "`hccl-tools launch --cpu --devices 0-3 train.py --lr 3`"),
        ("launch help", "`hccl-tools launch --help`"),
        ("launch --nodes 2 train.py", "did you mean --nnodes?"),
        ("launch --nodes a,b train.py", "did you mean --hosts?"),
        ("launch --ntasks=4 train.py", "did you mean -n?"),
        ("launch --num_gpus 4 train.py", "did you mean -n?"),
        ("launch --cpu -n 2 --rank 2 train.py", "`--nnodes N` or `--ips A,B`"),
        ("rules 112", "`hccl-tools rules HCC112`"),
        ("explain 107", "`hccl-tools explain HCC107`"),
        ("explain job.json", "`hccl-tools validate job.json` checks it"),
        ("explain train.py", "`hccl-tools explain` explains the latest run"),
        ("convert job.json 2.0", "only `hccl-tools gen --format 2.0` makes 2.0 tables"),
        ("convert job.json out.yaml", "`hccl-tools convert job.json --to-configmap out -o out.yaml`"),
        ("convert job.json --to 1.0 -o out.yaml", "or a file such as out.json"),
        ("doctor node1 node2", "`hccl-tools doctor --hosts node1,node2`"),
        (
            "scaling run --cpu -n 1,2,4 train.py",
            "`hccl-tools scaling run --nproc-per-node 1,2,4 -- --cpu train.py`",
        ),
        ("convert job.json --to yaml", "`hccl-tools convert job.json --to-configmap NAME`"),
        ("logs --failed", "without a rank, it is the log of the one that failed first"),
        ("rm", "the files of a run are its folder: `hccl-tools jobs` lists the runs"),
        ("launch --emit sbatch -n 2 train.py", "did you mean --emit slurm?"),
        ("launch --emit kubernetes -n 2 train.py", "did you mean --emit vcjob?"),
        ("stop all", "`hccl-tools stop --all`"),
        ("logs all", "`hccl-tools logs --rank all`"),
        ("gen 910b", "`hccl-tools gen --product 910b`"),
        ("gen --simulate", "--simulate PRODUCT: A simulated machine instead of this host: 910a, a2,"),
        ("gen --simulate 910a mine.json", "`hccl-tools gen --simulate 910a -o mine.json`"),
        ("gen --hosts 127.0.0.1 127.0.0.2", "`--hosts 127.0.0.1,127.0.0.2`"),
        ("show job.json matrix", "`hccl-tools show job.json --format matrix`"),
        ("show job.json spare.json", "`hccl-tools diff job.json spare.json`"),
        ("show job.json --rank", "--rank N: Only this rank."),
        ("diff job.json", "`hccl-tools diff job.json spare.json`"),
        ("diff job.json spare.json a.json", "`hccl-tools diff job.json spare.json`"),
        ("merge .", "'./*.json'"),
        ("convert 1.2 job.json", "`hccl-tools convert job.json --to 1.2`"),
        (
            "convert job.json a.json --to group_list",
            "`hccl-tools convert job.json --to group_list -o a.json`",
        ),
        ("convert", "`hccl-tools convert job.json --to 1.0 -o hccl.json`"),
        ("subset", "`hccl-tools subset job.json --servers 192.0.2.1`"),
        ("subset 0-3 job.json", "`hccl-tools subset job.json --devices 0-3`"),
        ("subset job.json --devices 0-3 a.json", "`hccl-tools subset job.json --devices 0-3 -o a.json`"),
        ("subset job.json 192.0.2.1 0-3", "`hccl-tools subset job.json --servers 192.0.2.1 --devices 0-3`"),
        ("subset job.json --servers 192.0.2.9", "its servers are 192.0.2.1, 192.0.2.2"),
        ("subset job.json --servers 192.0.2.11", 'did you mean "192.0.2.1"? its servers are'),
        ("replace", "`hccl-tools replace job.json --server 192.0.2.1 --with spare.json`"),
        ("replace job.json", "`hccl-tools replace job.json --server 192.0.2.1 --with spare.json`"),
        ("replace job.json spare.json", "`hccl-tools replace job.json --with spare.json --server 192.0.2.1`"),
        ("replace spare.json job.json", "`hccl-tools replace job.json --with spare.json --server 192.0.2.1`"),
        ("replace job.json --server 192.0.2.1 --with 192.0.2.2", "use a server that is not in it"),
        (
            "replace spare.json --server 192.0.2.3 --with job.json",
            "`hccl-tools subset job.json --servers 192.0.2.1`",
        ),
        ("env torch", "`hccl-tools env job.json --target torch`"),
        ("env torch job.json", "`hccl-tools env job.json --target torch`"),
        ("logs latest 1", "`hccl-tools logs latest --rank 1`"),
        ("stop --wait", "--wait SECONDS: How long to wait for the run to end."),
        ("launch --hosts a b train.py", "`--hosts a,b`"),
        ("launch --hosts 4 train.py", "name the hosts: node[1-4]"),
        ("gen --simulate a2 --hosts 4", "`gen --simulate` takes --servers 4"),
        ("doctor --hosts 4", "name the hosts: node[1-4]"),
        ("launch --rank-table train.py job.json", "`hccl-tools launch --rank-table job.json train.py`"),
        ("launch train.py job.json", "`hccl-tools launch --rank-table job.json train.py`"),
        ("launch --cpu -n 2 --env A=1 B=2 train.py", "`--env B=2`"),
        ("launch --device-num 4 train.py", "did you mean -n?"),
        ("launch -p npu -n 2 train.py", "`sbatch` or `salloc`"),
        ("launch -t 10:00 -n 2 train.py", "--timeout 10m for a time limit"),
        ("launch -v -n 2 train.py", "no other detail to switch on"),
        ("launch --framework torch -n 2 train.py", "`--start torch`"),
        ("launch --conda env -n 2 train.py", "`--python PATH`"),
        ("launch --rank-table jbo.json train.py", 'did you mean "job.json"?'),
        ("validate jobs.json", 'did you mean "job.json"?'),
        ("launch --cpu -n 2 trian.py", 'did you mean "train.py"?'),
        ("launch --cpu -n 2 train", 'did you mean "train.py"?'),
        ("launch --cpu -n 2 -m train.py", "leave -m out"),
        ("validate --fix job.json -o a.json", "`hccl-tools validate --fix --write COPY`"),
        ("validate --explain HCC203", "`hccl-tools rules HCC203`"),
        ("explain latest --rank 0", "`hccl-tools logs RUN --rank 0`"),
        ("logs latest all", "`hccl-tools logs latest --rank all`"),
        ("gen --simulate a2 --count 4", "did you mean --devices?"),
        ("format job.json", "`hccl-tools convert job.json --to 1.2`"),
        ("swap job.json", "`hccl-tools replace job.json --server A --with B`"),
        ("python train.py", "`hccl-tools launch --rank-table job.json train.py`"),
        ("exec latest", "`hccl-tools launch --rank-table job.json train.py`"),
        ("EI0006", "`hccl-tools explain EI0006`"),
        ("hcc203", "`hccl-tools explain HCC203`"),
        ("--generate", "`hccl-tools gen` writes the rank table of this host"),
        ("logs 20261127-214849 20261127-214853", "logs takes one run: `hccl-tools logs 20261127-214849`"),
        ("gen help", "`hccl-tools gen --help`"),
        ("show help", "`hccl-tools show --help`"),
        ("jobs kill", "`hccl-tools stop` ends a running job"),
        ("jobs running", "`hccl-tools jobs --running`"),
        ("jobs latest", "`hccl-tools logs RUN`"),
        ("jobs --clean", "`rm -r`"),
        ("stop a b", "`hccl-tools stop a`; `hccl-tools stop --all`"),
        ("explain EI0006 EI0014", "`hccl-tools explain EI0006`"),
        ("guide tutorial zh", "`hccl-tools guide tutorial --lang zh`"),
        ("doctor 127.0.0.1", "`hccl-tools doctor --hosts 127.0.0.1`"),
        ("doctor --hosts a b", "a list of hosts has commas: `hccl-tools doctor --hosts a,b`"),
        ("doctor 'node[1-4]'", "`hccl-tools doctor --hosts 'node[1-4]'`"),
        ("-v", "`hccl-tools --version` prints the version"),
        ("--validate job.json", "`hccl-tools validate job.json`"),
        ("--foo", "see `hccl-tools --help`"),
        (
            "scaling run -n 6 --cpu train.py -n 3",
            "`hccl-tools scaling run --nproc-per-node 1,2,4,6 -- --cpu train.py -n 3`",
        ),
        (
            "scaling run --rank-table job.json -n 2 train.py",
            "`hccl-tools scaling run --nproc-per-node 1,2 -- --rank-table job.json train.py`",
        ),
        ("scaling run train.py", "`hccl-tools scaling run --nproc-per-node 1,2 -- train.py`"),
        ("train.py --lr 3", "`hccl-tools launch --rank-table job.json train.py --lr 3`"),
        ("job.json train.py", "`hccl-tools launch --rank-table job.json train.py`"),
        ("job.json spare.json", "`hccl-tools show job.json` shows it"),
        ("check", "`hccl-tools validate job.json` checks a table"),
        ("compare", "`hccl-tools diff job.json spare.json` compares two tables"),
        ("set product a2", "see `hccl-tools --help`"),
    ],
)
def test_what_to_type_is_said(files: CommandLine, call: str, typed: str) -> None:
    assert typed in answer(files, call)


@pytest.mark.parametrize(
    "call", ["gen --hosts hosts.txt", "doctor --hosts hosts.txt", "distribute job.json hosts.txt"]
)
def test_a_file_in_place_of_a_host_is_named(files: CommandLine, call: str) -> None:
    files.write("hosts.txt", "node1 slots=8\nnode2 slots=8\n")

    done = files(*call.split())

    assert (done.code, done.out) == (2, "")
    assert done.err == "error: hosts.txt is a file, not a host\n  help: type --hostfile hosts.txt\n"


def test_a_suggestion_names_a_sound_table(files: CommandLine) -> None:
    files.write(
        "zz.json", (files.folder / "job.json").read_text().replace('"rank_id": "1"', '"rank_id": "0"', 1)
    )

    assert "`hccl-tools env job.json --target torch`" in answer(files, "env")
    refused = files("env", "zz.json", "--target", "torch").err
    assert refused.startswith("error: zz.json cannot be used: HCC203 "), refused


def test_a_single_device_is_no_number_of_ranks(files: CommandLine) -> None:
    two, first = (
        files("launch", "--cpu", "--devices", devices, "--no-python", "true").err for devices in ("2", "0")
    )

    assert "1 rank, on device 2 alone; `-n 2` starts 2 ranks" in two
    assert "alone" not in first


def test_a_path_in_place_of_a_run_is_named(files: CommandLine) -> None:
    assert files("launch", "--cpu", "-n", "1", "--no-python", "true").code == 0

    assert "`--log-dir log` names it" in answer(files, "logs log")
    assert "name the run, `log/latest`" in answer(files, "logs log/latest/rank_0.log")


@pytest.mark.parametrize("command", ["rules", "schema", "guide"])
def test_the_word_list_lists(files: CommandLine, command: str) -> None:
    assert files(command, "list").out == files(command).out


@pytest.mark.parametrize("call", ["gen --simulate a2", "subset job.json --servers 192.0.2.1"])
def test_a_table_that_is_expected_on_standard_output_is_told_where_it_goes(
    files: CommandLine, call: str
) -> None:
    def run(**streams: Any) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "hccl_tools", *call.split()],
            stderr=streams.pop("stderr", subprocess.PIPE), text=True, check=False, **streams,
        )  # fmt: skip
        return " ".join(str(done.stderr).split())

    with (files.folder / "mine.json").open("w") as mine:
        assert "`-o mine.json` writes it to that file, `-o -` prints it" in run(stdout=mine)
        run(stdout=mine, stderr=mine)
    assert "not printed" not in (files.folder / "mine.json").read_text()
    assert "not printed" not in run(stdout=subprocess.DEVNULL)
    assert "not printed" not in run(stdout=subprocess.PIPE)


@pytest.mark.parametrize(
    ("call", "shown", "said"),
    [
        (
            "launch --cpu --wait 300 --rank-table absent.json train.py",
            "waiting for absent.json",
            "interrupted: no rank was started on this host",
        ),
        (
            "replace job.json --server 192.0.2.1 --with 10.9.9.9 --engine ssh --ssh ./wait",
            "querying 1 host",
            "interrupted: no table is written",
        ),
        ("explain -", "reading standard input", "interrupted"),
    ],
)
def test_ctrl_c_says_what_did_not_happen(files: CommandLine, call: str, shown: str, said: str) -> None:
    files.write("wait", "#!/bin/sh\nsleep 300\n")
    (files.folder / "wait").chmod(0o755)

    done = on_terminal(*call.split(), ctrl_c_after=shown)

    assert done.code == 130
    assert done.lines[-1] == said


@pytest.mark.parametrize("what", [["."], ["log"], ["*"], ["log", "absent"]])
def test_runs_of_a_log_directory_are_not_explained_as_one_job(files: CommandLine, what: list[str]) -> None:
    """In the folder above, by a pattern of the shell, and as the log directory itself."""
    for code in (3, 0):
        files("launch", "--cpu", "-n", "1", "--no-python", "sh", "-c", f"echo KeyError; exit {code}")
    runs = sorted(str(one.relative_to(files.folder)) for one in (files.folder / "log").iterdir())
    if "absent" in what:
        what = runs

    done = files("explain", *(["log", "job.json"] if what == ["*"] else what))

    assert "the latest one is explained" in done.err
    assert "exit code 3" not in done.out


@pytest.mark.parametrize(("word", "title"), [("quickstart", "# Tutorial"), ("faq", "# Troubleshooting")])
def test_pages_have_the_names_that_other_projects_use(files: CommandLine, word: str, title: str) -> None:
    assert files("guide", word).out.startswith(title)


def test_other_logs_beside_a_log_directory_are_read_too(files: CommandLine) -> None:
    files("launch", "--cpu", "-n", "1", "--no-python", "sh", "-c", "exit 3")
    files("launch", "--cpu", "-n", "1", "--no-python", "true")
    files.write("plog/plog-1_20260318103352113.log", "RuntimeError: EI0006: no socket\n")

    done = files("explain", ".")

    assert "EI0006" in done.out
    assert "exit code 3" not in done.out


def test_runs_are_explained_one_by_one(files: CommandLine) -> None:
    for code in (3, 4):
        files("launch", "--cpu", "-n", "1", "--no-python", "sh", "-c", f"exit {code}")
    first, second = sorted(one.name for one in (files.folder / "log").iterdir() if not one.is_symlink())

    assert answer(files, f"explain {first} {second}") == f"type `hccl-tools explain {first}`"


@pytest.mark.parametrize(
    "words",
    [
        ("launch", "-n", "1", "--cpu", "--env-file", "none.env", "--no-python", "true"),
        ("gen", "--hostfile", "none.env"),
        ("explain", "x.log", "--knowledge", "none.env"),
    ],
)
def test_what_to_do_about_a_file_that_does_not_exist(
    command_line: CommandLine, words: tuple[str, ...]
) -> None:
    command_line.write("x.log", "")

    done = command_line(*words)

    assert "none.env" in done.sentence
    assert "help: check the name; the path is relative to the current folder" in done.err


def test_no_simulated_host_is_asked_for_a_table(command_line: CommandLine) -> None:
    assert command_line("gen", "--simulate", "a2", "--servers", "2", "-o", "two.json").code == 0

    done = command_line("distribute", "two.json", "--via", "false")

    assert done.code == 2
    assert done.sentence.startswith("the 2 hosts of the table are simulated (192.0.2.1, 192.0.2.2): no table")
    assert "asking" not in done.err
