"""``hccl-tools jobs``: the runs of a log directory and those that run on this host."""

from __future__ import annotations

import click

from hccl_tools.cli.values import Choice

EPILOG = """\b
Examples:
  hccl-tools jobs                     the runs in log/, and what runs elsewhere on this host
  hccl-tools jobs --log-dir /data/log --running
  hccl-tools stop latest              end the last one
  hccl-tools logs latest --rank 3 -f  follow rank 3 of it
"""


@click.command("jobs", epilog=EPILOG)
@click.option(
    "--log-dir", "--log_dir", default="log", show_default=True, metavar="DIR", help="Where to look."
)
@click.option("--running", is_flag=True, help="Only those that run now.")
@click.option(
    "-f", "--format", "form", type=Choice(["text", "json"]), default="text", help="How they are shown."
)
def command(log_dir: str, running: bool, form: str) -> None:
    """List the runs of a log directory, and those that run elsewhere on this host.

    A run is running, ended, failed, stopped, timed out, or has lost its launcher ("launcher killed"); its age
    counts from its start, its exit code is the job's.
    """
    from hccl_tools.launch import run_list, runs  # noqa: PLC0415  (`--help` does not need it)

    found = [run for run in runs.find(log_dir) if not running or run.state == "running"]
    click.echo(run_list.as_json(found) if form == "json" else run_list.as_text(found), nl=False)
