"""``hccl-tools distribute``: compare a table with the files of its hosts, or copy it to them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import asked_hosts, gather_options, options
from hccl_tools.cli.values import Choice
from hccl_tools.errors import HcclToolsError, UsageError
from hccl_tools.files.export_targets import TARGETS, check
from hccl_tools.gathering import default_engine, distribution
from hccl_tools.gathering.distribution import Copy
from hccl_tools.gathering.failures import listed
from hccl_tools.launch import engines
from hccl_tools.notation import host_list
from hccl_tools.notation.host_list import fold
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.notation.printable import escaped, tell
from hccl_tools.programs.slurm import in_allocation
from hccl_tools.table.addresses import is_simulated
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.validation.loading import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.gathering.distribution import Compared, HostFile
    from hccl_tools.gathering.options import GatherOptions
    from hccl_tools.table.model import RankTable

_STATES = {
    "same": "has this table",
    "equal": "has this table with another layout",
    "other": "has another file",
    "none": "has no such file",
    "link": "has a symbolic link there",
    "directory": "has a directory there",
    "special": "has a device, pipe or socket there",
}
_EXAMPLES = """\
  hccl-tools distribute rank_table.json                     what do its hosts have?
  hccl-tools distribute rank_table.json --write             copy it to those that lack it
  hccl-tools distribute rank_table.json 'node[1-4]' -o /etc/job/rank_table.json --write
  hccl-tools distribute rank_table.json --target mindie --write    with the mode that MindIE requires
  hccl-tools distribute rank_table.json --via 'kubectl exec -i {host} --' pod-0,pod-1
