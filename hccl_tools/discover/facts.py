"""The facts about hosts and devices as plain data, independent of their sources and their use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hccl_tools.table.model import Format


class Reading(NamedTuple):
    """The network addresses of one device in one source.

    Attributes:
        source: The program or file, as a user would type it.
        ips: The addresses, one per port; empty where the source has none.
        problem: Why there is none, with the source's own message if it has one.
        worth_asking: False if the tool hangs or stays busy: it is not called for further devices.
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
        ips: Its addresses, one per port; empty where it has none.
        source: The source of the addresses.
        super_device_id: Its id inside its super pod (SDID), if it is in one; zero is valid.
        local_id: Its number in the topology file, for a 2.0 table.
        levels: Its network levels as a 2.0 table writes them, lowest first.
        place: File and line of its addresses, if they are from a file.
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
        server_id: Its id in the table: its address.
        server_id_source: The source of that, as a phrase (``the address by which it reaches its network``).
        product: A name of :data:`hccl_tools.table.products.PRODUCTS`.
        product_source: The source of that, as a phrase.
        devices: In rank order.
        super_pod_id: Its super pod, if it is in one; "0" is valid.
        table_format: The format of the table.
        host_ip: Its address on the host network, if the table is to have it.
        container_ip: The container's address, if the table is to have it.
        device_port: The port of each device, if the table is to have it.
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
        ips: The addresses it has now, by ``hccn_tool``; empty if it has none or they are unknown.
        configured: The address that the next boot gives it, by ``hccn.conf``.
        problem: Why ``ips`` is empty, with the source's own message if it has one.
        super_device_id: Its SDID, if it was requested and is known.
    """

    ips: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    problem: str | None = None
    super_device_id: int | None = None


class HostState(NamedTuple):
    """The state of this host, to be compared with a table.

    Attributes:
        nodes: The physical ids of its ``/dev/davinciN``, ascending.
        devices: The state of the requested devices, by physical id.
        names: Its host names.
        is_local: Whether an IP address is one of this host's.
        stated: Its addresses in variables of the platform (``MA_CURRENT_HOST_IP`` ...).
        conf: The path of its ``hccn.conf``.
        problems: What else could not be determined, one sentence each.
    """

    nodes: tuple[int, ...]
    devices: Mapping[int, DeviceState]
    names: frozenset[str]
    is_local: Callable[[str], bool]
    stated: frozenset[str] = frozenset()
    conf: str = "/etc/hccn.conf"
    problems: tuple[str, ...] = ()
