"""The addresses of this host's devices, which a launch compares with its table."""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError, LaunchError
from hccl_tools.host.recognition import listed_addresses, same
from hccl_tools.host.site_defaults import Site
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.table.model import RankTable


class Addresses(NamedTuple):
    """The actual addresses of this host's devices, by device id, or the reason why they are unknown."""

    known: dict[int, tuple[str, ...]]
    problem: str | None = None

    @property
    def first(self) -> dict[int, str]:
        """One address of each device that has an address."""
        return {device: ips[0] for device, ips in self.known.items() if ips}

    def check(self, table: RankTable, server_index: int) -> None:
        """Check that the addresses of a server's devices in the table are those on this host.

        Raises:
            LaunchError: An address differs; the message names the device and both addresses.
        """
        numbers = table.device_numbers
        wrong = [
            f"device {numbers[row]} has {', '.join(known)}, but the table has {text}"
            for row in table.servers[server_index].rows
            if table.format != "2.0" and (known := self.known.get(numbers[row] or 0))
            for _, text in listed_addresses(table, row)
            if same(text) not in map(same, known)
        ]
        if wrong:
            raise LaunchError(
                f"the table was made for another host: {'; '.join(wrong)}",
                hint="make a new table with `hccl-tools gen`, or use --no-local-check if the table is right",
            )


class EarlyAddresses:
    """Reads the addresses of this host's devices in a thread, from when the devices are known.

    A tool is called for each device, one after another, and takes 3 ms each. In that time the main thread
    plans the job and checks this host: the ranks of four devices start 10 ms earlier.
    """

    def __init__(self, nodes: Sequence[int], environ: Mapping[str, str]) -> None:
        self._nodes, self._environ = nodes, environ
        self._unchecked: tuple[RankTable, int] | None = None
        self._devices: list[int] = []
        self._thread: Thread | None = None
        self._found: Addresses | BaseException | None = None
        self._stop: tuple[int, int]  #: The pipe whose write end is closed to end the thread.

    def begin(self, table: RankTable) -> None:
        """Begin with the devices of a table, which need not be right.

        If no thread can be started, ``of`` reads the addresses.
        """
        self._devices = devices_of(table, self._nodes)
        if not self._devices or self._thread is not None:
            return
        self._stop = os.pipe()
        thread = Thread(target=self._read, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            for descriptor in self._stop:
                os.close(descriptor)
        else:
            self._thread = thread

    def of(self, table: RankTable) -> Addresses:
        """Return the addresses of this host's devices in a table when they are known."""
        devices = devices_of(table, self._nodes)
        if self._thread is None or devices != self._devices:
            return read_addresses(devices, self._environ)
        self._thread.join()
        if isinstance(self._found, BaseException):
            raise self._found
        return self._found or Addresses({})

    def check_later(self, table: RankTable, server_index: int) -> None:
        """Let ``check`` compare the addresses of a server in a table."""
        self._unchecked = table, server_index

    def check(self) -> None:
        """Compare what ``check_later`` was called for; see ``Addresses.check``."""
        if self._unchecked is not None:
            table, server_index = self._unchecked
            self.of(table).check(table, server_index)

    def close(self) -> None:
        """End a tool that still runs, whose answer is not needed."""
        if self._thread is not None:
            os.close(self._stop[1])
            self._thread.join()
            os.close(self._stop[0])

    def _read(self) -> None:
        try:
            self._found = read_addresses(self._devices, self._environ, stop=self._stop[0])
        except BaseException as error:  # noqa: BLE001  (raised in the main thread)
            self._found = error


@contextmanager
def compared(
    nodes: Sequence[int], environ: Mapping[str, str], *, wanted: bool
) -> Iterator[EarlyAddresses | None]:
    """Provide the addresses of this host's devices while a job is planned; compare them at the end.

    Args:
        nodes: The ids of this host's device nodes.
        environ: The variables that name its tools.
        wanted: Whether the addresses are to be compared with the table's; if not, None is provided.

    Raises:
        LaunchError: The addresses in the table are those of another host.
    """
    if not wanted:
        yield None
        return
    addresses = EarlyAddresses(nodes, environ)
    try:
        yield addresses
        addresses.check()
    finally:
        addresses.close()


def devices_of(table: RankTable, nodes: Sequence[int]) -> list[int]:
    """Return the devices of this host that a table lists: each costs a call of a tool."""
    listed = {number for number in table.device_numbers if number is not None}
    return [device for device in nodes if device in listed]


def read_addresses(devices: Sequence[int], environ: Mapping[str, str], *, stop: int = -1) -> Addresses:
    """Query the addresses of this host's devices; a failure is recorded, not raised."""
    from hccl_tools.host import device_addresses  # noqa: PLC0415  (0.5 ms; only with NPUs)

    site = Site(environ, stop=stop)
    try:
        found, _warnings = device_addresses.find_addresses(devices, site, required=False)
    except DiscoveryError as error:
        return Addresses({}, error.message)
    return Addresses({device.device_id: tuple(device.ips) for device in found})
