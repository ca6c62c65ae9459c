"""``hccl-tools stop``: end a run."""

from __future__ import annotations

import click


@click.command("stop")
@click.argument("run")
@click.option(
    "--log-dir", "--log_dir", default="log", show_default=True, metavar="DIR", help="Where runs are."
)
@click.option("--wait", default=30.0, show_default=True, metavar="SECONDS", help="At most so long.")
@click.pass_context
def command(ctx: click.Context, run: str, log_dir: str, wait: float) -> None:
    """End RUN: a run directory, its name or the beginning of it, or "latest".

    Its launcher gets SIGTERM and ends the ranks; what is left of a run whose launcher was killed is killed.

    \b
    hccl-tools stop latest
    hccl-tools stop 20261121-101530
    """  # noqa: D301  (click's own mark: keep the lines)
    from hccl_tools.launch import runs  # noqa: PLC0415  (`--help` does not need it)

    found = runs.resolve(run, log_dir)
    if found.state != "running" and not runs.processes(found):
        click.echo(f"{found.name} does not run on this host", err=True)
        ctx.exit(1)
    if not runs.stop(found, wait=wait):
        click.echo(f"{found.name} has not ended within {wait:g} s (launcher: pid {found.pid})", err=True)
        ctx.exit(1)
    click.echo(f"{found.name} has ended", err=True)
