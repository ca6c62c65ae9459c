"""``hccl-tools convert``: write a table in another format."""

from __future__ import annotations

import gc
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import options, table_output, wait_option
from hccl_tools.cli.options import together
from hccl_tools.cli.values import Choice
from hccl_tools.diagnostics import render
from hccl_tools.document.reading import is_stream
from hccl_tools.document.writing import is_folder
from hccl_tools.errors import TableError, UsageError
from hccl_tools.files import export_targets, outputs
from hccl_tools.files.inputs import Inputs
from hccl_tools.formats import service
from hccl_tools.formats.kubernetes import config_maps
from hccl_tools.formats.kubernetes.names import checked
from hccl_tools.formats.kubernetes.writing import config_map_text
from hccl_tools.notation.phrases import count, operand
from hccl_tools.notation.printable import tell
from hccl_tools.table.products import PRODUCT_VARIABLE, assumed_for
from hccl_tools.transform import conversion, instance_table, super_pod_plan
from hccl_tools.validation.checker import validate
from hccl_tools.validation.config_maps import check_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.formats.kubernetes.names import ConfigMapName
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.service_table import Instance, ServiceTable
    from hccl_tools.transform.super_pod_plan import SuperPodMembership


_EXAMPLES = """\
  hccl-tools convert jobstart_hccl.json --to 1.0 -o hccl.json    ModelArts' table, as HCCL reads it
  hccl-tools convert --wait 600 /user/config/jobstart_hccl.json --to 1.0 -o hccl.json
  hccl-tools convert hccl.json --to 1.2 --super-pods pods.json   for A3 machines in super-pod mode
  hccl-tools convert hccl.json --to group_list -o -              print it
  hccl-tools convert global_ranktable.json --instance 2 --to 1.0    MindIE-Motor's first instance
  hccl-tools convert hccl.json --to-configmap job-table -o - | kubectl apply -f -

\b
pods.json lists the super pod of each server, and the SDID of each device by device id:
  {"10.0.0.1": {"super_pod_id": "0", "super_device_ids": {"0": "0", "1": "65537"}}}
pods.json can also be any 1.2 table with these servers.
"""
#: The last part of the file name of a table in each format.
_ENDINGS = {"1.0": "v1.0", "1.2": "v1.2", "2.0": "v2.0", "group_list": "group_list"}


#: The key of a table in a ConfigMap.
_DEFAULT_KEY = "hccl.json"
#: The product of instances without super pods: MindIE-Motor runs on A2 and A3 (rank tables of 910A differ).
_INSTANCE_PRODUCT = "a2"
_INSTANCE_TARGETS = ("1.0", "1.2")
#: The rule on ranks that --renumber makes harmless.
_DUPLICATE_RANK = "HCC723"

config_map_options = together(
    click.option("--key", metavar="KEY", help=f"Its key, the file name in a pod. Default: {_DEFAULT_KEY}."),
    click.option("--namespace", metavar="NAME", help="Its namespace. Default: that of the kubectl command."),
    click.option("--to-configmap", metavar="NAME", help="Write a Kubernetes ConfigMap with this name."),
)


def instance_option(function: Any) -> Any:
    """Add ``--instance``."""
    text = "Of a service table: the instance, by group_id or GROUP/SERVER."
    return click.option("--instance", metavar="N", help=text)(function)


