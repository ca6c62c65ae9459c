"""``--target``: tables held against the conditions of the frameworks that read them."""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.cli import options
from hccl_tools.files import export_targets
from hccl_tools.formats import file_kinds
from tests.support import host_files
from tests.support.tables import JSON, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import CommandLine, Done

    Damage = Callable[[JSON, Path], Any]


def good(target: str) -> JSON:
    value: JSON = table("1.0", 2, 8)
    for number, server in enumerate(value["server_list"]):
        if target == "mindie":
            server["container_ip"] = f"172.17.0.{number + 2}"
    return value


def servers(value: JSON) -> list[JSON]:
    found: list[JSON] = value["server_list"]
    return found


def link(_value: JSON, path: Path) -> None:
    path.symlink_to("target.json")


def swap_ranks(value: JSON, _path: Path) -> None:
    first, second = servers(value)[0]["device"][:2]
    first["rank_id"], second["rank_id"] = second["rank_id"], first["rank_id"]


def swap_servers(value: JSON, _path: Path) -> None:
    first, second = servers(value)
    first["server_id"], second["server_id"] = second["server_id"], first["server_id"]


def reverse_ranks(value: JSON, _path: Path) -> None:
    """Number the devices of the second server from the last to the first."""
    devices = servers(value)[1]["device"]
    for device, rank in zip(devices, range(15, 7, -1), strict=True):
        device["rank_id"] = str(rank)


def of_format(*size: Any) -> Damage:
    def change(value: JSON, _path: Path) -> None:
        value.clear()
        value.update(table(*size))

    return change


def many(number: int) -> Damage:
    def change(value: JSON, _path: Path) -> None:
        of_format("1.0", number, 8)(value, _path)
        for server in servers(value):
            server["container_ip"] = "172.17.0.2"

    return change


def without(*keys: Any) -> Damage:
    def change(value: JSON, _path: Path) -> None:
        holder: Any = servers(value)
        for key in keys[:-1]:
            holder = holder[key]
        del holder[keys[-1]]

    return change


def with_value(value_: str, *keys: Any) -> Damage:
    def change(value: JSON, _path: Path) -> None:
        holder: Any = servers(value)
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = value_

    return change


BAD: list[tuple[str, Damage, int, str, str]] = [
    ("mindie", lambda *_: None, 0o644, "HCC861", "chmod 640"),
    ("mindie", of_format("group_list", 2, 8), 0o640, "HCC862", "Parameter server_list is invalid"),
    ("mindie", many(61), 0o640, "HCC863", "server_count must be in range [2, 60]"),
    ("mindie", without(1, "container_ip"), 0o640, "HCC864", "The containerIp in the server node is empty"),
    ("mindie", without(1, "device", 7), 0o640, "HCC865", "The number of devices in every server node"),
    ("mindie", without(0, "device", 3, "device_ip"), 0o640, "HCC867", "Parameter device_ip is invalid"),
    ("mindie", with_value("node1", 0, "server_id"), 0o640, "HCC868", "not an IP address"),
    ("mindie", with_value("00", 0, "device", 0, "rank_id"), 0o640, "HCC869", 'not "0"'),
    ("xllm", link, 0o644, "HCC871", "rank_tablefile must not be a symlink"),
    ("xllm", with_value("node1", 0, "server_id"), 0o644, "HCC872", "no address that other hosts reach"),
    ("xllm", with_value("127.0.0.1", 0, "server_id"), 0o644, "HCC872", "no address that other hosts reach"),
    ("xllm", with_value("01", 0, "device", 1, "rank_id"), 0o644, "HCC873", 'rank 1 is written "01"'),
    ("xllm", of_format("2.0", 2, 2), 0o644, "HCC874", "no server_list"),
    ("xllm", lambda *_: None, 0o244, "HCC875", "rank_tablefile is not readable"),
    ("torch", link, 0o644, "HCC881", "The rank_table_file is not available, switch to original interface."),
    ("torch", lambda *_: None, 0o244, "HCC882", "The rank_table_file is not available"),
    ("torch", swap_ranks, 0o644, "HCC883", "ranktable config devId[..], but local devId[..]"),
    ("torch", without(1, "device", 7), 0o644, "HCC884", "7, 8"),
    ("torch", without(0, "device", 0), 0o644, "HCC884", "7"),
    ("torch", reverse_ranks, 0o644, "HCC883", "ranktable config devId[..], but local devId[..]"),
    ("mindspore", swap_servers, 0o644, "HCC891", "after server"),
    ("mindspore", with_value("10.0.0.0", 1, "server_id"), 0o644, "HCC891", "after server"),
    ("mindspore", with_value("9.0.0.1", 0, "server_id"), 0o644, "HCC891", "after server"),
    ("mindspore", lambda *_: None, 0o244, "HCC892", "Get hccl rank_table_file failed"),
    ("mindspore", lambda *_: None, 0o044, "HCC892", "Get hccl rank_table_file failed"),
]


