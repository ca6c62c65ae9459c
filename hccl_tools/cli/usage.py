"""Convert click's usage errors to the style of all other errors."""

from __future__ import annotations

import os
import re
import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import completed_calls, foreign_options, other_launchers, other_names
from hccl_tools.cli.other_names import COMPLETION
from hccl_tools.cli.values import hyphenated
from hccl_tools.errors import UsageError
from hccl_tools.host import site_defaults
from hccl_tools.notation import look_alikes
from hccl_tools.notation.phrases import operand

if TYPE_CHECKING:
    from collections.abc import Sequence


#: What people call the option with the rank table.
_TABLE_OPTIONS = (
    "--table", "--rank-table", "--ranktable", "--table-file", "--rank-table-file", "--rank-file",
    "--rank-table-path", "--hccl-config",
)  # fmt: skip
#: Options as other commands and tools call them, and ours with the same purpose; a command has some of these.
_SAME_PURPOSE: dict[str, tuple[str, ...]] = {
    "--format": ("--to",),
    "--to": ("--format",),
    **dict.fromkeys(_TABLE_OPTIONS, ("--rank-table",)),
    **dict.fromkeys(
        (
            *("--nproc", "--nprocs", "--num-procs", "--num-processes", "--num-ranks", "--world-size"),
            *("--ranks", "--nranks", "--rank-size", "--ntasks", "--num-tasks", "--num-workers"),
            *(
                "--num-devices",
                "--count",
                "--num-gpus",
                "--num-npus",
                "--ngpus",
                "--nnpus",
                "--gpu-num",
                "--npu-num",
            ),
        ),
        ("-n", "--nproc-per-node", "--devices"),
    ),
    **dict.fromkeys(
        ("--device", "--device-ids", "--device-id", "--npu", "--gpu", "--npu-ids"),
        ("--devices", "--device-num"),
    ),
    **dict.fromkeys(("--device-num", "--device-count"), ("--device-num", "-n", "--devices")),
    **dict.fromkeys(("--num-nodes", "--machines"), ("--nnodes", "--servers", "--hosts")),
    **dict.fromkeys(("--host", "--nodes", "--host-list", "--nodelist"), ("--hosts", "--ips", "--server")),
    **dict.fromkeys(("--out", "--output", "--output-file", "--save"), ("-o",)),
    **dict.fromkeys(("--overwrite", "--yes", "--replace"), ("--force",)),
    **dict.fromkeys(("--dryrun", "--preview", "--plan", "--noop", "--no-op"), ("--dry-run",)),
    **dict.fromkeys(("--log", "--logs", "--logdir", "--log-path"), ("--log-dir",)),
    **dict.fromkeys(("--time-limit", "--time-out"), ("--timeout", "--wait")),
    **dict.fromkeys(("--restarts", "--retries", "--retry", "--max-retries"), ("--max-restarts",)),
    **dict.fromkeys(("--chip", "--soc", "--soc-version", "--machine", "--device-type"), ("--product",)),
    **dict.fromkeys(("--no-npu", "--simulate", "--rehearse", "--fake"), ("--cpu", "--simulate")),
    "-H": ("--hosts",),
    "-n": ("--device_num",),
    "-p": ("--nproc-per-node",),
    "-N": ("--nnodes",),
    "-r": ("--rank",),
    **dict.fromkeys(("--kill", "--kill-now", "--immediately"), ("--now",)),
}
#: difflib's ratio of the names, without hyphens before them, above which an option is regarded as misspelled:
#: --format and --force have 0.55, --nproc and --product 0.67.
_SIMILAR = 0.75
#: click's message for an argument that a command does not accept.
#: What people call the format of Kubernetes.
_YAML = ("yaml", "yml", "k8s", "kubernetes", "configmap", "config-map")
#: What people call the targets of --emit.
_EMITTED = {
    **dict.fromkeys(("sbatch", "srun", "salloc"), "slurm"),
    **dict.fromkeys(("openmpi", "mpi", "mpich", "mpiexec"), "mpirun"),
    **dict.fromkeys(("loop", "bash", "sh", "script", "shell"), "rank_loop"),
    **dict.fromkeys(("volcano", "vc"), "vcjob"),
    **dict.fromkeys(("ascendjob", "mindcluster"), "acjob"),
}
_EXTRA_ARGUMENT = re.compile(r"Got unexpected extra (arguments?) \((.*)\)")
_RANGE = re.compile(r"[\[(0-9][\[\](),0-9 -]*")


