"""``hccl-tools scaling run``: measure a job on several numbers of devices."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import launch, launch_request, options, scaling_report
from hccl_tools.cli.option_groups import TYPED_OPTIONS
from hccl_tools.cli.values import IntRange
from hccl_tools.errors import UsageError
from hccl_tools.files import outputs
from hccl_tools.files.inputs import Inputs
from hccl_tools.launch import engines
from hccl_tools.launch.engines.default import for_several_hosts
from hccl_tools.launch.planning import table_source
from hccl_tools.notation import masking, number_list
from hccl_tools.notation.printable import tell
from hccl_tools.scaling import series, single_run
from hccl_tools.scaling.measuring import Measures
from hccl_tools.scaling.series import Count, Plan
from hccl_tools.scaling.series_file import SeriesFile
from hccl_tools.scaling.single_run import Stopped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.table.model import RankTable

_EXAMPLES = """\
  hccl-tools scaling run --nproc-per-node 1,2,4,8 -- --rank-table hccl_8p_01234567_10.0.0.1.json train.py
  hccl-tools scaling run --nproc-per-node 8 --nnodes 1,2 -- --rank-table FILE train.py
  hccl-tools scaling run --nproc-per-node 1,2 --from "epoch 1/" --to "epoch 9/" -- --cpu train.py
  hccl-tools scaling run --nproc-per-node 1,2 --metric "accuracy:" --plot speed-up.png -- --cpu train.py