def made(run: CommandLine, target: str, damage: Damage, mode: int) -> None:
    value, path = good(target), run.folder / "t.json"
    damage(value, path)
    run.write("t.json", value)
    path.chmod(mode)


def simulated(run: CommandLine, product: str, *more: str) -> Done:
    return run("gen", "--simulate", product, "-o", "t.json", *more)


def test_an_order_that_no_table_of_super_pods_has_can_be_ignored(command_line: CommandLine) -> None:
    """As text, 192.0.2.10 to .16 are between .1 and .2, which are in the first super pod."""
    assert simulated(command_line, "a3", "--servers", "16", "--super-pods", "4").code == 0

    refused = command_line("validate", "t.json", "--target", "mindspore")

    assert refused.code == 1
    assert "HCC891" in refused.out
    assert (
        "no order is that of MindSpore's guide and has the servers of each super pod together" in refused.out
    )
    ignored = command_line("validate", "t.json", "--target", "mindspore", "--ignore", "HCC891")
    assert ignored.code == 0


@pytest.mark.parametrize(
    "machines",
    [
        ("a2", "--servers", "12"),
        ("a3", "--servers", "12"),
        ("a3", "--servers", "8", "--super-pods", "4"),
        ("a3", "--servers", "16", "--super-pods", "4"),
    ],
)
def test_a_simulated_table_for_mindspore_has_its_order(
    machines: tuple[str, ...], command_line: CommandLine
) -> None:
    made = simulated(command_line, *machines, "--target", "mindspore")

    assert (made.code, "--order ip" in made.err) == (0, False)
    assert command_line("validate", "t.json", "--target", "mindspore", "--strict").code == 0


def test_the_command_on_the_order_of_mindspore_mends_the_file(command_line: CommandLine) -> None:
    assert simulated(command_line, "a2", "--servers", "12").code == 0

    refused = command_line("validate", "t.json", "--target", "mindspore")

    command = "hccl-tools merge --order server-id -o - t.json > t.new.json"
    assert f"`{command}` numbers them so" in " ".join(refused.out.split())
    merged = command_line("merge", "--order", "server-id", "-o", "-", "t.json")
    (command_line.folder / "t.new.json").write_text(merged.out)
    assert command_line("validate", "t.new.json", "--target", "mindspore").code == 0


@pytest.mark.parametrize("target", file_kinds.TARGETS)
def test_a_good_table(target: str, command_line: CommandLine) -> None:
    made(command_line, target, lambda *_: None, 0o640)

    done = command_line("validate", "t.json", "--target", target)

    assert done.code == 0, done.out
    assert f"no findings: HCCL and {file_kinds.TARGETS[target]} accept this table" in done.out