def problem(
    error: click.ClickException, args: Sequence[str], command_path: str, command: click.Command
) -> tuple[str, str]:
    """Return message and hint for a usage error of click.

    Args:
        args: The command line as typed; messages show options in this spelling.
        command_path: The command that was called, for errors without a context.
        command: The group or command of the whole command line.
    """
    ctx = getattr(error, "ctx", None)
    command_path = ctx.command_path if ctx is not None else command_path
    hint = f"see `{command_path} --help`"
    if isinstance(error, click.NoSuchOption):
        suggestion = ""
        if ctx is not None:
            if ctx.command_path.endswith(" scaling run"):
                typed = completed_calls.of_series(ctx, _behind_command(ctx, args))
                return f"no such option {error.option_name}", typed
            if ctx.parent is None and error.option_name == "-v" and isinstance(ctx.command, click.Group):
                version = f"`{ctx.command_path} --version` prints the version"
                return "no such option -v", f"{version}; there is no other detail to switch on"
            if of_command := _with_command(ctx, error.option_name, args):
                return f"no such option {error.option_name}", of_command
            if as_argument := _table_as_argument(ctx, error.option_name, args):
                return f"no such option {error.option_name}", as_argument
            value = _value_of(error.option_name, args)
            suggestion = _same_purpose(error.option_name, ctx.command, value)
            # The exact words of other tools come before what is only similar.
            of_others = None if suggestion else _of_other_tools(ctx, error.option_name)
            suggestion = suggestion or _similar_option(error.option_name, ctx.command)
            if of_others:
                return f"no such option {error.option_name}", of_others
        return f"no such option {error.option_name}", suggestion + hint
    if isinstance(error, click.BadOptionUsage):
        return f"{error.option_name} {_misuse(error.option_name, args)}", _values_of(
            error, args, command
        ) or hint
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return _missing(error.param), _completed(ctx, args, error.param) or hint
    if isinstance(error, click.BadParameter) and error.param is not None:
        return f"{_name(error.param, args)} {error.message}", _other_value(ctx, error, args) or hint
    sentence = " ".join(error.format_message().split()).removesuffix(".")
    if extra := _EXTRA_ARGUMENT.fullmatch(sentence):
        completed = _range_option(extra[2], ctx) or _completed(ctx, args, None)
        return f'unexpected {extra[1]} "{extra[2]}"', completed or hint
    return sentence[:1].lower() + sentence[1:], hint


def _other_value(ctx: click.Context | None, error: click.BadParameter, args: Sequence[str]) -> str:
    """Return what to type for a value that other tools have: ``--emit sbatch``, ``convert --to yaml``."""
    names = error.param.opts if error.param is not None else ()
    typed = next((word for word in (*_YAML, *_EMITTED) if f'"{word}"' in error.message.lower()), "")
    if ctx is not None and ctx.info_name == "convert" and "--to" in names and typed in _YAML:
        file = next((word for word in args if word.endswith(".json")), "FILE")
        return f"Kubernetes reads a ConfigMap: `hccl-tools convert {operand(file)} --to-configmap NAME`"
    if "--emit" in names and typed:
        return f"did you mean --emit {_EMITTED.get(typed, 'vcjob')}?"
    return ""


def _completed(ctx: click.Context | None, args: Sequence[str], missing: click.Parameter | None) -> str | None:
    """Return the call with its words where they belong, for an argument too many or a missing parameter."""
    if ctx is None:
        return None
    typed = _behind_command(ctx, args)
    if ctx.command_path.endswith(" scaling run"):
        return completed_calls.of_series(ctx, typed)
    if missing is None:
        return completed_calls.with_options(ctx, typed)
    if not isinstance(missing, click.Option):
        return completed_calls.example(ctx, typed)
    return completed_calls.with_options(ctx, typed) or completed_calls.example(ctx, typed, *missing.opts)


def _behind_command(ctx: click.Context, args: Sequence[str]) -> Sequence[str]:
    """Return the words behind the names of the command and its groups."""
    depth, outer = 0, ctx.parent
    while outer is not None:
        depth, outer = depth + 1, outer.parent
    return args[depth:]


def _values_of(error: click.BadOptionUsage, args: Sequence[str], command: click.Command) -> str | None:
    """Return what an option takes, as its help says."""
    context = click.Context(command)
    for word in args:
        if not isinstance(command, click.Group) or (found := command.get_command(context, word)) is None:
            break
        command = found
    wanted = hyphenated(error.option_name)
    for option in command.params:
        is_it = isinstance(option, click.Option) and wanted in map(hyphenated, option.opts)
        if is_it and isinstance(option, click.Option) and not option.is_flag and option.help:
            values = "N" if isinstance(option.type, click.IntRange) else option.make_metavar(context)
            return f"{error.option_name} {option.metavar or values}: {option.help}"
    return None


