"""The facts about hosts and devices as plain data, independent of their sources and their use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hccl_tools.table.format_names import Format


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

    device_id: int
    ips: tuple[str, ...] = ()
    source: str = ""
    super_device_id: int | None = None
    local_id: int | None = None
    levels: tuple[dict[str, Any], ...] = ()
    place: str = ""

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
    server_id_source: str
    product: str
    product_source: str
    devices: tuple[DeviceFacts, ...]
    super_pod_id: str | None = None
    table_format: Format = "1.0"
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    host_ip: str | None = None
    container_ip: str | None = None
    device_port: int | None = None

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
    """

    nodes: tuple[int, ...]
    devices: Mapping[int, DeviceState]
    names: frozenset[str]
    is_local: Callable[[str], bool]
    stated: frozenset[str] = frozenset()
    conf: str = "/etc/hccn.conf"
    problems: tuple[str, ...] = ()
