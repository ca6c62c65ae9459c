"""Values in commands that are to be copied are quoted: text from other sources does not become a command."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import zh
from hccl_tools.document.other_content import recognise
from hccl_tools.formats.kubernetes import tables
from hccl_tools.notation.screen import wrapped
from hccl_tools.programs import ssh
from hccl_tools.rules import table_file
from tests.support.import_graph import MODULES, tree_of
from tests.support.suggestions import refusal, suggested

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: What makes a value safe.
_QUOTING = {"operand", "named", "file_here", "as_root", "name_of"}
#: Functions that return one of two constants, the arguments of a query of ``hccn_tool``.
_CONSTANT = {"query", "address_query"}
#: An option before a value, which is then no option: quotes are enough.
_OPTION = re.compile(r"(?:^|(?<=[\s`]))--?[A-Za-z][\w-]*[ =]$|\w=$")
#: The beginning of a command that is not within backticks, in the same sentence.
_COMMAND = re.compile(
    r"(?:^|[\s(:;,])(?:hccl-tools (?!is |has |on )[a-z]|mpirun (?!started|bound|does|printed)"
    r"|export |chmod |chown |scancel "
    r"|ssh (?!within)|ssh-copy-id |srun |kubectl |docker |cp |mv |rm |kill )(?:[^.;`\n]|\.\S)*$"
)
#: Module and value -> why it needs no quotes.
REVIEWED = {
    ("hccl_tools.cli.convert", "made.apply"): "quoted where it is made",
    ("hccl_tools.cli.launch_kubernetes", "len(loaded.table)"): "a number",
    ("hccl_tools.cli.launch_kubernetes", "len(loaded.table.servers)"): "a number",
    ("hccl_tools.cli.launch_kubernetes", "loaded.product"): "the name of a product",
    ("hccl_tools.document.places_in_text", "first"): "a number",
    ("hccl_tools.rules.commands", "asked"): "the arguments of one of two queries",
    ("hccl_tools.rules.document", "product.name"): "the name of a product",
    ("hccl_tools.rules.other_documents", "_file_names(len(value))"): "letters that stand for files",
    ("hccl_tools.rules.hosts", "device"): "a number",
    ("hccl_tools.rules.lab_hosts", "device"): "a number",
    ("hccl_tools.rules.legacy_formats", "again.missing"): "a number",
    ("hccl_tools.rules.servers", "device"): "a number",
    ("hccl_tools.rules.service_addresses", "number"): "a number",
    ("hccl_tools.rules.service_advice", "at"): "a number",
    (
        "hccl_tools.rules.target_mindspore",
        "FILES",
    ): "the names of both files, quoted where they are filled in",
    ("hccl_tools.rules.service_advice", "device"): "a number",
    ("hccl_tools.cli.guide", "', '.join(others)"): "the names of topics",
    ("hccl_tools.cli.guide", "typed"): "the name of a command, or a code",
    ("hccl_tools.cli.launch_table", "command"): "quoted where it is made",
    ("hccl_tools.cli.launch_table", "len(hosts)"): "a number",
    ("hccl_tools.cli.launch_table", "request.table.product or '910a'"): "the name of a product",
    ("hccl_tools.cli.other_names", "arguments"): "quoted where it is made",
    ("hccl_tools.cli.other_names", "ctx.command_path"): "the name of a command",
    ("hccl_tools.cli.other_names", "line"): "the name of a command",
    ("hccl_tools.cli.other_names", "tool"): "the name of a command",
    ("hccl_tools.cli.other_names", "typed"): "quoted where it is made",
    ("hccl_tools.cli.usage", "ctx.command_path"): "the name of a command",
    ("hccl_tools.cli.convert", "what"): "an option with the name of a format",
    ("hccl_tools.cli.launch", "typed"): "quoted where it is made",
    ("hccl_tools.cli.rules", "behind[0].facts.id"): "the id of a rule",
    ("hccl_tools.cli.completed_calls", "' '.join(words)"): "quoted where they are made",
    ("hccl_tools.cli.completed_calls", "_fitted(ctx, found, typed)"): "quoted where it is made",
    ("hccl_tools.cli.completed_calls", "ctx.command_path"): "the name of a command",
    ("hccl_tools.cli.completed_calls", "name"): "the name of a command",
    ("hccl_tools.cli.guide", "call"): "quoted where it is made",
    ("hccl_tools.cli.lazy_group", "args[0]"): "the name of a command",
    ("hccl_tools.cli.lazy_group", "ctx.command_path"): "the name of a command",
    ("hccl_tools.cli.other_names", "table"): "quoted where it is made",
    ("hccl_tools.cli.doctor_run", "hosts"): "quoted where it is made",
    ("hccl_tools.cli.other_names", "word.upper()"): "a code, letters and digits",
    ("hccl_tools.cli.table_output", "file"): "quoted where it is made",
    ("hccl_tools.launch.planning.program_check", "hosts"): "quoted where it is made",
    ("hccl_tools.cli.explain", "words[0]"): "a code, letters and digits",
    ("hccl_tools.cli.explain", "ids[0]"): "the id of a message or a rule",
    ("hccl_tools.cli.launch_request", "_with_program()"): "quoted where it is made",
    ("hccl_tools.launch.planning.without_table", "devices[0]"): "a number",
    ("hccl_tools.launch.planning.without_table", "hosts.node_rank"): "a number",
    ("hccl_tools.launch.planning.without_table", "typed"): "quoted where it is made",
    ("hccl_tools.files.rejected_table", "typed"): "quoted where it is made",
    ("hccl_tools.cli.subset", "command"): "quoted where it is made",
    ("hccl_tools.cli.subset", "kept"): "numbers of devices",
    ("hccl_tools.cli.chosen_table", "' '.join([*words, 'FILE'])"): "quoted where they are made",
    ("hccl_tools.cli.chosen_table", "' '.join([*words, operand(files[0])])"): "quoted where they are made",
    ("hccl_tools.cli.replace", "line"): "quoted where it is made",
    ("hccl_tools.cli.usage", "name"): "the name of a command",
    ("hccl_tools.launch.cluster.membership", "_rehearsal(own)"): "names of options",
    ("hccl_tools.files.next_command", "EXAMPLE_PROGRAM"): "a constant",
    ("hccl_tools.runs.index", "where"): "quoted where it is made",
    ("hccl_tools.rules.target_mindie", "subject.table.format"): "the name of a format",
    ("hccl_tools.cli.validate_fix", "named"): "quoted where it is made",
    ("hccl_tools.cli.validate_fix", "'' if is_current else '--fix --write '"): "options",
    ("hccl_tools.document.places_in_text", "number"): "digits",
    ("hccl_tools.rules.doubled_keys", "device"): "digits",
    ("hccl_tools.document.places_in_text", "place"): "digits, and -c with a digit",
    ("hccl_tools.formats.kubernetes.config_maps", "name or 'NAME'"): "letters, digits, dots and hyphens",
    ("hccl_tools.formats.kubernetes.config_maps", "where"): "an option with letters, digits and hyphens",
    ("hccl_tools.programs.lookup", "_PIP"): "quoted where it is made",
    ("hccl_tools.launch.cluster.membership", "_cut(shlex.join(words))"): "quoted where it is made",
    ("hccl_tools.launch.mpi.repeated_start", "shim"): "quoted where it is made",
    ("hccl_tools.launch.mpi.repeated_start", "what"): "the name of a launcher of ours",
    ("hccl_tools.launch.planning.program_check", "typed"): "quoted where it is made",
    ("hccl_tools.cli.asked_hosts", "len(hosts)"): "a number",
    ("hccl_tools.runs.listing", "command"): "the name of a command",
    ("hccl_tools.files.export_targets", "target.name"): "the name of a framework",
    ("hccl_tools.cli.rules", "rules[0].facts.id"): "the id of a rule",
    ("hccl_tools.cli.rules", "found[0].facts.id"): "the id of a rule",
    ("hccl_tools.cli.rules", "known[0].id"): "the id of a message",
    ("hccl_tools.cli.rules", "ids[0]"): "the id of a message or a rule",
    ("hccl_tools.host.npu_smi", "npu_id"): "a number",
    ("hccl_tools.host.npu_smi", "chip_id"): "a number",
    ("hccl_tools.rules.ranks", "device"): "a number",
    ("hccl_tools.rules.advice", "number"): "a number",
    ("hccl_tools.rules.commands", "device"): "a number",
    ("hccl_tools.rules.entry_forms", "device"): "a number",
    ("hccl_tools.rules.entry_forms", "hosts"): "quoted there",
    ("hccl_tools.rules.commands", "number"): "a number",
    ("hccl_tools.rules.commands", "place"): "two numbers",
    ("hccl_tools.document.other_content", "where"): "quoted there",
    ("hccl_tools.document.other_content", "who"): "quoted there",
    ("hccl_tools.document.other_content", "value"): "quoted there",
    ("hccl_tools.launch.cluster.credentials", "_copy(address, kind)"): "quoted there",
    ("hccl_tools.launch.cluster.credentials", "_copy(own, kind)"): "quoted there",
    ("hccl_tools.launch.cluster.credentials", "_copy(self._master, kind)"): "quoted there",
    ("hccl_tools.files.export_targets", "name"): "the name of a variable of ours",
    ("hccl_tools.cli.other_names", "name"): "the name of a shell",
    ("hccl_tools.cli.key_create", "' --force' if force else ''"): "fixed texts",
    ("hccl_tools.formats.kubernetes.headers", "jobs.KEY_SECRET"): "the name of a Secret of ours",
    ("hccl_tools.formats.kubernetes.headers", "space"): "an option with letters, digits and hyphens",
    ("hccl_tools.formats.kubernetes.tables", "space"): "quoted where it is made",
    ("hccl_tools.formats.kubernetes.tables", "form"): "fixed texts",
    ("hccl_tools.formats.kubernetes.tables", "key"): "quoted where it is made",
    (
        "hccl_tools.formats.kubernetes.writing",
        "' --server-side' if self.needs_server_side else ''",
    ): "fixed texts",
    ("hccl_tools.launch.cluster.credentials", "'' if kind == 'keyless there' else ' --force'"): "fixed texts",
    ("hccl_tools.launch.planning.job", "kept"): "quoted where it is made",
    ("hccl_tools.launch.mpi.job", "mine.local_size"): "a number",
    ("hccl_tools.launch.mpi.job", "named"): "the name of a variable of ours",
    ("hccl_tools.launch.mpi.job", "size"): "a number",
    ("hccl_tools.launch.render.scripts", "server"): "quoted where it is made",
    ("hccl_tools.launch.render.scripts", "table"): "quoted where it is made",
    ("hccl_tools.runs.parents", "TRUSTED_VARIABLE"): "the name of a variable of ours",
    ("hccl_tools.runs.parents", "quoted"): "quoted where it is made",
    ("hccl_tools.runs.stop", "command"): "quoted where it is made",
    ("hccl_tools.runs.stop", "shlex.quote(command)"): "begins with the name of a program of ours",
    ("hccl_tools.runs.stop", "node"): "a host name, which was checked",
    ("hccl_tools.runs.stop", "run.host"): "a host name, which was checked",
    ("hccl_tools.transform.merge_conflicts", "collected.format"): "the name of a format",
    ("hccl_tools.transform.spare", "table.format"): "the name of a format",
    ("hccl_tools.cli.usage", "command_path"): "the name of a command",
    ("hccl_tools.diagnostics.sarif_log", "self.id"): "the id of a rule",
    ("hccl_tools.doctor.container_checks", "options"): "quoted where it is made",
    ("hccl_tools.doctor.setting_checks", "how"): "a fixed command",
    ("hccl_tools.doctor.variable_checks", "target.mode"): "a number",
    ("hccl_tools.explain.further_logs", "pattern"): "a fixed pattern with numbers",
    ("hccl_tools.explain.further_logs", "place.rank"): "a number",
    ("hccl_tools.runs.stop", "job"): "decimal digits",
    ("hccl_tools.launch.supervise.leftovers", "stop"): "quoted where it is made",
    ("hccl_tools.show.picture.imported_findings", "command"): "the name of a command",
}


def values_in_commands(tree: ast.Module) -> list[tuple[ast.expr, bool]]:
    """Return the values in commands, within backticks or not, of the f-strings of a module.

    The second of each pair is whether an option is before the value.
    """
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        before = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                before += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                if before.count("`") % 2 or _COMMAND.search(before.rpartition("`")[2]):
                    found.append((part.value, _OPTION.search(before) is not None))
                before += "VALUE"
    return found


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a module, with VALUE for each value."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def is_quoted(value: ast.expr, *, after_option: bool) -> bool:
    """Return whether a value is one word, and cannot be an option, or is a join of quoted words."""
    if not isinstance(value, ast.Call):
        return False
    called = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    if (
        called in _QUOTING | _CONSTANT
        or ast.unparse(value.func) == "shlex.join"
        or (called == "quote" and after_option)
    ):
        return True
    if called != "join":
        return False
    (joined,) = value.args
    return ast.unparse(joined).startswith("map(shlex.quote, ") or (
        isinstance(joined, (ast.GeneratorExp, ast.ListComp))
        and is_quoted(joined.elt, after_option=after_option)
    )


@pytest.mark.slow
def test_every_value_in_a_command_is_quoted_or_was_reviewed() -> None:
    unquoted = {
        (module, ast.unparse(value))
        for module, path in MODULES.items()
        for value, after_option in values_in_commands(tree_of(path))
        if not is_quoted(value, after_option=after_option)
    }

    assert unquoted - REVIEWED.keys() == set()
    assert REVIEWED.keys() - unquoted == set()


_NEW_FILE = "x/t.new.json"
#: A command that writes the new file.
_WRITING = re.compile(
    rf"(?:^|: |; )((?:LC_ALL=C )?(?:sed|cut|tail|tr|base64|iconv|python3) .* > {_NEW_FILE})"
)


def _with_files(node: ast.expr) -> str | None:
    """Return the text of an expression with the names of both files; None for one without them."""
    if isinstance(node, ast.Name) and node.id == "FILES":
        return f"x/t.json > {_NEW_FILE}"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = _with_files(node.left), _with_files(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.JoinedStr):
        return "".join(_with_files(part) or "7" for part in node.values)
    return _with_files(node.value) if isinstance(node, ast.FormattedValue) else None


def test_no_width_of_a_screen_breaks_a_command_that_writes_a_file() -> None:
    """The second line would be a command as well: the path of a file that others have made."""
    nodes = (
        node for path in MODULES.values() for node in ast.walk(tree_of(path)) if isinstance(node, ast.expr)
    )
    texts = {text for node in nodes if (text := _with_files(node)) and _NEW_FILE in text}
    commands = {text: found[1] for text in texts if (found := _WRITING.search(text))}

    assert len(commands) > 40
    for text, command in commands.items():
        hint = text if not text.startswith(command) else f"remove these signs, which no table has: {text}"
        for columns in range(20, 121):
            lines = wrapped(f"  = help: {hint}", columns)
            assert any(command in line for line in lines), (columns, lines)


@pytest.mark.parametrize("host", ["$(id)", "a b"])
def test_the_host_in_a_hint_of_ssh_is_one_word(host: str) -> None:
    hint = ssh.hint(host, "Permission denied (publickey).") or ""
    command = re.findall("`([^`]*)`", hint)[0]

    assert shlex.split(command) == ["ssh-copy-id", host]


def test_a_host_that_ssh_would_take_for_an_option_is_left_out() -> None:
    hint = ssh.hint("-oProxyCommand=x", "Permission denied (publickey).") or ""

    assert "`ssh-copy-id HOST`" in hint


@pytest.mark.parametrize(
    ("space", "name", "key", "words"),
    [
        ("jobs", "table", "hccl.json", ["jobs", "table", "hccl.json"]),
        ("a$(id)", "b;id", "jobstart_hccl.json", ["a$(id)", "b;id", "jobstart_hccl.json"]),
        ("-A", "--kubeconfig=/tmp/x", "hccl.json", ["NAMESPACE", "NAME", "hccl.json"]),
        ("jobs", "--context=x", ".hccl_profile", ["jobs", "NAME", "hccl.json"]),
        ("jobs", "table", "-hccl", ["jobs", "table", "hccl.json"]),
    ],
)
@pytest.mark.parametrize("form", ["describe", "json"])
def test_a_config_map_chooses_no_option_and_no_folder(
    space: str, name: str, key: str, words: list[str], form: str
) -> None:
    """The output of kubectl may be of another cluster, or come from another user."""
    if form == "describe":
        told = f"Name:  {name}\nNamespace:  {space}\nData\n====\n{key}:\n----\n{{}}\n"
        found = recognise(told)
        hint = found.hint if found else ""
    else:
        data = {key: '{"server_list": []}'}
        metadata = {"name": name, "namespace": space}
        hint = tables.explain({"kind": "ConfigMap", "metadata": metadata, "data": data}).hint
    command = hint.removeprefix("extract the table: ")
    parts = shlex.split(command)

    assert parts[:3] == ["kubectl", "get", "configmap"]
    assert [parts[4], parts[5], parts[-1]] == words


def test_the_name_in_the_hint_of_a_rule_is_one_word(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text("{}")
    (tmp_path / "a b.json").symlink_to("table.json")
    subject: Any = SimpleNamespace(path=str(tmp_path / "a b.json"))
    (finding,) = table_file.link(subject)
    command = re.findall("`([^`]*)`", finding.hint or "")[0]

    assert shlex.split(command) == ["cp", "-L", "a b.json", "FILE"]


def test_a_file_whose_name_begins_with_a_dash_is_no_option(tmp_path: Path) -> None:
    hccl_tools = [sys.executable, "-m", "hccl_tools"]
    options = ["--simulate", "910a", "--device_num", "[0,2)", "--output=-all.json"]
    made = subprocess.run(
        [*hccl_tools, "gen", *options], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    command = made.stderr.partition("next: hccl-tools ")[2].splitlines()[0]
    assert "--rank-table ./-all.json " in command

    table = shlex.split(command)[2]
    checked = subprocess.run([*hccl_tools, "validate", table], cwd=tmp_path, check=False)
    assert checked.returncode == 0


#: What a refusal says of a value that stands for the user's own, and of a command that is only named.
_OF_PLACEHOLDER = re.compile(r'"[A-Z][A-Z|]*"|[A-Z]{2,}|Missing (?:argument|option)')


def refused_suggestions(texts: Iterable[str]) -> dict[str, str]:
    """Return the complete commands in texts that the command line does not take, with its refusals."""
    found = {}
    for command in {one for text in texts for one in re.findall(r"`hccl-tools ([^`]*)`", text)}:
        words = command.replace("...", "").split()
        is_whole = not words or (words[0].isascii() and not words[0].startswith(("VALUE", "{")))
        if not is_whole or command.count('"') % 2 or command.count("'") % 2:
            continue
        (parsed,) = suggested(f"`hccl-tools {command}`") or [[]]
        why = refusal([word for word in parsed if word != "..."])
        if why and not _OF_PLACEHOLDER.search(why.replace("FILE", "")) and not why.endswith("an argument."):
            found[command] = why
    return found


@pytest.mark.slow
def test_every_suggested_command_is_taken_by_the_command_line() -> None:
    modules = (text for path in MODULES.values() for text in _texts(tree_of(path)))
    chinese = (path.read_text(encoding="utf-8") for path in Path(zh.__file__).parent.glob("*.txt"))

    assert refused_suggestions(chain(modules, chinese)) == {}


def test_a_suggestion_with_an_unknown_option_is_found() -> None:
    wrong = "`hccl-tools show FILE --nothing` and `hccl-tools nothing`, not `hccl-tools show VALUE --rank N`"

    assert set(refused_suggestions([wrong])) == {"show FILE --nothing", "nothing"}
