"""The command line: one command per file, loaded when it is called."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from hccl_tools import __version__
from hccl_tools.cli import lazy_group
from hccl_tools.cli.help_option import Option
from hccl_tools.cli.lazy_group import LazyGroup
from hccl_tools.errors import HcclToolsError
from hccl_tools.host import site_defaults
from hccl_tools.notation.printable import escaped, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Command name -> its description.
COMMANDS = {
    "gen": "Write the rank table of this host's devices.",
    "validate": "Check rank tables: report what HCCL refuses, where, and how to fix it.",
    "merge": "Merge the tables of many hosts into one table.",
    "convert": "Write the same table in another format.",
    "replace": "Give a spare server the ranks of a failed server.",
    "subset": "Keep some servers or devices of a table.",
    "show": "Show a table: servers, devices, ranks, and which server is this host.",
    "diff": "Compare two tables: servers, ranks and addresses that differ.",
    "launch": "Start one process per rank and supervise the job.",
    "jobs": "List runs: which are running, and how the others ended.",
    "stacks": "Show what each rank of a running job does, and its Python stack.",
    "logs": "Print or follow the log of a rank of a run.",
    "distribute": "Compare a table with the files of its hosts, or copy it to them.",
    "env": "Print the variables that a framework needs on this host.",
    "doctor": "Check whether hosts are ready for a job, and say what to do.",
    "explain": "Explain why a job failed, from its logs, or what a code means.",
    "stop": "Stop a run.",
    "key": "Create, copy or check the key by which the hosts of a job authenticate each other.",
    "scaling": "Measure or compare the speed-up on more devices or machines.",
    "rules": "List the rules, or explain one rule or HCCL error code.",
    "schema": "Print the JSON Schema of a table format.",
    "guide": "Show a page of the documentation: tutorial, how-to pages, reference.",
}

#: Exit code of a process killed by SIGPIPE.
_READER_GONE = 141
#: Errors of a full or failing disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

#: Options that belong to no command.
_GROUP_OPTIONS = {"-h", "--help", "-V", "--version"}
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


def _version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"hccl-tools {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, members=COMMANDS, context_settings=CONTEXT, invoke_without_command=False)
@click.option(
    "-V",
    "--version",
    cls=Option,
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version.",
)
def cli() -> None:
    """Make, check and run Ascend HCCL rank tables.

    \b
    hccl-tools gen --device_num "[0,8)"           write this host's rank table
    hccl-tools validate hccl_8p_*.json            check it as HCCL does
    hccl-tools launch --rank-table FILE train.py  start one process per rank
    hccl-tools launch -n 4 --cpu train.py         rehearse without NPUs
    hccl-tools guide tutorial                     15 minutes without an NPU
    hccl-tools guide [--lang zh]                  the pages [in Chinese]
    """  # noqa: D301  (click's own mark: keep the lines)


def run(command: click.Command, args: Sequence[str], prog_name: str) -> int:
    """Run a command and return the exit code; a user's mistake becomes one message on stderr."""
    _secure_streams()
    tell(*(f"warning: {problem}" for problem in site_defaults.load(os.environ)))
    try:
        return _run(command, args, prog_name)
    finally:
        site_defaults.unload(os.environ)


def _run(command: click.Command, args: Sequence[str], prog_name: str) -> int:
    try:
        result: Any = command.main(list(args), prog_name=prog_name, standalone_mode=False)
    except HcclToolsError as error:
        return _report(error.head, error.hint, error.exit_code, error.lines)
    except click.ClickException as error:
        path = f"{prog_name} {args[0]}" if args and args[0] in COMMANDS else prog_name
        return _report_usage_error(error, args, path, command)
    except (click.Abort, KeyboardInterrupt) as error:
        cause = error if isinstance(error, KeyboardInterrupt) else error.__cause__ or error.__context__
        return _interrupted(cause.args[0] if cause is not None and cause.args else "")
    except SystemExit as end:
        # click exits with 1 if the reader of the output has exited (`| head`): use the exit code of SIGPIPE.
        # Exit code 0 is from shell completion: click exits after it has completed a command line.
        # A code above 128 is from a signal that ended a query of hosts.
        if end.code == 130:
            return _interrupted(end.__context__.args[0] if end.__context__ and end.__context__.args else "")
        return _READER_GONE if end.code == 1 else int(end.code or 0)
    except OSError as error:
        if error.errno == errno.ENOENT and not _folder_exists():
            return _report("the current folder has been removed", "change to another folder: cd DIR", 2)
        if error.filename is not None or error.errno not in _FULL:
            raise
        # The data stays in the buffer; Python must not try to write it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _report(f"standard output cannot be written: {error.strerror}", None, 1)
    return result if isinstance(result, int) else 0


def _interrupted(prevented: object) -> int:
    """Say on a terminal that Ctrl-C has ended the command, below click's line, and what did not happen."""
    if os.isatty(2):
        tell(f"interrupted: {prevented}" if prevented else "interrupted")
    return 130


def _secure_streams() -> None:
    """Make closed or broken standard streams harmless.

    The descriptor of a closed stream would go to the next file that opens: a log, a table, the keeper's pipe.
    A stderr that cannot be written to must not change the exit code.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  (never closed)
    original = sys.__stderr__
    if original is not None and sys.stderr is original:
        raw = io.BufferedWriter(_Harmless(2, "w", closefd=False))
        sys.stderr = _Printable(raw, encoding=original.encoding, errors=original.errors, line_buffering=True)


class _Printable(io.TextIOWrapper):
    """A stream for messages: text from tables, tools and other hosts cannot control the terminal."""

    def write(self, text: str) -> int:
        super().write(escaped(text, keep="\n\t"))
        return len(text)


class _Harmless(io.FileIO):
    """A stream that ignores write errors: the reader has exited, the disk is full."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _folder_exists() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  (pathlib would take time to load)
    except OSError:
        return False
    return True


def _report(message: str, hint: str | None, exit_code: int, lines: Sequence[str] = ()) -> int:
    tell(f"error: {message}", *lines)
    if hint:
        tell(f"  help: {hint}")
    return exit_code


def _report_usage_error(
    error: click.ClickException, args: Sequence[str], command_path: str, command: click.Command
) -> int:
    if error.format_message().startswith("Usage:"):  # a group that was called without a command
        error.show()
        return error.exit_code
    message, hint = lazy_group.usage().problem(error, args, command_path, command)
    return _report(message, hint, error.exit_code)


def original_arguments(args: list[str]) -> list[str]:
    """Return the arguments of ``python -m hccl_tools``, with ``gen`` before the original's options."""
    if not args or args[0] in _GROUP_OPTIONS or (args[0][:1].isascii() and not args[0].startswith("-")):
        return args
    with_gen: list[str] = lazy_group.usage().with_gen(cli, args)
    return with_gen


def main(args: Sequence[str] | None = None, *, like_original: bool = False) -> None:
    """Entry point of ``hccl-tools`` and ``python -m hccl_tools``, which is ``like_original``."""
    typed = sys.argv[1:] if args is None else list(args)
    sys.exit(run(cli, original_arguments(typed) if like_original else typed, "hccl-tools"))
