"""``hccl-tools jobs``: list the runs of a log directory and the runs that are running on this host."""

from __future__ import annotations

import os

import click

from hccl_tools.cli import options
from hccl_tools.cli.site_options import from_site
from hccl_tools.cli.values import Choice
from hccl_tools.errors import UsageError
from hccl_tools.host.site_defaults import LOG_DIR
from hccl_tools.runs import index, listing

_EXAMPLES = """\
  hccl-tools jobs                     the runs in log/, and jobs that run here
  hccl-tools jobs --log-dir /data/log --running
  hccl-tools stop latest              stop the last run
  hccl-tools logs latest --rank 3 -f  follow rank 3 of the last run
"""


@options.command("jobs", epilog=_EXAMPLES)
@click.option(
    "--log-dir", default="log", show_default=True, metavar="DIR", help="The log directory.",
    show_envvar=True, **from_site(LOG_DIR),
)  # fmt: skip
@click.option("--running", is_flag=True, help="List only the runs that are running.")
@click.option("-a", "--all", "_all", is_flag=True, expose_value=False, hidden=True)  # All are listed anyway.
@click.option("-f", "--format", "form", type=Choice(["text", "json"]), default="text", help="Output format.")
@options.color
@click.pass_context
def command(ctx: click.Context, log_dir: str, running: bool, form: str, color: bool) -> None:
    """List the runs of a log directory, and other runs that are running on this host, newest first.

    The state of a run is running, ended, failed, stopped, timed out, hung or launcher killed. The age is the
    time since its start. The exit code is the exit code of the job. All commands take the names of the
    list, which begin the names of the run directories; -f json has these, and what a line has no room for:
    its `shown_state` is the state of the list.
    """
    typed = ctx.get_parameter_source("log_dir") is click.core.ParameterSource.COMMANDLINE
    if typed and not os.path.isdir(log_dir):  # noqa: PTH112  (pathlib is not loaded for it)
        raise UsageError(
            f'--log-dir "{log_dir}" is not a directory', hint="use the --log-dir of `hccl-tools launch`"
        )
    newest_first = sorted(index.find(log_dir), key=lambda run: run.started, reverse=True)
    found = [run for run in newest_first if not running or run.state == "running"]
    if form == "json":
        options.write([listing.as_json(found)])
    else:
        options.write([listing.as_text(found, log_dir, among=newest_first, color=color)])
