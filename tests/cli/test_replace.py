"""``hccl-tools replace`` and ``hccl-tools subset``."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools import formats
from hccl_tools.runs import table_lock
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.transform.merging import merge
from tests.support.clusters import host, host_table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


@pytest.fixture
def job(command_line: CommandLine) -> CommandLine:
    """A table of two hosts, ``job.json``, and the table of a spare, ``spare.json``."""
    table = merge([("1", host_table(1)), ("2", host_table(2))]).table
    command_line.write("job.json", "".join(formats.write(table)))
    command_line.write("spare.json", host(7))
    return command_line


def test_replace(job: CommandLine) -> None:
    old = Path("job.json").read_bytes()

    done = job("replace", "job.json", "--server", "10.1.0.2", "--with", "spare.json")

    assert done.code == 0
    before, after = fingerprint(job.read("job.json")), fingerprint(job.read("job.r1.json"))
    assert done.err.splitlines()[0] == "10.1.0.2 becomes 10.1.0.7: ranks 8 to 15"
    assert done.err.splitlines()[9:] == [
        f"fingerprint {before} becomes {after}",
        "wrote job.r1.json",
        "next: hccl-tools launch --rank-table job.r1.json --engine ssh train.py",
    ]
    assert Path("job.json").read_bytes() == old
    assert Path("job.r1.json").read_bytes() == old.replace(b"10.1.0.2", b"10.1.0.7").replace(
        b"168.2.", b"168.7."
    )


def test_replace_again(job: CommandLine) -> None:
    job("replace", "job.json", "--server", "10.1.0.2", "--with", "spare.json")
    job.write("spare2.json", host(8))

    job("replace", "job.r1.json", "--server", "10.1.0.1", "--with", "spare2.json")
    job("replace", "job.json", "--server", "10.1.0.1", "--with", "spare2.json")

    assert [server.server_id for server in job.read("job.r2.json").servers] == ["10.1.0.8", "10.1.0.7"]
    assert [server.server_id for server in job.read("job.r3.json").servers] == ["10.1.0.8", "10.1.0.2"]


def test_replace_to_the_screen_and_to_a_folder(job: CommandLine) -> None:
    Path("out").mkdir()
    arguments = ("replace", "job.json", "--server", "10.1.0.2", "--with", "spare.json")

    printed = job(*arguments, "-o", "-").out
    job(*arguments, "-o", "out", "--mode", "640")

    assert Path("out/job.r1.json").read_text() == printed
    assert Path("out/job.r1.json").stat().st_mode & 0o777 == 0o640


def test_a_spare_that_breaks_the_table(job: CommandLine) -> None:
    spare = host(7)
    spare["server_list"][0]["device"][0]["device_ip"] = "192.168.1.100"
    job.write("spare.json", spare)

    done = job("replace", "job.json", "--server", "10.1.0.2", "--with", "spare.json")

    assert done.code == 1
    assert "HCC404" in done.out
    assert done.sentence.startswith("no table is written: ")
    assert "job.r1.json" not in job.names


def test_a_table_in_use_is_told(job: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    lock = table_lock.take(Path("job.json").read_bytes(), "/runs/20261121-101530", os.environ)
    try:
        done = job("replace", "job.json", "--server", "10.1.0.2", "--with", "spare.json")
    finally:
        os.close(lock)

    assert done.code == 0
    assert f"pid {os.getpid()}, /runs/20261121-101530; that job continues with the old table" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "missing argument FILE"),
        (("job.json", "--with", "spare.json"), 2, "missing option --server"),
        (("job.json", "--server", "10.1.0.2"), 2, "missing option --with"),
        (
            ("job.json", "--server", "10.1.0.9", "--with", "spare.json"),
            1,
            'the table has no server "10.1.0.9"',
        ),
        (("job.json", "--server", "10.1.0.2", "--with", "no.json"), 2, "no such file: no.json"),
        (
            ("job.json", "--server", "10.1.0.2", "--with", "spare.json", "-o", "job.json"),
            1,
            "job.json exists; a table that jobs may use is not overwritten",
        ),
    ],
)
def test_wrong_use(job: CommandLine, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    done = job("replace", *arguments)

    assert done.code == code
    assert sentence in done.sentence
    assert job.names == ["job.json", "spare.json"]


def test_subset(job: CommandLine) -> None:
    done = job("subset", "job.json", "--servers", "10.1.0.2", "--devices", "[4,8)")

    assert done.code == 0
    assert done.err.splitlines()[:2] == [
        "kept: 1 of 2 servers, 4 of 16 ranks",
        "the ranks are renumbered, 0 to 3",
    ]
    made = job.read("job.s1.json")
    assert made.device_ids == ["4", "5", "6", "7"]
    assert made.rank_ids == ["0", "1", "2", "3"]


def test_a_subset_that_the_guide_forbids(job: CommandLine) -> None:
    done = job("subset", "job.json", "--devices", "0-3")

    assert done.code == 1
    assert "HCC308" in done.out
    assert " --> the new table  (/server_list/0/device)\n" in done.out
    assert job("subset", "job.json", "--devices", "0-3", "--product", "a2").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("job.json",), 2, "--servers, --devices or --exclude is missing"),
        (("job.json", "--servers", "10.1.0.9"), 1, 'the table has no server "10.1.0.9"'),
        (("job.json", "--devices", "4-"), 2, '"4-" is no device range'),
        (("job.json", "--devices", "0-9"), 2, '"0-9" contains device 9'),
    ],
)
def test_wrong_subsets(job: CommandLine, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    done = job("subset", *arguments)

    assert done.code == code
    assert sentence.partition(" is no")[0] in done.sentence
    assert job.names == ["job.json", "spare.json"]


@pytest.mark.parametrize("command", ["replace", "subset", "merge", "convert", "show"])
def test_help_has_examples(command_line: CommandLine, command: str) -> None:
    done = command_line(command, "--help")

    assert done.code == 0
    assert f"  hccl-tools {command} " in done.out.partition("Examples:")[2]


def test_a_missing_option_has_an_example(job: CommandLine) -> None:
    done = job("replace", "job.json")

    assert done.err.endswith(
        "  help: for example `hccl-tools replace job.json --server 10.1.0.1 --with spare.json`\n"
    )


@pytest.mark.parametrize(
    ("call", "sentence", "example"),
    [
        (("diff", "job.json"), "missing argument B", "hccl-tools diff job.json spare.json"),
        (("merge",), "missing argument FILE...", "hccl-tools merge 'tables/*.json'"),
        (("env", "job.json"), "missing option --target", "hccl-tools env job.json --target torch"),
    ],
)
def test_what_is_missing_is_shown_in_an_example(
    job: CommandLine, call: tuple[str, ...], sentence: str, example: str
) -> None:
    done = job(*call)

    assert (done.code, done.out) == (2, "")
    assert done.sentence.startswith(sentence)
    assert done.err.endswith(f"  help: for example `{example}`\n")


def test_a_subset_of_a_simulated_cluster_is_rehearsed(job: CommandLine) -> None:
    assert job("gen", "--simulate", "910a:2", "-o", "two.json").code == 0
    assert job("gen", "--simulate", "910a", "-o", "one.json").code == 0
    assert job("merge", "one.json", "two.json", "-o", "cluster.json").code == 0

    done = job("subset", "cluster.json", "--servers", "127.0.0.1")

    assert done.err.endswith("next: hccl-tools launch --rank-table cluster.s1.json --cpu train.py\n")


def test_a_spare_that_does_not_answer_can_be_a_file(command_line: CommandLine) -> None:
    command_line("gen", "--simulate", "910a", "--servers", "2", "-o", "two.json")
    ssh = command_line.folder / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ssh: connect to host spare port 22: No route to host' >&2; exit 255\n")
    ssh.chmod(0o755)

    spare = ("--with", "spare", "--engine", "ssh", "--ssh", str(ssh))
    said = " ".join(command_line("replace", "two.json", "--server", "192.0.2.1", *spare).err.split())

    assert "spare: ssh: connect to host spare port 22: No route to host" in said
    assert "`--with FILE` takes the table that `hccl-tools gen` writes on that host" in said


def test_the_two_tables_are_swapped(command_line: CommandLine) -> None:
    command_line("gen", "--simulate", "a2", "--servers", "2", "-o", "job.json")
    command_line("gen", "--simulate", "a2:3", "-o", "my spare.json")

    done = command_line(
        "replace", "my spare.json", "--server", "192.0.2.1", "--with", "job.json", "--product", "a2"
    )

    line = "replace job.json --server 192.0.2.1 --with 'my spare.json' --product a2"
    assert done.code == 1
    assert "the two tables are swapped" in done.err
    assert done.err.endswith(f"  help: type `hccl-tools {line}`\n")
    assert command_line(*shlex.split(line)).code == 0


def test_a_server_that_no_table_has_is_not_a_swap(command_line: CommandLine) -> None:
    command_line("gen", "--simulate", "a2", "--servers", "2", "-o", "job.json")
    command_line("gen", "--simulate", "a2:3", "-o", "spare.json")

    assert "swapped" not in command_line("replace", "job.json", "--server", "x", "--with", "spare.json").err
    assert "swapped" not in command_line("replace", "spare.json", "--server", "x", "--with", "job.json").err