@pytest.mark.parametrize(("target", "damage", "mode", "rule", "words"), BAD)
def test_a_bad_table(  # noqa: PLR0917
    command_line: CommandLine, target: str, damage: Damage, mode: int, rule: str, words: str
) -> None:
    made(command_line, target, damage, mode)

    product = "a5" if rule == "HCC874" else "a2"
    done = command_line("validate", "t.json", "--target", target, "--product", product)

    assert done.code == 1
    assert f"[{rule}]" in done.out
    assert words in done.out


#: Files that no framework reads as a rank table: name, content, reader, and words of the help.
OTHER_FILES: list[tuple[str, Callable[[], JSON], str, str]] = [
    ("hccl_rootinfo.json", host_files.root_info, "HCCL", "omit --target: HCCL reads this file"),
    ("ub_endpoint_npu_0.json", host_files.endpoint_file, "hixl", "omit --target: hixl reads this file"),
    ("t.json", lambda: table("server_group_list", 2, 8), "MindIE-Motor", "convert FILE --instance N"),
]


@pytest.mark.parametrize("target", file_kinds.TARGETS)
@pytest.mark.parametrize(("name", "content", "reader", "help_"), OTHER_FILES)
def test_a_file_of_another_reader_is_not_passed_in_silence(  # noqa: PLR0917
    command_line: CommandLine, name: str, content: Callable[[], JSON], reader: str, help_: str, target: str
) -> None:
    command_line.write(name, content())
    title = file_kinds.TARGETS[target]

    done = command_line("validate", name, "--target", target, "--ignore", "HCC6,HCC80,HCC84")

    if (reader, target) == ("MindIE-Motor", "mindie"):
        assert done.code == 0
        assert "t.json is checked as MindIE-Motor reads it" in done.err
        assert "HCC895" not in done.out
    else:
        assert done.code == 1
        assert "error[HCC895]" in done.out
        assert f"= {title}: refuses the file" in done.out
        assert help_ in done.out
        assert f"{reader} accepts this" in done.out
        assert f"but {title} does not" in done.out


def test_a_service_table_of_omni_infer_is_not_one_of_mindie(command_line: CommandLine) -> None:
    groups: Any = table("server_group_list", 2, 8)["server_group_list"][2:]
    for number, group in enumerate(groups):
        group["group_id"] = str(number)
    command_line.write("t.json", {"status": "completed", "server_group_list": groups})

    out = command_line("validate", "t.json", "--target", "mindie").out

    assert "service table, as omni-infer reads it" in out
    assert "error[HCC895]" in out


@pytest.mark.parametrize(("name", "content", "_reader", "_help"), OTHER_FILES)
@pytest.mark.parametrize(
    "words", ["convert {} --to 1.0 -o new.json", "env {}", "doctor {}", "distribute {} 10.0.0.1"]
)
def test_other_commands_refuse_such_a_file(
    command_line: CommandLine, name: str, content: Callable[[], JSON], _reader: str, _help: str, words: str
) -> None:
    command_line.write(name, content())

    done = command_line(*words.format(name).split(), "--target", "mindie")

    assert done.code == 1
    assert done.out == ""
    assert re.match(r"error: \S+ cannot be used: it is an? (root info|endpoint file|service table)", done.err)


@pytest.mark.parametrize("target", file_kinds.TARGETS)
@pytest.mark.parametrize("damage", [without(0, "server_id"), without(0, "device", 0, "rank_id")])
def test_a_value_that_is_missing_is_not_judged_as_another(
    command_line: CommandLine, target: str, damage: Damage
) -> None:
    made(command_line, target, damage, 0o640)

    out = command_line("validate", "t.json", "--target", target).out

    assert "error[HCC111]" in out
    assert "HCC8" not in out, out


def test_the_verdict_names_the_framework(command_line: CommandLine) -> None:
    made(command_line, "mindie", lambda *_: None, 0o644)

    out = command_line("validate", "t.json", "--target", "mindie").out

    assert out.splitlines()[-1] == "1 error: HCCL accepts this table, but MindIE does not"
    assert "= MindIE: refuses the table" in out


