"""``hccl-tools stop``: end a run."""

from __future__ import annotations

import click

from hccl_tools.cli.seconds import Seconds


@click.command("stop")
@click.argument("run", default="latest")
@click.option(
    "--log-dir", "--log_dir", default="log", show_default=True, metavar="DIR", help="Where runs are."
)
@click.option(
    "--wait",
    type=Seconds(),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait for its end at most so long.",
)
@click.option("--now", is_flag=True, help="Kill the ranks, without their grace time.")
@click.pass_context
def command(ctx: click.Context, run: str, log_dir: str, wait: float, now: bool) -> None:
    """End RUN: a run directory, its name or the beginning of it, or "latest" (the default).

    Its launcher gets SIGTERM and ends the ranks, with the grace time it was started with; the ranks on the
    job's other hosts end with them, also where the command was typed on each. What is left of a
    run whose launcher was killed is killed. Of a run of hccl_tools.spawn only the ranks are ended, not the
    program that called it. The exit code is 0 when nothing of the run is left.

    \b
    hccl-tools stop
    hccl-tools stop 20261121-101530
    hccl-tools stop --now /data/log/latest
    """  # noqa: D301  (click's own mark: keep the lines)
    from hccl_tools.launch.runs import index, stop  # noqa: PLC0415  (`--help` does not need it)

    found = stop.stop(index.resolve(run, log_dir), wait=wait, now=now)
    click.echo(found.said, err=True)
    ctx.exit(0 if found.over else 1)
