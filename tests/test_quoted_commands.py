"""Values in commands that are to be copied are quoted: text from other sources does not become a command."""

from __future__ import annotations

import ast
import re
import shlex
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.programs import ssh
from hccl_tools.rules import table_file
from tests.support.import_graph import MODULES, tree_of

if TYPE_CHECKING:
    from pathlib import Path

#: What makes a value safe.
_QUOTING = {"quote", "join", "as_root", "name_of"}
#: Module and value -> why it needs no quotes.
REVIEWED = {
    ("hccl_tools.cli.config_map_option", "made.apply"): "quoted where it is made",
    ("hccl_tools.cli.launch_table", "option"): "the name of an option",
    ("hccl_tools.cli.rules", "rules[0].facts.id"): "the id of a rule",
    ("hccl_tools.cli.rules", "found[0].facts.id"): "the id of a rule",
    ("hccl_tools.cli.rules", "known[0].id"): "the id of a message",
    ("hccl_tools.discover.npu_smi", "npu_id"): "a number",
    ("hccl_tools.discover.npu_smi", "chip_id"): "a number",
    ("hccl_tools.launch.cluster.claims", "_copy(address, kind)"): "quoted there",
    ("hccl_tools.launch.cluster.claims", "_copy(own, kind)"): "quoted there",
    ("hccl_tools.launch.cluster.claims", "_copy(self._master, kind)"): "quoted there",
    ("hccl_tools.cli.usage", "command_path"): "the name of a command",
    ("hccl_tools.diagnostics.sarif_log", "self.id"): "the id of a rule",
    ("hccl_tools.doctor.container_checks", "options"): "quoted where it is made",
    ("hccl_tools.doctor.setting_checks", "how"): "a fixed command",
    ("hccl_tools.doctor.variable_checks", "target.mode"): "a number",
    ("hccl_tools.explain.answer", "key"): "a fixed pattern with a number",
    ("hccl_tools.explain.answer", "place.rank"): "a number",
    ("hccl_tools.launch.runs.stop", "job"): "decimal digits",
    ("hccl_tools.launch.supervise.leftovers", "stop"): "quoted where it is made",
    ("hccl_tools.pictures.results", "command"): "the name of a command",
    ("hccl_tools.rules.target_mindie", "subject.table.format"): "the name of a format",
}


def values_in_commands(tree: ast.Module) -> list[ast.expr]:
    """Return the values within backticks of the f-strings of a module."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        ticks = 0
        for part in node.values:
            if isinstance(part, ast.Constant):
                ticks += str(part.value).count("`")
            elif isinstance(part, ast.FormattedValue) and ticks % 2:
                found.append(part.value)
    return found


def is_quoted(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return (isinstance(called, ast.Attribute) and called.attr in _QUOTING) or (
        isinstance(called, ast.Name) and called.id in _QUOTING
    )


def test_every_value_in_a_command_is_quoted_or_was_reviewed() -> None:
    unquoted = {
        (module, ast.unparse(value))
        for module, path in MODULES.items()
        for value in values_in_commands(tree_of(path))
        if not is_quoted(value)
    }

    assert unquoted - REVIEWED.keys() == set()
    assert REVIEWED.keys() - unquoted == set()


@pytest.mark.parametrize("host", ["$(id)", "a b", "-oProxyCommand=x"])
def test_the_host_in_a_hint_of_ssh_is_one_word(host: str) -> None:
    hint = ssh.hint(host, "Permission denied (publickey).") or ""
    command = re.findall("`([^`]*)`", hint)[0]

    assert shlex.split(command) == ["ssh-copy-id", host]


def test_the_name_in_the_hint_of_a_rule_is_one_word(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text("{}")
    (tmp_path / "a b.json").symlink_to("table.json")
    subject: Any = SimpleNamespace(path=str(tmp_path / "a b.json"))
    (finding,) = table_file.link(subject)
    command = re.findall("`([^`]*)`", finding.hint or "")[0]

    assert shlex.split(command) == ["cp", "-L", "a b.json", "FILE"]
