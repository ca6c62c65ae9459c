"""The command line: one command per file, loaded when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.errors import HcclToolsError

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

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _LazyGroup(click.Group):
    """A group that imports a command's module only when that command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"hccl_tools.cli.{cmd_name.replace('-', '_')}").command
        return command

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
    r"""Make, check and run Ascend HCCL rank tables.

    \b
    hccl-tools gen --device_num "[0,8)"          write this host's rank table
    hccl-tools validate hccl_8p_*.json           what will HCCL say to it?
    hccl-tools launch --rank-table FILE train.py start one process per rank
    """


def run(command: click.Command, args: Sequence[str], prog_name: str) -> int:
    """Run a command and return the exit code; a user's mistake becomes one clear message on stderr."""
    try:
        result: Any = command.main(list(args), prog_name=prog_name, standalone_mode=False)
    except HcclToolsError as error:
        click.echo(f"error: {error.message}", err=True)
        if error.hint:
            click.echo(f"  help: {error.hint}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is left to say, and Python must not try.
        sys.stdout = None
        return 0
    return result if isinstance(result, int) else 0


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of ``hccl-tools`` and ``python -m hccl_tools``."""
    sys.exit(run(cli, sys.argv[1:] if args is None else args, "hccl-tools"))
