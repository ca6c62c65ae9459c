"""``hccl-tools key status``: show which job key this host uses."""

from __future__ import annotations

import hashlib
import os

import click

from hccl_tools.cli import options
from hccl_tools.cli.key import own_key
from hccl_tools.notation.printable import escaped
from hccl_tools.runs import job_key

_EXAMPLES = """\
  hccl-tools key status
  ssh 10.0.0.2 hccl-tools key status
"""
#: Hexadecimal digits of a fingerprint.
_FINGERPRINT_LENGTH = 12


@options.command("status", epilog=_EXAMPLES)
def command() -> None:
    """Show which job key this host uses, where it was found, and its fingerprint.

    Hosts with equal fingerprints have the same key. The key itself is not printed. The exit code is 1 if this
    host has no key, and 2 if the key cannot be used, for example because other users can read its file.
    """
    required = job_key.is_required(os.environ)
    key = own_key()
    click.echo(f"job key      {escaped(key.source)}")
    click.echo(f"fingerprint  {hashlib.sha256(key.secret).hexdigest()[:_FINGERPRINT_LENGTH]}")
    if required:
        click.echo(f"required     yes ({job_key.REQUIRE_VARIABLE}=1)")
