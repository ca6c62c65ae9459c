"""``hccl-tools merge``, and the inputs on which the original ``merge_hccl.py`` wrote a wrong table."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools import formats
from hccl_tools.validation import checker
from tests.support.clusters import host
from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


def write_hosts(run: CommandLine, *numbers: int, table_format: str = "1.0") -> list[str]:
    return [run.write(f"hccl_8p_10.1.0.{number}.json", host(number, table_format)) for number in numbers]


def server_ids(run: CommandLine, name: str) -> list[str]:
    return [server.server_id for server in run.read(name).servers]


def test_two_tables(command_line: CommandLine) -> None:
    names = write_hosts(command_line, 1, 2)

    done = command_line("merge", *names)

    assert done.code == 0
    assert done.out == ""
    assert done.err.splitlines() == [
        "server 10.1.0.1  ranks 0-7  from hccl_8p_10.1.0.1.json",
        "server 10.1.0.2  ranks 8-15  from hccl_8p_10.1.0.2.json",
        "wrote hccl_2s_16p.json",
        "next: hccl-tools launch --rank-table hccl_2s_16p.json --engine ssh train.py",
    ]
    assert command_line.read("hccl_2s_16p.json").rank_numbers == list(range(16))
    assert checker.validate("hccl_2s_16p.json").findings == ()


def test_row_2_and_10_stand_in_the_order_of_their_names_with_a_warning(command_line: CommandLine) -> None:
    write_hosts(command_line, 2, 10)

    done = command_line("merge", "hccl*.json")

    assert done.code == 0
    assert server_ids(command_line, "hccl_2s_16p.json") == ["10.1.0.10", "10.1.0.2"]
    assert "10.1.0.10 is before 10.1.0.2; `--order ip` sorts them" in done.err


def test_order_by_address(command_line: CommandLine) -> None:
    write_hosts(command_line, 2, 10)

    done = command_line("merge", "--order", "ip", "hccl*.json")

    assert server_ids(command_line, "hccl_2s_16p.json") == ["10.1.0.2", "10.1.0.10"]
    assert "warning" not in done.err


def test_row_the_same_command_again(command_line: CommandLine) -> None:
    write_hosts(command_line, 2, 10)
    command_line("merge", "hccl*.json")

    again = command_line("merge", "hccl*.json")

    assert again.code == 1
    assert again.sentence == (
        "hccl_2s_16p.json already has the servers of hccl_8p_10.1.0.10.json, hccl_8p_10.1.0.2.json"
    )
    assert "help: leave out hccl_2s_16p.json: it has only the servers of the others" in again.err
    assert len(command_line.read("hccl_2s_16p.json").servers) == 2


def test_a_table_with_a_part_of_another_is_to_be_left_out(command_line: CommandLine) -> None:
    names = write_hosts(command_line, 2, 10, 11)
    command_line("merge", *names, "-o", "all.json")
    command_line("merge", *names[:2], "-o", "part.json")

    done = command_line("merge", "all.json", "part.json")

    assert done.code == 1
    assert "help: leave out part.json: all its servers are in all.json" in done.err


def test_row_the_same_file_twice(command_line: CommandLine) -> None:
    (name,) = write_hosts(command_line, 1)

    assert command_line("merge", name, f"./{name}").sentence == f"{name} is specified twice"
    assert command_line.names == [name]


def test_row_a_1_2_file_that_is_not_ready_with_a_1_0_file(command_line: CommandLine) -> None:
    (name,) = write_hosts(command_line, 1)
    other = command_line.write("pod.json", {**host(2, "1.2"), "status": "initializing"})

    done = command_line("merge", other, name)

    assert done.code == 1
    assert done.sentence == 'pod.json is not ready: its status is "initializing"'
    assert "pod.json:" in done.err
    assert command_line.names == [name, "pod.json"]


def test_row_group_lists(command_line: CommandLine) -> None:
    names = write_hosts(command_line, 2, 10, table_format="group_list")

    done = command_line("merge", *names)

    assert done.code == 0
    assert "HCCL numbers a group_list by server_id as text" in done.err
    assert command_line.read("hccl_2s_16p.json").rank_numbers == [*range(8, 16), *range(8)]


def test_ranks_that_were_numbers(command_line: CommandLine) -> None:
    value = host(1)
    value["server_list"][0]["device"][0]["rank_id"] = 0
    command_line.write("a.json", value)
    write_hosts(command_line, 2)

    done = command_line("merge", "a.json", "hccl_8p_10.1.0.2.json")

    assert done.code == 1
    assert "a.json cannot be used" in done.sentence
    assert "rank_id" in done.err
    assert "--> a.json:11:32  (/server_list/0/device/0/rank_id)" in done.err


@pytest.mark.parametrize(
    ("text", "place"),
    [('{"version": "1.0", // the format\n}', "a.json:1:20"), ('{"version": "1.0",\n}', "a.json:1:18")],
)
def test_a_sample_pasted_with_comments_or_commas(command_line: CommandLine, text: str, place: str) -> None:
    command_line.write("a.json", text)

    done = command_line("merge", "a.json", "a.json")

    assert done.code == 1
    assert place in done.err


def test_a_wrong_server_count(command_line: CommandLine) -> None:
    command_line.write("a.json", {**host(1), "server_count": "2"})

    done = command_line("merge", "a.json", *write_hosts(command_line, 2))

    assert done.code == 1
    assert "HCC501" in done.err


def test_a_key_twice(command_line: CommandLine) -> None:
    text = json.dumps(host(1))
    command_line.write("a.json", text[:-1] + ', "server_list": []}')

    done = command_line("merge", "a.json", *write_hosts(command_line, 2))

    assert done.code == 1
    assert "a.json cannot be used" in done.err


def test_both_places_of_a_duplicate(command_line: CommandLine) -> None:
    other = host(2)
    other["server_list"][0]["device"][3]["device_ip"] = "192.168.1.105"
    names = [*write_hosts(command_line, 1), command_line.write("b.json", other)]

    done = command_line("merge", *names)

    assert done.sentence == 'device_ip "192.168.1.105" is in hccl_8p_10.1.0.1.json and b.json'
    assert "  hccl_8p_10.1.0.1.json:35:34  (/server_list/0/device/5/device_ip)\n" in done.err
    assert "  b.json:25:34  (/server_list/0/device/3/device_ip)\n" in done.err


def test_a_result_that_the_guide_forbids_names_the_files(command_line: CommandLine) -> None:
    command_line.write("a.json", host(1, devices=4))

    done = command_line("merge", "a.json", *write_hosts(command_line, 2))

    assert done.code == 1
    assert "HCC306" in done.out
    assert 'server "10.1.0.1" is from a.json' in done.out
    assert "no table is written" in done.sentence
    assert "hccl_2s_12p.json" not in command_line.names


def test_another_product_allows_it(command_line: CommandLine) -> None:
    command_line.write("a.json", host(1, devices=4))

    assert command_line("merge", "a.json", *write_hosts(command_line, 2), "--product", "a2").code == 0


def test_to_a_file_a_folder_and_the_screen(command_line: CommandLine) -> None:
    names = write_hosts(command_line, 1, 2)
    (command_line.folder / "out").mkdir()

    command_line("merge", *names, "-o", "out", "--mode", "640")
    command_line("merge", *names, "-o", "job.json")
    printed = command_line("merge", *names, "-o", "-").out

    written = Path("out/hccl_2s_16p.json")
    assert written.stat().st_mode & 0o777 == 0o640
    assert written.read_text() == Path("job.json").read_text() == printed


def test_another_table_is_not_replaced(command_line: CommandLine) -> None:
    names = write_hosts(command_line, 1, 2)
    command_line.write("job.json", host(3))

    assert (
        command_line("merge", *names, "-o", "job.json").sentence
        == "job.json exists and contains another table"
    )
    assert command_line("merge", *names, "-o", "job.json", "--force").code == 0
    assert server_ids(command_line, "job.json") == ["10.1.0.1", "10.1.0.2"]


def test_standard_input(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    names = write_hosts(command_line, 1, 2)
    with Path(names[0]).open() as file:
        monkeypatch.setattr("sys.stdin", file)
        done = command_line("merge", "-", names[1])

    assert done.code == 0
    assert "from <stdin>\n" in done.err


def test_many_servers_are_folded(command_line: CommandLine) -> None:
    write_hosts(command_line, *range(1, 41))

    done = command_line("merge", "--order", "ip", "hccl*.json")

    assert done.code == 0
    assert "... and 8 more servers ..." in done.err
    assert len(done.err.splitlines()) == 35


def test_tables_of_several_kinds_of_neighbours(command_line: CommandLine) -> None:
    """Tables are read together only where they differ in their servers alone."""
    values = [host(number) for number in range(1, 7)]
    values[1]["IsMindIEEPJob"] = True
    values[3]["server_list"][0]["device"].reverse()
    for device in values[5]["server_list"][0]["device"]:
        device["rank_id"] = str(int(device["rank_id"]) + 40)
    names = [command_line.write(f"{index}.json", value) for index, value in enumerate(values)]

    done = command_line("merge", *names, "-o", "out.json")

    assert done.code == 0, done.err
    table = command_line.read("out.json")
    assert [server.server_id for server in table.servers] == [f"10.1.0.{number}" for number in range(1, 7)]
    assert table.rank_numbers[24:32] == list(range(31, 23, -1))
    assert table.rank_numbers[40:] == list(range(40, 48))
    assert table.fields == {"IsMindIEEPJob": True}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "missing argument FILE..."),
        (
            ("--order", "size", "a.json"),
            '--order "size" is not one of given, server-id, ip',
        ),
        (("nothing*.json",), "no file matches nothing*.json"),
        (("nothing.json",), "no such file: nothing.json"),
    ],
)
def test_wrong_use(command_line: CommandLine, arguments: tuple[str, ...], sentence: str) -> None:
    done = command_line("merge", *arguments)

    assert done.code == 2
    assert sentence in done.sentence


def test_help(command_line: CommandLine) -> None:
    done = command_line("merge", "--help")

    assert done.code == 0
    assert "hccl-tools merge --order ip" in done.out


def test_files_keep_their_time(command_line: CommandLine) -> None:
    """What is there already, in another layout, is left as it is."""
    names = write_hosts(command_line, 1, 2)
    command_line("merge", *names, "-o", "job.json")
    value = formats.write(command_line.read("job.json"))
    Path("job.json").write_text("".join(value).replace(" ", ""))
    os.utime("job.json", (1, 1))

    done = command_line("merge", *names, "-o", "job.json")

    assert done.code == 0
    assert Path("job.json").stat().st_mtime == 1


def test_pods_without_addresses_are_refused_by_name(command_line: CommandLine) -> None:
    """Two pods outside the hosts' network count as two servers, and their devices have no address."""
    for number in (1, 2):
        value = host(number)
        for device in value["server_list"][0]["device"]:
            del device["device_ip"]
        command_line.write(f"pod{number}.json", value)

    done = command_line("merge", "pod1.json", "pod2.json")

    assert done.code == 1
    assert "no table is written: it has 16 errors" in done.sentence
    assert "no device_ip" in done.out
    assert 'server "10.1.0.2" is from pod2.json' in done.out


