"""Simulate a cluster: several machines of one product, in super pods where the product has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.host import simulated
from hccl_tools.host.survey import survey
from hccl_tools.notation.phrases import count
from hccl_tools.table.addresses import SIMULATED_NETWORK

if TYPE_CHECKING:
    from hccl_tools.host.facts import HostFacts
    from hccl_tools.host.survey import SurveyRequest
    from hccl_tools.table.products import Product


def machines(
    request: SurveyRequest, servers: int, super_pods: int | None, *, as_text: bool = False
) -> list[HostFacts]:
    """Return the facts about the machines of a simulated cluster, by server.

    Args:
        request: The settings of every machine; ``simulate`` names the product.
        servers: The number of servers, 1 or more.
        super_pods: The number of super pods that have equally many of them; ``None`` for the product's usual.
        as_text: Whether the servers are in the order of their ids as text, and not in that of their numbers.

    Raises:
        UsageError: The product has no such cluster, or an option is for a single machine.
    """
    text = request.simulate or ""
    product, _machine = simulated.parse(text)
    if ":" in text:
        raise UsageError(
            f"--simulate {text} is one machine of a cluster, and --servers names all",
            hint=f"--simulate {product.name} --servers {servers}",
        )
    if request.server_ip is not None:
        raise UsageError(
            f"--server_ip {request.server_ip} is the address of one machine", hint="leave it out"
        )
    _require(product, servers, super_pods)
    each = servers // (super_pods or 1)
    numbers = sorted(range(1, servers + 1), key=str) if as_text else range(1, servers + 1)
    return [_machine_of(request, product, number, place // each) for place, number in enumerate(numbers)]


def _require(product: Product, servers: int, super_pods: int | None) -> None:
    if servers > 1 and product.single_server:
        raise UsageError(
            f"{product.title} has no clusters: the guide allows one machine", hint="leave --servers out"
        )
    if servers > simulated.MOST_MACHINES:
        raise UsageError(
            f"--servers {servers}: at most {simulated.MOST_MACHINES} machines can be simulated",
            hint=f"use --servers {simulated.MOST_MACHINES} or less",
        )
    if super_pods is None:
        return
    if not product.super_pods:
        raise UsageError(
            f"{product.title} has no super pods in its tables", hint="leave --super-pods out, or use a3"
        )
    if servers % super_pods:
        raise UsageError(
            f"{count(servers, 'server')} cannot be divided evenly among {count(super_pods, 'super pod')}",
            hint=f"for example --servers {super_pods * (servers // super_pods + 1)}",
        )


def _machine_of(request: SurveyRequest, product: Product, number: int, pod: int) -> HostFacts:
    address = SIMULATED_NETWORK + str(number)
    found = survey(request._replace(simulate=f"{product.name}:{number}", server_ip=address))
    found = found._replace(server_id_source="the simulated machine's")
    if found.super_pod_id is None:
        return found
    return found._replace(super_pod_id=str(pod))
