"""The facts about hosts and devices as plain data, free of where they come from and where they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hccl_tools.table.model import Format


class Reading(NamedTuple):
    """What one source says about one device's network addresses.

    Attributes:
        source: The program or file, as a user would type it.
        ips: The addresses, one per port; empty where the source has none.
        problem: Why there is none, in the source's own words where it had any.
        worth_asking: False where asking for further devices is pointless: the tool hangs or stays busy.
        place: File and line, where the source is a file.
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
        source: Which source the addresses are from.
        super_device_id: Its id inside its super pod (SDID), if it is in one; zero is valid.
        local_id: Its number in the topology file, for a 2.0 table.
        levels: Its network levels as a 2.0 table writes them, lowest first.
        place: File and line of its addresses, where they are from a file.
    """

    device_id: int
    ips: tuple[str, ...] = ()
    source: str = ""
    super_device_id: int | None = None
    local_id: int | None = None
    levels: tuple[dict[str, Any], ...] = ()
    place: str = ""

    def told(self) -> str:
        """Return what was found and where, on one line."""
        if self.levels:
            counts = ", ".join(
                f"{len(level['rank_addr_list'])} on layer {level['net_layer']}" for level in self.levels
            )
            return f"device {self.device_id}: addresses: {counts} ({self.source})"
        return f"device {self.device_id}: {','.join(self.ips) or 'no address'} ({self.source})"


class HostFacts(NamedTuple):
    """One host and those of its devices that take part, in rank order.

    Attributes:
        server_id: What the table calls the host: its address.
        server_id_source: Where that is from, as a phrase (``the address on the way to its network``).
        product: A name of :data:`hccl_tools.table.products.PRODUCTS`.
        product_source: Where that is from, as a phrase.
        devices: In rank order.
        super_pod_id: Its super pod, if it is in one; "0" is valid.
        table_format: The format of the table that it is for.
        host_ip: Its address on the host network, where the table is to say it.
        container_ip: The container's address, where the table is to say it.
        device_port: The port of each device, where the table is to say it.
        notes: What was taken from where, one sentence each.
        warnings: What the user should look at, one sentence each.
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

    def told(self) -> list[str]:
        """Return what was found and where, line by line, for the user to read."""
        return [
            f"product {self.product} ({self.product_source})",
            f"server_id {self.server_id} ({self.server_id_source})",
            *self.notes,
            *(device.told() for device in self.devices),
            *([f"super pod {self.super_pod_id}"] if self.super_pod_id is not None else []),
            *(f"warning: {warning}" for warning in self.warnings),
        ]


class DeviceState(NamedTuple):
    """What a device of this host is, whatever a table says about it.

    Attributes:
        ips: The addresses it has now, by ``hccn_tool``; empty where it has none or nobody could say.
        configured: The address that the next boot gives it, by ``hccn.conf``.
        problem: Why ``ips`` is empty, in the source's own words where it had any.
        super_device_id: Its SDID, where it was asked for and is known.
    """

    ips: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    problem: str | None = None
    super_device_id: int | None = None


class HostState(NamedTuple):
    """What this host is, to be held against a table.

    Attributes:
        nodes: The physical ids of its ``/dev/davinciN``, ascending.
        devices: What is known of the devices that were asked for, by physical id.
        names: The names it goes by.
        is_local: Whether an IP address is one of this host's.
        stated: The addresses that platforms state in variables (``MA_CURRENT_HOST_IP`` ...).
        conf: The ``hccn.conf`` that was looked for.
        problems: What else could not be found out, one sentence each.
    """

    nodes: tuple[int, ...]
    devices: Mapping[int, DeviceState]
    names: frozenset[str]
    is_local: Callable[[str], bool]
    stated: frozenset[str] = frozenset()
    conf: str = "/etc/hccn.conf"
    problems: tuple[str, ...] = ()
