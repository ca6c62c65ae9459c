"""``hccl-tools logs``: print the log of a rank of a run."""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli.site_options import from_site
from hccl_tools.cli.values import EITHER_SPELLING, Choice, IntRange
from hccl_tools.document import links
from hccl_tools.host.site_defaults import LOG_DIR, SSH
from hccl_tools.launch.logs import viewer
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.printable import tell
from hccl_tools.runs import files, index, listing, names, own_runs, remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.runs.index import NoSuchRunError, Run

#: A rank as people type it in place of a run: 3, rank3, rank_3.log.
_RANK = re.compile(r"(?:rank[_ -]?)?([0-9]{1,6})(?:\.log)?", re.IGNORECASE)


@click.command("logs", context_settings=dict(EITHER_SPELLING))
@click.argument("run", required=False)
@click.option(
    "--rank",
    "ranks",
    multiple=True,
    metavar="RANKS",
    help="The ranks: 3, or 0,2-4, or all. Default: the rank that failed first, else 0. Repeatable.",
)
@click.option("--scheduler", is_flag=True, help="Print the log of MindSpore's scheduler instead.")
@click.option("-f", "--follow", is_flag=True, help="Follow the log until the run ends.")
@click.option("-n", "--lines", type=IntRange(min=0), help="Print the last N lines.")
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
@click.option("--serve", type=Choice(["plain", "prefix"]), hidden=True)  # Set for other hosts.
def command(  # noqa: PLR0917  (click passes them by name)
    run: str | None,
    ranks: tuple[str, ...],
    scheduler: bool,
    follow: bool,
    lines: int | None,
    log_dir: str,
    typed_ssh: str | None,
    serve: str | None,
) -> None:
    """Print the log of a rank of RUN: a run directory, its name or a part of it, or "latest".

    By default it is the last run; with -f, the one that is running. A number is a rank of that run.

    After a restart of the job (--max-restarts), the log is from the last attempt. A log on another host is
    read over ssh without a password, or with srun in a running Slurm job.

    \b
    hccl-tools logs                        the rank that failed first, or rank 0, of the last run
    hccl-tools logs latest --rank 3 -f     follow rank 3
    hccl-tools logs 3                      rank 3 of the last run
    hccl-tools logs --rank 0,2-4           ranks 0 and 2 to 4
    hccl-tools logs 20261121-101530 -n 50  the last 50 lines
    """  # noqa: D301  (click's mark: keep the lines)
    if serve and run is not None:
        own = [-1] if scheduler else [int(rank) for rank in ranks]
        viewer.serve(run, own, follow=follow, lines=lines, prefixed=serve == "prefix")
        return
    try:
        found, typed = _chosen(run, ranks, log_dir, follow=follow)
    except index.NoSuchRunError as error:
        if run == "all":
            error.hint = "`hccl-tools logs --rank all` prints the logs of all ranks"
        raise
    chosen = viewer.chosen_ranks(found, typed) or [viewer.default_rank(found)]
    if run is None and (follow or (found.state == "running" and not scheduler)):
        tell(f"{rank_list(chosen)} of {found.called}, which {_condition(found)}{_others(found, log_dir)}:")
    elif found.user or (not ranks and not scheduler and (found.ranks > 1 or typed)):
        tell(f"{rank_list(chosen)} of {found.called}:")
    with ExitStack() as connections:
        prefixed = len(chosen) > 1
        sources: list[Any] = []
        wanted = viewer.by_host(found, chosen, scheduler=scheduler)
        for host in wanted.keys() - {""}:
            options = ["--follow"] if follow else []
            options += [] if lines is None else [f"--lines={lines}"]
            source = remote.start(found, host, wanted[host], options, typed_ssh, prefixed=prefixed)
            sources.append(source)
            connections.callback(sources[-1].close)
        still_runs = (lambda: not index.is_over(found)) if follow else None
        here = viewer.paths(found, wanted.get("", ()), while_=still_runs)
        if not follow and here and not any(map(os.path.getsize, here.values())):
            tell("the log is empty" if len(here) == 1 else "the logs are empty")
        sources += viewer.local(here, prefixed=prefixed, lines=lines)
        # What another user has written, or the author of an archive, must not control this user's terminal.
        escape = sys.stdout.isatty() and bool(own_runs.why_strange(found.path, os.environ))
        viewer.show(sources, is_over=lambda: still_runs is None or not still_runs(), escape=escape)


def _chosen(
    name: str | None, ranks: Sequence[str], log_dir: str, *, follow: bool
) -> tuple[Run, Sequence[str]]:
    """Return the run that is meant, and the ranks as typed: a number in place of a run is a rank."""
    rank = _RANK.fullmatch(name) if name is not None and not ranks else None
    if name is None or (rank is not None and not files.is_run(links.real_path(name))):
        try:
            latest = listing.followed(log_dir) if follow else index.resolve(names.LATEST, log_dir)
        except index.NoSuchRunError as error:
            raise _about_rank(rank, error) from error
        if rank is None:
            return latest, ranks
        # Longer numbers can be a part of a run's name.
        if len(rank[0]) < names.SHORTEST_PART or not rank[0].isdecimal() or int(rank[1]) < latest.ranks:
            return latest, [str(int(rank[1]))]
    try:
        return index.resolve(names.LATEST if name is None else name, log_dir), ranks
    except index.NoSuchRunError as error:
        raise _about_rank(rank, error) from error


def _about_rank(rank: re.Match[str] | None, error: NoSuchRunError) -> NoSuchRunError:
    """Return the error for a name that is not that of a run; that of a rank is the value of an option."""
    if rank is None:
        return error
    return type(error)(
        f"the log of rank {int(rank[1])} is that of a run, and {error.message}", hint=error.hint
    )


def _others(run: Run, log_dir: str) -> str:
    """Return that other runs of the log directory are running as well; "" if none is."""
    others = [one for one in listing.all_running(log_dir) if one.path != run.path and one.state == "running"]
    if not others or run.state != "running":
        return ""
    are = "1 other run is running" if len(others) == 1 else f"{len(others)} other runs are running"
    return f" ({are}: `hccl-tools jobs --running`)"


def _condition(run: Run) -> str:
    """Return the state of a run as a phrase: ``is running``, ``has ended with exit code 143``."""
    if run.state == "running":
        return "is running"
    if run.state == "elsewhere":
        return f"was started on {run.host}"
    return "has ended" if run.exit_code is None else f"has ended with exit code {run.exit_code}"
