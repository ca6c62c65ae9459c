"""One table on one host has one verdict, whatever the command that judges it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

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
#: Commands that judge a table before they do anything.
COMMANDS: dict[str, tuple[str, ...]] = {
    "convert": ("convert", "table.json", "--to", "{format}", "-o", "converted.json", "--force"),
    "env": ("env", "table.json", "--target", "torch", "--server", "{server}"),
    "merge": ("merge", "table.json", "-o", "merged.json", "--force"),
    "show": ("show", "table.json"),
    "launch": (
        *(
            "launch",
            "--rank-table",
            "table.json",
            "--dry-run",
            "--all-here",
            "--no-local-check",
            "--no-python",
        ),
        "true",
    ),
}


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name != "none":
        made = make_host(tmp_path / "host", described(name), nodes=range(8))
        monkeypatch.setenv("HCCL_TOOLS_ROOT", str(made.root))
        monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    return name


def _server(value: JSON) -> str:
    entries = value.get("server_list") or value.get("group_list", [{}])[0].get("instance_list") or [{}]
    name: str = entries[0].get("server_id", "node0")
    return name


def _errors(command_line: CommandLine, *options: str) -> tuple[JSON, list[str]]:
    """Return what ``validate`` reports, and the rules that found errors."""
    report = json.loads(command_line("validate", "table.json", "-f", "json", *options).out)["files"][0]
    return report, sorted(one["rule"] for one in report["findings"] if one["severity"] == "error")


@pytest.mark.slow
def test_all_commands_agree(command_line: CommandLine, host: str) -> None:
    wrong: list[Any] = []
    for name, make in TABLES.items():
        value = make()
        command_line.write("table.json", value)
        report, errors = _errors(command_line)
        for command, words in COMMANDS.items():
            if command == "env":  # It also asks what its framework requires.
                _, errors = _errors(command_line, "--target", "torch")
            done = command_line(
                *(word.format(format=report["format"], server=_server(value)) for word in words)
            )
            said = done.out + done.err
            if command == "launch" and host != "none" and report["format"] not in PRODUCTS[host].formats:
                errors = ["HCC109"]  # The job is on this host.
            is_refused = "the table has" in said or (done.code in {1, 125} and "HCC" in said)
            if is_refused != bool(errors):
                wrong.append((host, name, report["product"], errors, command, done.code, said[:300]))
            report, errors = _errors(command_line)
    assert not wrong
