"""``hccl-tools key copy``: copy the job key of this host to other hosts."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import asked_hosts, options
from hccl_tools.cli.key import own_key
from hccl_tools.cli.site_options import from_site
from hccl_tools.errors import HcclToolsError, UsageError
from hccl_tools.host.site_defaults import SSH
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped
from hccl_tools.runs import job_key_copy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.runs.job_key_copy import Copied

#: The most hosts at a time.
_AT_ONCE = 64
_OUTCOMES = {
    "here": "skipped, because it is this host",
    "same": "already has this key",
    "copied": "copied to {}",
}
_EXAMPLES = """\
  hccl-tools key copy "10.0.0.[2-16]"
  hccl-tools key copy "node[01-04]" login --ssh 'ssh -p 2222'
  hccl-tools key copy --hostfile hosts
"""


@options.command("copy", epilog=_EXAMPLES)
@click.argument("hosts", nargs=-1, metavar="[HOSTS...]")
@click.option(
    "--hostfile", metavar="FILE", help="The hosts, one per line, in the format of Open MPI and MPICH."
)
@click.option(
    "--ssh",
    "typed_ssh",
    metavar="COMMAND",
    show_envvar=True,
    **from_site(SSH),
    help="The ssh command: 'ssh -p 2222 -i KEY'. Default: Open MPI's setting, else ssh.",
)
@click.option("--force", is_flag=True, help="Replace a different key on the other hosts.")
def command(*, hosts: tuple[str, ...], hostfile: str | None, typed_ssh: str | None, force: bool) -> None:
    """Copy the job key of this host to HOSTS, over ssh: node[01-04], 10.0.0.2,10.0.0.3.

    On each host the key is written to ~/.config/hccl-tools/job-key of the user that ssh logs in as.
    hccl-tools need not be installed there. This host is skipped if it is in the list. The exit code is 1 if
    the key was not copied to a host.
    """
    chosen = _hosts(hosts, hostfile)
    failed = []
    for result in _copies(chosen, typed_ssh, force=force):
        if result.problem:
            failed.append(result)
        else:
            click.echo(escaped(f"{result.host}: {_OUTCOMES[result.state].format(result.path)}"))
    if failed:
        lines = [line for result in failed for line in _lines(result)]
        what = f"the job key was not copied to {len(failed)} of {count(len(chosen), 'host')}"
        raise HcclToolsError(what, lines=lines)


def _hosts(typed: Sequence[str], hostfile: str | None) -> tuple[str, ...]:
    if typed and hostfile:
        raise UsageError("HOSTS and --hostfile exclude each other", hint="keep one of them")
    if hostfile:
        return host_list.read_hostfile(hostfile)
    if not typed:
        raise UsageError(
            "no hosts are named",
            hint="name them: `hccl-tools key copy HOST ...`, or `hccl-tools key copy --hostfile FILE`",
        )
    return asked_hosts.typed_hosts(",".join(typed), "HOSTS")


def _copies(hosts: Sequence[str], typed_ssh: str | None, *, force: bool) -> Iterator[Copied]:
    """Copy the key to the hosts, 64 at a time, and yield the results in the order of the hosts."""
    key = own_key()
    over_ssh = job_key_copy.ssh_command(typed_ssh, os.environ)
    one = partial(job_key_copy.copy, key=key.secret, over_ssh=over_ssh, force=force, environ=os.environ)
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        yield from pool.map(one, hosts)
    finally:  # After Ctrl-C, the remaining hosts are left out.
        pool.shutdown(cancel_futures=True)


def _lines(result: Copied) -> list[str]:
    return [f"  {result.host}: {result.problem}", *([f"    help: {result.hint}"] if result.hint else [])]
