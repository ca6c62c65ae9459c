"""``gen --from-log`` and ``show --from-log``: the table of a job from its run logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hccl_tools.files import outputs
from tests.support.plogs import Plogs
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


@pytest.mark.parametrize(("cann", "names_root"), [(8, False), (8, True), (9, False)])
def test_the_table_is_the_one_that_the_job_had(
    command_line: CommandLine, cann: int, names_root: bool
) -> None:
    Plogs(command_line.folder / "log", 16, 8, cann, names_root=names_root).start()
    command_line.write("job.json", table("1.0", 2, 8))
    done = command_line("gen", "--from-log", "log", "-o", "made.json")

    assert done.code == 0, done.err
    written = (command_line.folder / "made.json").read_text()
    assert written == outputs.table_text(command_line.read("job.json"))


def test_the_largest_communicator_is_the_job(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "log", 16, 8).start()
    for rank in range(16):
        job.identity(rank, rank // 2, 8, f"tensor_{rank % 2}")
    done = command_line("gen", "--from-log", "log", "-o", "-")

    assert [
        device["rank_id"] for server in json.loads(done.out)["server_list"] for device in server["device"]
    ] == [str(rank) for rank in range(16)]


def test_ranks_keep_their_numbers(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "log", 4, 2)
    for place, rank in enumerate([0, 2, 1, 3]):
        job.identity(place, rank, 4, "world")
    done = command_line("gen", "--from-log", "log", "-o", "-", "--ignore", "HCC205,HCC308")
    made = json.loads(done.out)

    assert [[one["rank_id"] for one in server["device"]] for server in made["server_list"]] == [
        ["0", "2"], ["1", "3"],
    ]  # fmt: skip


def test_incomplete_logs_are_refused_with_what_is_missing(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "log", 16, 8)
    for rank in range(8):
        job.identity(rank, rank, 16, "world")
    done = command_line("gen", "--from-log", "log", "-o", "made.json")

    assert done.code == 1
    assert done.sentence == (
        "the logs have 8 of 16 ranks: there is no log of rank 8-15; there are logs of 10.0.0.1 (8 ranks)"
    )
    assert command_line.names == ["log"]


def test_contradictions_are_named(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "log", 4, 4).start()
    job.identity(2, 1, 4, "world")
    done = command_line("gen", "--from-log", "log")

    assert done.code == 1
    assert "rank 1 is device 1 of 10.0.0.1 with 192.168.0.101 in log/10.0.0.1/run/plog/plog-4001_" in done.err
    assert "and device 2 of 10.0.0.1 with 192.168.0.102 in log/10.0.0.1/run/plog/plog-4002_" in done.err


def test_logs_that_do_not_name_the_hosts_are_refused(command_line: CommandLine) -> None:
    logs = command_line.folder / "log"
    Plogs(logs, 16, 8, 8, names_root=True).start()
    (logs / "10.0.0.2").rename(logs / "second")
    done = command_line("gen", "--from-log", "log", "-o", "made.json")

    assert done.code == 1
    assert "put the logs of each host into a folder with its address" in done.err
    assert "ranks 0 and 8 are both device 0 of 10.0.0.1" in done.err


def without_addresses(command_line: CommandLine, ranks: int) -> None:
    Plogs(command_line.folder / "log", ranks, 4).start()
    for path in (command_line.folder / "log").rglob("plog-*"):
        words = path.read_text().split("deviceIp[")
        path.write_text("deviceIp[0.0.0.0]".join([words[0], *(word.partition("]")[2] for word in words[1:])]))


def test_logs_without_addresses_make_the_table_of_one_host(command_line: CommandLine) -> None:
    without_addresses(command_line, 4)
    done = command_line("gen", "--from-log", "log", "-o", "made.json", "--product", "910b")

    assert done.code == 0, done.err
    assert "note: the logs hold no addresses of devices, so the table has none" in done.err
    assert command_line.read("made.json").device_ips == [None] * 4


def test_logs_without_addresses_make_no_table_of_two_hosts(command_line: CommandLine) -> None:
    without_addresses(command_line, 8)
    done = command_line("gen", "--from-log", "log")

    assert (done.code, done.sentence) == (
        1,
        "the logs do not hold the address of rank 0-7 (deviceIp[0.0.0.0]), which a table of several hosts needs",
    )


def test_logs_of_a_super_pod_say_what_they_lack(command_line: CommandLine) -> None:
    Plogs(command_line.folder / "log", 8, 8).start()
    for path in (command_line.folder / "log").rglob("plog-*"):
        path.write_text(path.read_text().replace("useSuperPodMode[0]", "useSuperPodMode[1]"))
    done = command_line("gen", "--from-log", "log")

    assert (done.code, done.sentence) == (
        1, "the job used super pods, and its logs do not hold the super_device_id that a 1.2 table needs",
    )  # fmt: skip


def test_an_option_that_does_not_apply_is_refused(command_line: CommandLine) -> None:
    Plogs(command_line.folder / "log", 4, 4).start()

    assert command_line("gen", "--from-log", "log", "--devices", "0").sentence == (
        "--from-log and --devices exclude each other"
    )
    assert command_line("gen", "--from-log", "log", "--format", "1.2").code == 2


def test_logs_of_something_else_are_refused(command_line: CommandLine) -> None:
    command_line.write("log/rank_0.log", "step 1\n")
    done = command_line("gen", "--from-log", "log")

    assert (done.code, done.sentence) == (1, "the logs do not say which ranks the job had: log")


def test_show_what_the_logs_know(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "log", 4, 4)
    for rank in (0, 3):
        job.identity(rank, rank, 4, "world")
    lines = command_line("show", "--from-log", "log").out.splitlines()

    assert lines[0] == "4 ranks on 1 host, communicator world"
    assert lines[2].split()[:4] == ["0", "10.0.0.1", "0", "192.168.0.100"]
    assert lines[-1].startswith(
        "no table can be made: the logs have 2 of 4 ranks: there is no log of rank 1-2;"
    )
    shown = json.loads(command_line("show", "--from-log", "log", "-f", "json").out)
    assert shown["communicators"][0]["missing"] == [1, 2]


HOSTILE_LOG = (
    "[INFO] HCCL(69402,python3):2024-04-07-18:35:53.395.735 [topoinfo_detect.cc:208] [69402][HCCL_TRACE]SetupAgent "
    "rankNum[1], rank[0], rootInfo identifier[10.0.0.1%enp189s0f0_60000_0_1712529353144389], "
    "server[x/../../pwn%enp189s0f0], serverPort[60000]deviceType[2], logicDevId[0], phydevId[0], "
    "deviceIp[192.168.100.212]\n"
)


@pytest.mark.parametrize("output", [(), ("-o", "."), ("-o", "made.json")])
def test_a_server_that_is_no_host_does_not_name_the_file(
    command_line: CommandLine, output: tuple[str, ...]
) -> None:
    command_line.write("a.log", HOSTILE_LOG)
    (command_line.folder / "hccl_1p_0_x").mkdir()

    done = command_line("gen", "--from-log", "a.log", *output)

    assert done.code == 1
    assert 'the server "x/../../pwn" is not a host name' in done.sentence
    assert command_line.names == ["a.log", "hccl_1p_0_x"]