def test_the_verdict_names_the_framework_only_if_it_was_asked(command_line: CommandLine) -> None:
    made(command_line, "mindie", lambda *_: None, 0o644)

    out = command_line("validate", "t.json", "--target", "mindie", "--ignore", "HCC861").out

    assert out.splitlines()[-1] == "no findings: HCCL accepts this table"


def test_a_target_adds_to_what_hccl_refuses(command_line: CommandLine) -> None:
    made(command_line, "mindie", lambda *_: None, 0o644)

    done = command_line("validate", "t.json", "--target", "mindie", "--only-hccl")

    assert done.code == 2
    assert "--only-hccl and --target exclude each other" in done.err


def test_without_a_target_nothing_is_asked(command_line: CommandLine) -> None:
    made(command_line, "xllm", link, 0o600)

    assert command_line("validate", "t.json").code == 0


def test_one_server_is_a_warning_for_mindie(command_line: CommandLine) -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["container_ip"] = "172.17.0.2"
    command_line.write("t.json", value)
    (command_line.folder / "t.json").chmod(0o640)

    done = command_line("validate", "t.json", "--target", "mindie")

    assert done.code == 0
    assert "[HCC681]" in done.out
    assert "unset RANK_TABLE_FILE" in done.out


def test_convert_writes_what_mindie_requires(command_line: CommandLine) -> None:
    command_line.write("g.json", table("group_list", 2, 8))

    done = command_line("convert", "g.json", "--to", "1.0", "--target", "mindie", "-o", "t.json")

    assert done.code == 0, done.err
    assert "container_ip: the server_id, on 2 servers without one" in done.err
    assert stat.S_IMODE((command_line.folder / "t.json").stat().st_mode) == 0o640
    assert command_line("validate", "t.json", "--target", "mindie").code == 0


def test_convert_writes_nothing_that_the_framework_refuses(command_line: CommandLine) -> None:
    value = table("group_list", 2, 8)
    for number, instance in enumerate(value["group_list"][0]["instance_list"]):
        instance["server_id"] = f"node{number}"
    command_line.write("g.json", value)

    done = command_line("convert", "g.json", "--to", "1.0", "--target", "xllm", "-o", "t.json")

    assert done.code == 1
    assert "xLLM cannot use the table: HCC872" in done.err
    assert command_line.names == ["g.json"]


def test_a_config_map_has_what_mindie_requires(command_line: CommandLine) -> None:
    command_line.write("t.json", table("1.0", 2, 8))
    convert = ("convert", "t.json", "--to-configmap", "job", "--target")

    done = command_line(*convert, "mindie", "-o", "-")

    assert done.code == 0, done.err
    assert done.out.count("container_ip") == 2
    assert "note: mount it with defaultMode 0640: MindIE refuses 0644" in done.err
    assert "note: mount it with subPath: xLLM opens no symbolic link" in command_line(*convert, "xllm").err


@pytest.mark.parametrize("command", [("gen", "--simulate", "a2"), ("convert", "g.json", "--to", "1.0")])
def test_a_mode_that_mindie_refuses(command_line: CommandLine, command: tuple[str, ...]) -> None:
    command_line.write("g.json", table("group_list", 2, 8))

    done = command_line(*command, "--target", "mindie", "--mode", "644", "-o", "t.json")

    assert (done.code, done.out) == (2, "")
    assert "--mode 644 allows more than MindIE does" in done.err
    assert command_line.names == ["g.json"]


def test_gen_names_the_next_command_of_a_service(command_line: CommandLine) -> None:
    service = command_line("gen", "--simulate", "910a", "--target", "mindie", "-o", "m.json")
    training = command_line("gen", "--simulate", "910a", "--target", "torch", "-o", "t.json")

    assert "next: hccl-tools launch --rank-table m.json --no-python --emit mindie PROGRAM" in service.err
    assert "next: hccl-tools launch --rank-table t.json --cpu train.py" in training.err


