"""Everything about this host that its entry in a rank table needs, from the sources that know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hccl_tools import products
from hccl_tools.discover import addresses, host, selection, simulated
from hccl_tools.discover.facts import DeviceFacts, HostFacts
from hccl_tools.discover.selection import Selection, Visible, Wanted
from hccl_tools.discover.site import Site
from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.table import Format

#: Names the product where ``--product`` does not.
PRODUCT_VARIABLE = "HCCL_TOOLS_PRODUCT"
_DEFAULT_PRODUCT = "910a"
#: The formats that can be made from what a host tells.
MADE: tuple[Format, ...] = ("1.0", "1.2", "group_list")


class Request(NamedTuple):
    """What the user asked for; None leaves it to the host.

    Attributes:
        wanted: Which devices.
        server_ip: What the table is to call the host.
        product: Whose rules and device ids hold.
        simulate: A machine of :mod:`hccl_tools.discover.simulated` in place of this one.
        prefer: The source to believe where two disagree about an address.
        table_format: What the table is to be; by default what the product takes.
        site: Where to look.
    """

    wanted: Wanted = Wanted()
    server_ip: str | None = None
    product: str | None = None
    simulate: str | None = None
    prefer: str | None = None
    table_format: str | None = None
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
    table_format = _format(request, product)
    in_pod = table_format == "1.2"
    devices, warnings = addresses.find(chosen.ids, request.site, prefer=request.prefer, required=not in_pod)
    super_pod_id = None
    if in_pod:
        from hccl_tools.discover import super_pod  # noqa: PLC0415  (only an A3 pays for it)

        pod = super_pod.find(chosen.ids, request.site)
        devices = [one._replace(super_device_id=pod.super_device_ids[one.device_id]) for one in devices]
        super_pod_id, warnings = pod.super_pod_id, [*warnings, *pod.warnings]
    return HostFacts(
        server_id, server_source, product.name, product_source, tuple(devices), super_pod_id, table_format,
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


def _format(request: Request, product: products.Product) -> Format:
    """Return the format to make.

    Raises:
        UsageError: The product does not take it, or it cannot be made from what can be found out.
    """
    wanted = request.table_format or product.default_format
    if wanted not in product.formats:
        raise UsageError(
            f"{product.name} takes no {wanted} table",
            hint=f"formats of {product.name}: {', '.join(product.formats)}",
        )
    for known in MADE:
        if wanted == known:
            return known
    raise UsageError(f"gen cannot make a {wanted} table", hint=f"it makes {', '.join(MADE)}")


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
    table_format = _format(request, product)
    return HostFacts(
        server_id, source, product.name, "--product" if request.product else "--simulate", devices,
        simulated.super_pod_id(name) if table_format == "1.2" else None, table_format,
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