@options.command("convert", epilog=_EXAMPLES)
@click.argument("file", metavar="FILE")
@click.option("--to", "target", type=Choice(list(_ENDINGS)), help="The new format.")
@config_map_options
@instance_option
@click.option("--super-pods", metavar="FILE", help="For 1.2: super pods and super_device_ids, see below.")
@click.option(
    "--renumber", is_flag=True, help="For group_list: accept HCCL's ranks. For --instance: number from 0."
)
@wait_option.option
@options.writing
@click.option(
    "--target",
    "framework",
    type=options.TARGET,
    help="Write the file as this framework requires it; a table that it would refuse is not written.",
)
@options.product
@options.ignore
def command(
    *,
    file: str,
    target: Any,
    instance: str | None,
    super_pods: str | None,
    renumber: bool,
    wait: float | None,
    **settings: Any,
) -> None:
    """Write the same table in another format, or in a Kubernetes ConfigMap.

    Servers, devices, ranks and addresses stay the same; the command lists what the new format cannot store.
    group_list, 1.0 and 1.2 can be converted to each other. 2.0 cannot be converted: it describes network
    levels that the other formats lack. The table is written to NAME.v1.0.json, or to the path of -o.

    Of a service table (server_group_list), --instance 2 names the instance whose rank table is written. Where
    each server of a group is an instance, it is --instance 2/SERVER.

    --to-configmap writes a ConfigMap for `kubectl apply`, with or without --to. FILE can also be the output
    of `kubectl get configmap -o json`; FILE#KEY is one of several tables in it.
    """
    gc.disable()  # a large table has half a million objects, but no reference cycles
    names, framework = config_map_names(settings), settings.pop("framework")
    if target is None and names is None:
        message = f"missing option --to: one of {', '.join(_ENDINGS)}; or --to-configmap NAME"
        raise UsageError(message, hint=_example(file, settings["product"], settings["output"]))
    if names is None and (output := settings["output"]) not in {None, "-"} and not is_folder(output):
        outputs.require_json(output)
    wait_option.wait_for(file, wait)
    inputs = Inputs(product=settings["product"])
    if instance is None:
        table, is_mixture = inputs.table_or_mixture(file)
    else:
        table, is_mixture = read_instance(file, instance, target, renumber=renumber), False
    if is_mixture:
        tell("read as by xLLM: the servers of server_list, then those of group_list")
    pods = _super_pods(inputs, super_pods, target or table.format)
    made = table
    if target is not None:
        made = conversion.convert(table, to=target, super_pods=pods, renumber=renumber)
        if table.format != made.format or not (is_mixture or instance):
            _report(table, made)
    if settings["product"] is None and not os.environ.get(PRODUCT_VARIABLE):
        if table.format == "1.2":
            settings["product"] = assumed_for("1.2").name  # the servers are in super pods, in any format
        elif instance is not None:
            settings["product"] = _INSTANCE_PRODUCT
    if framework is not None:
        _fit(made, framework, settings, in_config_map=names is not None)
    if names is not None:
        deliver_config_map(made, names, **settings)
        return
    path, _ = config_maps.split(file)
    stem = "table" if is_stream(path) else Path(path).stem
    stem += "" if instance is None else f".instance{instance.replace('/', '-')}"
    table_output.deliver(made, name=f"{stem}.{_ENDINGS[target]}.json", **settings)


def _example(file: str, product: str | None, output: str | None) -> str:
    """Return a call that fits the table at hand: 1.2 needs super pods, which a 1.0 table does not have.

    A file in YAML can only be a ConfigMap.
    """
    table = Inputs(product=product).table(file)
    other = {"1.0": "group_list", "2.0": ""}.get(table.format, "1.0")
    is_yaml = output is not None and output.endswith((".yaml", ".yml"))
    name = Path(output).stem if output is not None and is_yaml else "NAME"
    what = f"--to {other}" if other and not is_yaml else f"--to-configmap {operand(name)}"
    what += f" -o {operand(output)}" if output is not None else ""
    return f"{file} is a {table.format} table: for example `hccl-tools convert {operand(file)} {what}`"


def _fit(table: RankTable, framework: str, settings: dict[str, Any], *, in_config_map: bool) -> None:
    """Add what a framework requires of the table and its file; refuse what it would refuse."""
    found = export_targets.TARGETS[framework]
    added = export_targets.add_container_ips(table) if found.container_ip else 0
    if added:
        tell(f"container_ip: the server_id, on {added} servers without one")
    output = None if in_config_map else settings["output"]
    for warning in export_targets.check(found, table, output, settings["ignore"]):
        tell(*warning.split("\n"))
    if not in_config_map:
        settings["service"] = found.service
        settings["mode"] = export_targets.mode_to_write(found, settings["mode"])
    elif how := export_targets.how_to_mount(found):
        tell(f"note: {how}")


def _super_pods(inputs: Inputs, file: str | None, target: str) -> dict[str, SuperPodMembership] | None:
    if file is None:
        return None
    if target != "1.2":
        raise UsageError(
            f"--super-pods is for --to 1.2: a {target} table has no super pods", hint="leave it out"
        )
    return super_pod_plan.read_super_pods(inputs.document(file).value, file)