def refuse_words(ctx: click.Context, group: click.Group, args: Sequence[str]) -> None:
    """Refuse a name that no command of a group has, and options that are typed with a dash.

    Raises:
        UsageError: The call has such a word; the message says which command or option is meant.
    """
    if any(not arg[:2].isascii() for arg in args):
        refuse_dashes(group, args[:1])
        if (named := group.get_command(ctx, args[0])) is not None:
            refuse_dashes(named, args[1:])
    if args[0] not in group.list_commands(ctx) and args[0][:1] != "-":
        message, hint = other_names.problem(ctx, group, args[0], args[1:])
        raise UsageError(message, hint=hint)


def with_gen(group: click.Group, args: list[str]) -> list[str]:
    """Return arguments without a command with ``gen``, unless only other commands have the first option.

    An option may have the dashes of word processors in place of hyphens, which ``gen`` refuses.
    """
    option = args[0]
    if not option[:1].isascii():
        mistyped = look_alikes.mistyped_option(option)
        if mistyped is None:
            return args
        option = f"--{mistyped[1]}"
    return args if is_of_another_command(group, option.partition("=")[0], args) else ["gen", *args]


def refuse_dashes(command: click.Command, args: Sequence[str]) -> None:
    """Refuse an option of a command that is typed with a dash, as word processors write it.

    Raises:
        UsageError: An argument before ``--`` is such an option.
    """
    known = _options(command) | {"--help", "-h"}
    for arg in args:
        if arg == "--":
            return
        found = look_alikes.mistyped_option(arg)
        if found is None:
            continue
        dash, rest = found
        name, equals, value = rest.partition("=")
        option = f"-{name}" if len(name) == 1 else f"--{name}"
        if hyphenated(option) in known:
            raise UsageError(
                f'the {dash.name} "{dash.char}" in "{arg}" is not a hyphen',
                hint=f"type {shlex.quote(option + equals + value)}",
            )


def _value_of(option: str, args: Sequence[str]) -> str:
    """Return the value of an option as it was typed, or the word behind it; "" without one."""
    for place, word in enumerate(args):
        name, equals, value = word.partition("=")
        if hyphenated(name) == hyphenated(option):
            return value if equals else args[place + 1] if place + 1 < len(args) else ""
    return ""


def _same_purpose(name: str, command: click.Command, value: str) -> str:
    """Return the question whether an option of the command with the same purpose is meant; "" without one."""
    typed, known = hyphenated(name), _shown_options(command)
    same = [option for option in _SAME_PURPOSE.get(typed, ()) if option in known]
    if "--hosts" in same and value.isdecimal() and "--nnodes" in known:
        same = ["--nnodes"]  # A number of hosts, and not their names.
    if "--hosts" in same and value.isdecimal() and {"--simulate", "--servers"} <= set(known):
        return "did you mean --servers, the number of servers of --simulate? "
    if typed == "-p" and value and not value.isdecimal():
        same = []  # A partition of Slurm.
    return f"did you mean {same[0]}? " if same else ""


def _similar_option(name: str, command: click.Command) -> str:
    typed, known = hyphenated(name), _shown_options(command)
    # An option that turns off something is not a misspelt one that turns it on.
    alike = {
        option.removeprefix("--"): option
        for option in known
        if option.startswith("--") and option.startswith("--no-") == typed.startswith("--no-")
    }
    plain = typed.removeprefix("--")
    longer = [option for option in alike if len(plain) > 3 and option.startswith(f"{plain}-")]
    close = longer if len(longer) == 1 else get_close_matches(plain, alike, n=1, cutoff=_SIMILAR)
    return f"did you mean {alike[close[0]]}? " if close else ""


def _of_other_tools(ctx: click.Context, option: str) -> str | None:
    # mpirun takes long options with one dash: -machinefile.
    spellings = (option, hyphenated(option), hyphenated(f"-{option}"))
    return foreign_options.any_answer(ctx.info_name or "", spellings)


def _shown_options(command: click.Command) -> set[str]:
    """Return the options of a command that its help shows."""
    shown = (param for param in command.params if not getattr(param, "hidden", False))
    return {option for param in shown for option in param.opts}


def _table_as_argument(ctx: click.Context, option: str, args: Sequence[str]) -> str | None:
    """Return the call of a command whose table is an argument, for a table that is typed as an option."""
    arguments = [param for param in ctx.command.params if isinstance(param, click.Argument)]
    takes_table = any(word in str(one.metavar) for one in arguments for word in ("TABLE", "FILE"))
    if hyphenated(option) not in _TABLE_OPTIONS or not takes_table or "--rank-table" in _options(ctx.command):
        return None
    words = _known_words(ctx, option, _behind_command(ctx, args))
    needed = completed_calls.NEEDED.get(ctx.info_name or "", ())
    if any(hyphenated(word.partition("=")[0]) in needed for word in words):
        needed = ()
    if needed and (example := completed_calls.example(ctx, words, *needed)):
        return f"the table needs no option, but {' or '.join(needed)} is missing: {example}"
    return f"the table needs no option: `{ctx.command_path} {shlex.join(words)}`"


