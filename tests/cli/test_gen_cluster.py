"""``gen --simulate PRODUCT --servers N``: a cluster to try, and the command that starts it here."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from hccl_tools.validation import checker

if TYPE_CHECKING:
    from tests.support.commands import CommandLine, Done


def gen(command_line: CommandLine, options: str) -> Done:
    return command_line("gen", *options.split())


@pytest.mark.parametrize(
    ("options", "servers", "ranks", "pods"),
    [
        ("--simulate 910a --servers 2", 2, 16, []),
        ("--simulate a2 --servers 4", 4, 32, []),
        ("--simulate a3 --servers 3", 3, 48, [3]),
        ("--simulate a3 --super-pods 2 --servers 4", 4, 64, [2, 2]),
        ("--simulate a3 --super-pods 2", 2, 32, [1, 1]),
        ("--simulate a3 --format 1.0 --servers 2", 2, 32, []),
        ("--simulate a5 --servers 2", 2, 16, []),
        ("--simulate 910a --servers 70", 70, 560, []),
        ("--simulate 910a --servers 12 --format group_list", 12, 96, []),
        ("--simulate 300i --servers 1", 1, 4, []),
    ],
)
def test_the_cluster_is_a_table_without_findings(
    command_line: CommandLine, options: str, servers: int, ranks: int, pods: list[int]
) -> None:
    done = gen(command_line, f"{options} -o t.json")

    assert done.code == 0, done.err
    table = command_line.read("t.json")
    assert (len(table.servers), len(table)) == (servers, ranks)
    assert [len(pod.server_ids) for pod in table.super_pods or []] == pods
    assert len({server.server_id for server in table.servers}) == servers
    product = options.split()[1]
    # Version 1.0 was asked for, and says nothing of the super pods that this product has.
    expected = ["HCC638"] if "--simulate a3 --format 1.0" in options else []
    assert [one.rule.id for one in checker.validate("t.json", product=product).findings] == expected


def test_what_is_simulated_is_told(command_line: CommandLine) -> None:
    done = gen(command_line, "--simulate a3 --super-pods 2 --servers 4")

    assert done.err.splitlines()[:3] == [
        "product a3 (--simulate)",
        "simulated a3: 4 servers in 2 super pods, 16 devices each; the addresses are not real",
        "server 192.0.2.1  ranks 0-15  from the simulation",
    ]
    assert command_line.names == ["hccl_4s_64p.json"]


def test_one_machine_of_a_cluster_has_its_address_there(command_line: CommandLine) -> None:
    done = gen(command_line, "--simulate 910a:2 -o t.json")

    assert done.code == 0
    assert command_line.read("t.json").servers[0].server_id == "192.0.2.2"


@pytest.mark.parametrize(
    "options",
    [
        "--simulate 910a",
        "--simulate a2 --servers 4",
        "--simulate a3 --super-pods 2 --servers 4",
        "--simulate a5 --servers 2",
    ],
)
def test_the_next_command_starts_it_here(command_line: CommandLine, options: str) -> None:
    command_line.write("train.py", "print('hello')\n")
    made = gen(command_line, f"{options} -o t.json")
    words = shlex.split(made.err.partition("next: hccl-tools ")[2].splitlines()[0])

    done = command_line(words[0], "--dry-run", *words[1:])

    assert (done.code, done.err) == (0, "")
    assert f"plan: {len(command_line.read('t.json'))} ranks" in done.out


def test_merged_tables_of_simulated_machines_name_a_command_that_works(command_line: CommandLine) -> None:
    command_line.write("train.py", "print('hello')\n")
    for machine in (1, 2):
        gen(command_line, f"--simulate 910a:{machine} -o t{machine}.json")
    made = command_line("merge", "t1.json", "t2.json", "-o", "t.json")
    words = shlex.split(made.err.partition("next: hccl-tools ")[2].splitlines()[0])

    done = command_line(words[0], "--dry-run", *words[1:])

    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--servers 2", "--servers is for a simulated cluster"),
        ("--super-pods 2", "--super-pods is for a simulated cluster"),
        ("--simulate 300i --servers 2",
         "Atlas 300I Duo (Ascend 310P3) has no clusters: the guide allows one machine"),
        ("--simulate a2 --super-pods 2 --servers 4",
         "Atlas A2 (Ascend 910B) has no super pods in its tables"),
        ("--simulate a5 --super-pods 1 --servers 2", "Ascend 950 has no super pods in its tables"),
        ("--simulate a3 --format 1.0 --super-pods 2", "a 1.0 table has no super pods"),
        ("--simulate a3 --super-pods 2 --servers 5",
         "5 servers cannot be divided evenly among 2 super pods"),
        ("--simulate a3 --super-pods 4 --servers 2",
         "2 servers cannot be divided evenly among 4 super pods"),
        ("--simulate 910a:2 --servers 2",
         "--simulate 910a:2 is one machine of a cluster, and --servers names all"),
        ("--simulate 910a --servers 71", "--servers 71: at most 70 machines can be simulated"),
        ("--simulate 910a --servers 0", '--servers "0" is not a whole number, 1 or more'),
        ("--simulate 910a --servers 2 --server_ip 10.0.0.1",
         "--server_ip 10.0.0.1 is the address of one machine"),
        ("--simulate 910a --servers 2 --hosts a,b", "--servers and --hosts exclude each other"),
        ("--simulate 910a --servers 2 --host-ip 10.0.0.1", "--host-ip 10.0.0.1 is the address of one host"),
    ],
)  # fmt: skip
def test_a_cluster_that_does_not_exist_is_refused(
    command_line: CommandLine, options: str, sentence: str
) -> None:
    done = gen(command_line, f"{options} -o t.json")

    assert (done.code, done.out, done.sentence) == (2, "", sentence)
    assert command_line.names == []


@pytest.mark.parametrize(("product", "named"), [([], "910a"), (["--product", "a2"], "a2")])
def test_a_rehearsal_on_named_hosts_names_the_cluster(
    command_line: CommandLine, product: list[str], named: str
) -> None:
    command_line.write("hosts", "10.0.0.1\n10.0.0.2\n")
    command_line.write("train.py", "")

    for hosts in (["--hosts", "10.0.0.[1-2]"], ["--hostfile", "hosts"]):
        done = command_line("launch", *hosts, "--cpu", *product, "train.py")

        assert done.code == 2
        assert f"`hccl-tools gen --simulate {named} --servers 2` makes a table of simulated hosts" in done.err


@pytest.mark.parametrize(
    ("made", "words", "shown"),
    [
        (("910a",), ("subset", "t.json", "--devices", "0-3"), "t.s1.json --cpu"),
        (("910a",), ("convert", "t.json", "--to", "group_list", "-o", "n.json"), "n.json --cpu"),
        (("910a",), ("merge", "t.json", "-o", "n.json"), "n.json --cpu"),
        (
            ("a2", "--servers", "2"),
            ("merge", "t.json", "-o", "n.json"),
            "n.json --product a2 --cpu --all-here",
        ),
        (
            ("a2", "--servers", "3"),
            ("subset", "t.json", "--servers", "192.0.2.1,192.0.2.2"),
            "t.s1.json --product a2 --cpu --all-here",
        ),
        (
            ("910a", "--servers", "2"),
            ("replace", "t.json", "--server", "192.0.2.1", "--with", "spare.json"),
            "t.r1.json --cpu --all-here",
        ),
    ],
)  # fmt: skip
def test_a_table_made_of_a_simulated_one_has_the_same_next_command(
    command_line: CommandLine, made: tuple[str, ...], words: tuple[str, ...], shown: str
) -> None:
    command_line("gen", "--simulate", *made, "-o", "t.json")
    command_line("gen", "--simulate", "910a:3", "-o", "spare.json")

    assert command_line(*words).err.endswith(f"next: hccl-tools launch --rank-table {shown} train.py\n")
