"""Everything about this host that its entry in a rank table needs, from the sources that know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hccl_tools import products
from hccl_tools.discover import addresses, host, selection, simulated
from hccl_tools.discover.facts import DeviceFacts, HostFacts
from hccl_tools.discover.selection import Selection, Visible, Wanted
from hccl_tools.discover.site import Site

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Names the product where ``--product`` does not.
PRODUCT_VARIABLE = "HCCL_TOOLS_PRODUCT"
_DEFAULT_PRODUCT = "910a"


class Request(NamedTuple):
    """What the user asked for; None leaves it to the host.

    Attributes:
        wanted: Which devices.
        server_ip: What the table is to call the host.
        product: Whose rules and device ids hold.
        simulate: A machine of :mod:`hccl_tools.discover.simulated` in place of this one.
        prefer: The source to believe where two disagree about an address.
        site: Where to look.
    """

    wanted: Wanted = Wanted()
    server_ip: str | None = None
    product: str | None = None
    simulate: str | None = None
    prefer: str | None = None
    site: Site = Site()


def survey(request: Request) -> HostFacts:
    """Find out what the request leaves open, and check what it states.

    Raises:
        UsageError: The request contradicts itself or this host.
        DiscoveryError: This host's devices or addresses cannot be found out.
    """
    if request.simulate is not None:
        return _simulated(request, request.simulate)
    product, product_source = _product(request)
    seen = selection.visible_devices(request.wanted, request.site, product)
    chosen = selection.select(request.wanted, seen, request.site, product)
    server_id, server_source, said = _server(request)
    devices, warnings = addresses.find(chosen.ids, request.site, prefer=request.prefer)
    return HostFacts(
        server_id, server_source, product.name, product_source, tuple(devices),
        notes=chosen.notes, warnings=(*chosen.warnings, *said, *warnings),
    )  # fmt: skip


def _product(request: Request) -> tuple[products.Product, str]:
    if request.product is not None:
        return products.by_name(request.product), "--product"
    if named := request.site.environ.get(PRODUCT_VARIABLE):
        return products.by_name(named), PRODUCT_VARIABLE
    found, source = host.product(request.site)
    if found is not None:
        return products.by_name(found), source
    return products.by_name(_DEFAULT_PRODUCT), f"the default: {source}"


def _server(request: Request) -> tuple[str, str, tuple[str, ...]]:
    if request.server_ip is None:
        return *host.own_address(), ()
    server_id, said = host.stated_address(request.server_ip)
    return server_id, "--server_ip", (said,) if said else ()


def _simulated(request: Request, text: str) -> HostFacts:
    name, machine = simulated.parse(text)
    product = products.by_name(request.product or name)
    there = {device.device_id: device for device in simulated.devices(name, machine)}
    seen = Visible(tuple(there), f"simulated {name}", stated=False)
    site = request.site._replace(environ={})
    if request.wanted.visible_devices is not None:
        seen = _simulated_visible(request.wanted, there, site, product)
    chosen: Selection = selection.select(request.wanted, seen, site, product)
    devices = tuple(there[device_id] for device_id in chosen.ids)
    server_id, source = simulated.server_id(machine), "the simulated machine's"
    if request.server_ip is not None:
        server_id, source = host.stated_address(request.server_ip)[0], "--server_ip"
    return HostFacts(
        server_id, source, product.name, "--product" if request.product else "--simulate", devices,
        super_pod_id=simulated.super_pod_id(name),
        notes=(f"simulated {name}: the addresses are made up, no device of this host is in the table",),
        warnings=chosen.warnings,
    )  # fmt: skip


def _simulated_visible(
    wanted: Wanted, there: dict[int, DeviceFacts], site: Site, product: products.Product
) -> Visible:
    everything = Visible(tuple(there), "simulated", stated=False)
    only = Wanted(devices=wanted.visible_devices)
    ids: Sequence[int] = selection.select(only, everything, site, product).ids
    return Visible(tuple(ids), "--visible_devices")
