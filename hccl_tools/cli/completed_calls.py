"""The call that a user meant: words behind their options, and what is missing, from the tables at hand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import launch, other_names
from hccl_tools.cli.values import hyphenated
from hccl_tools.errors import HcclToolsError
from hccl_tools.files.inputs import Inputs
from hccl_tools.launch.planning import tables_here
from hccl_tools.notation.phrases import EXAMPLE_PROGRAM, named, operand
from hccl_tools.records import NamedTuple
from hccl_tools.table.product_names import read_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TABLE_ENDS = (".json", ".yaml", ".yml")
#: Options with the number of ranks, as ``launch`` and others call them.
_SIZES = frozenset({"-n", "-np", "--np", "--nproc", "--worker-num", "--gpus", "--num-gpus"})
_LONGEST_NUMBER = 5
_LIST = re.compile(r"[0-9]{1,5}(?:,[0-9]{1,5}){1,16}")
#: Tables of the folder that are read for an example.
_MOST_READ = 8
#: The options of ranges, and of other words, that people type behind the file of a table, or a run's name.
_RANGES = {"gen": "--device_num", "logs": "--rank", "show": "--rank", "subset": "--devices"}
_WORDS = {"replace": "--server", "subset": "--servers"}
_NUMBERS = {"gen": "[0-9(\\[][0-9,()\\[\\]-]*", "subset": "[0-9][0-9,-]*|\\[.*"}
#: Options of which a call needs one; of a command with values in ``_FILLED``, all of them.
NEEDED = {
    "convert": ("--to",),
    "env": ("--target",),
    "replace": ("--server", "--with"),
    "subset": ("--servers", "--devices"),
}
#: Ranks as people type them behind a run; `logs --rank` takes numbers and all.
_RANK = re.compile(r"[0-9]{1,6}(?:[,-][0-9]{1,6}){0,64}|all")
#: What a call needs, with values for an example: the second is used where the folder has no better one.
_FILLED = {
    "convert": {"--to": "1.0"},
    "env": {"--target": "torch"},
    "replace": {"--server": "10.0.0.7", "--with": "spare.json"},
}
#: Other options that a call can have instead.
_INSTEAD = {"convert": {"--to-configmap"}, "env": {"--site"}}


class _Call(NamedTuple):
    """The words behind the name of a command: its arguments, and its options with their values."""

    arguments: list[str]
    options: list[str]

    @property
    def given(self) -> set[str]:
        return {hyphenated(word.partition("=")[0]) for word in self.options if word.startswith("-")}


def _options(command: click.Command) -> set[str]:
    """Return the names of all options of a command, with hyphens."""
    return {hyphenated(option) for param in command.params for option in param.opts}


def with_options(ctx: click.Context, typed: Sequence[str]) -> str | None:
    """Return what to type for a call with values that lack their options; ``None`` if that is not known.

    Args:
        typed: The words behind the name of the command.
    """
    name, command = ctx.info_name or "", ctx.command
    call = _call(command, typed)
    if name == "jobs":
        return _of_jobs(ctx, call.arguments[0]) if call.arguments else None
    is_of_runs = name in {"stop", "stacks"} or (
        name == "logs" and not any(map(_RANK.fullmatch, call.arguments[1:]))
    )
    if is_of_runs and len(call.arguments) > 1:
        return f"{name} takes one run: `hccl-tools {name} {operand(call.arguments[0])}`" + (
            "; `hccl-tools stop --all` stops all" if name == "stop" else ""
        )
    if name == "doctor" and len(call.arguments) > 1 and not any(map(_is_file, call.arguments)):
        return f"type `{ctx.command_path} --hosts {shlex.quote(','.join(call.arguments))}`"
    if name not in {*_RANGES, *_WORDS, *_FILLED, "diff"} or not call.arguments:
        return None
    file, values = _parted(name, call.arguments)
    if name in {"show", "diff"} and any(map(_is_file, values)):
        return _of_several_tables(name, [*file, *values])
    if "--hosts" in call.given and name == "gen":
        return f"a list of hosts has commas: `--hosts {shlex.quote(','.join([_hosts(call), *values]))}`"
    found, given = dict[str, str](), call.given
    for value in values:
        option = _option_for(name, command, value, given)
        if option is None:
            return None
        found[option] = value
        given.add(hyphenated(option))
    if not values:
        return None
    if name == "convert" and "2.0" in values:
        return "only `hccl-tools gen --format 2.0` makes 2.0 tables, on the hosts with their levels"
    if name == "convert" and found.get("-o", "").endswith((".yaml", ".yml")):
        found = {"--to-configmap": Path(found["-o"]).stem, **found}  # The only output in YAML.
        given.add("--to-configmap")
    output = ["-o", found.pop("-o")] if "-o" in found else []
    options = [*call.options, *(word for pair in found.items() for word in pair)]
    options += [*_missing(name, given, file), *output]
    words = [ctx.command_path, *map(operand, file), *map(shlex.quote, options)]
    return f"type `{' '.join(words)}`"


def _parted(name: str, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the file or run of a call, which may be missing, and the other words."""
    if name == "gen":
        return [], list(arguments)
    if name == "replace" and len(arguments) == 2 and all(map(_is_table_name, arguments)):
        job, spare = sorted(arguments, key=lambda one: -len(_servers(one)))
        return [job], [spare]
    at = next((place for place, word in enumerate(arguments) if _is_file(word)), None)
    if at is None and len(arguments) > 1:
        at = 0
    if at is None:
        return (_others(["FILE.json"], ()), list(arguments)) if name in _FILLED else (list(arguments), [])
    return [arguments[at]], [word for place, word in enumerate(arguments) if place != at]


