"""One table on one host has one verdict, whatever the command that judges it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import pytest

from hccl_tools.cli import cli
from hccl_tools.table.products import PRODUCTS
from tests.support.hosts import described, make_host
from tests.support.tables import JSON, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import CommandLine


def picked(ids: tuple[int, ...]) -> JSON:
    """Return a table of one server with these devices."""
    value = table("1.0", 1, len(ids))
    for device, number in zip(value["server_list"][0]["device"], ids, strict=True):
        device["device_id"] = str(number)
    return value


def uneven() -> JSON:
    value = table("1.0", 2, 4)
    value["server_list"][1]["device"].pop()
    return value


TABLES: dict[str, Callable[[], JSON]] = {
    **{f"1.0, {count} devices": partial(table, "1.0", 1, count) for count in (1, 2, 3, 4, 5, 8, 16)},
    **{f"1.0, {rows}x{columns}": partial(table, "1.0", rows, columns)
       for rows, columns in ((2, 8), (2, 4), (2, 1), (3, 8))},
    "across the groups": partial(picked, (2, 6)),
    "four across the groups": partial(picked, (0, 1, 2, 5)),
    "uneven servers": uneven,
    "1.2, 2 devices": partial(table, "1.2", 1, 2),
    "1.2, 2x8 in pods": partial(table, "1.2", 2, 8, 2),
    "group_list, 8 devices": partial(table, "group_list", 1, 8),
    "group_list, 2x2": partial(table, "group_list", 2, 2),
    "2.0, 2 devices": partial(table, "2.0", 1, 2),
    "2.0, 2x4": partial(table, "2.0", 2, 4),
}  # fmt: skip
HOSTS = ("none", "910a", "a2", "a3", "a5")
_LAUNCH = ("launch", "--rank-table", "table.json")
_REHEARSAL = ("--cpu", "--all-here", "--max-ranks", "64", "--no-python", "--dry-run")
_ADDRESS = ("--master-addr", "10.0.0.1")
#: Commands that judge a table before they do anything.
COMMANDS: dict[str, tuple[str, ...]] = {
    "convert": ("convert", "table.json", "--to", "{format}", "-o", "new.json", "--force"),
    "convert, ConfigMap": ("convert", "table.json", "--to-configmap", "job", "-o", "new.yaml", "--force"),
    "distribute": ("distribute", "table.json", "10.0.0.1", "--via", "false {{host}}"),
    "doctor": ("doctor", "table.json", "--local"),
    "env": ("env", "table.json", "--target", "torch", "--server", "{server}"),
    "fix": ("validate", "table.json", "--fix"),
    "launch": (*_LAUNCH, "--all-here", "--no-local-check", "--no-python", "--dry-run", "true"),
    "launch, rehearsed": (*_LAUNCH, *_REHEARSAL, "true"),
    "launch, emitted": (*_LAUNCH, *_ADDRESS, "--emit", "msrun", "train.py"),
    "launch, for a service": (*_LAUNCH, "--emit", "xllm", "train.py"),
    "merge": ("merge", "table.json", "-o", "new.json", "--force"),
    "replace": ("replace", "table.json", "--server", "{server}", "--with", "spare.json", "-o", "-"),
    "show": ("show", "table.json"),
    "subset": ("subset", "table.json", "--servers", "{servers}", "-o", "-"),
}
#: Commands that also ask what a framework requires.
FRAMEWORKS = {"env": "torch", "launch, for a service": "xllm"}
#: Commands for a job on this host, which takes its product anyway, and does not fit each table.
ON_THIS_HOST = {"launch", "launch, emitted", "launch, for a service"}
#: Of the commands of the program: what makes no verdict on a table that it is given.
OTHERS = {
    "diff", "explain", "gen", "guide", "jobs", "key", "logs", "rules", "scaling", "schema",
    "stacks", "stop",
}  # fmt: skip


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name != "none":
        made = make_host(tmp_path / "host", described(name), nodes=range(8))
        monkeypatch.setenv("HCCL_TOOLS_ROOT", str(made.root))
        monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    return name


def _servers(value: JSON) -> list[str]:
    entries = value.get("server_list") or value.get("group_list", [{}])[0].get("instance_list")
    if entries is not None:
        return [entry["server_id"] for entry in entries]
    return list(dict.fromkeys(rank["level_list"][0]["net_instance_id"] for rank in value["rank_list"]))


def _spare(value: JSON) -> JSON:
    """Return the table of one more server that is as the first one."""
    spare: JSON = json.loads(
        json.dumps(value)
        .replace('"10.0.0.1"', '"10.0.0.10"')
        .replace('"192.168.0.', '"192.168.90.')
        .replace('"job0"', '"job10"')
        .replace('"node0"', '"node10"')
        .replace('"10.0.0.', '"10.0.0.1')
        .replace('"10.0.0.110"', '"10.0.0.10"')
    )
    if "server_list" in spare:
        del spare["server_list"][1:]
        spare["server_count"] = "1"
    if "super_pod_list" in spare:
        del spare["super_pod_list"][1:], spare["super_pod_list"][0]["server_list"][1:]
        for device in spare["server_list"][0]["device"]:
            device["super_device_id"] = str(int(device["super_device_id"]) + 9 * 65536)
    if "group_list" in spare:
        group = spare["group_list"][0]
        del group["instance_list"][1:]
        group.update(instance_count="1", device_count=str(len(group["instance_list"][0]["devices"])))
    if "rank_list" in spare:
        spare["rank_list"] = [
            rank for rank in spare["rank_list"] if rank["level_list"][0]["net_instance_id"] == "node10"
        ]
        spare["rank_count"] = len(spare["rank_list"])
    return spare


def _errors(command_line: CommandLine, *options: str) -> tuple[JSON, list[str]]:
    """Return what ``validate`` reports, and the rules that found errors."""
    report = json.loads(command_line("validate", "table.json", "-f", "json", *options).out)["files"][0]
    return report, sorted(one["rule"] for one in report["findings"] if one["severity"] == "error")


def _is_refused(command: str, said: str, code: int) -> bool:
    """Return whether a command says that a table has errors, by the rules of tables."""
    if command in {"show", "doctor"}:  # They go on.
        return "the table has" in said
    if command == "distribute":  # No host of it answers.
        return "cannot be used" in said
    if command == "launch, for a service":  # The name of a server may have no address here.
        return code == 125
    return code in {1, 125} and "HCC" in said


def test_each_command_is_known() -> None:
    judging = {words[0] for words in COMMANDS.values()}

    assert judging | OTHERS == set(cli.list_commands(click.Context(cli)))
    assert not judging & OTHERS


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_all_commands_agree(command_line: CommandLine, host: str, command: str) -> None:
    wrong: list[Any] = []
    for name, make in TABLES.items():
        value = make()
        command_line.write("table.json", value)
        command_line.write("spare.json", _spare(value))
        words, names = COMMANDS[command], _servers(value)
        target = FRAMEWORKS.get(command)
        report, errors = _errors(command_line, *(("--target", target) if target else ()))
        if command in ON_THIS_HOST and host != "none" and report["format"] not in PRODUCTS[host].formats:
            errors = ["HCC109"]
        done = command_line(
            *(
                word.format(format=report["format"], server=names[0], servers=",".join(names))
                for word in words
            )
        )
        said = done.out + done.err
        is_done = done.code == 0 or errors or command in {"distribute", "doctor", *ON_THIS_HOST}
        if _is_refused(command, said, done.code) != bool(errors) or not is_done:
            wrong.append((name, report["product"], errors, done.code, said[:600]))
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["0", "0-1", "0-2", "2-5", "0,4,5", "0-4", "0-7"])
def test_what_gen_makes_here_every_command_accepts_here(
    command_line: CommandLine, host: str, devices: str
) -> None:
    for name in ("table.json", "spare.json"):
        made = command_line("gen", "--devices", devices, "-o", name, "--server_ip", "10.0.0.1")
        if made.code:
            return  # Refused, or there is no NPU.
    value = json.loads((command_line.folder / "table.json").read_text())
    command_line.write("spare.json", _spare(value))
    report, errors = _errors(command_line)
    server = _servers(value)[0]
    said = {
        command: command_line(
            *(word.format(format=report["format"], server=server, servers=server) for word in words)
        )
        for command, words in COMMANDS.items()
        # A service needs other formats or more keys, and a spare of levels the names of its network.
        if command != "launch, for a service" and (command, report["format"]) != ("replace", "2.0")
    }
    refused = {
        command: done
        for command, done in said.items()
        if _is_refused(command, done.out + done.err, done.code)
    }
    assert not errors
    assert not refused


OLD_LAB = table("lab", 1, 2)
HETEROGENEOUS = {
    "version": "1.1",
    "status": "completed",
    "collective_id": "job",
    "node_list": [
        {
            "node_addr": "10.0.0.1",
            "ranks": [{"rank_id": "0", "device_id": "0", "rank_ip": "192.168.0.100"}],
        }
    ],
}
_CHANGING = ("convert", "convert, ConfigMap", "merge", "replace", "subset")


@pytest.mark.parametrize(
    ("value", "commands", "why"),
    [
        (OLD_LAB, _CHANGING, 'it is a table of the old "lab" form (deploy_mode)'),
        (
            HETEROGENEOUS,
            [name for name in COMMANDS if name != "fix"],
            'version is "1.1", the heterogeneous format, which of all commands only `validate` reads',
        ),
    ],
    ids=["lab", "1.1"],
)
def test_a_form_that_hccl_reads_and_a_command_does_not(
    command_line: CommandLine, value: JSON, commands: list[str], why: str
) -> None:
    command_line.write("table.json", value)
    command_line.write("spare.json", value)
    validated = command_line("validate", "table.json")

    assert (validated.code, "not a rank table" in validated.out) == (0, False)
    assert "HCCL accepts this table" in validated.out
    for command in commands:
        words = [
            word.format(format="1.0", server="10.0.0.1", servers="10.0.0.1") for word in COMMANDS[command]
        ]
        done = command_line(*words)
        assert (command, done.code) in {(command, 1), (command, 125)}
        assert why in done.err
        assert "HCCL accepts" not in done.out + done.err


def test_a_table_that_is_read_but_not_changed(command_line: CommandLine) -> None:
    command_line.write("table.json", json.dumps(table("1.0", 1, 2)) + "x")

    done = command_line("subset", "table.json", "--devices", "0")

    assert done.code == 1
    assert done.sentence == (
        "table.json cannot be used: HCCL accepts it, but only a table without these findings can be changed "
        "or merged"
    )
    assert "[HCC602]" in done.err
