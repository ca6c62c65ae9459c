"""The scripts of ``doctor --emit-remedies``: values stay values, and shellcheck has no remark."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_tools.doctor.findings import Examination, HostFinding, host_finding
from hccl_tools.doctor.registry import Finding, all_checks
from hccl_tools.doctor.report import remedies
from hccl_tools.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Iterable

needs_shellcheck = pytest.mark.skipif(
    shutil.which("shellcheck") is None, reason="shellcheck is not installed"
)
HOSTILE = (
    *("a b", "$(reboot)", "`reboot`", "~/x", "x'; reboot; '", 'x"y', "a\\", "*", "-n", ""),
    *("\u2018quoted\u2019", "\u8bbe\u5907", "a\nreboot", "a\rreboot", "\x1b[2J", "a\u2028reboot"),
    *("# shellcheck disable=all", "\ud800"),
)


def finding(message: str, *commands: tuple[str, ...], hosts: tuple[str, ...] = ("node1",)) -> HostFinding:
    check = all_checks()["HCD312"]
    return host_finding(check, Finding(message, remedy=message, commands=commands), *hosts)


def shellcheck(script: str) -> str:
    done = subprocess.run(
        ["shellcheck", "-"], input=script, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    return done.stdout + done.stderr


def run(script: str) -> str:
    """Run a script with a ``show`` that prints its arguments, and no other program."""
    return subprocess.run(
        ["/bin/sh"], input=f"PATH=/nonexistent\nshow() {{ printf '%s|' \"$@\"; }}\n{script}",
        capture_output=True, text=True, check=True, encoding="utf-8",
    ).stdout  # fmt: skip


@needs_shellcheck
def test_the_commands_of_all_checks_pass_shellcheck() -> None:
    found = [host_finding(one, Finding("x", (0, 7)), "node1") for one in all_checks().values()]

    script = remedies.script("node1", found)

    assert "hccn_tool -i 7 -optical -g\n" in script
    assert "{device}" not in script
    assert shellcheck(script) == ""


def test_the_commands_of_a_check_are_those_of_its_remedy() -> None:
    for check in all_checks().values():
        assert [one for one in check.commands if f"`{one}`" not in check.remedy] == []


@needs_shellcheck
@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_pass_shellcheck(value: str) -> None:
    script = remedies.script(value, [finding(value, ("chmod", "640", "--", value))])

    assert shellcheck(script) == ""


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20)), min_size=1, max_size=4))
def test_values_stay_values(values: list[str]) -> None:
    script = remedies.script(values[0], [finding(values[0], ("show", *values))])

    printable = all(value.isprintable() for value in values)
    assert run(script) == ("".join(f"{value}|" for value in values) if printable else "")


def test_a_control_character_makes_a_command_a_comment() -> None:
    script = remedies.script("node1", [finding("x", ("chmod", "640", "a\x1b]0;b\n"))])

    assert "\x1b" not in script
    assert script.splitlines()[-1] == "#   not shown as a command: chmod 640 'a\\u001b]0;b\\u000a'"


def test_each_host_gets_its_own_findings(tmp_path: Path) -> None:
    found = (finding("one", ("show", "1")), finding("both", ("show", "2"), hosts=("node1", "../n 2")))
    result = Examination(("node1", "../n 2", "node3"), found)

    written = remedies.write(str(tmp_path / "new" / "folder"), remedies.scripts(result))

    assert [Path(one).name for one in written] == ["remedies-node1.sh", "remedies-%2E.%2Fn%202.sh"]
    assert [run(Path(one).read_text()) for one in written] == ["1|2|", "2|"]
    assert all(os.access(one, os.X_OK) for one in written)
    assert len(list(tmp_path.rglob("*.sh"))) == 2


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(WriteError, match="--emit-remedies"):
        remedies.write(str(tmp_path / "file"), {})


def values_of(found: Iterable[Any]) -> list[str]:
    return [command for one in found for command in one.commands]


def test_a_finding_with_its_own_remedy_has_no_commands_of_the_check() -> None:
    check = all_checks()["HCD103"]

    assert values_of([host_finding(check, Finding("x", (1,), remedy="other"), "node1")]) == []
    assert values_of([host_finding(check, Finding("x"), "node1")]) == []