def _of_jobs(ctx: click.Context, word: str) -> str:
    """Return what to type for a word behind ``jobs``: a state, what to do with a run, or a run."""
    if word == "running":
        return "type `hccl-tools jobs --running`"
    meant = other_names.lines(ctx, word)
    return (
        meant or "the runs are listed; `hccl-tools logs RUN`, `explain RUN` and `stop RUN` take one of them"
    )


def _hosts(call: _Call) -> str:
    place = next(at for at, word in enumerate(call.options) if word.partition("=")[0] == "--hosts")
    _, equals, value = call.options[place].partition("=")
    return value if equals else call.options[place + 1]


def of_series(ctx: click.Context, typed: Sequence[str]) -> str:
    """Return a call of ``scaling run`` with the options of ``launch`` and the program behind ``--``."""
    own, rest, most = list[str](), list[str](), "2"
    words = iter(typed)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--" or not word.startswith("-"):
            rest += words if word == "--" else [word, *words]
        elif hyphenated(name) in _SIZES:
            most = value if equals else next(words, most)
        else:
            is_own = hyphenated(name) in _options(ctx.command)
            kept = own if is_own else rest
            kept.append(word)
            if not equals and _takes_value(ctx.command if is_own else launch.command).get(hyphenated(name)):
                kept += [one for one in (next(words, None),) if one is not None]
    if "--nproc-per-node" not in map(hyphenated, own):
        own = ["--nproc-per-node", _up_to(most), *own]
    return f"type `{ctx.command_path} {shlex.join([*own, '--', *(rest or [EXAMPLE_PROGRAM])])}`"


def _up_to(number: str) -> str:
    """Return the numbers of devices of a series: a list, or powers of two up to a number, and the number."""
    if _LIST.fullmatch(number):
        return number
    last = int(number) if number.isdecimal() and len(number) <= _LONGEST_NUMBER else 2
    powers = [1 << bit for bit in range(max(1, last).bit_length())]
    return ",".join(map(str, dict.fromkeys([*powers, max(1, last)])))


def example(ctx: click.Context, typed: Sequence[str], *options: str) -> str | None:
    """Return the first example in the help of a command, with the words that were typed in place of its own.

    Args:
        typed: The words behind the name of the command.
        options: Names of an option that the example must have.
    """
    wanted = {hyphenated(option) for option in options}
    for line in (ctx.command.epilog or "").splitlines():
        found = line.strip().partition("  ")[0]
        words = {hyphenated(word) for word in found.split()}
        if found.startswith("hccl-tools ") and (not wanted or wanted & words):
            return f"for example `{_fitted(ctx, found, typed)}`"
    return None


def _fitted(ctx: click.Context, found: str, typed: Sequence[str]) -> str:
    """Return an example with typed words in place of its own, and before the options that they lack."""
    own = found.split()[len(ctx.command_path.split()) :]
    at = next((place for place, word in enumerate(own) if word.startswith("-")), len(own))
    files, options = own[:at], own[at:]
    call = _call(ctx.command, typed)
    files = [*map(operand, call.arguments), *_others(files[len(call.arguments) :], call.arguments)]
    words = [*files, *map(shlex.quote, call.options)]
    values = _example_values(call.arguments or files, call.options)
    for option, value in zip(options[::2], options[1::2], strict=False):
        if hyphenated(option) not in call.given:
            words += [option, values.get(option, value)]
    return " ".join([ctx.command_path, *words])


