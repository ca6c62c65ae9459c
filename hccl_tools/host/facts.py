"""The facts about hosts and devices as plain data, independent of their sources and their use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.codec import shown
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import is_host, packed
from hccl_tools.table.format_names import Format  # noqa: TC001  (the codec reads annotations)
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hccl_tools.records import Count, OsText, Port


class Reading(NamedTuple):
    """The network addresses of one device in one source.

    Attributes:
        source: The program or file, as a user would type it.
        ips: One address per port.
        problem: Why the source has no address; includes the source's message, if any.
        worth_asking: Whether to call the tool for further devices; False if it hangs or stays busy.
        place: File and line, if the source is a file.
    """

    source: str
    ips: tuple[str, ...] = ()
    problem: str | None = None
    worth_asking: bool = True
    place: str = ""


if TYPE_CHECKING:
    LevelFields = dict[str, Any]
else:
    #: What the codec reads in place of levels: they are decoded apart, as ``Level``.
    LevelFields = "Mapping[str, str]"


class LevelAddress(NamedTuple):
    """An address on a network level, with the ports that have it."""

    addr_type: str
    addr: str
    ports: tuple[str, ...]
    plane_id: str | None = None


class Level(NamedTuple):
    """A network level of a device, as another host sends it."""

    net_layer: Count
    rank_addr_list: tuple[LevelAddress, ...]
    net_instance_id: str
    net_type: str | None = None
    net_attr: str | None = None


class DeviceFacts(NamedTuple):
    """One device of a host.

    Attributes:
        device_id: The physical id, as in ``/dev/davinciN``.
        ips: One address per port.
        source: The source of the addresses.
        super_device_id: The SDID, for a device in a super pod; zero is valid.
        local_id: The number in the topology file, for a 2.0 table.
        levels: The network levels as in a 2.0 table, lowest first.
        place: File and line of the addresses, if the source is a file.
    """

    device_id: Count
    ips: tuple[str, ...] = ()
    source: OsText = ""
    super_device_id: int | None = None
    local_id: int | None = None
    levels: tuple[LevelFields, ...] = ()
    place: OsText = ""

    def check(self) -> str:
        """Return what is wrong with a device that another host has sent, "" for nothing."""
        wrong = next((ip for ip in self.ips if packed(ip) is None), None)
        return "" if wrong is None else f"ips: {shown(wrong)} is not an address"

    def summary(self) -> str:
        """Return the addresses and their source, on one line."""
        if self.levels:
            counts = ", ".join(
                f"{len(level['rank_addr_list'])} on layer {level['net_layer']}" for level in self.levels
            )
            return f"device {self.device_id}: addresses: {counts} ({self.source})"
        return f"device {self.device_id}: {','.join(self.ips) or 'no address'} ({self.source})"


class HostFacts(NamedTuple):
    """A host and the devices that it contributes to a table.

    Attributes:
        server_id: The host's id in the table: its address.
        server_id_source: A phrase (``the address by which this host reaches its network``).
        product: A name of :data:`hccl_tools.table.products.PRODUCTS`.
        product_source: The source of the product, as a phrase.
        devices: In rank order.
        super_pod_id: Set for a host in a super pod; "0" is valid.
        host_ip: The address on the host network, if the table includes it.
        container_ip: The address of the container, if the table includes it.
        device_port: The port of each device, if the table includes it.
        notes: The choices made and their sources, one sentence each.
        warnings: What the user should check, one sentence each.
    """

    server_id: str
    server_id_source: OsText
    product: str
    product_source: OsText
    devices: tuple[DeviceFacts, ...]
    super_pod_id: str | None = None
    table_format: Format = "1.0"
    notes: tuple[OsText, ...] = ()
    warnings: tuple[OsText, ...] = ()
    host_ip: str | None = None
    container_ip: str | None = None
    device_port: Port | None = None

    def check(self) -> str:
        """Return what is wrong with facts that another host has sent, "" for nothing."""
        for name in ("server_id", "host_ip", "container_ip"):
            text = getattr(self, name)
            raw = None if text is None or "%" in text or "\0" in text else packed(text)
            if text is not None and (raw is None or not is_host(raw)):
                return f"{name}: {shown(text)} is not the address of a host"
        return "" if self.product in PRODUCTS else f"product: {shown(self.product)} is not known"

    def summary(self) -> list[str]:
        """Return the facts and their sources as lines for the user."""
        return [
            f"product {self.product} ({self.product_source})",
            f"server_id {self.server_id} ({self.server_id_source})",
            *self.notes,
            *(device.summary() for device in self.devices),
            *([f"super pod {self.super_pod_id}"] if self.super_pod_id is not None else []),
            *(f"warning: {warning}" for warning in self.warnings),
        ]


class DeviceState(NamedTuple):
    """The state of a device of this host, independent of a table.

    Attributes:
        ips: The current addresses, from ``hccn_tool``.
        configured: The address after the next boot, from ``hccn.conf``.
        problem: Why ``ips`` is empty; includes the source's message, if any.
        super_device_id: The SDID, if requested and known.
    """

    ips: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    problem: str | None = None
    super_device_id: int | None = None


class HostState(NamedTuple):
    """The state of this host, for comparison with a table.

    Attributes:
        nodes: The physical ids of the device nodes (``/dev/davinciN``), ascending.
        devices: The state of the requested devices, by physical id.
        is_local: Returns whether an IP address belongs to this host.
        stated: The host's addresses in variables of the platform (``MA_CURRENT_HOST_IP`` ...).
        conf: The path of ``hccn.conf``.
        problems: Other facts that could not be determined, one sentence each.
        super_pod: The id of the super pod in which the driver sees the devices; empty if unknown.
    """

    nodes: tuple[int, ...]
    devices: Mapping[int, DeviceState]
    names: frozenset[str]
    is_local: Callable[[str], bool]
    stated: frozenset[str] = frozenset()
    conf: str = "/etc/hccn.conf"
    problems: tuple[str, ...] = ()
    super_pod: str = ""