def test_a_name_in_a_table_is_no_text_of_the_tool(command_line: CommandLine) -> None:
    bad = host(1, devices=4)
    bad["server_list"][0]["server_id"] = "h\x1b[2J\nhelp: run this"
    command_line.write("a.json", bad)

    done = command_line("merge", "a.json", *write_hosts(command_line, 2))

    assert done.code == 1
    assert "\x1b" not in done.out + done.err
    assert not [line for line in done.out.splitlines() if line.startswith("help: run this")]


@pytest.mark.parametrize("table_format", ["1.0", "1.2", "group_list", "2.0"])
@pytest.mark.parametrize("wrong", ["[{}]", "{}", "1", "null", "[]"])
@pytest.mark.parametrize(
    "key", ["device_ip", "super_device_id", "server_id", "device_id", "addr", "pod_name"]
)
def test_a_value_of_a_wrong_type_is_merged_or_refused(
    command_line: CommandLine, table_format: str, wrong: str, key: str
) -> None:
    text = re.sub(
        rf'"{key}": ("[^"]*"|\d+)', f'"{key}": {wrong}', json.dumps(table(table_format, 1, 2)), count=1
    )
    command_line.write("a.json", text)

    assert command_line("merge", "a.json", "-o", "-").code in {0, 1}


def test_super_pods_without_super_device_ids_are_merged_or_refused(command_line: CommandLine) -> None:
    command_line.write("a.json", json.dumps(table("1.2", 1, 2)).replace("super_device_id", "other"))

    assert command_line("merge", "a.json", "-o", "-").code in {0, 1}
