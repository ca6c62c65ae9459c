"""``hccl-tools scaling``: the group of ``report`` and ``run``."""

from __future__ import annotations

import click

from hccl_tools.cli.lazy_group import LazyGroup

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


@click.group(cls=LazyGroup, members=_COMMANDS, prefix="scaling_", epilog=_EPILOG)
def command() -> None:
    """Find out whether more devices or machines pay: speed-up and efficiency."""