def test_convert_names_the_next_command_of_a_service(command_line: CommandLine) -> None:
    command_line.write("g.json", table("group_list", 2, 8))
    convert = ("convert", "g.json", "--to", "1.0", "--target")

    service = command_line(*convert, "xllm", "-o", "x.json")
    training = command_line(*convert, "torch", "-o", "t.json")

    assert "next: hccl-tools launch --rank-table x.json --no-python --emit xllm PROGRAM" in service.err
    assert "next: hccl-tools launch --rank-table t.json --engine ssh train.py" in training.err


@pytest.mark.parametrize(
    "command",
    [
        "gen --simulate a2 -o {}.json",
        "convert one.json --to 1.0 -o {}.json",
        "env one.json --server 10.0.0.1",
    ],
)
def test_one_server_is_a_warning_where_variables_or_a_table_are_made(
    command_line: CommandLine, command: str
) -> None:
    value = table("1.0", 1, 8)
    value["server_list"][0]["container_ip"] = "172.17.0.2"
    command_line.write("one.json", value)
    (command_line.folder / "one.json").chmod(0o640)

    mindie, torch = (
        command_line(*command.format(target).split(), "--target", target) for target in ("mindie", "torch")
    )

    assert (mindie.code, torch.code) == (0, 0), mindie.err + torch.err
    assert "warning: the table has one server; MindIE reads tables of 2 to 60 (HCC681)" in mindie.err
    assert (
        "a single server needs no table: unset RANK_TABLE_FILE; for a larger job list all of its servers"
        in mindie.err
    )
    assert "HCC681" not in torch.err


def test_gen_refuses_a_link_for_xllm(command_line: CommandLine) -> None:
    (command_line.folder / "t.json").symlink_to("other.json")

    done = command_line("gen", "--simulate", "910a", "--target", "xllm", "-o", "t.json")

    assert done.code == 2
    assert "symbolic link, which xLLM refuses to open" in done.err


def test_the_commands_of_an_xllm_job(command_line: CommandLine) -> None:
    command_line.write("t.json", table("1.0", 2, 8))

    done = command_line(
        "launch",
        "--rank-table",
        "t.json",
        "--emit",
        "xllm",
        "--no-python",
        "sh",
        "--model",
        "/m",
        "--port=18100",
    )

    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        "# 10.0.0.1: ranks 0-7",
        "# 10.0.0.2: ranks 8-15",
    ]
    (last,) = [line for line in lines if "--node_rank=15 " in line]
    path = command_line.folder / "t.json"
    assert last == (
        "sh --model /m --host=10.0.0.2 --port=18107 --devices=npu:7 --master_node_addr=10.0.0.1:18118 "
        f"--nnodes=16 --node_rank=15 --communication_backend=hccl --rank_tablefile={path} &"
    )


def test_the_commands_of_a_mindie_job(command_line: CommandLine) -> None:
    made(command_line, "mindie", lambda *_: None, 0o640)

    done = command_line("launch", "--rank-table", "t.json", "--emit", "mindie", "--no-python", "sh")

    path = command_line.folder / "t.json"
    assert done.out.splitlines()[:4] == [
        "# 10.0.0.1: ranks 0-7",
        f"settings=$(hccl-tools env {path} --target mindie --server 10.0.0.1) &&",
        '  eval "$settings" &&',
        "  sh",
    ]


def test_the_commands_have_the_variables_of_the_job(command_line: CommandLine) -> None:
    made(command_line, "mindie", lambda *_: None, 0o640)
    start = ("launch", "--rank-table", "t.json", "--no-python", "--env", "A=b c", "--emit")

    assert "\n  A='b c' sh\n" in command_line(*start, "mindie", "sh").out
    assert "\nA='b c' sh --host=10.0.0.1 " in command_line(*start, "xllm", "sh").out


