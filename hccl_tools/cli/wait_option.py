"""``--wait``: wait until a table is complete."""

from __future__ import annotations

import click

from hccl_tools.cli.values import Seconds
from hccl_tools.files import waiting
from hccl_tools.notation.printable import tell

option = click.option(
    "--wait", type=Seconds(), metavar="SECONDS", help="Wait up to SECONDS for an incomplete table."
)


def wait_for(file: str, seconds: float | None) -> None:
    """Wait until a table is ready, and report on stderr what is missing; do nothing if ``seconds`` is None.

    Raises:
        TableError: The table was not complete in time.
    """
    if seconds is not None:
        waiting.wait(file, seconds=seconds, report=tell)
