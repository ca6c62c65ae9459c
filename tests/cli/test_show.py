"""``hccl-tools show``: the tree, one rank, one server, this host, the fingerprint."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import formats
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.transform.merging import merge
from tests.support.clusters import host, host_table
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


def cluster(run: CommandLine, *numbers: int) -> str:
    made = merge([(str(number), host_table(number)) for number in numbers]).table
    return run.write("job.json", "".join(formats.write(made)))


def as_json(run: CommandLine, *args: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(run("show", *args, "-f", "json").out)
    assert value["schema_version"] == 1
    return value


def test_the_tree(command_line: CommandLine) -> None:
    cluster(command_line, 1, 2)

    done = command_line("show", "job.json")

    assert done.code == 0
    known = fingerprint(command_line.read("job.json"))
    assert done.out.splitlines()[:6] == [
        f"job.json: 1.0, 2 servers, 16 ranks, fingerprint {known}, product 910a (assumed)",
        "├── 10.1.0.1  ranks 0-7",
        "│   ├── group 0-3",
        "│   │   ├── rank 0  device 0  192.168.1.100",
        "│   │   ├── rank 1  device 1  192.168.1.101",
        "│   │   ├── rank 2  device 2  192.168.1.102",
    ]


@pytest.mark.parametrize(
    ("product", "ending"), [("a2", ""), ("910a", ""), (None, ", product 910a (assumed)")]
)
def test_the_heading_says_that_the_product_is_assumed(
    command_line: CommandLine, product: str | None, ending: str
) -> None:
    cluster(command_line, 1, 2)
    given = ["--product", product] if product else []

    done = command_line("show", "job.json", *given)

    known = fingerprint(command_line.read("job.json"))
    assert done.out.splitlines()[0] == f"job.json: 1.0, 2 servers, 16 ranks, fingerprint {known}{ending}"


def test_more_than_four_servers_are_folded(command_line: CommandLine) -> None:
    cluster(command_line, 1, 2, 3, 4, 5)

    assert command_line("show", "job.json").out.splitlines()[1] == "├── 10.1.0.1  ranks 0-7  devices 0-7"
    assert len(command_line("show", "job.json").out.splitlines()) == 6
    assert len(command_line("show", "job.json", "--all").out.splitlines()) == 1 + 5 * 11


def test_a_rank(command_line: CommandLine) -> None:
    cluster(command_line, 1, 2)

    done = command_line("show", "job.json", "--rank", "13")

    assert done.out.splitlines() == [
        "rank        13 of 16",
        "server      10.1.0.2 (the 2nd of 2)",
        "device      5",
        "local rank  5 of 8",
        "address     192.168.2.105",
    ]


def test_a_rank_for_programs(command_line: CommandLine) -> None:
    """What scripts cut out with awk and grep, whatever the order of keys: the address of the first server."""
    cluster(command_line, 1, 2)

    first = as_json(command_line, "job.json", "--rank", "0")

    assert first["server"] == {"index": 0, "server_id": "10.1.0.1"}
    assert (first["rank"], first["device_id"], first["local_rank"], first["local_size"]) == (0, 0, 0, 8)
    assert first["addresses"] == ["192.168.1.100"]


def test_a_server(command_line: CommandLine) -> None:
    cluster(command_line, 1, 2, 3, 4, 5)

    done = command_line("show", "job.json", "--server", "10.1.0.4")

    assert len(done.out.splitlines()) == 12
    assert done.out.splitlines()[1] == "└── 10.1.0.4  ranks 24-31"
    server = as_json(command_line, "job.json", "--server", "10.1.0.4")["server"]
    assert [rank["rank"] for rank in server["ranks"]] == list(range(24, 32))


def test_here_by_host_name(command_line: CommandLine) -> None:
    value = host(1)
    value["server_list"][0]["server_id"] = socket.gethostname()
    value["server_list"] += host(2)["server_list"]
    for rank, device in enumerate(value["server_list"][1]["device"]):
        device["rank_id"] = str(8 + rank)
    command_line.write("job.json", {**value, "server_count": "2"})

    done = command_line("show", "job.json", "--here")

    assert done.code == 0
    assert done.out.splitlines()[0] == (
        f"this host is {socket.gethostname()}, by the host name in server_id: ranks 0-7, devices 0-7"
    )
    assert as_json(command_line, "job.json", "--here")["server"]["index"] == 0


def test_here_and_no_server_is_this_host(command_line: CommandLine) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][0]["server_id"], value["server_list"][1]["server_id"] = "240.0.0.1", "240.0.0.2"
    command_line.write("job.json", value)

    done = command_line("show", "job.json", "--here")

    assert done.code == 1
    assert done.sentence == "none of the table's servers is this host: 240.0.0.1, 240.0.0.2"
    assert socket.gethostname() in done.err
    assert done.err.endswith(
        "; neither its addresses, its name nor its devices match a server;"
        " for another host: --server 240.0.0.1\n"
    )


def test_here_by_a_variable_of_the_platform(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = table("1.0", 2, 8)
    for number, server in enumerate(value["server_list"]):
        server["server_id"] = f"240.0.0.{number}"
    command_line.write("job.json", value)
    monkeypatch.setenv("MA_CURRENT_HOST_IP", "240.0.0.1")

    assert as_json(command_line, "job.json", "--here")["server"]["server_id"] == "240.0.0.1"


def test_the_fingerprint_alone(command_line: CommandLine) -> None:
    cluster(command_line, 1, 2)
    command_line.write(
        "minified.json", json.dumps(json.loads((command_line.folder / "job.json").read_text()))
    )

    first = command_line("show", "job.json", "--fingerprint")
    second = command_line("show", "minified.json", "--fingerprint")

    assert first.out == second.out == fingerprint(command_line.read("job.json")) + "\n"


def test_super_pods_and_2_0(command_line: CommandLine) -> None:
    command_line.write("a3.json", table("1.2", 2, 8, pods=2))
    command_line.write("a5.json", table("2.0", 1, 2))

    assert command_line("show", "a3.json").out.splitlines()[1:4] == [
        "├── super pod 0",
        "│   └── 10.0.0.1  ranks 0-7",
        "│       ├── rank 0  device 0  192.168.0.100  SDID 0",
    ]
    assert command_line("show", "a5.json").out.splitlines()[1:] == [
        "└── node0  ranks 0-1",
        "    ├── rank 0  device 0  10.0.0.1",
        "    └── rank 1  device 1  10.0.0.2",
    ]


def test_a_table_with_errors_is_shown(command_line: CommandLine) -> None:
    value = table("1.0", 1, 3)
    value["server_list"][0]["device"][1]["rank_id"] = "x"
    command_line.write("job.json", value)

    done = command_line("show", "job.json")

    assert done.code == 0
    assert "rank ?  device 1" in done.out
    assert done.err.startswith("note: the table has ")


def test_it_fits_the_terminal(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    value = table("1.0", 1, 2)
    value["server_list"][0]["server_id"] = "a-very-long-name-of-a-server.example.com"
    command_line.write("job.json", value)
    monkeypatch.setenv("COLUMNS", "30")

    lines = command_line("show", "job.json").out.splitlines()

    assert max(map(len, lines)) == 30
    assert " ".join(lines[:3]).startswith("job.json: 1.0, 1 server, 2")
    assert [line[-1] for line in lines if "a-very-long" in line] == ["…"]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "no rank table given"),
        (("job.json", "--rank", "16"), 1, "the table has no rank 16"),
        (("job.json", "--server", "10.1.0.9"), 1, 'the table has no server "10.1.0.9"'),
        (("job.json", "--rank", "1", "--here"), 2, "--rank and --here exclude each other"),
        (("nothing.json",), 2, "no such file: nothing.json"),
        (("nodes.json",), 1, "nodes.json cannot be shown"),
    ],
)
def test_wrong_use(command_line: CommandLine, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    cluster(command_line, 1, 2)
    command_line.write("nodes.json", {"nodes": []})

    done = command_line("show", *arguments)

    assert done.code == code
    assert sentence in done.sentence
