"""``hccl-tools gen``: the rank table of this host's devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools import load_part
from hccl_tools.cli import gather_options, gen_options, options, product_option, table_output
from hccl_tools.cli.options import together
from hccl_tools.cli.values import Choice, IntRange, Seconds
from hccl_tools.errors import UsageError
from hccl_tools.files import export_targets, outputs, rejected_table
from hccl_tools.host import simulated_cluster
from hccl_tools.host.selection import Wanted
from hccl_tools.host.site_defaults import TOOL_TIMEOUT, Site
from hccl_tools.host.survey import SurveyRequest, survey
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import tell
from hccl_tools.table.products import default
from hccl_tools.transform import generation

if TYPE_CHECKING:
    from hccl_tools.host.facts import HostFacts
    from hccl_tools.table.model import RankTable


_EXAMPLES = """\
  hccl-tools gen                                     all devices of this host or container
  hccl-tools gen --device_num "[0,8)"                the first eight; quote it: the shell reads brackets
  hccl-tools gen --devices 4-7 --server_ip 10.0.0.1  devices 4 to 7, and the server_id in the table
  hccl-tools gen --devices 7,6,5,4 -o tables/        rank 0 on device 7; the file goes into tables/
  hccl-tools gen --hosts "10.0.0.[1-16]"             a whole cluster, ranks in the order of this list
  mpirun -n 16 --map-by ppr:1:node hccl-tools gen --gather       the same inside a running allocation
  eval "$(hccl-tools gen --target torch)"            a table for torch; sets its variables in this shell
  hccl-tools gen --from-log ~/ascend/log             the table of a job that worked, from its run logs
  hccl-tools gen --endpoints /etc/hixlep             the endpoint files of an Ascend 950 host
  hccl-tools gen --simulate 910a                     without devices, to try the other commands
  hccl-tools gen --simulate a3 --super-pods 2 --servers 4        a simulated cluster