@pytest.mark.parametrize("target", ["xllm", "mindie"])
def test_the_service_may_be_installed_on_other_hosts_only(command_line: CommandLine, target: str) -> None:
    made(command_line, "mindie", lambda *_: None, 0o640)

    done = command_line("launch", "--rank-table", "t.json", "--no-python", "--emit", target, "./serve", "-x")

    assert done.code == 0
    assert "./serve -x" in done.out
    assert done.err == 'note: the program "./serve" does not exist; it must exist on the hosts of the job\n'


def test_the_note_on_a_missing_service_names_the_option_for_programs(command_line: CommandLine) -> None:
    made(command_line, "mindie", lambda *_: None, 0o640)

    done = command_line("launch", "--rank-table", "t.json", "--emit", "xllm", "./serve", "-x")

    assert done.code == 0
    assert done.err.endswith("; --no-python starts a program that is not Python\n")


@pytest.mark.parametrize(
    ("target", "damage", "rule"),
    [("xllm", link, "HCC871"), ("mindie", without(1, "container_ip"), "HCC864")],
)
def test_there_are_no_commands_for_a_table_that_the_service_refuses(
    command_line: CommandLine, target: str, damage: Damage, rule: str
) -> None:
    made(command_line, target, damage, 0o640)

    done = command_line("launch", "--rank-table", "t.json", "--emit", target, "--no-python", "sh")

    assert (done.code, done.out) == (125, "")
    assert rule in done.err


@pytest.mark.parametrize("option", [("--cpu",), ("--log-dir", "logs")])
def test_the_commands_of_a_service_have_no_place_for_some_options(
    command_line: CommandLine, option: tuple[str, ...]
) -> None:
    made(command_line, "xllm", lambda *_: None, 0o640)

    done = command_line("launch", "--rank-table", "t.json", *option, "--emit", "xllm", "--no-python", "sh")

    assert done.code == 2
    assert f"--emit xllm does not support {option[0]}" in done.err


def test_an_xllm_job_needs_a_table(command_line: CommandLine) -> None:
    done = command_line("launch", "--nproc-per-node", "2", "--emit", "xllm", "--no-python", "sh")

    assert done.code != 0
    assert "--emit xllm needs a table" in done.err


def test_all_parts_know_the_same_frameworks() -> None:
    assert list(options.TARGET.choices) == list(file_kinds.TARGETS) == list(export_targets.TARGETS)


def test_a_container_ip_is_not_taken_from_the_server_id_where_another_server_has_its_own(
    command_line: CommandLine,
) -> None:
    value = table("1.0", 2, 8)
    value["server_list"][0]["container_ip"] = "192.168.77.31"
    command_line.write("t.json", value)
    (command_line.folder / "t.json").chmod(0o640)

    done = command_line("validate", "--target", "mindie", "--product", "a2", "t.json")
    converted = command_line("convert", "t.json", "--to", "1.0", "--target", "mindie", "-o", "new.json")

    for told in (done.out, converted.err):
        flat = " ".join(told.split())
        assert 'it is probably not the server_id: server "10.0.0.1" has "192.168.77.31"' in flat
    assert converted.code == 1
    assert command_line.names == ["t.json"]


@pytest.mark.parametrize("number", [1, 2])
def test_the_cause_of_a_server_id_that_is_no_address_is_told_once(
    command_line: CommandLine, number: int
) -> None:
    value = good("mindie")
    for server in servers(value)[:number]:
        server["server_id"] = f"[{server['server_id']}](http://{server['server_id']})"
    (command_line.folder / command_line.write("hccl.json", value)).chmod(0o640)

    done = command_line("validate", "--product", "a2", "--target", "mindie", "hccl.json")

    assert done.out.count("the form of a link, as a chat writes it") == 1
    assert "error[HCC868]" in done.out
    assert f"HCC619 says the same as HCC868, of {number} place" in done.out
    assert "warning[HCC619]" not in done.out
