"""What a launch needs from a host with NPUs: product, addresses of devices, a generated table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError, LaunchError
from hccl_tools.host import device_addresses
from hccl_tools.host.recognition import listed_addresses, same
from hccl_tools.host.site_defaults import Site
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.table.model import RankTable


class Addresses(NamedTuple):
    """The actual addresses of this host's devices, by device id, or the reason why they are unknown."""

    known: dict[int, tuple[str, ...]]
    problem: str | None = None

    @property
    def first(self) -> dict[int, str]:
        """One address of each device that has an address."""
        return {device: ips[0] for device, ips in self.known.items() if ips}


def read_addresses(devices: Sequence[int], environ: Mapping[str, str]) -> Addresses:
    """Query the addresses of this host's devices; a failure is recorded, not raised."""
    try:
        found, _warnings = device_addresses.find_addresses(devices, Site(environ), required=False)
    except DiscoveryError as error:
        return Addresses({}, error.message)
    return Addresses({device.device_id: tuple(device.ips) for device in found})


def check_addresses(table: RankTable, server_index: int, real: Addresses) -> None:
    """Check that the addresses of a server's devices in the table are those on this host.

    Raises:
        LaunchError: An address differs; the message names the device and both addresses.
    """
    numbers = table.device_numbers
    wrong = [
        f"device {numbers[row]} has {', '.join(known)}, but the table has {text}"
        for row in table.servers[server_index].rows
        if table.format != "2.0" and (known := real.known.get(numbers[row] or 0))
        for _, text in listed_addresses(table, row)
        if same(text) not in map(same, known)
    ]
    if wrong:
        raise LaunchError(
            f"the table was made for another host: {'; '.join(wrong)}",
            hint="make a new table with `hccl-tools gen`, or use --no-local-check if the table is right",
        )