Without --hccn-tool and --hccn-conf the addresses come from `hccn_tool -i N -ip -g` (PATH, then
/usr/local/Ascend/driver/tools), else from /etc/hccn.conf; if both answer, they must agree. The addresses
of a 2.0 table come from /etc/hccl_rootinfo.json, else from `hccn_tool -g -dev_info -i N`.
"""


cluster_size = together(
    click.option(
        "--servers", type=IntRange(min=1), metavar="N", help="With --simulate: a cluster of N servers."
    ),
    click.option(
        "--super-pods", type=IntRange(min=1), metavar="N",
        help="With --simulate a3: the super pods among which --servers are divided.",
    ),
)  # fmt: skip


@options.command("gen", epilog=_EXAMPLES)
@click.option(
    "--device_num", metavar="RANGE", help='Indices among the visible devices: "[0,8)", 0-7, 0,1,2,3.'
)
@click.option("--devices", metavar="RANGE", help="Physical device ids, in rank order: 4-7 or 7,6,5,4.")
@click.option(
    "--ids",
    type=Choice(["physical", "logical"]),
    default="physical",
    help="Kind of the ids of --devices: physical, as in /dev/davinciN, or logical in this container.",
)
@click.option(
    "--visible_devices",
    metavar="RANGE",
    help="The devices that --device_num selects from. Default: ASCEND_VISIBLE_DEVICES, else /dev/davinciN.",
)
@click.option(
    "--server_ip",
    metavar="ADDRESS",
    help="This host's address. Default: the address by which it reaches its network.",
)
@click.option(
    "--product",
    metavar="NAME",
    callback=product_option.read,
    help=product_option.help_text(f"this host's, else {default().name}"),
)
@click.option(
    "--format",
    "table_format",
    type=Choice(["1.0", "1.2", "2.0", "group_list"]),
    help=product_option.format_help(),
)
@click.option("--hccn-tool", metavar="PATH", help="The hccn_tool to use.")
@click.option("--hccn-conf", metavar="PATH", help="The hccn.conf to read addresses from.")
@click.option(
    "--prefer",
    type=Choice(["hccn_tool", "hccn.conf", "rootinfo"]),
    help="The source to use if two sources disagree.",
)
@click.option(
    "--tool-timeout",
    type=Seconds(1, 3600),
    metavar="SECONDS",
    help="Time limit for one call of a tool. Default: 20.",
)
@gen_options.from_log
@click.option("--simulate", metavar="PRODUCT", help=product_option.simulate_help())
@cluster_size
@options.ignore
@options.writing
@gen_options.contents
@gen_options.host_files
@gather_options.many_hosts
@click.pass_context
def command(ctx: click.Context, /, **settings: Any) -> None:
    """Write the rank table of the devices of this host, or of many hosts.

    The command reads the devices and addresses of this host and guesses nothing. It does not write a table
    that HCCL or the guide would refuse. With --rootinfo-out or --endpoints, it writes these files of an
    Ascend 950 host instead of a table. With --hosts or --hostfile, one process runs on each
    host, started by srun, mpirun or ssh. The servers are in the order of the host list. The command writes
    nothing unless all hosts answer.
    """
    if gen_options.are_host_files_wanted(settings, _given(ctx)) or settings["from_log"]:
        _from_elsewhere(settings, _given(ctx))
        ctx.exit(0)
    many = is_simulated_cluster(settings) or gather_options.wanted(settings)
    target = gen_options.target(settings, many=many)
    mode = outputs.parse_mode(settings["mode"]) if settings["mode"] is not None else None
    made = _make_of_many(settings, _given(ctx)) if many else _make(_request(settings))
    if made is None:  # the first process of the job writes the table
        ctx.exit(0)
    facts, table = made
    if target is not None:
        for warning in export_targets.check(target, table, settings["output"], settings["ignore"]):
            tell(*warning.split("\n"))
    to_stdout = settings["output"] == outputs.STDOUT
    product = facts[0].product
    report = outputs.check(table, product=product, ignore=settings["ignore"])
    if not report.ok:
        click.echo(rejected_table.findings_text(report, facts, screen.width(2)), err=True, nl=False)
        raise rejected_table.refusal(report, table_output.typed_call())
    if target is None:  # Else the variables are printed.
        table_output.note_redirection(settings["output"])
    if to_stdout:
        outputs.print_text(outputs.table_text(table))
    else:
        name = None if many else generation.file_name(table, facts[0].server_id)
        path = outputs.target(settings["output"], table, name=name)
        named = product if settings["product"] or settings["simulate"] else None
        saved = outputs.save(table, path, force=settings["force"], mode=mode, product=named)
        service = target.service if target is not None else None
        simulated = settings["simulate"] is not None
        tell(*saved.summary(table, service, simulated=simulated).split("\n"))
        if target is not None:
            gen_options.print_variables(target, path, facts)
    ctx.exit(0)


def _given(ctx: click.Context) -> list[str]:
    """Return the names of the options that are on the command line."""
    source = click.core.ParameterSource.COMMANDLINE
    return [name for name in ctx.params if ctx.get_parameter_source(name) is source]


def _request(options: dict[str, Any]) -> SurveyRequest:
    source = next((name for name in ("rootinfo", "hccn_conf", "hccn_tool") if options[name]), None)
    if options["simulate"] is not None and source is not None:
        raise UsageError(
            f"--simulate and --{source.replace('_', '-')} exclude each other",
            hint="leave one of them out: nothing is read for a simulated machine",
        )
    site = Site(
        hccn_tool=options["hccn_tool"],
        hccn_conf=options["hccn_conf"],
        tool_timeout=options["tool_timeout"] or TOOL_TIMEOUT,
        rootinfo=options["rootinfo"],
    )
    wanted = Wanted(options["device_num"], options["devices"], options["visible_devices"], options["ids"])
    return SurveyRequest(
        wanted,
        options["server_ip"],
        options["product"],
        options["simulate"],
        options["prefer"],
        options["table_format"],
        site,
        **{name: options[name] for name in ("vnic", "host_ip", "container_ip", "device_port")},
    )


def _make(request: SurveyRequest) -> tuple[list[HostFacts], RankTable]:
    facts = survey(request)
    tell(*facts.summary())
    return [facts], generation.table([facts], table_format=facts.table_format)


def _make_of_many(options: dict[str, Any], given: list[str]) -> tuple[list[HostFacts], RankTable] | None:
    if is_simulated_cluster(options):
        gathered = cluster_facts(_request(options), options)
    elif (answered := _from_elsewhere(options, given)) is not None:
        gathered = answered
    else:
        return None
    facts, origins = gathered
    table = generation.table(facts, table_format=facts[0].table_format)
    # A server of a 2.0 table is a network instance: several hosts may have one, and a host several.
    of_rows = [name for one, name in zip(facts, origins, strict=True) for _ in one.devices]
    of_servers = [", ".join(dict.fromkeys(of_rows[row] for row in server.rows)) for server in table.servers]
    # MindSpore requires the order of the server_ids as texts, which HCC891 checks.
    is_of_user = options["order"] == "given" and options["target"] != "mindspore"
    table_output.report_servers(table, of_servers, in_order_given=is_of_user)
    return facts, table


def _from_elsewhere(options: dict[str, Any], given: list[str]) -> tuple[list[HostFacts], list[str]] | None:
    """Return the facts of other hosts and the source of each.

    ``None`` if the call has written what it asks for: the files of a host, or a table from logs.
    """
    if gen_options.are_host_files_wanted(options, given):
        load_part("cli.gen_host_files").write(options, _request(options))
        return None
    if options["from_log"]:
        load_part("cli.from_log").generate(options, given)
        return None
    found: tuple[list[HostFacts], list[str]] = load_part("cli.asked_hosts").facts(_request(options), options)
    return found


def is_simulated_cluster(options: dict[str, Any]) -> bool:
    """Return whether the options ask for a simulated cluster.

    Raises:
        UsageError: They do, but no machine is simulated, or other options name the hosts.
    """
    given = [name for name in ("servers", "super_pods") if options[name] is not None]
    if given and options["simulate"] is None:
        raise UsageError(
            f"--{given[0].replace('_', '-')} is for a simulated cluster",
            hint='add --simulate 910a; for a real cluster use --hosts "10.0.0.[1-4]"',
        )
    named = next((name for name in ("hosts", "hostfile", "gather", "exclude") if options[name]), None)
    if given and named:
        raise UsageError(
            f"--{given[0].replace('_', '-')} and --{named} exclude each other", hint="keep one of them"
        )
    return bool(given)


def cluster_facts(request: SurveyRequest, options: dict[str, Any]) -> tuple[list[HostFacts], list[str]]:
    """Return the facts about the machines, and what each is; print what is simulated.

    Raises:
        UsageError: The product has no such cluster.
    """
    super_pods = options["super_pods"]
    servers = options["servers"] or super_pods or 1
    # The order that MindSpore requires (HCC891): no host list could give the machines another one.
    as_text = options["target"] == "mindspore"
    found = simulated_cluster.machines(request, servers, super_pods, as_text=as_text)
    first = found[0]
    if first.table_format == "group_list":  # HCCL orders its servers by their ids as text.
        found.sort(key=lambda one: one.server_id)
    if super_pods is not None and first.super_pod_id is None:
        raise UsageError(
            f"a {first.table_format} table has no super pods", hint="leave --super-pods or --format out"
        )
    pods = count(len({one.super_pod_id for one in found}), "super pod") if first.super_pod_id else ""
    tell(
        f"product {first.product} ({first.product_source})",
        f"simulated {first.product}: {count(servers, 'server')}{f' in {pods}' if pods else ''}, "
        f"{count(len(first.devices), 'device')} each; the addresses are not real",
    )
    return found, ["the simulation"] * len(found)