def _report(before: RankTable, after: RankTable) -> None:
    if before.format == after.format:
        tell(f"the table already has format {before.format}; it is written unchanged")
        return
    size = f"{count(len(after.servers), 'server')}, {count(len(after), 'rank')}"
    tell(f"{before.format} to {after.format}: {size}")
    for line in conversion.dropped_information(before, after):
        tell(f"lost: {line}")
    for line in conversion.kept(before, after):
        tell(f"kept: {line}")
    for line in conversion.invented_information(before, after):
        tell(f"added: {line}")


def config_map_names(settings: dict[str, Any]) -> ConfigMapName | None:
    """Remove the options from the settings of a command, and return the names of the ConfigMap, if any.

    Raises:
        UsageError: Kubernetes refuses a name, or an option lacks ``--to-configmap``.
    """
    name, namespace, key = (settings.pop(option) for option in ("to_configmap", "namespace", "key"))
    if name is None:
        for option, value in (("--namespace", namespace), ("--key", key)):
            if value is not None:
                raise UsageError(
                    f"{option} is for --to-configmap", hint="add --to-configmap NAME, or omit it"
                )
        return None
    return checked(name, key=_DEFAULT_KEY if key is None else key, namespace=namespace)


def deliver_config_map(
    table: RankTable,
    names: ConfigMapName,
    *,
    output: str | None,
    force: bool,
    mode: str | None,
    product: str | None,
    ignore: Sequence[str],
) -> None:
    """Check a table and write a ConfigMap with it; see ``table_output.deliver``.

    Raises:
        TableError: The table has an error or is too large, or the file has other contents.
    """
    digits = outputs.parse_mode(mode) if mode is not None else None
    to_stdout = output == outputs.STDOUT
    table_output.require_valid(table, to_stdout=to_stdout, product=product, ignore=ignore)
    made = config_map_text(outputs.table_text(table), names)
    if made.is_compact:
        tell("note: the table is written without blanks, so that the ConfigMap is not too large")
    if to_stdout:
        if made.needs_server_side:
            tell(f"note: this ConfigMap needs `{made.apply} -`")
        outputs.print_text(made.text)
        return
    path = outputs.config_map_target(output, names)
    tell(*outputs.save_config_map(made.text, path, force=force, mode=digits).split("\n"))
    tell(f"next: {made.apply} {operand(path)}")


def read_instance(file: str, instance: str, target: str | None, *, renumber: bool) -> RankTable:
    """Return the rank table of an instance and print what it lacks.

    Raises:
        InputError: The file cannot be read.
        TableError: It is not a service table, or the instance has errors or other ranks than 0 to N-1.
        UsageError: The target is not 1.0 or 1.2.
    """
    if target not in (*_INSTANCE_TARGETS, None):
        raise UsageError(f"--instance has no {target} table", hint="use --to 1.0 or --to 1.2")
    report = check_one(file, partial(validate, limit=None))
    if not report.is_service or report.document is None:
        message = f"--instance is for service tables (server_group_list), and {report.file} is none"
        raise UsageError(message, hint="omit --instance")
    if report.document.problem is not None or not isinstance(report.document.value, dict):
        raise _refusal(report)
    table = service.read(report.document.value)
    chosen = instance_table.choose(table, instance)
    _require_sound(report, table, chosen, renumber=renumber)
    made = instance_table.rank_table(table, chosen, renumber=renumber)
    size = f"{count(len(made.table.servers), 'server')}, {count(len(made.table), 'rank')}"
    tell(f"{chosen.name} of {report.reader}: {size}")
    for line in made.lost:
        tell(f"lost: {line}")
    for line in made.changed:
        tell(f"changed: {line}")
    return made.table


def _require_sound(report: Report, table: ServiceTable, chosen: Instance, *, renumber: bool) -> None:
    """Refuse an instance with errors; errors of other groups do not matter."""
    path = table.group_path(chosen.group)
    own = tuple(
        one
        for one in report.errors
        if one.path[:2] == path and not (renumber and one.rule.id == _DUPLICATE_RANK)
    )
    if own or not table.rows(chosen.servers):
        raise _refusal(report._replace(findings=own or report.findings, omitted={}))


def _refusal(report: Report) -> TableError:
    findings = "".join(render([report], "text")).rstrip()
    return TableError(f"{report.file} cannot be used", lines=findings.split("\n"))
