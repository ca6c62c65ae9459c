"""Collect the facts about this host that its entry in a rank table needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hccl_tools.errors import UsageError
from hccl_tools.host import (
    device_addresses,
    host,
    levels,
    selection,
    simulated,
    simulated_addresses,
    site_defaults,
    super_pod,
    visible,
)
from hccl_tools.host.facts import DeviceFacts, HostFacts
from hccl_tools.host.selection import Selection, Visible, Wanted
from hccl_tools.host.site_defaults import HOST_VARIABLES, Site
from hccl_tools.records import NamedTuple
from hccl_tools.table.product_names import read_name
from hccl_tools.table.products import PRODUCT_VARIABLE, PRODUCTS, default

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.table.format_names import Format
    from hccl_tools.table.products import Product

#: The value of an option for the address in a variable of the platform, else the address of the server.
AUTO = "auto"


class SurveyRequest(NamedTuple):
    """The user's settings for a survey; the host determines the settings that are None.

    Attributes:
        server_ip: The server_id in the table.
        simulate: A machine of :mod:`hccl_tools.host.simulated` to use instead of this host.
        prefer: The source to use if two sources disagree about an address.
        table_format: The format of the table; by default the default format of the product.
        vnic: Whether to use the addresses of the devices inside their super pod.
        host_ip: The host_ip in the table: an address, or ``auto``.
        container_ip: The container_ip in the table: an address, or ``auto``.
        device_port: The device_port of every device in the table.
    """

    wanted: Wanted = Wanted()
    server_ip: str | None = None
    product: str | None = None
    simulate: str | None = None
    prefer: str | None = None
    table_format: str | None = None
    site: Site = Site()
    vnic: bool = False
    host_ip: str | None = None
    container_ip: str | None = None
    device_port: int | None = None


def survey(request: SurveyRequest) -> HostFacts:
    """Check the settings of a request and determine the other settings on this host.

    Raises:
        UsageError: The request contradicts itself or this host.
        DiscoveryError: This host's devices or addresses cannot be determined.
    """
    if request.simulate is not None:
        return _with_extras(_simulated(request, request.simulate), request)
    product, product_source = _product(request)
    seen = selection.visible_devices(request.wanted, request.site, product)
    chosen = selection.select(request.wanted, seen, request.site, product)
    server_id, server_source, server_warnings = _server(request)
    table_format = _format(request, product)
    found = _devices(request, chosen.ids, table_format, server_id)
    facts = HostFacts(
        server_id, server_source, product.name, product_source, tuple(found.devices), found.super_pod_id,
        table_format, notes=(*chosen.notes, *_both_ids(request, chosen.ids)),
        warnings=(*chosen.warnings, *server_warnings, *found.warnings),
    )  # fmt: skip
    return _with_extras(facts, request)


def _both_ids(request: SurveyRequest, ids: Sequence[int]) -> tuple[str, ...]:
    nodes = visible.present(request.site)
    logical = [nodes.index(device_id) for device_id in ids if device_id in nodes]
    if len(logical) < len(ids) or logical == list(ids):
        return ()
    physical, own = (",".join(map(str, each)) for each in (ids, logical))
    return (f"physical devices {physical} are devices {own} for programs in this container",)


class _Found(NamedTuple):
    devices: list[DeviceFacts]
    warnings: list[str]
    super_pod_id: str | None = None


def _devices(request: SurveyRequest, ids: Sequence[int], table_format: Format, server_id: str) -> _Found:
    site, prefer = request.site, request.prefer
    if request.vnic and table_format != "1.2":
        raise UsageError("--vnic requires a 1.2 table (super pod)", hint="omit --vnic")
    if table_format == "2.0":
        nodes = visible.present(site)
        return _Found(*levels.find_levels(ids, site, nodes=nodes, server_id=server_id, prefer=prefer))
    if table_format != "1.2":
        return _Found(*device_addresses.find_addresses(ids, site, prefer=prefer))
    if request.vnic:
        devices, warnings = device_addresses.find_vnic_addresses(ids, site)
    else:
        devices, warnings = device_addresses.find_addresses(ids, site, prefer=prefer, required=False)
    pod = super_pod.find_super_pod(ids, site)
    devices = [one._replace(super_device_id=pod.super_device_ids[one.device_id]) for one in devices]
    return _Found(devices, [*warnings, *pod.warnings], pod.super_pod_id)


def _with_extras(facts: HostFacts, request: SurveyRequest) -> HostFacts:
    """Add the optional facts: the host's and the container's address, the devices' port."""
    extras = {"host_ip": request.host_ip, "container_ip": request.container_ip}
    if facts.table_format == "group_list":
        extras["device_port"] = str(request.device_port or "")
    if facts.table_format in {"2.0", "group_list"} and (extra := next(filter(extras.get, extras), None)):
        raise UsageError(f"a {facts.table_format} table has no {extra}", hint=f"omit {extra}, or use 1.0")
    environ = {} if request.simulate is not None else request.site.environ
    host_ip = _stated(request.host_ip, environ, HOST_VARIABLES, facts.server_id, "--host-ip")
    container_ip = _stated(request.container_ip, environ, ("POD_IP",), facts.server_id, "--container-ip")
    return facts._replace(host_ip=host_ip, container_ip=container_ip, device_port=request.device_port)


