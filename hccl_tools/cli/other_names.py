"""Words that people type for a command because other tools call it so, and the command to type instead."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

import click

from hccl_tools.launch.planning import tables_here
from hccl_tools.notation.phrases import did_you_mean, operand
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Meaning(NamedTuple):
    """What some words mean.

    Attributes:
        line: The command, with its group and the options that the word stands for: ``validate --fix``.
        example: The arguments of a call, shown if the typed ones do not suit the command.
        purpose: What the command does, after its name.
        words: The words, in lower case.
    """

    line: str
    example: str
    purpose: str
    words: frozenset[str]


def _meaning(line: str, example: str, purpose: str, words: str) -> Meaning:
    return Meaning(line, example, purpose, frozenset(words.split()))


#: A word can have several meanings, which are listed in this order.
MEANINGS = (
    _meaning("gen", "", "writes the rank table of this host",
             "generate create make new init build write table ranktable rank_table rank-table hccl_tools"),
    _meaning("gen --simulate 910a", "", "writes the rank table of a simulated machine",
             "simulate sim fake mock demo"),
    _meaning("validate", "FILE", "checks a table", "check verify lint test valid"),
    _meaning("validate --fix", "FILE", "shows the corrections that are certain", "fix repair correct"),
    _meaning("doctor", "", "checks whether hosts are ready",
             "check test health healthcheck health-check diagnose diag selftest preflight ready ping"),
    _meaning("doctor --bandwidth", "", "measures the bandwidth", "bandwidth bench benchmark perf hccl_test"),
    _meaning("merge", "A.json B.json", "makes one table of several", "join combine concat add"),
    _meaning("convert", "FILE --to 1.2", "writes a table in another format",
             "transform translate migrate format"),
    _meaning("replace", "FILE --server A --with B", "gives a spare server the ranks of another",
             "swap substitute exchange"),
    _meaning("subset", "FILE --devices 0-3", "keeps some devices of a table, or with --servers some servers",
             "split cut extract filter select slice remove rm delete drop"),
    _meaning("show", "FILE", "shows a table",
             "inspect view print display tree describe dump cat open info get"),
    _meaning("show -o table.svg", "FILE", "draws a table", "draw plot picture svg"),
    _meaning("show -f matrix", "FILE", "shows how the devices are connected", "topo topology links matrix"),
    _meaning("show --here", "FILE", "names this host's server in a table", "whoami here hostname"),
    _meaning("diff", "A.json B.json", "compares two tables", "compare cmp"),
    _meaning("launch", "--rank-table FILE train.py", "starts a job",
             "run start exec execute rerun restart resume train submit spawn "
             "torchrun msrun mpirun srun mpiexec fleetrun python"),
    _meaning("jobs", "", "lists the runs", "list ls ps status job runs top stat squeue history queue"),
    _meaning("stacks", "", "shows what each rank of a running job does",
             "stack stacktrace trace backtrace bt pystack py-spy pstack hang"),
    _meaning("logs", "", "prints a rank's log", "log tail output follow"),
    _meaning("stop", "", "ends a running job",
             "kill cancel end terminate abort quit scancel interrupt shutdown"),
    _meaning("distribute", "FILE", "compares a table with the files of its hosts, or copies it to them",
             "copy cp scp sync rsync push deploy send upload"),
    _meaning("env", "FILE --target torch", "prints the variables of a framework",
             "export environ environment vars variables setenv source"),
    _meaning("env --site", "", "prints the defaults of this site",
             "config configure settings defaults options conf"),
    _meaning("explain", "", "says why the last job failed",
             "why analyze analyse error errors debug failure report reason"),
    _meaning("rules", "", "lists the rules", "checks codes messages"),
    _meaning("schema", "1.0", "prints the JSON Schema of a format", "jsonschema json-schema formats"),
    _meaning("--help", "", "lists the commands", "help commands usage"),
    _meaning("guide", "", "lists the pages of the documentation",
             "man docs doc documentation manual tutorial howto readme"),
    _meaning("--version", "", "prints the version", "version"),
    _meaning("key create", "", "creates the job key", "key-create keygen genkey gen-key"),
    # The commands of groups.
    _meaning("key create", "", "creates the job key",
             "key:gen key:generate key:new key:make key:init key:write key:add"),
    _meaning("key copy", "HOSTS", "copies the job key to other hosts",
             "key:send key:push key:sync key:distribute key:share key:deploy"),
    _meaning("key status", "", "shows which job key this host uses",
             "key:show key:check key:list key:ls key:info key:verify key:validate key:print key:get"),
    _meaning("scaling report", "FILE", "compares measured times",
             "scaling:show scaling:plot scaling:table scaling:print scaling:analyze scaling:compare"),
    _meaning("scaling run", "--nproc-per-node 1,2,4 -- train.py", "measures a job",
             "scaling:measure scaling:start scaling:launch scaling:bench scaling:test"),
)  # fmt: skip


#: A rule, a check, a message or an error code of HCCL in place of a command.
_CODE = re.compile(r"(?:HC[CDM][0-9]{3}|E[A-Z][0-9]{4})", re.IGNORECASE)
_LONGEST_CODE = 10
#: Words for the removal of runs; with a table they mean its servers or devices.
_REMOVES = {"rm", "remove", "delete", "clean", "cleanup", "prune", "purge", "gc"}
#: What other tools call the command that prints a shell's completion.
COMPLETION = {
    "completion",
    "completions",
    "complete",
    "autocomplete",
    "install-completion",
    "show-completion",
}


def problem(ctx: click.Context, group: click.Group, word: str, rest: Sequence[str]) -> tuple[str, str]:
    """Return message and hint for a word that is not a command of a group.

    Args:
        ctx: The context in which the group was called.
        rest: The arguments after the word; a command is shown with them if it accepts them.
    """
    message = f'no such command "{word}"'
    if file := _about_file(ctx, word, rest):
        return f'"{word}" is not a command', file
    if _CODE.fullmatch(word[:_LONGEST_CODE]):
        return message, f"type `{ctx.command_path} explain {word.upper()}`"
    if word.lower() in COMPLETION and ctx is ctx.find_root():
        return message, completion(rest)
    if answers := list(_answers(ctx, group, word, rest)):
        return message, "; ".join(answers)
    guess = did_you_mean(word, group.list_commands(ctx))
    name = guess.split('"')[1] if guess else ""
    if guess and rest and _accepts(ctx, Meaning(name, "", "", frozenset()), rest):
        return f"{message}; {guess}", f"type `{ctx.command_path} {name} {shlex.join(rest)}`"
    return f"{message}; {guess}" if guess else message, f"see `{ctx.command_path} --help`"


def lines(ctx: click.Context, word: str) -> str:
    """Return the commands that a word means for other tools, with what they do; "" for another word."""
    root = ctx.find_root()
    group = root.command
    if not isinstance(group, click.Group):
        return ""
    return "; ".join(_answers(root, group, word, ()))


def completion(rest: Sequence[str]) -> str:
    """Return the line that turns completion on in the shell that was typed, or in the user's."""
    shell = (rest[0] if rest else os.environ.get("SHELL", "")).rpartition("/")[2]
    if shell == "fish":
        return "completion needs no command: `_HCCL_TOOLS_COMPLETE=fish_source hccl-tools | source`"
    name = "zsh" if shell == "zsh" else "bash"
    line = f'add `eval "$(_HCCL_TOOLS_COMPLETE={name}_source hccl-tools)"` to ~/.{name}rc'
    return f"completion needs no command: {line}"


