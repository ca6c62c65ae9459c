"""What a user sees who calls ``launch`` and its neighbours as other tools are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import tables

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

_FOLLOWS = "the program follows the options; a rank table needs --rank-table FILE"


@pytest.fixture
def job(command_line: CommandLine) -> CommandLine:
    for table_format in ("1.0", "1.2", "2.0", "group_list", "server_group_list"):
        command_line.write(f"{table_format}.json", tables.table(table_format))
    command_line.write("table", tables.table())
    command_line.write("train.py", "print('hello')\n")
    return command_line


@pytest.mark.parametrize(
    ("call", "name", "typed"),
    [
        ("1.0.json train.py", "1.0.json", "--rank-table 1.0.json train.py"),
        ("1.0.json", "1.0.json", "--rank-table 1.0.json train.py"),
        ("table train.py --lr 3", "table", "--rank-table table train.py --lr 3"),
        ("1.2.json train.py", "1.2.json", "--rank-table 1.2.json train.py"),
        ("2.0.json train.py", "2.0.json", "--rank-table 2.0.json train.py"),
        ("group_list.json train.py", "group_list.json", "--rank-table group_list.json train.py"),
        ("server_group_list.json x.py", "server_group_list.json", "--rank-table server_group_list.json x.py"),
        ("--cpu -n 2 1.0.json train.py", "1.0.json", "--cpu --rank-table 1.0.json --all-here train.py"),
        ("-np 2 --cpu -- 1.0.json train.py", "1.0.json", "--cpu --rank-table 1.0.json --all-here train.py"),
        ("--worker_num=2 1.0.json train.py", "1.0.json", "--rank-table 1.0.json train.py"),
        ("--rank_table 1.0.json 1.0.json", "1.0.json", "--rank_table 1.0.json train.py"),
        ("python 1.0.json", "1.0.json", "--rank-table 1.0.json train.py"),
    ],
)
def test_a_table_in_place_of_the_program(job: CommandLine, call: str, name: str, typed: str) -> None:
    done = job("launch", *call.split())

    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        f'error: "{name}" is a rank table, not a program',
        f"  help: type `hccl-tools launch {typed}`",
    ]


def test_the_command_for_a_table_in_place_of_the_program_works(job: CommandLine) -> None:
    job.write("job.json", tables.table(devices=8))
    refused = job("launch", "--cpu", "-n", "2", "--dry-run=json", "job.json", "train.py")
    words = refused.err.partition("type `hccl-tools ")[2].partition("`")[0].split()

    done = job(*words)

    assert (done.code, done.err) == (0, "")
    assert '"rank": 7' in done.out


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("job.yaml", "lr: 3\n", '"job.yaml" is a YAML file, not a program'),
        ("options.json", '{"lr": 3}', '"options.json" is a JSON file, not a program'),
        ("options", '\n {"lr": 3}', '"options" is a JSON file, not a program'),
        ("hosts.txt", "10.0.0.1\n", '"hosts.txt" is a text file, not a program'),
        ("absent.json", None,
         '"absent.json" does not exist, and its name is that of a JSON file, not of a program'),
    ],
)  # fmt: skip
def test_another_data_file_in_place_of_the_program(
    job: CommandLine, name: str, content: str | None, sentence: str
) -> None:
    if content is not None:
        job.write(name, content)

    done = job("launch", "-n", "2", name, "train.py")

    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [f"error: {sentence}", f"  help: {_FOLLOWS}"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train", "print('hello')\n"),
        ("train.txt", "#!/usr/bin/env python3\nprint('hello')\n"),
        ("numbers.py", '{"a": 1}\nprint(1)\n'),
    ],
)
def test_a_python_script_by_any_name_is_a_program(job: CommandLine, name: str, content: str) -> None:
    job.write(name, content)

    done = job("launch", "--cpu", "-n", "2", "--no-table", "--dry-run", name)

    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("name", "content", "kind", "start"),
    [
        ("run.sh", "#!/bin/bash\necho 1\n", "a shell script", "bash run.sh"),
        ("run.sh", "#!/bin/bash\necho 2\n", "a shell script", "./run.sh"),
        ("run.sh", "echo 1\n", "a shell script", "bash run.sh"),
        ("run", "#! /usr/bin/env -S sh -e\necho 1\n", "a shell script", "sh run"),
        ("run.pl", "#!/usr/bin/perl\nprint 1;\n", "a script for perl", "perl run.pl"),
    ],
)
def test_a_script_of_another_language_needs_no_python(
    job: CommandLine, name: str, content: str, kind: str, start: str
) -> None:
    job.write(name, content)
    (job.folder / name).chmod(0o755 if start.startswith("./") else 0o644)

    done = job("launch", "--cpu", "-n", "2", "--no-table", "--dry-run", name)

    assert (done.code, done.out) == (126, "")
    assert done.err.splitlines() == [
        f'error: "{name}" is {kind}, not a Python script',
        f"  help: `--no-python {start}` starts it",
    ]
    again = job("launch", "--cpu", "-n", "2", "--no-table", "--dry-run", "--no-python", *start.split())
    assert (again.code, again.err) == (0, "")


@pytest.mark.parametrize(
    ("program", "name", "typed"),
    [
        (
            "torchrun --nproc_per_node 2 train.py --epochs 3",
            "torchrun",
            "--nproc_per_node 2 train.py --epochs 3",
        ),
        ("python -m torch.distributed.run train.py", "torch.distributed.run", "train.py"),
        (
            "-m paddle.distributed.launch --gpus 0,1 train.py",
            "paddle.distributed.launch",
            "--gpus 0,1 train.py",
        ),
        ("--no-python /usr/bin/msrun --worker_num 2 train.py", "msrun", "--worker_num 2 train.py"),
        ("mpirun -n 2 --allow-run-as-root python train.py a", "mpirun", "train.py a"),
        ("--no-python srun -n 2 true", "srun", "train.py"),
        ("deepspeed --num_gpus 2 train.py", "deepspeed", "train.py"),
    ],
)
def test_another_launcher_in_place_of_the_program_is_refused(
    job: CommandLine, program: str, name: str, typed: str
) -> None:
    done = job("launch", "--cpu", "-n", "2", *program.split())

    assert (done.code, done.out) == (2, "")
    assert done.sentence == (
        f'"{name}" starts the ranks of a job itself: every rank of `launch` would start a whole job'
    )
    assert f"leave it out: `hccl-tools launch --cpu -n 2 {typed}`" in done.err


def test_two_dashes_start_another_launcher_all_the_same(job: CommandLine) -> None:
    job.write("bin/srun", "#!/bin/sh\n")
    (job.folder / "bin/srun").chmod(0o755)

    done = job("launch", "--cpu", "-n", "2", "--dry-run", "--no-python", "--", "bin/srun", "train.py")

    assert (done.code, done.err) == (0, "")


def test_the_arguments_of_a_program_are_kept_in_the_advice(job: CommandLine) -> None:
    done = job("launch", "--cpu", "-n", "2", "bash", "run.sh", "--epochs", "3 4")

    assert done.code == 127
    assert "help: `--no-python bash run.sh --epochs '3 4'` starts the program of that name" in done.err


def test_the_tables_of_the_folder_are_named_to_who_gives_none(job: CommandLine) -> None:
    for file in job.folder.glob("*.json"):
        file.unlink()
    job.write("settings.json", {"epochs": 3})
    nothing = job("launch", "--dry-run", "train.py")
    job.write("t.json", tables.table("1.0", 1, 8))
    one = job("launch", "--dry-run", "train.py")
    job.write("a b.json", tables.table("1.0", 1, 8))
    two = job("launch", "--dry-run", "train.py")

    assert {done.code for done in (nothing, one, two)} == {2}
    assert nothing.err.endswith("a number of ranks (-n 4)\n")
    assert "; this folder has a table: --rank-table t.json\n" in one.err
    assert "; this folder has tables: 'a b.json', t.json\n" in two.err


def test_a_number_of_ranks_after_the_program_is_named(job: CommandLine) -> None:
    done = job("launch", "--dry-run", "train.py", "-n", "2", "--lr", "0.1")

    assert done.code == 2
    assert done.sentence == "the number of ranks is missing: -n 2 is passed to the program"
    assert "`hccl-tools launch --dry-run=text -n 2 train.py --lr 0.1`" in done.err


def test_an_option_after_the_program_is_named_where_it_is_missing(job: CommandLine) -> None:
    done = job("launch", "--dry-run", "train.py", "--rank-table", "1.0.json")

    assert done.code == 2
    assert done.sentence == "the number of ranks is missing"
    assert "help: --rank-table is passed to train.py; options of launch must precede the program" in done.err


@pytest.mark.parametrize(
    ("call", "suggestion"),
    [
        ("launch --nproc 8 train.py", "-n"),
        ("launch --world_size 8 train.py", "-n"),
        ("launch --table t.json train.py", "--rank-table"),
        ("launch -H 10.0.0.1,10.0.0.2 train.py", "--hosts"),
        ("launch -N 2 train.py", "--nnodes"),
        ("logs -r 1", "--rank"),
        ("gen -n 4", "--device_num"),
        ("subset --ranks 0-3 t.json", "--devices"),
        ("show -r 1 t.json", "--rank"),
        ("launch --no-tabl train.py", "--no-table"),
        ("launch --dryrun train.py", "--dry-run"),
        ("launch --restarts 3 train.py", "--max-restarts"),
        ("launch --hostfil f train.py", "--hostfile"),
        ("launch --preflght none train.py", "--preflight"),
        ("gen --device 0-3", "--devices"),
        ("gen --overwrite", "--force"),
        ("doctor --host 10.0.0.1", "--hosts"),
        ("stop --kill", "--now"),
    ],
)
def test_an_option_of_another_tool_names_ours(job: CommandLine, call: str, suggestion: str) -> None:
    done = job(*call.split())

    assert (done.code, done.out) == (2, "")
    assert f"help: did you mean {suggestion}? see " in done.err


@pytest.mark.parametrize(
    ("command", "option"), [("gen", "--bananas"), ("launch", "--nothing"), ("stop", "--table")]
)
def test_an_option_without_a_neighbour_gets_no_suggestion(
    job: CommandLine, command: str, option: str
) -> None:
    done = job(command, option, "x")

    assert done.code == 2
    assert done.err.splitlines()[1] == f"  help: see `hccl-tools {command} --help`"


@pytest.mark.parametrize(
    ("call", "typed"),
    [
        ("validate --rank-table 1.0.json", "validate 1.0.json"),
        ("show --table=1.0.json -f json", "show 1.0.json -f json"),
        ("env --target torch --rank_table_file 1.0.json", "env --target torch 1.0.json"),
    ],
)
def test_a_table_as_an_option_of_a_command_that_takes_it_as_an_argument(
    job: CommandLine, call: str, typed: str
) -> None:
    done = job(*call.split())

    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[1] == f"  help: the table needs no option: `hccl-tools {typed}`"


def emitted(job: CommandLine, *options: str) -> list[str]:
    done = job("launch", *options, "train.py", "--lr", "3")
    assert (done.code, done.err) == (0, "")
    return done.out.splitlines()


@pytest.mark.parametrize(
    ("tool", "rank_option", "address_option"),
    [("torchrun", "--node-rank", "--master-addr"), ("msrun", "--node_rank", "--master_addr")],
)
def test_the_command_of_another_launcher_is_printed_for_every_host(
    job: CommandLine, tool: str, rank_option: str, address_option: str
) -> None:
    job.write("job.json", tables.table(servers=2, devices=8))

    lines = emitted(job, "--rank-table", "job.json", "--emit", tool)

    assert [line for line in lines if line.startswith("#")] == [
        "# 10.0.0.1: ranks 0-7",
        "# 10.0.0.2: ranks 8-15",
    ]
    commands = [line for line in lines if f" {tool} " in line]
    for number, command in enumerate(commands):
        assert f" {rank_option}={number} " in command
        assert f" {address_option}=10.0.0.1 " in command
        assert command.endswith(" train.py --lr 3")
    assert len(commands) == 2
    # A host that is named gets the line alone, for scripts.
    assert emitted(job, "--rank-table", "job.json", "--server", "10.0.0.2", "--emit", tool) == [commands[1]]


def test_one_host_gets_one_line(job: CommandLine) -> None:
    (line,) = emitted(job, "--rank-table", "1.0.json", "--emit", "torchrun", "--start", "table")

    assert line.startswith("ASCEND_RT_VISIBLE_DEVICES=0,1 torchrun --nproc-per-node=2 --nnodes=1 train.py")


@pytest.mark.parametrize("tool", ["torchrun", "msrun"])
def test_the_address_and_port_that_were_typed_are_those_of_the_command(job: CommandLine, tool: str) -> None:
    options = ["--nnodes", "2", "--node-rank", "1", "--nproc-per-node", "2", "--emit", tool]

    (line,) = emitted(job, *options, "--master-addr", "10.0.0.9", "--start-port", "19000")

    plain = line.replace("_", "-")
    assert " --master-addr=10.0.0.9 " in plain
    assert " --master-port=19000 " in plain
    assert " --node-rank=1 " in plain


def test_the_commands_for_machines_without_a_table_are_printed_anywhere(job: CommandLine) -> None:
    options = ["--ips", "10.9.0.1,10.9.0.2", "--nproc-per-node", "2"]

    lines = emitted(job, *options, "--emit", "torchrun")
    refused = job("launch", *options, "train.py")

    assert lines[0::3] == ["# 10.9.0.1: ranks 0-1", "# 10.9.0.2: ranks 2-3"]
    assert refused.code == 125
    assert "belongs to this host" in refused.sentence