def _stated(
    text: str | None, environ: Mapping[str, str], variables: Sequence[str], otherwise: str, option: str
) -> str | None:
    if text != AUTO:
        return None if text is None else host.stated_address(text, option)[0]
    named = next((name for name in variables if environ.get(name)), None)
    return otherwise if named is None else host.stated_address(environ[named], named)[0]


def _product(request: SurveyRequest) -> tuple[Product, str]:
    if request.product is not None:
        return read_name(request.product).product, "--product"
    if named := request.site.environ.get(PRODUCT_VARIABLE):
        source = site_defaults.origin(PRODUCT_VARIABLE, request.site.environ)
        return read_name(named, origin=PRODUCT_VARIABLE).product, source
    found, source = host.find_product(request.site)
    if found is not None:
        return PRODUCTS[found], source
    return default(), f"the default: {source}"


def _format(request: SurveyRequest, product: Product) -> Format:
    wanted = request.table_format or product.default_format
    if wanted not in product.formats:
        raise UsageError(
            f"{product.name} does not use {wanted} tables",
            hint=f"formats of {product.name}: {', '.join(product.formats)}",
        )
    return cast("Format", wanted)


def _server(request: SurveyRequest) -> tuple[str, str, tuple[str, ...]]:
    if request.server_ip is None:
        named = next((name for name in HOST_VARIABLES if request.site.environ.get(name)), None)
        if named is not None:
            # In a pod with its own network, `own_address` would return the address of the pod.
            server_id, warning = host.stated_address(request.site.environ[named], named)
            return server_id, named, (warning,) if warning else ()
        return *host.own_address(), ()
    server_id, warning = host.stated_address(request.server_ip)
    return server_id, "--server_ip", (warning,) if warning else ()


def _simulated(request: SurveyRequest, text: str) -> HostFacts:
    made_up, machine = simulated.parse(text)
    product = read_name(request.product).product if request.product else made_up
    if product.simulated and product is not made_up:
        raise UsageError(
            f"--simulate {text} and --product {product.name} are different machines",
            hint=f"leave --product out, or use --simulate {product.name}",
        )
    server_id, source = (
        simulated_addresses.server_id(machine, of_cluster=":" in text),
        "the simulated machine's",
    )
    if request.server_ip is not None:
        server_id, source = host.stated_address(request.server_ip)[0], "--server_ip"
    there = {one.device_id: one for one in simulated.devices(made_up, machine, server_id)}
    seen = Visible(tuple(there), f"simulated {made_up.name}", stated=False)
    site = request.site._replace(environ={})
    if request.wanted.visible_devices is not None:
        seen = _simulated_visible(request.wanted, there, site, product)
    chosen: Selection = selection.select(request.wanted, seen, site, product)
    devices = tuple(there[device_id] for device_id in chosen.ids)
    table_format = _format(request, product)
    return HostFacts(
        server_id, source, product.name, "--product" if request.product else "--simulate", devices,
        "0" if made_up.super_pods and table_format == "1.2" else None, table_format,
        notes=(
            f"simulated {made_up.name}: the addresses are not real, and the table has no device of this host",
        ),
        warnings=chosen.warnings,
    )  # fmt: skip


def _simulated_visible(
    wanted: Wanted, there: dict[int, DeviceFacts], site: Site, product: Product
) -> Visible:
    everything = Visible(tuple(there), "simulated", stated=False)
    only = Wanted(devices=wanted.visible_devices)
    ids: Sequence[int] = selection.select(only, everything, site, product).ids
    return Visible(tuple(ids), "--visible_devices")
