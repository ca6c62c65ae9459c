"""``hccl-tools logs``: what a rank of a run has written."""

from __future__ import annotations

import click


@click.command("logs")
@click.argument("run", default="latest")
@click.option(
    "--rank",
    "ranks",
    multiple=True,
    type=click.IntRange(min=0),
    help="Which rank; by default the one that failed first, else 0. Repeatable.",
)
@click.option("--scheduler", is_flag=True, help="MindSpore's scheduler instead of a rank.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("-n", "--lines", type=click.IntRange(min=0), help="Begin so many lines before the end.")
@click.option(
    "--log-dir", "--log_dir", default="log", show_default=True, metavar="DIR", help="Where runs are."
)
def command(  # noqa: PLR0917  (click hands them over by name)
    run: str, ranks: tuple[int, ...], scheduler: bool, follow: bool, lines: int | None, log_dir: str
) -> None:
    """Print the log of a rank of RUN: a run directory, its name or the beginning of it, or "latest".

    After a restart of the job (--max-restarts) it is the log of the last one.

    \b
    hccl-tools logs                        the rank that failed first, or rank 0, of the last run
    hccl-tools logs latest --rank 3 -f     follow rank 3
    hccl-tools logs 20261121-101530 -n 50  the last 50 lines
    """  # noqa: D301  (click's own mark: keep the lines)
    from hccl_tools.launch import run_logs, runs  # noqa: PLC0415  (`--help` does not need it)

    found = runs.resolve(run, log_dir)
    chosen = ranks or (run_logs.default_rank(found),)
    if not ranks and not scheduler and chosen != (0,):
        click.echo(f"rank {chosen[0]} of {found.name}:", err=True)
    paths = run_logs.paths(found, chosen, scheduler=scheduler, wait=follow)
    run_logs.show(found, paths, follow=follow, lines=lines)
