"""How many machines a job has, which of them this is, and what was typed beside a table: as plans tell it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.commands import run_here
from tests.support.tables import table as made

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping


@pytest.fixture(autouse=True)
def script(own_directory: Path) -> None:
    (own_directory / "train.py").write_text("print('trained')\n")


def write_table(*servers: tuple[str, list[int], list[int]]) -> str:
    """Write a table of servers, each with its id, device ids and rank ids; return its options."""
    value = {
        "version": "1.0", "server_count": str(len(servers)), "status": "completed",
        "server_list": [
            {"server_id": server, "host_nic_ip": "reserve", "device": [
                {"device_id": str(device), "device_ip": f"10.{number}.1.{10 + device}", "rank_id": str(rank)}
                for device, rank in zip(devices, ranks, strict=True)
            ]}
            for number, (server, devices, ranks) in enumerate(servers)
        ],
    }  # fmt: skip
    Path("table.json").write_text(json.dumps(value))
    return "table.json"


def launch(*options: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    typed = ("--start", "table", "--cpu", *options, "--dry-run=json", "train.py")
    return run_here("launch", *typed, environ={**os.environ, **(env or {})})


def seats(*options: str, env: Mapping[str, str] | None = None) -> dict[str, list[int]]:
    """Return the ranks by host, those of this host under "here"."""
    done = launch(*options, env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[int]] = {}
    for process in json.loads(done.stdout)["processes"]:
        found.setdefault("here" if process["here"] else process["host"], []).append(process["rank"])
    return found


def refusal(*options: str, code: int = 2, env: Mapping[str, str] | None = None) -> str:
    done = launch(*options, env=env)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    return done.stderr


#: msrun's command for 8 ranks on two machines.
MSRUN = ("--start", "torch", "--worker_num=8", "--local_worker_num=4", "--master_addr=10.0.0.1")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((*MSRUN, "--node_rank=0"), {"here": [0, 1, 2, 3], "node1": [4, 5, 6, 7]}),
        ((*MSRUN, "--node_rank=1"), {"node0": [0, 1, 2, 3], "here": [4, 5, 6, 7]}),
        (("--worker_num=2", "--local_worker_num=2", "--node_rank=0"), {"here": [0, 1]}),
        (("--nproc-per-node", "3"), {"here": [0, 1, 2]}),
        (
            ("--start", "torch", "--ips", "10.0.0.1,10.0.0.2", "--nproc-per-node", "2", "--node-rank", "1"),
            {"10.0.0.1": [0, 1], "here": [2, 3]},
        ),
    ],
)
def test_two_of_ranks_machines_and_ranks_on_each_make_the_third(
    options: tuple[str, ...], expected: dict[str, list[int]]
) -> None:
    assert seats(*options) == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((*MSRUN,), "--node-rank is missing: the job has 2 machines"),
        ((*MSRUN, "--nnodes=3", "--node_rank=0"), "8 ranks are not equal to 3 machines times 4"),
        (
            ("--worker_num=8", "--local_worker_num=3"),
            "8 ranks cannot be split into 3 per machine",
        ),
        (("--devices", "0,1", "--nproc-per-node", "3"), "3 ranks per machine, but --devices names 2"),
        ((*MSRUN, "--node_rank=0", "--engine", "mpirun"), "--engine mpirun needs a rank table or --hostfile"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(*options)


ONE = ("127.0.0.1", [4, 5, 6, 7], [0, 1, 2, 3])
#: Two servers that are nobody's, the second with the first ranks.
FIRST, SECOND = ("203.0.113.1", [0, 1, 2, 3], [4, 5, 6, 7]), ("203.0.113.2", [0, 1, 2, 3], [0, 1, 2, 3])
#: The guides want eight devices of each of several servers.
TWO = ("--ignore", "HCC2,HCC3,HCC5,HCC6")


@pytest.mark.parametrize(
    "options",
    [
        ("--devices", "4-7"), ("-n", "4"), ("--nnodes", "1"), ("--node-rank", "0"), ("--ips", "127.0.0.1"),
        ("--worker_num=4", "--local_worker_num=4", "--node_rank=0"), ("--nproc-per-node", "4"),
    ],
)  # fmt: skip
def test_what_agrees_with_the_table_may_be_typed_beside_it(options: tuple[str, ...]) -> None:
    assert seats("--rank-table", write_table(ONE), *options) == {"here": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--devices", "0,1"), "0,1 selects devices 0, 1 of this host, but {table} uses 4, 5, 6, 7"),
        (("--no-table", "-n", "2"), "--rank-table and --no-table exclude each other"),
        (("-n", "8"), "-n 8, but the table has 4 ranks ({table})"),
        (("--nproc-per-node", "2"), '--nproc-per-node), but "127.0.0.1" has 4 ranks in {table}'),
        (("--nnodes", "2", "--node-rank", "1"), "--nproc-per-node), but {table} has 1 server"),
        (("--node-rank", "1"), "--node-rank 1, but {table} has 1 server"),
        (("--ips", "9.9.9.9,8.8.8.8"), "--ips names 9.9.9.9, which is not a server of {table} (127.0.0.1)"),
    ],
)  # fmt: skip
def test_what_contradicts_the_table_is_refused(options: tuple[str, ...], sentence: str) -> None:
    told = refusal("--rank-table", write_table(ONE), *options)

    assert sentence.format(table=Path("table.json").resolve()) in told


def test_node_rank_says_which_machine_where_addresses_do_not() -> None:
    """As torchrun and msrun count: machine 0 has rank 0, wherever it stands in the table."""
    table = ("--rank-table", write_table(FIRST, SECOND), *TWO)

    assert seats(*table, "--node-rank", "0") == {"here": [0, 1, 2, 3], "203.0.113.1": [4, 5, 6, 7]}
    assert seats(*table, "--node-rank", "1") == {"203.0.113.2": [0, 1, 2, 3], "here": [4, 5, 6, 7]}
    shown = json.loads(launch(*table, "--node-rank", "1").stdout)
    assert '--node-rank 1: this host is assumed to be server "203.0.113.1"' in shown["notes"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--node-rank", "2"), "--node-rank 2, but {table} has 2 servers"),
        (("--server", "203.0.113.1", "--node-rank", "0"),
         '--node-rank 0 selects server "203.0.113.2" of the table, but --server selects "203.0.113.1"'),
        (("--all-here", "--node-rank", "0"), "--all-here runs the ranks of all servers, but --node-rank"),
        (("--engine", "mpirun", "--server", "203.0.113.1"), "starts the ranks of all servers, but --server"),
        (("--ips", "203.0.113.1,203.0.113.2"), "--ips begins with 203.0.113.1, but rank 0 is on 203.0.113.2"),
        (("--ips", "203.0.113.2"), "--ips names 1 machine, but {table} has 2 servers"),
    ],
)  # fmt: skip
def test_machines_that_contradict_a_table_of_several(options: tuple[str, ...], sentence: str) -> None:
    told = refusal("--rank-table", write_table(FIRST, SECOND), *TWO, *options)

    assert sentence.format(table=Path("table.json").resolve()) in told


def test_node_rank_must_be_the_machine_that_this_is() -> None:
    here = (os.uname().nodename, *SECOND[1:])
    table = ("--rank-table", write_table(FIRST, here), *TWO, "--master-addr", "10.0.0.1")

    assert seats(*table, "--node-rank", "0")["here"] == [0, 1, 2, 3]
    told = refusal(*table, "--node-rank", "1")
    assert f'--node-rank 1 selects server "203.0.113.1" of the table, but this host is "{here[0]}"' in told


@pytest.mark.parametrize("variable", ["RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH"])
def test_a_number_beside_the_shells_table_does_not_drop_it(variable: str) -> None:
    environ = {variable: write_table(ONE)}
    source = f"from {variable} of your shell"

    assert seats("-n", "4", env=environ) == {"here": [0, 1, 2, 3]}
    shown = json.loads(launch("-n", "4", env=environ).stdout)
    assert [process["device"] for process in shown["processes"]] == [4, 5, 6, 7]
    assert source in shown["notes"][0]
    told = refusal("-n", "8", env=environ)
    assert "-n 8, but the table has 4 ranks" in told
    assert source in told
    assert seats("-n", "8", "--no-table", env=environ) == {"here": list(range(8))}


def test_the_shells_table_can_be_left_out() -> None:
    table = write_table(("127.0.0.1", [0, 1], [0, 1]))

    typed = refusal("--rank-table", table, "-n", "4")
    found = refusal("-n", "4", env={"RANK_TABLE_FILE": table})

    assert "add --no-table to start without the table" in found
    assert "--no-table" not in typed
    assert "leave it out: the table defines" in typed


def test_a_table_that_cannot_be_read_is_a_refusal() -> None:
    assert "nowhere.json" in refusal("--rank-table", "nowhere.json", code=125)
    assert "RANK_TABLE_FILE of your shell" in refusal(env={"RANK_TABLE_FILE": "nowhere.json"}, code=125)
    assert "is a directory without" in refusal("--rank-table", ".", code=125)


@pytest.mark.parametrize("environ", [{}, {"POD_NAME": "nobody"}])
def test_instances_of_one_server_are_that_server(environ: dict[str, str]) -> None:
    """Two pods of one host, as HCCL reads a group_list: one server with both their devices."""
    instances = [
        {"pod_name": f"job{number}", "server_id": os.uname().nodename,
         "devices": [{"device_id": str(number), "device_ip": f"192.168.0.{number + 1}"}]}
        for number in (0, 1)
    ]  # fmt: skip
    group = {"group_name": "w", "device_count": "2", "instance_count": "2", "instance_list": instances}
    Path("table.json").write_text(
        json.dumps({"status": "completed", "group_count": "1", "group_list": [group]})
    )

    assert seats("--rank-table", "table.json", env=environ) == {"here": [0, 1]}


def test_pod_finds_itself_in_a_group_list() -> None:
    Path("table.json").write_text(json.dumps(made("group_list", servers=2, devices=8)))

    found = seats("--rank-table", "table.json", "--master-addr", "10.0.0.1", env={"POD_NAME": "job1"})
    assert found == {"10.0.0.1": list(range(8)), "here": list(range(8, 16))}


@pytest.mark.parametrize(
    ("servers", "ranks", "command"),
    [
        ((ONE,), "2", "--devices 4-5`"),
        ((ONE,), "3", None),
        ((FIRST, SECOND), "4", "--servers 203.0.113.1`"),
        ((FIRST, SECOND), "6", None),
    ],
)
def test_fewer_ranks_than_the_table_has_are_for_subset(
    servers: tuple[tuple[str, list[int], list[int]], ...], ranks: str, command: str | None
) -> None:
    """HCCL refuses three devices of a server: no command is offered for them."""
    told = refusal("--rank-table", write_table(*servers), *TWO, "-n", ranks, "--all-here")

    assert ("hccl-tools subset" in told) == (command is not None)
    assert (command or "leave it out") in told


@pytest.fixture
def simulated() -> str:
    assert run_here("gen", "--simulate", "910a", "--servers", "2", "-o", "simulated.json").returncode == 0
    return "simulated.json"


@pytest.mark.parametrize("options", [("--cpu",), ()])
def test_simulated_hosts_are_not_waited_for(simulated: str, options: tuple[str, ...]) -> None:
    done = run_here("launch", "--rank-table", simulated, *options, "train.py")

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == (
        "error: the 2 hosts of the table are simulated (192.0.2.1, 192.0.2.2): they cannot join\n"
        "  help: `--cpu --all-here` runs the ranks of all of them on this machine\n"
    )


@pytest.mark.parametrize("option", ["--all-here", "--dry-run"])
def test_simulated_hosts_are_rehearsed_or_shown(simulated: str, option: str) -> None:
    done = run_here("launch", "--rank-table", simulated, "--cpu", option, "train.py")

    assert done.returncode == 0, done.stderr


def test_a_server_that_selects_nothing_is_named() -> None:
    other = launch("--no-table", "-n", "2", "--server", "10.0.0.9")
    own = launch("--no-table", "-n", "2", "--server", "127.0.0.1")
    selecting = launch("-n", "2", "--ips", "10.0.0.9,10.0.0.8", "--server", "10.0.0.9", "--start", "torch")

    assert "--server 10.0.0.9 (or --host, --node-ip) selects nothing" in other.stdout
    assert own.returncode == selecting.returncode == 0, selecting.stderr
    assert "selects nothing" not in own.stdout + selecting.stdout


def test_a_number_of_ranks_behind_the_program_of_a_rehearsal_is_named() -> None:
    behind = run_here("launch", "--cpu", "--dry-run=json", "train.py", "-n", "4", "--lr", "1")
    both = run_here("launch", "--cpu", "-n", "2", "--dry-run=json", "train.py", "-n", "4")

    call = "`hccl-tools launch --cpu --dry-run=json -n 4 train.py --lr 1`"
    assert (
        f"-n 4 is passed to the program; options of launch must precede the program: {call}" in behind.stdout
    )
    assert "is passed to the program" not in both.stdout  # Here it is the program's own.


@pytest.mark.parametrize(
    ("behind", "notes"), [((), 0), (("--lr", "1"), 0), (("-n", "4"), 1), (("-n", "4", "--progress", "x"), 1)]
)
def test_a_rehearsal_names_the_call_for_a_number_of_ranks_once(behind: tuple[str, ...], notes: int) -> None:
    done = run_here("launch", "--cpu", "--dry-run=json", "train.py", *behind)

    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("options of launch must precede the program") == notes
