"""Defaults of a site: variables, a file of the administrator, and the lines that name their source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.host import site_defaults
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.commands import CommandLine


@pytest.fixture
def write_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: CommandLine
) -> Callable[[str], str]:
    """Write the file of the site; returns its path."""
    for name in (*site_defaults.DEFAULTS, "FLAGS_START_PORT"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    monkeypatch.setenv("HCCL_TOOLS_ROOT", str(root))
    command_line.write("train.py", "print('hello')\n")
    command_line.write("t.json", table(devices=8))

    def write(text: str) -> str:
        path = root / "etc" / "hccl-tools.env"
        path.write_text(text)
        path.chmod(0o644)
        return str(path)

    return write


def test_without_a_file_nothing_is_set(write_file: Callable[[str], str], command_line: CommandLine) -> None:
    done = command_line("env", "--site")

    assert (done.code, done.err) == (0, "")
    header, *rows, last = done.out.splitlines()
    assert header.split() == ["variable", "default", "of", "value", "from"]
    assert [row.split() for row in rows] == [
        [name, option, "not", "set"] for name, option in site_defaults.DEFAULTS.items()
    ]
    assert last.endswith("/etc/hccl-tools.env does not exist")


def test_what_is_in_force_and_where_it_is_from(
    write_file: Callable[[str], str], command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_file("# our cluster\nHCCL_TOOLS_PRODUCT=a2\nexport HCCL_TOOLS_SSH='ssh -p 2222'\n")
    monkeypatch.setenv("HCCL_TOOLS_SSH", "ssh -p 22")

    done = command_line("env", "--site")

    rows = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert rows["HCCL_TOOLS_PRODUCT"].split() == ["--product", "a2", file]
    assert rows["HCCL_TOOLS_SSH"].split() == ["--ssh", "ssh", "-p", "22", "the", "environment"]
    assert rows["HCCL_TOOLS_VIA"].split() == ["--via", "not", "set"]


def test_the_product_names_its_source(
    write_file: Callable[[str], str], command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_file("HCCL_TOOLS_PRODUCT=a2\n")

    def product(*options: str) -> str:
        return command_line("validate", "t.json", *options).out.splitlines()[0].partition("product ")[2]

    assert product() == f"a2 (from HCCL_TOOLS_PRODUCT in {file})"
    assert product("--product", "a3-server") == "a3-server (as given)"
    monkeypatch.setenv("HCCL_TOOLS_PRODUCT", "300i")
    assert product() == "300i (from HCCL_TOOLS_PRODUCT)"


def test_the_log_directory_names_its_source(
    write_file: Callable[[str], str], command_line: CommandLine
) -> None:
    file = write_file(f"HCCL_TOOLS_LOG_DIR={command_line.folder}/site logs\n")
    dry_run = ("launch", "--cpu", "-n", "2", "--no-table", "--dry-run")

    of_site = command_line(*dry_run, "train.py")
    typed = command_line(*dry_run, "--log-dir", "own", "train.py")
    jobs = command_line("jobs")

    stated = f"note: --log-dir '{command_line.folder}/site logs' (HCCL_TOOLS_LOG_DIR in {file})"
    assert of_site.err.splitlines() == [stated]
    assert "run directory: site logs/" in of_site.out
    assert typed.err == ""
    assert "run directory: own/" in typed.out
    assert jobs.err.splitlines() == [stated]


def test_the_start_port_is_for_several_hosts(
    write_file: Callable[[str], str], command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_file("HCCL_TOOLS_START_PORT=18200\n")
    dry_run = ("launch", "--cpu", "--start", "torch", "--dry-run")
    two = ("--nnodes", "2", "--node-rank", "0", "--nproc-per-node", "1", "--master-addr", "10.0.0.1")

    several = command_line(*dry_run, *two, "train.py")
    alone = command_line(*dry_run, "-n", "2", "--no-table", "train.py")
    typed = command_line(*dry_run, *two, "--start-port", "18300", "train.py")
    monkeypatch.setenv("FLAGS_START_PORT", "18400")
    of_user = command_line(*dry_run, *two, "train.py")
    monkeypatch.setenv("HCCL_TOOLS_START_PORT", "18500")
    of_shell = command_line(*dry_run, *two, "train.py")

    assert f"start port 18200 (HCCL_TOOLS_START_PORT in {file})" in several.out
    assert "MASTER_PORT=18200" in several.out
    assert "18200" not in alone.out
    assert "MASTER_PORT=18300" in typed.out
    assert "18200" not in typed.out
    assert "MASTER_PORT=18400" in of_user.out
    assert "start port 18500 (HCCL_TOOLS_START_PORT)" in of_shell.out


def test_ssh_and_via_are_used_where_hosts_are_queried(
    write_file: Callable[[str], str], command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_file("HCCL_TOOLS_VIA=false {host}\n")

    alone = command_line("gen", "--simulate", "910a", "-o", "g.json")
    via = command_line("gen", "--hosts", "192.0.2.1", "-o", "h.json")
    typed = command_line("gen", "--hosts", "192.0.2.1", "--ssh", "no-ssh", "--engine", "ssh", "-o", "h.json")
    monkeypatch.setenv("HCCL_TOOLS_SSH", "no-such-ssh")
    both = command_line("gen", "--hosts", "192.0.2.1", "-o", "h.json")
    of_site = command_line("gen", "--hosts", "192.0.2.1", "--engine", "ssh", "-o", "h.json")

    assert alone.code == 0, alone.err
    assert f"querying 1 host with false (HCCL_TOOLS_VIA in {file})" in via.err
    assert via.code == 1
    assert (typed.code, '--ssh "no-ssh": no program no-ssh on PATH' in typed.err) == (2, True)
    assert f"querying 1 host with false (HCCL_TOOLS_VIA in {file})" in both.err
    assert "note: --ssh no-such-ssh (HCCL_TOOLS_SSH)" in of_site.err
    assert 'HCCL_TOOLS_SSH "no-such-ssh": no program no-such-ssh on PATH' in of_site.err


@pytest.mark.parametrize(
    ("text", "mode", "warning"),
    [
        ("HCCL_TOOLS_COLOUR=red\n", 0o644, "HCCL_TOOLS_COLOUR is not a default of a site"),
        ("HCCL_TOOLS_PRODUCT=a2\n", 0o666, "is not used: others can write to it"),
        ("a2\n", 0o644, "is not used: "),
    ],
)
def test_a_wrong_file_is_named_and_stops_no_command(
    write_file: Callable[[str], str], command_line: CommandLine, text: str, mode: int, warning: str
) -> None:
    file = write_file(text)
    Path(file).chmod(mode)

    done = command_line("validate", "t.json")

    assert done.code == 0
    (line,) = done.err.splitlines()
    assert line.startswith(f"warning: {file}")
    assert warning in line
    assert "product 910a (assumed" in done.out


def test_a_wrong_value_names_the_variable(
    write_file: Callable[[str], str], command_line: CommandLine
) -> None:
    file = write_file("HCCL_TOOLS_START_PORT=many\nHCCL_TOOLS_PRODUCT=gpu\n")
    two = ("--nnodes", "2", "--node-rank", "0", "--nproc-per-node", "1", "--master-addr", "10.0.0.1")

    port = command_line("launch", "--cpu", "--product", "a2", *two, "--dry-run", "train.py")
    product = command_line("validate", "t.json")

    assert port.code == 2
    assert f'HCCL_TOOLS_START_PORT in {file}="many" is not a port' in port.err
    assert product.code == 2
    assert "HCCL_TOOLS_PRODUCT" in product.err


def test_the_variables_of_the_process_are_as_before(
    write_file: Callable[[str], str], command_line: CommandLine
) -> None:
    write_file("HCCL_TOOLS_PRODUCT=a2\n")
    before = dict(os.environ)

    command_line("validate", "t.json")

    assert dict(os.environ) == before


def test_site_needs_nothing_else(command_line: CommandLine) -> None:
    with_table = command_line("env", "--site", "t.json")
    without = command_line("env", "t.json")

    assert (with_table.code, with_table.sentence) == (2, "--site needs no table, target or server")
    assert (without.code, without.sentence) == (
        2,
        "missing option --target: one of mindspore, torch, mindie, xllm",
    )
