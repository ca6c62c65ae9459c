"""``hccl-tools show``: show a table, and which of its servers is this host."""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING

import click

from hccl_tools import load_part
from hccl_tools.cli import chosen_table, options, show_picture, wait_option
from hccl_tools.cli.chosen_table import named, this_host
from hccl_tools.cli.gen_options import from_log as from_log_option
from hccl_tools.cli.values import Choice, IntRange
from hccl_tools.diagnostics import render
from hccl_tools.diagnostics.wording import no_rank_table
from hccl_tools.document.reading import is_stream
from hccl_tools.errors import TableError, UsageError
from hccl_tools.formats import StructureError, xllm
from hccl_tools.formats.file_kinds import OTHER_FILES
from hccl_tools.notation.phrases import count, operand
from hccl_tools.notation.printable import tell
from hccl_tools.show import description, host_files, service
from hccl_tools.show.showing import ShowOptions
from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.validation.checker import validate
from hccl_tools.validation.config_maps import check_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.cli.show_picture import PictureOptions
    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.table.model import RankTable

_EXAMPLES = """\
  hccl-tools show hccl_2s_16p.json                    servers, groups, devices, ranks, addresses
  hccl-tools show hccl_2s_16p.json --here             the server, devices and ranks of this host
  hccl-tools show hccl_2s_16p.json --rank 5 -f json   one rank, for a program
  hccl-tools show hccl_2s_16p.json -f matrix          how the devices communicate: HCCS, SIO, UB, RoCE
  hccl-tools show hccl_2s_16p.json -o topo.svg        a picture: super pods, servers, devices, links
  hccl-tools show hccl_2s_16p.json -o topo.html       a page to search, fold and zoom
  hccl-tools show hccl_2s_16p.json --fingerprint      equal on hosts whose tables agree
  hccl-tools show --wait 600 /user/config/jobstart_hccl.json
"""


@options.command("show", epilog=_EXAMPLES)
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--rank", type=IntRange(min=0), metavar="N", help="Only this rank.")
@click.option("--server", metavar="ID", help="Only the server with this server_id.")
@click.option("--here", is_flag=True, help="Only this host's server; exit code 1 if there is none.")
@click.option("--fingerprint", "only_hash", is_flag=True, help="Only a short hash of the table's content.")
@click.option("--all", "unfold", is_flag=True, help="List every device of every server.")
@click.option(
    "-f",
    "--format",
    "output",
    type=Choice(["text", "matrix", "json", *show_picture.FORMATS]),
    help="Output format; by default text, or the suffix of -o. matrix: how the devices communicate, in the "
    "words of `npu-smi info -t topo`. svg: a picture for a page. html: a page to search, fold and zoom.",
)
@show_picture.options
@from_log_option
@wait_option.option
@options.product
@options.color
def command(
    *,
    file: str | None,
    rank: int | None,
    server: str | None,
    here: bool,
    only_hash: bool,
    unfold: bool,
    output: str,
    picture: PictureOptions,
    from_log: tuple[str, ...],
    wait: float | None,
    product: str | None,
    color: bool,
) -> None:
    """Show a table as a tree: servers, groups, devices, ranks, addresses.

    Without FILE, the command shows the table of RANK_TABLE_FILE. With more than four servers, each server is
    one line. If the table has errors, the command shows the readable part; `validate` reports the errors.
    Of the root info and the endpoint files of an Ascend 950 host, it shows the devices and their addresses.
    """
    is_picture = output in show_picture.FORMATS
    if from_log:
        if is_picture:
            raise UsageError("--from-log has no picture", hint="make a table first: `gen --from-log`")
        if file is not None:
            raise UsageError("FILE and --from-log exclude each other", hint="use one of them")
        load_part("cli.from_log").show(from_log, output)
        return
    gc.disable()  # a large table has half a million objects, but no reference cycles
    named = _selected({"--rank": rank is not None, "--server": server is not None, "--here": here})
    if rank is not None and (output == "matrix" or is_picture):
        noun = "picture" if is_picture else output
        raise UsageError(f"--rank has no {noun}", hint="use --server ID for the server of the rank")
    file = chosen_table.from_environment() if file is None else file
    wait_option.wait_for(file, wait)
    report = _checked(file, product)
    if report.format in OTHER_FILES and report.document is not None:
        further = {"--fingerprint": only_hash, f"-f {output}": output == "matrix" or is_picture}
        given_too = [*named, *(name for name in further if further[name])]
        _show_host_file(report, file, output, given_too, unfold=unfold)
        return
    table = _table(report, file)
    if only_hash:
        _print_hash(table)
        return
    chosen, way = _chosen(table, rank, server, here=here)
    if is_picture:
        show_picture.draw(report, table, chosen, output, picture, unfold=unfold)
        return
    view = ShowOptions(report, table, rank, way if here else None, here or server is not None, color)
    _print(view, output, chosen, unfold=unfold)


