"""``env``: the variables of this host, which a shell reads."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commands import CommandLine, Done

NAME = "a table.json"

WITHOUT_CONTAINER_IP = (
    "add the address that MIES_CONTAINER_IP has on that server, that of MindIE's container; if MindIE "
    "runs in the network of the host, `hccl-tools convert FILE --to 1.0 --target mindie` takes the server_id"
)


def fields() -> dict[str, Any]:
    servers = [
        {
            "server_id": address,
            "container_ip": f"172.17.0.{number}",
            "device": [
                {
                    "device_id": str(device),
                    "device_ip": f"10.{number}.0.{device + 1}",
                    "rank_id": str(8 * number + device),
                }
                for device in range(8)
            ],
        }
        for number, address in enumerate(["10.1.0.1", "10.1.0.2"])
    ]
    return {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}


@pytest.fixture
def table(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HCCL_CONNECT_TIMEOUT", raising=False)
    path = command_line.folder / command_line.write(NAME, fields())
    path.chmod(0o640)
    return path


def env(command_line: CommandLine, target: str, *args: str) -> Done:
    return command_line("env", NAME, "--target", target, *(args or ("--server", "10.1.0.2")))


def test_one_server_needs_no_table_for_mindie(command_line: CommandLine, table: Path) -> None:
    value = fields() | {"server_count": "1", "server_list": fields()["server_list"][:1]}
    table.write_text(json.dumps(value))

    done = env(command_line, "mindie", "--server", "10.1.0.1")

    assert done.code == 0
    assert "export RANK_TABLE_FILE=" in done.out
    first, help_line = done.err.splitlines()
    assert first == "warning: the table has one server; MindIE reads tables of 2 to 60 (HCC681)"
    assert help_line.startswith(
        "  help: a single server needs no table: unset RANK_TABLE_FILE; for a larger job"
    )


def test_mindie_gets_its_own_address_and_that_of_the_first_server(
    command_line: CommandLine, table: Path
) -> None:
    done = env(command_line, "mindie")

    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        f"export RANK_TABLE_FILE='{table}'",
        f"export RANKTABLEFILE='{table}'",
        "export MIES_CONTAINER_IP=172.17.0.1",
        "export MASTER_IP=10.1.0.1",
        "export MASTER_PORT=18118",
        "export HCCL_CONNECT_TIMEOUT=7200",
    ]


def test_a_shell_reads_it(command_line: CommandLine, table: Path) -> None:
    script = f'{env(command_line, "torch").out}printf %s "$RANK_TABLE_FILE"'

    read = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert read == str(table)


@pytest.mark.parametrize(("now", "printed"), [("299", True), ("300", False), ("soon", True), ("", True)])
@pytest.mark.usefixtures("table")
def test_a_timeout_that_is_long_enough_stays(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, now: str, printed: bool
) -> None:
    monkeypatch.setenv("HCCL_CONNECT_TIMEOUT", now)

    assert ("export HCCL_CONNECT_TIMEOUT=600" in env(command_line, "torch").out) is printed


def test_the_path_behind_a_link_is_printed(command_line: CommandLine, table: Path) -> None:
    table.rename(table.with_name("real.json"))
    table.symlink_to("real.json")

    first = env(command_line, "mindspore").out.splitlines()[0]
    assert first == f"export RANK_TABLE_FILE={table.with_name('real.json')}"


@pytest.mark.parametrize(
    ("change", "words", "hint"),
    [
        (("container_ip", "other_ip"), "MindIE cannot use the table: HCC864", "convert FILE --to 1.0"),
        (('"rank_id": "9"', '"rank_id": "8"'), "a table.json cannot be used: HCC2", "hccl-tools validate"),
        (('"version": "1.0"', '"version" "1.0"'), "a table.json cannot be used: HCC1", "hccl-tools validate"),
    ],
)  # fmt: skip
def test_a_table_that_would_be_refused(
    command_line: CommandLine, table: Path, change: tuple[str, str], words: str, hint: str
) -> None:
    table.write_text(table.read_text().replace(*change))

    done = env(command_line, "mindie")

    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert hint in done.err


def test_all_that_mindie_refuses_is_named_at_once(command_line: CommandLine, table: Path) -> None:
    table.write_text(table.read_text().replace("container_ip", "other_ip"))
    table.chmod(0o644)

    done = env(command_line, "mindie")

    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "error: MindIE cannot use the table: 3 findings",
        "  HCC861 the file has mode 644; MindIE requires 640",
        "    help: chmod 640 'a table.json'",
        '  HCC864 server "10.1.0.1" has no container_ip (1 more finding of this rule)',
        f"    help: {WITHOUT_CONTAINER_IP}",
        "  help: `hccl-tools validate --target mindie FILE` shows the places",
    ]
    emitted = command_line("launch", "--rank-table", NAME, "--no-python", "--emit", "mindie", "daemon")
    assert (emitted.code, emitted.out) == (125, "")
    assert emitted.err == done.err


def test_a_mode_that_mindie_refuses(command_line: CommandLine, table: Path) -> None:
    table.chmod(0o644)

    done = env(command_line, "mindie")

    assert (done.code, done.out) == (1, "")
    assert "has mode 644; MindIE requires 640" in done.err
    assert f"chmod 640 '{NAME}'" in done.err


@pytest.mark.usefixtures("table")
def test_a_host_that_is_not_in_the_table(command_line: CommandLine) -> None:
    done = env(command_line, "mindspore", "--product", "a2")

    assert (done.code, done.out) == (1, "")
    assert "none of the table's servers is this host" in done.err
    assert "; for another host: --server 10.1.0.1" in done.err


def test_this_host_is_recognised(
    command_line: CommandLine, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_IP", "10.1.0.1")  # what a pod knows of its host

    done = env(command_line, "mindie", "--product", "a2")

    assert "export MIES_CONTAINER_IP=172.17.0.0" in done.out.splitlines(), done.err


def test_mindie_has_its_proxies_unset_and_hears_what_the_table_decides(
    command_line: CommandLine, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("MASTER_PORT", "7008")

    done = env(command_line, "mindie")

    assert done.out.splitlines()[0] == "unset https_proxy"
    assert "MASTER_PORT" not in done.out
    assert "MindIE takes from the table: worldSize 8, npuDeviceIds [[0,1,2,3,4,5,6,7]]" in done.err
