"""``hccl-tools key create``: create the job key of this host."""

from __future__ import annotations

import os

import click

from hccl_tools.cli import options
from hccl_tools.notation.printable import escaped, tell
from hccl_tools.runs import job_key

_EXAMPLES = """\
  hccl-tools key create
  hccl-tools key copy "10.0.0.[2-16]"
"""


@options.command("create", epilog=_EXAMPLES)
@click.option("--force", is_flag=True, help="Replace an existing key. All other hosts then need the new key.")
def command(*, force: bool) -> None:
    """Create a random key in ~/.config/hccl-tools/job-key, which only this user can read.

    The other hosts of a job need the same key.
    """
    path = job_key.path(os.environ)
    job_key.create(path, force=force)
    click.echo(f"created {escaped(path)}")
    used = next((name for name in job_key.VARIABLES if name in os.environ), None)
    if used:
        tell(f"warning: {used} is set: this host uses that key instead of the new one")
    else:
        tell(f"next: hccl-tools key copy{' --force' if force else ''} HOST ...")