def _others(files: Sequence[str], typed: Sequence[str]) -> list[str]:
    """Return the names of tables of this folder in place of those of an example, as far as there are some."""
    is_plain = all(file.endswith(".json") for file in files)
    here = [name for name in tables_here.sound_first() if name not in typed] if files and is_plain else []
    return [*map(operand, here[: len(files)]), *files[len(here) :]]


def _missing(name: str, given: set[str], file: Sequence[str]) -> list[str]:
    """Return the options that a call needs and does not have, with values of the tables at hand."""
    if given & _INSTEAD.get(name, set()):
        return []
    values = _example_values(file, ())
    needed = _FILLED.get(name, {}).items()
    return [
        word
        for option, value in needed
        if option not in given
        for word in (option, values.get(option, value))
    ]


def _example_values(files: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """Return values for options on servers: the first server of a table, and the table of another server."""
    servers = _servers(files[0]) if files else []
    if not servers:
        return {}
    found = dict.fromkeys(("--server", "--servers"), named(servers[0], "ID"))
    for name in [one for one in tables_here.names() if one not in {*files, *options}][:_MOST_READ]:
        spare = _servers(name)
        if len(spare) == 1 and spare[0] not in servers:
            return {**found, "--with": operand(name)}
    return found


def _servers(file: str) -> list[str]:
    """Return the servers of a table, or of a spare's; none for a file that cannot be read."""
    if not Path(file).is_file():
        return []
    try:
        return [server.server_id for server in Inputs().table(file).servers]
    except HcclToolsError:
        return []


def _option_for(name: str, command: click.Command, value: str, given: Iterable[str]) -> str | None:
    """Return the option whose value a word is; ``None`` if that is not known."""
    known, taken = _options(command), set(given)
    if _is_table_name(value):
        if name == "replace":
            return "--with" if "--with" not in taken else None
        return "-o" if "-o" in known and not {"-o", "--output"} & taken else None
    if name == "logs" and _RANK.fullmatch(value[:100]):
        return "--rank"
    for param in command.params:
        is_free = isinstance(param, click.Option) and not set(map(hyphenated, param.opts)) & taken
        if is_free and isinstance(param.type, click.Choice) and _is_choice(param.type, value):
            return next((one for one in param.opts if one.startswith("--")), param.opts[0])
    # The name of a run has more digits than a rank.
    pattern = _NUMBERS.get(name, "[0-9]{1,6}(?:[,-][0-9]{1,6})*")
    option = _RANGES.get(name) if re.fullmatch(pattern, value[:100]) else None
    option = option or _WORDS.get(name)
    if name == "replace" and option in taken:
        option = "--with"
    if name == "gen" and option is None and _is_product(value):
        option = "--product"
    return option if option is not None and hyphenated(option) not in taken else None


def _is_choice(kind: click.Choice[str], value: str) -> bool:
    return hyphenated(value) in map(hyphenated, kind.choices)


def _is_product(value: str) -> bool:
    try:
        read_name(value)
    except HcclToolsError:
        return False
    return True


def _is_table_name(word: str) -> bool:
    return word.endswith(_TABLE_ENDS)


def _is_file(word: str) -> bool:
    return _is_table_name(word) or Path(word).is_file()


def _of_several_tables(name: str, files: Sequence[str]) -> str:
    if name == "diff":
        return f"diff takes two tables: `hccl-tools diff {operand(files[0])} {operand(files[1])}`"
    pair = f"`hccl-tools diff {operand(files[0])} {operand(files[1])}` compares two"
    return f"show takes one table; {pair}" if len(files) == 2 else "show takes one table"


def _call(command: click.Command, words: Sequence[str]) -> _Call:
    """Part the words behind the name of a command into its arguments and its options with their values."""
    takes_value = _takes_value(command)
    arguments, options = list[str](), list[str]()
    rest = iter(words)
    for word in rest:
        if word == "--":
            arguments += rest
        elif word == "-" or not word.startswith("-"):
            arguments.append(word)
        else:
            options.append(word)
            if takes_value.get(hyphenated(word)):
                options += [value for value in (next(rest, None),) if value is not None]
    return _Call(arguments, options)


def _takes_value(command: click.Command) -> dict[str, bool]:
    return {
        hyphenated(one): isinstance(param, click.Option) and not param.is_flag
        for param in command.params
        for one in param.opts
    }
