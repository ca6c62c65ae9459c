"""``hccl-tools doctor``: check machines before a job."""

from __future__ import annotations

from typing import Any

import click

from hccl_tools.cli import doctor_bandwidth, doctor_probe, doctor_run, gather_options, language, options
from hccl_tools.cli.values import IntRange, Seconds
from hccl_tools.doctor import registry, run_checks, table_comparison
from hccl_tools.doctor.registry import all_checks
from hccl_tools.doctor.report import render
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import aligned
from hccl_tools.notation.printable import stdout_is_ascii

_EXAMPLES = """\
  hccl-tools doctor                         this host or container
  hccl-tools doctor rank_table.json         are its hosts ready for the job?
  hccl-tools doctor --local rank_table.json this host alone
  hccl-tools doctor --hosts 'node[1-4]'     four hosts, without a table
  hccl-tools doctor --select HCD2           only the network of the devices
  hccl-tools doctor -f json rank_table.json for programs; also junit, github, sarif
  hccl-tools doctor --cpu rank_table.json   before a rehearsal on the CPU: no NPU is looked at
  hccl-tools doctor --full -f matrix rank_table.json      which devices reach each other
  hccl-tools doctor --bandwidth rank_table.json           also all_reduce_test between devices
  hccl-tools doctor --emit-remedies DIR rank_table.json   a script per host; nothing is run
  hccl-tools doctor --probe --timeout 20    for a probe, again and again: exit code 0, 1 or 2
  hccl-tools doctor --list                  the checks
"""


def _list(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return

    rows = [(one.id, one.consequence, one.name, one.title) for one in all_checks().values()]
    chinese = ctx.params["chinese"]
    columns = screen.width()
    found = list(aligned(rows))
    if columns is not None and any(screen.cells(line) > columns for line in found):
        # The question below the rest, as in `rules` on a narrow screen.
        pairs = zip(aligned([row[:3] for row in rows]), rows, strict=True)
        found = [
            "\n".join([first, *screen.wrapped(f"    {row[3]}", columns, "    ")]) for first, row in pairs
        ]
    lines = (language.with_lines(line, row[0], chinese) for row, line in zip(rows, found, strict=True))
    options.write(f"{line}\n" for line in lines)
    ctx.exit()


@options.command("doctor", epilog=_EXAMPLES)
@click.argument("table", required=False, metavar="[TABLE]")
@click.option("--local", is_flag=True, help="Check this host alone, not all hosts of the table.")
@gather_options.named_hosts
@options.product
@click.option(
    "--target",
    type=options.TARGET,
    help="The framework of the job: also check what it requires of the table's file and of variables.",
)
@click.option(
    "--cpu", is_flag=True,
    help="Before `launch --cpu`: leave out NPUs and HCCL. Names, network, variables and limits are checked.",
)  # fmt: skip
@click.option("--start-port", type=IntRange(1, 65535), metavar="PORT", help="The rendezvous port of the job.")
@click.option("--code", multiple=True, metavar="PATH", help="Compare this program on all hosts. Repeatable.")
@click.option("--data", multiple=True, metavar="DIR", help="Compare this data set on all hosts. Repeatable.")
@click.option(
    "--full", is_flag=True,
    help="Each device pings all devices of the other servers. Default: one device of the next server. "
    "--ignore HCD6 leaves the pings out.",
)  # fmt: skip
@click.option(
    "--bandwidth", is_flag=True,
    help="Also measure the bandwidth of pairs of devices with CANN's all_reduce_test and mpirun. The devices "
    "are busy meanwhile; hosts with processes on their devices are left out.",
)  # fmt: skip
@options.select
@options.ignore
@click.option("--strict", is_flag=True, help="Also count what may stop or slow the job, and what is unknown.")
@click.option(
    "--check-timeout", type=Seconds(1, 600), metavar="SECONDS", default=10, show_default=True,
    help="Time limit for each call of an Ascend tool; a tool that exceeds it is not called again.",
)  # fmt: skip
@click.option("--list", is_flag=True, expose_value=False, callback=_list, help="List the checks.")
@click.option(
    "--emit-remedies", metavar="DIR",
    help="Also write a shell script per host to this folder, with the commands for its findings. "
    "- prints the script of the only host in place of the findings. Nothing is run.",
)  # fmt: skip
@doctor_probe.options
@options.format_of_findings("matrix")
@options.color
@language.lang
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    table: str | None,
    product: str | None,
    target: str | None,
    cpu: bool,
    start_port: int | None,
    code: tuple[str, ...],
    data: tuple[str, ...],
    full: bool,
    bandwidth: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    check_timeout: float,
    emit_remedies: str | None,
    output_format: str,
    color: bool,
    chinese: language.Chinese,
    local: bool,
    **reaching: Any,
) -> None:
    """Check whether hosts are ready for a job: devices, network, ports, limits, mounts.

    TABLE is the rank table of the job; without it, that of RANK_TABLE_FILE, if set. All hosts of the table
    are asked, or those of --hosts; without both, this host or container. Nothing is changed, and root is
    not needed. The exit code is 0 if nothing would stop the job, 1 if something would, 2 for wrong
    usage or a file that cannot be read.
    """
    selection = registry.selection(select, ignore, table_comparison.rules())
    report = doctor_run.checked_table(table, product, target)
    copies = doctor_run.absolute("--code", code), doctor_run.absolute("--data", data)
    of_npus = {"--full": full, "--bandwidth": bandwidth, "-f matrix": output_format == "matrix"}
    pings = doctor_run.pings_of(selection, of_npus, cpu=cpu)
    job = run_checks.Job(report, product, target, start_port, *copies, pings, bandwidth, cpu=cpu)
    if bandwidth:
        doctor_bandwidth.require_table(job, selection, via=reaching["via"])
    hosts = doctor_run.announced_hosts(job, reaching, local=local)
    prints_script = emit_remedies == doctor_run.STDOUT
    doctor_run.require_for_output(job, hosts, matrix=of_npus["-f matrix"], script=prints_script)
    seen, silent = doctor_run.observed(job, reaching, tool_timeout=check_timeout, local=local)
    if bandwidth:
        seen = doctor_bandwidth.measure(job, seen, reaching["ssh"], alone=not hosts)
    result = run_checks.examine(seen, doctor_run.with_product_of(seen, job), selection, silent)
    doctor_run.emit_remedies(result, emit_remedies)
    if output_format == "matrix":
        options.write(doctor_run.matrix(seen, job))
    elif not prints_script:
        looks: dict[str, Any] = {"color": color, "ascii_only": stdout_is_ascii(), "width": screen.width()}
        options.write(render(result, seen, output_format, strict=strict, chinese=chinese, **looks))
    ctx.exit(int(result.fails(strict=strict)))
