"""``hccl-tools scaling``: the group of ``report`` and ``run``."""

from __future__ import annotations

from importlib import import_module

import click

#: Command name -> its description.
_COMMANDS = {
    "report": "Speed-up and efficiency of measured times.",
    "run": "Measure a job on several numbers of devices.",
}
_EPILOG = """\b
Examples:
  hccl-tools scaling report times.csv --plot speed-up.png
  hccl-tools scaling run --nproc-per-node 1,2,4,8 -- --rank-table hccl_8p_01234567_10.0.0.1.json train.py
"""


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"hccl_tools.cli.scaling_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Group, epilog=_EPILOG)
def command() -> None:
    """Find out whether more devices or machines pay: speed-up and efficiency."""
