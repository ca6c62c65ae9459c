"""``hccl-tools stacks``: show what each rank of a running job does, and its Python stack."""

from __future__ import annotations

import json

import click

from hccl_tools.cli import options
from hccl_tools.cli.site_options import from_site
from hccl_tools.cli.values import Choice
from hccl_tools.host.site_defaults import LOG_DIR, SSH
from hccl_tools.launch import stacks
from hccl_tools.runs import listing

_EXAMPLES = """\
  hccl-tools stacks                  the ranks of the running job
  hccl-tools stacks 20261121-101530  the beginning of a run's name, or its directory
  hccl-tools stacks -f json
"""


@options.command("stacks", epilog=_EXAMPLES)
@click.argument("run", required=False)
@click.option("-f", "--format", "form", type=Choice(["text", "json"]), default="text", help="Output format.")
@click.option(
    "--log-dir", default="log", show_default=True, metavar="DIR", help="The log directory.",
    show_envvar=True, **from_site(LOG_DIR),
)  # fmt: skip
@click.option(
    "--ssh",
    "typed_ssh",
    metavar="SSH",
    show_envvar=True,
    **from_site(SSH),
    help="The ssh for other hosts. Default: Open MPI's setting, else ssh.",
)
@click.option("--serve", is_flag=True, hidden=True)  # Set for other hosts.
@click.pass_context
def command(  # noqa: PLR0917  (click passes them by name)
    ctx: click.Context, run: str | None, form: str, log_dir: str, typed_ssh: str | None, serve: bool
) -> None:
    """Show what each rank of RUN does: its state, the system call in which it waits, its Python stack.

    RUN is a run directory, its name or a part of it, or "latest". By default it is the run that is running;
    if several are running in the log directory, they are listed. Ranks with equal stacks are shown together.
    A rank writes its stack, also to its log, if the job was started with launch --faulthandler; else py-spy
    is used where it is installed and allowed. Other hosts are asked over ssh without a password, or with
    srun in a running Slurm job. The job goes on.

    The exit code is 0 if every rank is shown, with or without a stack, or has ended, and 1 if its host has
    not answered.
    """
    if serve and run is not None:
        click.echo(json.dumps([one._asdict() for one in stacks.serve(run)]))
        return
    found = listing.the_run(run, log_dir, "stacks")
    of_ranks = stacks.collect(found, typed_ssh)
    text = stacks.as_json(found.path, of_ranks) if form == "json" else stacks.as_text(of_ranks)
    click.echo(text, nl=False)
    ctx.exit(0 if all(one.pid or one.ended for one in of_ranks) else 1)
