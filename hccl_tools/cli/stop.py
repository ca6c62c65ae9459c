"""``hccl-tools stop``: stop a run."""

from __future__ import annotations

import click

from hccl_tools.cli.site_options import from_site
from hccl_tools.cli.values import EITHER_SPELLING, Seconds
from hccl_tools.errors import UsageError
from hccl_tools.host.site_defaults import LOG_DIR
from hccl_tools.notation.printable import tell
from hccl_tools.runs import index, listing, stop


@click.command("stop", context_settings=dict(EITHER_SPELLING))
@click.argument("run", required=False)
@click.option(
    "--log-dir", default="log", show_default=True, metavar="DIR", help="The log directory.",
    show_envvar=True, **from_site(LOG_DIR),
)  # fmt: skip
@click.option(
    "--wait",
    type=Seconds(),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the run to end.",
)
@click.option("--now", is_flag=True, help="Kill the ranks without grace time.")
@click.option(
    "--all", "every", is_flag=True, help="Stop all runs of the log directory that are running here."
)
@click.pass_context
def command(  # noqa: PLR0917  (click passes them by name)
    ctx: click.Context, run: str | None, log_dir: str, wait: float, now: bool, every: bool
) -> None:
    """Stop RUN: a run directory, its name or a part of it, or "latest". By default the run that is running.

    If several runs of the log directory are running, they are listed and none is stopped, except with --all.

    The launcher receives SIGTERM and terminates the ranks on all hosts of the job, with its grace time.
    The command kills processes that a killed launcher has left. In a run of hccl_tools.spawn, only the ranks
    are stopped, not the calling program. The exit code is 0 if no process of the run is left.

    \b
    hccl-tools stop
    hccl-tools stop 20261121-101530
    hccl-tools stop --all
    hccl-tools stop --now /data/log/latest
    """  # noqa: D301  (click's mark: keep the lines)
    if every and run is not None:
        raise UsageError("--all and a RUN exclude each other", hint="leave one of them out")
    try:
        chosen = listing.all_running(log_dir) if every else [listing.the_run(run, log_dir, "stop")]
    except index.NoSuchRunError as error:
        if run == "all":
            error.hint = "`hccl-tools stop --all` stops all that are running"
        raise
    if not chosen:
        tell("no run is running here: nothing to stop")
    stopped = True
    for one in chosen:
        found = stop.stop(one, wait=wait, now=now)
        tell(found.message)
        stopped &= found.over
    ctx.exit(0 if stopped else 1)