"""


@options.command("distribute", epilog=_EXAMPLES)
@click.argument("table", metavar="TABLE")
@click.argument("hosts", nargs=-1, metavar="[HOSTS...]")
@click.option(
    "-o", "--output", metavar="PATH",
    help="The file on the hosts, or a folder with a final slash. Default: the path of TABLE.",
)  # fmt: skip
@click.option("--write", is_flag=True, help="Copy the table to the hosts that lack it.")
@click.option("--force", is_flag=True, help="With --write: also replace a different file.")
@click.option(
    "--target",
    type=options.TARGET,
    help="The framework of the job: give the file the mode that it requires.",
)
@options.product
@options.ignore
@click.option(
    "--engine",
    type=Choice(engines.asking_hosts(one_by_one=True)),
    help="How to reach the hosts. ssh needs only python3 (3.8 or later) there. Default: slurm inside an "
    "allocation, else ssh.",
)
@gather_options.without_engine
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    table: str,
    hosts: tuple[str, ...],
    output: str | None,
    write: bool,
    force: bool,
    target: str | None,
    product: str | None,
    ignore: tuple[str, ...],
    **reaching: Any,
) -> None:
    """Show which hosts have a table, and copy it to the others with --write.

    HOSTS are node[01-04] or 10.0.0.2,10.0.0.3; by default the servers of the table, or the nodes of the Slurm
    allocation. A file is written completely or not at all, never through a symbolic link, and never over a
    different file without --force. Tables are compared by `show --fingerprint`. The exit code is 0 if all
    hosts have the table in the end, 1 if one has not or did not answer.
    """
    if force and not write:
        raise UsageError("--force replaces files with --write only", hint="add --write, or omit --force")
    found, copy = _read(table, output, target, product, ignore)
    chosen = _hosts(hosts, reaching, found)
    how = _announced(reaching, chosen)
    compared = distribution.compare(chosen, copy, how)
    if write:
        compared = _written(compared, copy, how, force=force)
    options.write(_lines(compared, copy, chosen))
    complete = all(one.state == "same" and not one.lacks_mode(copy) for one in compared.files)
    if not write and not complete:
        tell("nothing was written: --write copies the table")
    if compared.failures:
        raise HcclToolsError(
            f"{len(compared.failures)} of {count(len(chosen), 'host')} failed",
            lines=listed(compared.failures),
        )
    ctx.exit(int(not complete))


def _read(
    file: str, output: str | None, target: str | None, product: str | None, ignore: tuple[str, ...]
) -> tuple[RankTable, Copy]:
    if file == "-" and (output is None or output.endswith("/")):
        raise UsageError("the table from standard input has no path", hint="name the file with -o PATH")
    loaded = load(file, product=product, ignore=ignore)
    table = loaded.table
    if target is not None:
        for warning in check(TARGETS[target], table, None):
            tell(*warning.split("\n"))
    path = file if output is None else output
    if path.endswith("/"):
        path += os.path.basename(file)  # noqa: PTH119
    mode = TARGETS[target].mode if target else None
    return table, Copy(loaded.data, fingerprint(table), os.path.abspath(path), mode)  # noqa: PTH100  (no link is followed)


def _hosts(typed: Sequence[str], reaching: dict[str, Any], table: RankTable) -> tuple[str, ...]:
    if typed and reaching["hostfile"]:
        raise UsageError("HOSTS and --hostfile exclude each other", hint="keep one of them")
    if reaching["hostfile"]:
        return host_list.read_hostfile(reaching["hostfile"])
    if typed:
        return asked_hosts.typed_hosts(",".join(typed), "HOSTS")
    found = default_engine.hosts(table, os.environ)
    if found and all(map(is_simulated, found)):
        raise UsageError(
            f"the {count(len(found), 'host')} of the table {'is' if len(found) == 1 else 'are'} simulated "
            f"({and_more(found)}): no table can be copied to such a host",
            hint="name hosts that exist: hccl-tools distribute TABLE HOSTS; "
            "`hccl-tools launch --cpu --all-here` needs the table on this host only",
        )
    return found


def _announced(reaching: dict[str, Any], hosts: Sequence[str]) -> GatherOptions:
    how = asked_hosts.reached(reaching)
    if how.engine is None:
        how = how._replace(engine="slurm" if in_allocation(os.environ) else "ssh")
    shown = f"{how.via[0]} (--via)" if how.via else how.engine
    tell(f"asking {count(len(hosts), 'host')} with {shown}")
    return how


def _written(compared: Compared, copy: Copy, how: GatherOptions, *, force: bool) -> Compared:
    """Write where the table is missing; the other hosts stay as they were found."""
    wanted = {"none", "equal", *(("other",) if force else ())}
    lacking = [one for one in compared.files if one.state in wanted or one.lacks_mode(copy)]
    if not lacking:
        return compared
    done = distribution.write(lacking, copy, how, force=force)
    after = {one.host: one for one in done.files}
    failed = {one.host for one in done.failures}
    files = tuple(after.get(one.host, one) for one in compared.files if one.host not in failed)
    return distribution.Compared(files, (*compared.failures, *done.failures))


def _lines(compared: Compared, copy: Copy, hosts: Sequence[str]) -> Iterator[str]:
    """Yield a line for the table, and one for each group of hosts with equal files."""
    yield escaped(f"{copy.path}: fingerprint {copy.fingerprint}, {count(len(hosts), 'host')}") + "\n"
    groups: dict[str, list[str]] = {}
    for one in compared.files:
        groups.setdefault(_text(one, copy), []).append(one.host)
    for text, names in groups.items():
        yield escaped(f"{fold(names)}: {text}") + "\n"


def _text(one: HostFile, copy: Copy) -> str:
    if one.written:
        return f"written, fingerprint {one.fingerprint}, mode {one.mode:o}"
    if one.lacks_mode(copy):
        return f"{_STATES['same']}, with mode {one.mode:o} in place of {copy.mode or 0:o}"
    if one.state == "other":
        which = f"fingerprint {one.fingerprint}" if one.fingerprint else "not a rank table"
        return f"{_STATES['other']} ({which}); --write --force replaces it"
    return _STATES[one.state]