def _known_words(ctx: click.Context, table_option: str, typed: Sequence[str]) -> list[str]:
    """Return the words of a call without the option of its table, and without options it does not have."""
    known, words, skipped = _options(ctx.command), list[str](), False
    for word in typed:
        name, equals, value = word.partition("=")
        is_table = hyphenated(name) == hyphenated(table_option)
        is_unknown = word.startswith("-") and len(word) > 1 and hyphenated(name) not in known
        if is_table:
            words += [value] if equals else []
        elif not is_unknown and not skipped:
            words.append(word)
        skipped = is_unknown and not is_table and not equals
    return words


def is_of_another_command(group: click.Group, option: str, args: Sequence[str]) -> bool:
    """Return whether an option without a command is not one of ``gen``, the original script's."""
    with click.Context(group) as ctx:
        of_gen = group.get_command(ctx, "gen")
        found = _command_with(ctx, option, args)
        if found is not None or of_gen is None:
            return found not in {None, "gen"}
        is_near = _same_purpose(option, of_gen, "") or _similar_option(option, of_gen)
        return not is_near and not _RANGE.fullmatch(option)


def _is_completion(option: str) -> bool:
    return hyphenated(option).lstrip("-") in COMPLETION


def _command_with(ctx: click.Context, option: str, args: Sequence[str]) -> str | None:
    """Return the command of a group that has an option, also in another launcher's spelling.

    Of several commands it is ``launch`` if a program is typed, else the first one.
    """
    if not isinstance(ctx.command, click.Group):
        return None
    wanted = hyphenated(option)
    prefer = "launch" if any(word.endswith(".py") for word in args) else "gen"
    for name in sorted(ctx.command.list_commands(ctx), key=lambda name: name != prefer):
        command = ctx.command.get_command(ctx, name)
        if command is not None and wanted in _options(command):
            return name
    of_launch = ctx.parent is None and wanted in other_launchers.OPTIONS
    return "launch" if of_launch else None


def _with_command(ctx: click.Context, option: str, args: Sequence[str]) -> str | None:
    if not isinstance(ctx.command, click.Group):
        return None
    if ctx.parent is None and _is_completion(option):
        return other_names.completion([word for word in args if not word.startswith("-")])
    if (named := option.lstrip("-")) in ctx.command.list_commands(ctx):
        rest = [word for word in args if word != option]
        return f"a command has no hyphens: `{shlex.join([*ctx.command_path.split(), named, *rest])}`"
    name = _command_with(ctx, option, args)
    if name is None:
        return other_names.lines(ctx, named) or None
    return f"options follow their command: `{ctx.command_path} {name} {shlex.join(args)}`"


def _range_option(extra: str, ctx: click.Context | None) -> str | None:
    if ctx is None or not _RANGE.fullmatch(extra) or "--device-num" not in _options(ctx.command):
        return None
    # A number alone could be a device or how many there are.
    wanted = f"[0,{extra})" if extra.isdecimal() and extra.strip("0") else extra
    return f'did you mean --device_num "{wanted}"?'


def _options(command: click.Command) -> set[str]:
    return {hyphenated(option) for param in command.params for option in param.opts}


def _misuse(option: str, args: Sequence[str]) -> str:
    """Return the fault of an option: a superfluous value (--option=value), else a missing value."""
    typed, plain = [hyphenated(arg) for arg in args], hyphenated(option)
    given = any(arg.startswith(f"{plain}=") for arg in typed)
    return "does not accept a value" if given and typed[-1] != plain else "needs a value"


def _missing(param: click.Parameter) -> str:
    if isinstance(param, click.Argument):
        return f"missing argument {param.metavar}"
    choices = f": one of {', '.join(param.type.choices)}" if isinstance(param.type, click.Choice) else ""
    return f"missing option {_name(param, ())}{choices}"


def _name(param: click.Parameter, args: Sequence[str]) -> str:
    """Return a parameter as it was typed, or the variable with its value."""
    known = {hyphenated(name) for name in param.opts}
    for arg in args:
        name = arg.partition("=")[0]
        if hyphenated(name) in known:
            return name
        if arg[:2] in known:
            return arg[:2]
    if isinstance(param.envvar, str) and os.environ.get(param.envvar):
        return site_defaults.origin(param.envvar, os.environ)
    return next((name for name in param.opts if name.startswith("--")), param.opts[0])