def _print_hash(table: RankTable) -> None:
    click.echo(fingerprint(table))


def _selected(given: dict[str, bool]) -> list[str]:
    """Return the name of the option that selects a part of the table, if one is given."""
    named = [name for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} exclude each other", hint=f"use {named[0]} alone")
    return named


def _print(view: ShowOptions, output: str, chosen: Sequence[int], *, unfold: bool) -> None:
    if output == "matrix":
        options.write(line + "\n" for line in view.matrix_lines(chosen))
        return
    servers = description.servers(view.table, chosen)
    if output == "json":
        options.write([view.as_json(servers)])
    else:
        options.write(line + "\n" for line in view.lines(servers, unfold=unfold))


def _checked(file: str, product: str | None) -> Report:
    return check_one(file, partial(validate, product=product))


def _show_host_file(report: Report, file: str, output: str, given: list[str], *, unfold: bool) -> None:
    """Show an endpoint file, a root info or a service table, of which no part can be selected."""
    if given:
        message = f"{given[0]} does not apply to {report.file}: it is not a rank table"
        raise UsageError(message, hint=f"omit {given[0]}")
    value = report.document.value if report.document is not None else None
    if not isinstance(value, dict):
        raise TableError(f"{report.file} cannot be shown", lines=_findings(report))
    _note_errors(report, report.noun, file)
    path = None if is_stream(file) or report.origin is not None else file
    if report.is_service:
        whole = (
            [service.as_json(report, value)]
            if output == "json"
            else service.lines(report, value, unfold=unfold)
        )
        options.write(whole)
    elif output == "json":
        options.write([host_files.as_json(report, value, path)])
    else:
        options.write(line + "\n" for line in host_files.lines(report, value, path))


def _findings(report: Report) -> list[str]:
    return "".join(render([report], "text")).rstrip().split("\n")


def _note_errors(report: Report, noun: str, file: str) -> None:
    if not report.ok:
        errors = count(len(report.errors), "error")
        tell(f"note: the {noun} has {errors}: run `hccl-tools validate {operand(file)}`")


def _table(report: Report, file: str) -> RankTable:
    if (mixture := _mixture(report)) is not None:
        return mixture
    if other := no_rank_table(report):
        raise TableError(f"{report.file} cannot be shown: {other[0]}", hint=other[1])
    if report.table is None or not report.table.servers:
        raise TableError(f"{report.file} cannot be shown", lines=_findings(report))
    _note_errors(report, "table", file)
    return report.table


def _mixture(report: Report) -> RankTable | None:
    """Return the table that xLLM reads from server_list and group_list[].server_list, if HCCL reads none.

    The fingerprint of a table that HCCL reads is that of HCCL's servers, so that hosts can compare it.
    """
    value = report.document.value if report.document is not None else None
    if not xllm.is_mixture(value):
        return None
    if report.table is not None:
        note = "HCCL's servers are shown; xLLM also searches group_list"
    else:
        note = "shown as read by xLLM, from server_list and group_list; HCCL does not read it"
    try:
        table = xllm.read(value) if report.table is None else None
    except StructureError:
        return None
    tell(f"note: {note}")
    return table


def _chosen(
    table: RankTable, rank: int | None, server: str | None, *, here: bool
) -> tuple[Sequence[int], str]:
    """Return the indices of the servers to show, and how this host was recognised."""
    if here:
        index, way = this_host(table)
        return [index], way
    if server is not None:
        return [named(table, server)], ""
    if rank is not None:
        return [_server_of_rank(table, rank)], ""
    return range(len(table.servers)), ""


def _server_of_rank(table: RankTable, rank: int) -> int:
    try:
        return table.server_of_row[table.rank_numbers.index(rank)]
    except ValueError:
        known = [number for number in table.rank_numbers if number is not None]
        span = f"its ranks are {min(known)} to {max(known)}" if known else "the table has no valid rank"
        raise TableError(f"the table has no rank {rank}", hint=span) from None
