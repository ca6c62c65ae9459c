"""``hccl-tools key``: the group of ``create``, ``copy`` and ``status``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from hccl_tools.cli.lazy_group import LazyGroup
from hccl_tools.errors import HcclToolsError
from hccl_tools.runs import job_key

if TYPE_CHECKING:
    from hccl_tools.runs.job_key import JobKey

#: Command name -> its description.
_COMMANDS = {
    "create": "Create the job key of this host.",
    "copy": "Copy the job key of this host to other hosts over ssh.",
    "status": "Show which job key this host uses, and its fingerprint.",
}
_EPILOG = """\b
Examples:
  hccl-tools key create
  hccl-tools key copy "10.0.0.[2-16]"
  hccl-tools key status
"""


@click.group(cls=LazyGroup, members=_COMMANDS, prefix="key_", epilog=_EPILOG)
def command() -> None:
    """Manage the job key: the hosts of a job that is started on each host authenticate each other with it."""


def own_key() -> JobKey:
    """Return the job key that this host uses.

    Raises:
        HcclToolsError: This host has no key.
        UsageError: The key cannot be used.
    """
    found = job_key.find(os.environ)
    if found is None:
        hint = "`hccl-tools key create`, or `hccl-tools key copy` on a host that has the key"
        raise HcclToolsError("this host has no job key", hint=hint)
    return found
