"""The command line: one command per file, loaded when it is called."""

from __future__ import annotations

import errno
import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.errors import HcclToolsError
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Command name -> what it is for. The command ``x-y`` is ``command`` in ``hccl_tools.cli.x_y``.
COMMANDS = {
    "gen": "Write the rank table of this host's devices.",
    "validate": "Check rank tables: what HCCL will refuse, where, and what to do.",
    "merge": "Make one table of the tables of many hosts.",
    "convert": "Write the same table in another format.",
    "replace": "Give a spare server the ranks of a failed one.",
    "subset": "Keep some servers or devices of a table.",
    "show": "Show a table: servers, devices, ranks; which of them is this host?",
    "launch": "Start one process per rank and see the job to its end.",
    "jobs": "List runs: which there are, which still run, how they ended.",
    "logs": "Print or follow what a rank of a run has written.",
    "stop": "End a run.",
    "rules": "List the rules, or explain one rule or HCCL error code.",
    "schema": "Print the JSON Schema of a table format.",
}

#: Exit code of a process that SIGPIPE ended.
_READER_GONE = 141
#: Why a disk behind standard output takes no more.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _LazyGroup(click.Group):
    """A group that imports a command's module only when that command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"hccl_tools.cli.{cmd_name.replace('-', '_')}").command
        if ctx.resilient_parsing:  # the shell completes a command line
            from hccl_tools.cli.completion import equip  # noqa: PLC0415

            return equip(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; for an unknown name suggest the most similar one."""
        if not ctx.resilient_parsing and args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from hccl_tools.notation.phrases import did_you_mean  # noqa: PLC0415  (only for a wrong name)

            guess = did_you_mean(args[0], COMMANDS)
            raise click.UsageError(f'no such command "{args[0]}"' + (f"; {guess}" if guess else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from hccl_tools import __version__  # noqa: PLC0415  (nobody else pays for it)

        click.echo(f"hccl-tools {__version__}")
        ctx.exit()


@click.group(cls=_LazyGroup, context_settings=CONTEXT, invoke_without_command=False)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
)
def cli() -> None:
    """Make, check and run Ascend HCCL rank tables.

    \b
    hccl-tools gen --device_num "[0,8)"           write this host's rank table
    hccl-tools validate hccl_8p_*.json            what will HCCL say to it?
    hccl-tools launch --rank-table FILE train.py  start one process per rank
    """  # noqa: D301  (click's own mark: keep the lines)


def run(command: click.Command, args: Sequence[str], prog_name: str) -> int:
    """Run a command and return the exit code; a user's mistake becomes one clear message on stderr."""
    _secure_streams()
    try:
        result: Any = command.main(list(args), prog_name=prog_name, standalone_mode=False)
    except HcclToolsError as error:
        return _told(error.message, error.hint, error.exit_code)
    except click.ClickException as error:
        path = f"{prog_name} {args[0]}" if args and args[0] in COMMANDS else prog_name
        return _told_by_click(error, args, path)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except SystemExit as end:
        # With 1 click ends when the reader of our output has gone (`| head`): as the signal would have ended
        # us. With 0 it ends when it has completed a command line for the shell.
        return _READER_GONE if end.code else 0
    except OSError as error:
        if error.errno == errno.ENOENT and not _folder_is_there():
            return _told("the current folder has been removed", "go to another one: cd DIR", 2)
        if error.filename is not None or error.errno not in _FULL:
            raise
        # What could not be written stays in the buffer; Python must not try again on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _told(f"standard output cannot be written: {error.strerror}", None, 1)
    return result if isinstance(result, int) else 0


def _secure_streams() -> None:
    """See to it that what becomes of a standard stream changes nothing else.

    Where one is closed, the next file to be opened would take its place: a log, a table, the keeper's pipe.
    Where nobody takes what stderr says, that is no reason for another exit code.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  (until the end)
    told = sys.__stderr__
    if told is not None and sys.stderr is told:
        raw = io.BufferedWriter(_Unheard(2, "w", closefd=False))
        sys.stderr = _Printable(raw, encoding=told.encoding, errors=told.errors, line_buffering=True)


class _Printable(io.TextIOWrapper):
    """A stream for messages: what tables, tools and other hosts had to say cannot steer the terminal."""

    def write(self, text: str) -> int:
        super().write(escaped(text, keep="\n\t"))
        return len(text)


class _Unheard(io.FileIO):
    """A stream whose reader may have gone, or whose disk may be full."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _folder_is_there() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  (pathlib is not loaded for it)
    except OSError:
        return False
    return True


def _told(message: str, hint: str | None, exit_code: int) -> int:
    click.echo(escaped(f"error: {message}", keep="\n"), err=True)
    if hint:
        click.echo(escaped(f"  help: {hint}", keep="\n"), err=True)
    return exit_code


def _told_by_click(error: click.ClickException, args: Sequence[str], command_path: str) -> int:
    """Say what click found wrong with the call as all others are said."""
    if error.format_message().startswith("Usage:"):  # a group that was called without a command
        error.show()
        return error.exit_code
    from hccl_tools.cli import usage  # noqa: PLC0415  (only for a call that is wrong)

    return _told(*usage.problem(error, args, command_path), error.exit_code)


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of ``hccl-tools`` and ``python -m hccl_tools``."""
    sys.exit(run(cli, sys.argv[1:] if args is None else args, "hccl-tools"))