"""
#: Options of ``launch`` that a series sets itself or cannot use, with what to do instead.
_REFUSED = {
    "count": "the number of devices is that of --nproc-per-node, before the --",
    "per_node": "give it before the --",
    "node_count": "give --nnodes before the --",
    "node_rank": "a series is started from one host: give --nnodes before the --",
    "devices": "the numbers of devices are those of --nproc-per-node, before the --",
    "hosts": "make the table first: `hccl-tools gen --hosts LIST`, then --rank-table",
    "hostfile": "make the table first: `hccl-tools gen --hostfile FILE`, then --rank-table",
    "log_file": "rank 0's log stays in the run directory",
    "flat_logs": "rank 0's log stays in the run directory",
    "dry_run": "a series measures real runs",
    "emit": "a series measures real runs",
    "run_dir": "leave it out",
}


#: The jobs of a series for one option.
_MOST_NUMBERS = 1000


def _numbers(_ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        numbers = number_list.parse(value.replace(" ", ""), most=_MOST_NUMBERS)
    except number_list.TooManyNumbersError as error:
        raise click.BadParameter(
            f'"{value}" has {error}; each is a job, such as 1,2,4,8', param=param
        ) from None
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1 or len(set(numbers)) < len(numbers):
        raise click.BadParameter(
            f'"{value}" is not a list of different numbers from 1, such as 1,2,4,8', param=param
        )
    return tuple(numbers)


@options.command("run", epilog=_EXAMPLES)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="-- LAUNCH-OPTIONS PROGRAM ARGS...")
@click.option("--nproc-per-node", "per_node", required=True, metavar="LIST", callback=_numbers,
              help="Numbers of devices on each machine, such as 1,2,4,8.")  # fmt: skip
@click.option(
    "--nnodes", "machines", metavar="LIST", callback=_numbers, help="Numbers of machines. Default: one."
)
@click.option(
    "--repeat", type=IntRange(1, 1000), default=1, show_default=True, metavar="N", help="Runs of each number."
)
@click.option("-o", "--output", default="scaling.json", show_default=True, metavar="FILE",
              help="Where the measured runs are written.")  # fmt: skip
@click.option(
    "--from", "begin", metavar="PATTERN", help="Measure the time from this line of rank 0's log ..."
)
@click.option("--to", "end", metavar="PATTERN", help="... to the last line that matches this.")
@click.option("--throughput", metavar="PATTERN", help="Compare the median of the numbers after this pattern.")
@click.option("--metric", metavar="PATTERN", help="Read a metric: the last number after this pattern.")
@click.option("--metric-key", metavar="KEY", help="Read a metric from the last JSON line with this key.")
@click.option("--keep-going", is_flag=True, help="Go on after a failed run.")
@click.option("--resume", is_flag=True, help="Continue the interrupted series of the output file.")
@click.option("--force", is_flag=True, help="Replace the output file.")
@scaling_report.better
@scaling_report.form
@scaling_report.plot
def command(
    *, arguments: tuple[str, ...], per_node: tuple[int, ...], machines: tuple[int, ...] | None, repeat: int,
    output: str, keep_going: bool, resume: bool, force: bool, better: Any, form: str, plot: str | None,
    **patterns: str | None,
) -> int:  # fmt: skip
    """Measure a job on several numbers of devices with `hccl-tools launch`, and report the speed-up.

    The time is that of the whole job, or with --from and --to the time between two lines of rank 0's log, or
    with --throughput a speed that the job prints. A pattern is a regular expression; its number is its first
    group, or the first number after the match. The runs of all numbers alternate. Every run keeps its run
    directory. A table is cut to the first devices that the product's rules allow.
    """
    draw = scaling_report.plotter(plot)
    measures = Measures(**patterns)
    measures.check()
    plan = _plan(arguments, per_node, machines, repeat, measures)
    file = SeriesFile(output, {
        # The file is passed on; a value that is masked does not change what is measured.
        "command": masking.arguments([*plan.options, "--", *plan.program]),
        "nproc_per_node": list(per_node), "nnodes": list(machines) if machines else None, "repeat": repeat,
        "measures": measures._asdict(), "metric_name": measures.metric_name,
    })  # fmt: skip
    file.open(resume=resume, force=force)
    _check_starts(plan)
    try:
        good = series.run(plan, file, keep_going=keep_going)
    except Stopped as stop:
        tell(f"stopped; {output} has the finished runs: --resume continues")
        return 128 + stop.number
    finished = {row["devices"] for row in file.rows if not row.get("failed")}
    if len(finished) < 2 and not good:
        tell(f"error: the series ended before two numbers of devices were measured; see {output}")
        return 1
    tell(f"wrote {output}")
    scaling_report.report(output, form=form, draw=draw, better=better)
    return 0 if good else 1


def _plan(
    arguments: Sequence[str],
    per_node: Sequence[int],
    machines: Sequence[int] | None,
    repeat: int,
    measures: Any,
) -> Plan:
    if len(per_node) * len(machines or (1,)) < 2:
        raise UsageError(
            "a comparison needs two numbers or more", hint="--nproc-per-node 1,2,4,8 or --nnodes 1,2"
        )
    if not arguments:
        raise UsageError(
            "PROGRAM is missing", hint="`hccl-tools scaling run --nproc-per-node 1,2 -- train.py`"
        )
    context = launch.command.make_context("launch", list(arguments))
    given = context.params
    for name, hint in _REFUSED.items():
        source = context.get_parameter_source(name)
        if source is not click.core.ParameterSource.DEFAULT:
            shown = next(option.opts[0] for option in launch.command.params if option.name == name)
            raise UsageError(f"{shown} cannot be given to the launches of a series", hint=hint)
    if not given["program"]:
        raise UsageError("PROGRAM is missing", hint="it follows the options of launch, after the --")
    typed = tuple(text for text in context.meta[TYPED_OPTIONS] if text != "--")
    if max(machines or (1,)) > 1 and not given["all_here"]:
        typed = (*_engine(context), *typed)
    log_dir = Path(given["log_dir"]) / "scaling"
    counts = tuple(_counts(given, per_node, machines))
    return Plan(counts, repeat, typed, tuple(given["program"]), log_dir, measures)


def _engine(context: click.Context) -> tuple[str, ...]:
    """Return the option for the default engine that starts other machines; empty if an engine is named."""
    engine = engines.get(launch_request.engine_of(context.params, context))
    if engine.starts_all_hosts:
        return ()
    if launch_request.is_engine_typed(context):
        raise UsageError(
            f"--nnodes: a series starts the other machines itself, but --engine {engine.name} cannot",
            hint="leave --engine out, or use --engine ssh, mpirun or slurm",
        )
    name, reason = for_several_hosts(os.environ)
    tell(f"{name} starts the jobs on several machines ({reason})")
    return ("--engine", name)


def _counts(
    given: dict[str, Any], per_node: Sequence[int], machines: Sequence[int] | None
) -> Iterator[Count]:
    table = _table(given)
    ips = [part for part in (given["ips"] or "").split(",") if part]
    for servers in machines or (1,):
        for each in per_node:
            shown = servers if machines else None
            if table is not None:
                yield Count(shown, servers * each, table=_cut(table, servers, each, given))
                continue
            typed = ["--nproc-per-node", str(each)]
            if machines is not None:
                typed += ["--nnodes", str(servers)]
            if ips:
                typed += ["--ips", ",".join(ips[:servers])]
            yield Count(shown, servers * each, tuple(typed))


def _table(given: dict[str, Any]) -> RankTable | None:
    file = given["rank_table"]
    if file is None and not given["no_table"] and (variable := table_source.naming_variable(os.environ)):
        file = os.environ[variable]
    if file is None:
        return None
    return Inputs(product=given["product"]).table(table_source.usual_file(file))


def _cut(table: RankTable, servers: int, each: int, given: dict[str, Any]) -> str:
    ignore = [rule.strip() for text in given["ignore"] for rule in text.split(",")]
    made = series.cut_table(
        table, machines=servers, per_machine=each, product=given["product"], ignore=ignore
    )
    return outputs.table_text(made)


def _check_starts(plan: Plan) -> None:
    """Refuse a series of which a launch would be refused, before the first run."""
    for one in plan.counts:
        refused = single_run.check(plan.arguments(one, one.table and "-"), one.table)
        if refused is not None:
            message, hint = refused
            raise UsageError(f"{one.text}: {message}", hint=hint)
