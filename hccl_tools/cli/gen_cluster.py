"""The options of ``gen`` for a simulated cluster: ``--servers`` and ``--super-pods``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli.options import together
from hccl_tools.cli.values import IntRange
from hccl_tools.errors import UsageError
from hccl_tools.host import simulated_cluster
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from hccl_tools.host.facts import HostFacts
    from hccl_tools.host.survey import SurveyRequest

size = together(
    click.option(
        "--servers", type=IntRange(min=1), metavar="N", help="With --simulate: a cluster of N servers."
    ),
    click.option(
        "--super-pods", type=IntRange(min=1), metavar="N",
        help="With --simulate a3: the super pods among which --servers are divided.",
    ),
)  # fmt: skip


def is_wanted(options: dict[str, Any]) -> bool:
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


def facts(request: SurveyRequest, options: dict[str, Any]) -> tuple[list[HostFacts], list[str]]:
    """Return the facts about the machines, and what each is; print what is simulated.

    Raises:
        UsageError: The product has no such cluster.
    """
    super_pods = options["super_pods"]
    servers = options["servers"] or super_pods or 1
    found = simulated_cluster.machines(request, servers, super_pods)
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
