"""``--exclude`` of ``gen``, ``launch`` and ``subset``: what is left, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hccl_tools import formats
from hccl_tools.transform.merging import merge
from tests.cli.test_doctor_hosts import Cluster
from tests.cli.test_launch_preflight import launch
from tests.support.clusters import host_table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine


@pytest.fixture
def job(command_line: CommandLine) -> CommandLine:
    """A table of four servers with eight devices each, ``job.json``."""
    table = merge([(str(number), host_table(number)) for number in range(1, 5)]).table
    command_line.write("job.json", "".join(formats.write(table)))
    return command_line


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, 3)


@pytest.mark.parametrize(
    ("options", "servers"),
    [
        (["10.1.0.2"], {"10.1.0.1": 8, "10.1.0.3": 8, "10.1.0.4": 8}),
        (["10.1.0.[2-3]"], {"10.1.0.1": 8, "10.1.0.4": 8}),
        (["10.1.0.2", "10.1.0.3@10.1.0.4"], {"10.1.0.1": 8}),
        (["10.1.0.[1-4]:4-7", "--product=a2"], {f"10.1.0.{number}": 4 for number in range(1, 5)}),
        (["10.1.0.2@10.1.0.3@10.1.0.4:0-7", "10.1.0.1:0,1,2,3"], {"10.1.0.1": 4}),
    ],
)
def test_what_subset_leaves(job: CommandLine, options: list[str], servers: dict[str, int]) -> None:
    done = job(
        "subset", "job.json", *(one if one.startswith("--") else f"--exclude={one}" for one in options)
    )

    assert done.code == 0, done.err
    left = job.read("job.s1.json")
    assert {server.server_id: len(server.rows) for server in left.servers} == servers
    assert left.rank_numbers == list(range(sum(servers.values())))


def test_subset_after_a_choice(job: CommandLine) -> None:
    done = job("subset", "job.json", "--servers", "10.1.0.1,10.1.0.2", "--exclude", "10.1.0.1")

    assert done.code == 0
    assert [server.server_id for server in job.read("job.s1.json").servers] == ["10.1.0.2"]


@pytest.mark.parametrize(
    ("value", "sentence", "hint"),
    [
        ("10.1.0.33", '--exclude: the table has no server "10.1.0.33"', 'did you mean "10.1.0.3"?'),
        ("10.1.0.3:8", "--exclude: server 10.1.0.3 has no device 8 in this job", "it has devices 0,1,2,3,4"),
        ("10.1.0.[1-4]", "--exclude leaves nothing of the table", "exclude fewer"),
    ],
)
def test_what_is_not_there(job: CommandLine, value: str, sentence: str, hint: str) -> None:
    done = job("subset", "job.json", "--exclude", value)

    assert done.code == 2
    assert done.sentence == sentence
    assert f"help: {hint}" in done.err
    assert job.names == ["job.json"]


def test_the_rules_judge_what_is_left(job: CommandLine) -> None:
    """HCCL needs the same number of devices on all servers of a 910A table."""
    done = job("subset", "job.json", "--exclude", "10.1.0.2:7")

    assert done.code == 1
    assert done.sentence.startswith("no table is written: ")
    assert "HCC" in done.out
    assert job.names == ["job.json"]


def test_a_plan_of_launch(job: CommandLine) -> None:
    job.write("train.py", "")

    done = job("launch", "--rank-table", "job.json", "--exclude", "10.1.0.[1-2]", "--cpu", "--all-here",
               "--dry-run=json", "train.py")  # fmt: skip

    assert done.code == 0, done.err
    plan = json.loads(done.out)
    assert (plan["world_size"], plan["hosts"]) == (16, ["10.1.0.3", "10.1.0.4"])
    kept = "2 of 4 servers, 16 of 32 ranks"
    assert f"--exclude 10.1.0.1, 10.1.0.2 leaves {kept}, which are renumbered from 0" in plan["notes"]


def test_a_faulty_server_may_be_left_out(job: CommandLine) -> None:
    """The table as a whole is refused: two devices have one address."""
    table = json.loads((job.folder / "job.json").read_text())
    devices = table["server_list"][2]["device"]
    devices[0]["device_ip"] = devices[1]["device_ip"]
    job.write("job.json", table)
    job.write("train.py", "")
    rest = ("--cpu", "--all-here", "--max-ranks", "64", "--dry-run", "train.py")

    refused = job("launch", "--rank-table", "job.json", *rest)
    without = job("launch", "--rank-table", "job.json", "--exclude", "10.1.0.3", *rest)
    wrong = job("launch", "--rank-table", "job.json", "--exclude", "10.1.0.1", *rest)

    assert (refused.code, without.code, wrong.code) == (125, 0, 125)
    assert "job.json without 10.1.0.1 cannot be used" in wrong.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["gen", "--exclude", "node7"], "--exclude is for the tables of many hosts"),
        (["gen", "--simulate", "910b", "--servers", "3", "--exclude", "a"], "exclude each other"),
        (["gen", "--hosts", "a,b", "--exclude", "c"], 'the list of hosts has no host "c"'),
        (["gen", "--hosts", "node[1-3]", "--exclude", "node33"], 'did you mean "node3"?'),
        (["gen", "--hosts", "a,b", "--exclude", "a@b"], "--exclude leaves nothing of the list of hosts"),
        (["launch", "--hosts", "a,b", "--exclude", "c", "train.py"], 'has no host "c"'),
        (["launch", "-n", "2", "--cpu", "--exclude", "c", "train.py"], "this job has neither"),
        (["launch", "--rank-table", "job.json", "--cpu", "--exclude", "x", "train.py"], 'no server "x"'),
        (["launch", "--rank-table", "job.json", "--cpu", "--exclude", "10.1.0.2", "--emit", "rank_loop",
          "train.py"], "--emit rank_loop does not support --exclude"),
    ],
)  # fmt: skip
def test_wrong_usage(job: CommandLine, args: list[str], words: str) -> None:
    job.write("train.py", "")

    done = job(*args)

    assert done.code == 2
    assert words in done.err


def test_launch_asks_and_starts_what_is_left(cluster: Cluster) -> None:
    path = str(cluster.table("down1"))

    done = launch(
        cluster, "--engine", "ssh", "--rank-table", path, "--exclude", "node2@node3@down1", "--tail", "all",
        "--preflight", "full", "--server", "node1",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("it runs") == 2