def _answers(ctx: click.Context, group: click.Group, word: str, rest: Sequence[str]) -> Iterator[str]:
    root = ctx.find_root()
    name = word.lower()
    if name == "help" and rest and group.get_command(ctx, rest[0]) is not None:
        yield f"type `{ctx.command_path} {shlex.join(rest)} --help`"
        return
    in_group = "" if ctx is root else f"{ctx.info_name}:"
    if not in_group and name in _REMOVES and not (rest and rest[0].endswith(".json")):
        yield "the files of a run are its folder: `hccl-tools jobs` lists the runs, `rm -r` removes a folder"
        return
    for meaning in MEANINGS:
        if in_group + name not in meaning.words:
            continue
        line = f"{root.command_path} {meaning.line}"
        arguments = _with_tables(meaning.example)
        if rest and _accepts(root, meaning, rest) and not (meaning.line == "launch" and _is_no_program(rest)):
            arguments = _completed(meaning, rest)
        yield f"`{line} {arguments}`".replace(" `", "`") + f" {meaning.purpose}"


def _is_no_program(rest: Sequence[str]) -> bool:
    return not rest[0].startswith("-") and not rest[0].endswith(".py")


def _completed(meaning: Meaning, rest: Sequence[str]) -> str:
    """Return the typed arguments, with the options of the example if none is typed."""
    typed = shlex.join(rest)
    if any(word.startswith("-") for word in rest):
        return typed
    options = meaning.example.partition(" -")[2]
    if meaning.line == "launch":
        table = _with_tables("FILE")
        return f"-n 4 {typed}" if table == "FILE" else f"--rank-table {table} {typed}"
    return f"{typed} -{options}" if options else typed


def _with_tables(example: str) -> str:
    """Return the arguments of an example with the tables of this folder, as far as there are some."""
    tables = [operand(name) for name in tables_here.sound_first()]
    for placeholder in ("FILE", "A.json", "B.json"):
        if placeholder in example.split() and tables:
            example = example.replace(placeholder, tables.pop(0))
    return example


def _accepts(root: click.Context, meaning: Meaning, rest: Sequence[str]) -> bool:
    """Return whether a command accepts the arguments."""
    command: click.Command | None = root.command
    names, _, options = meaning.line.partition(" -")
    for name in names.split():
        command = command.get_command(root, name) if isinstance(command, click.Group) else None
    if command is None:
        return False
    arguments = [*(f"-{options}".split() if options else []), *rest]
    own = click.Context(command, **command.context_settings)
    try:
        _values, left, _order = command.make_parser(own).parse_args(arguments)
    except click.UsageError:
        return False
    return not left


def _about_file(ctx: click.Context, word: str, rest: Sequence[str]) -> str | None:
    """Return what to type for a file in place of a command; ``None`` for another word."""
    if ctx is not ctx.find_root() or not word.endswith((".json", ".py")):
        return None
    tool, typed = ctx.command_path, shlex.join([word, *rest])
    if word.endswith(".json") and rest and rest[0].endswith(".py"):
        return f"type `{tool} launch --rank-table {typed}`"
    if word.endswith(".json"):
        others = [one for one in rest if not one.startswith("-")]
        typed = operand(word) if others else typed
        return f"`{tool} validate {typed}` checks a table; `{tool} show {typed}` shows it"
    table = _with_tables("FILE")
    if table == "FILE":
        return f"`{tool} launch -n 4 {typed}` starts it on 4 devices; with a rank table: --rank-table FILE"
    return f"`{tool} launch --rank-table {table} {typed}` starts it on the devices of a table"
