"""Options and output of the commands that make a table from tables: check it, then write it."""

from __future__ import annotations

import click

from hccl_tools.cli.options import together
from hccl_tools.cli.values import Choice

mode = click.option("--mode", metavar="MODE", help="File mode, such as 640. Default: 0666 minus the umask.")
_force = click.option("--force", is_flag=True, help="Replace a file that contains another table.")
_output = click.option(
    "-o", "--output", metavar="DIR|FILE|-", help="Output path; - for stdout. Default: the current folder."
)


#: The frameworks of ``--target``.
TARGET = Choice(["mindspore", "torch", "mindie", "xllm"])
writing = together(mode, _force, _output)
