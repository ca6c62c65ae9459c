"""Read device addresses from ``hccn.conf``, the file from which the driver sets them at boot.

Lines are ``key_N=value`` in any order; N is a physical id; many keys end in a number (``IPv6address_0``,
``bond_address_0``, ``ip_rule_1``), and ``address_1`` is not ``address_10``. The file may differ
from the current state of the device.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError, InputError
from hccl_tools.host.facts import Reading
from hccl_tools.notation import bounded_file
from hccl_tools.notation.phrases import as_root
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import is_set

if TYPE_CHECKING:
    from hccl_tools.host.site_defaults import Site

USUAL_PLACE = "/etc/hccn.conf"

#: The keys that give a device its address, IPv4 before IPv6.
_ADDRESS_KEYS = ("address", "IPv6address")
_KEY = r"(?P<name>[A-Za-z0-9_]*[A-Za-z_])_(?P<device>[0-9]{1,9})"
#: A file with all keys for 64 devices has 100 kB; a file above this limit is not an hccn.conf.
_MOST_BYTES = 4 << 20


class HccnConf(NamedTuple):
    """The file as read.

    Attributes:
        values: Key and physical id -> value and line number.
        missing: Why the file could not be read, as a phrase; None if it was read.
        remedy: How to make the file readable.
    """

    path: str
    values: dict[tuple[str, int], tuple[str, int]]
    missing: str | None = None
    remedy: str | None = None

    def read(self, device_id: int) -> Reading:
        """Return one device's address; IPv6 if the file has no IPv4 address for it."""
        if self.missing is not None:
            return Reading(self.path, problem=f"{self.path} {self.missing}")
        for name in _ADDRESS_KEYS:
            value, line = self.values.get((name, device_id), ("", 0))
            value = value.split("/", 1)[0]
            if not value:
                continue
            if not is_set(value):
                problem = (
                    f'{self.path} line {line} has "{value}" for {name}_{device_id}, which is not an address'
                )
                return Reading(self.path, problem=problem)
            return Reading(self.path, (value,), place=f"{self.path}:{line}")
        return Reading(self.path, problem=f"{self.path} has no address_{device_id}")


def load(site: Site) -> HccnConf:
    """Read the file that the user specified, else ``/etc/hccn.conf``, which may be missing or unreadable.

    Raises:
        InputError: A file that the user specified cannot be read.
        DiscoveryError: A key occurs twice with different values.
    """
    path = site.hccn_conf if site.hccn_conf is not None else site.path(USUAL_PLACE)
    try:
        raw = bounded_file.read(path, _MOST_BYTES)
    except OSError as error:
        denied = isinstance(error, PermissionError)
        missing = "is not readable by this user" if denied else _absent(error)
        remedy = _remedy(path) if denied else None
        if site.hccn_conf is not None:
            raise InputError(f"--hccn-conf {path} {missing}", hint=remedy) from error
        return HccnConf(path, {}, missing, remedy)
    return HccnConf(path, _parse(raw.decode("utf-8-sig", "backslashreplace"), path))


def _absent(error: OSError) -> str:
    return "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"


def _remedy(path: str) -> str:
    return (
        f"the driver makes {path} readable by root only (640): {as_root('gen ...')}, or copy it as root "
        "and use --hccn-conf COPY"
    )


def _parse(text: str, path: str) -> dict[tuple[str, int], tuple[str, int]]:
    values: dict[tuple[str, int], tuple[str, int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, equals, value = line.partition("=")
        match = re.fullmatch(_KEY, key.strip())
        if not equals or match is None:
            continue
        name, device_id, value = match["name"], int(match["device"]), value.strip()
        before = values.setdefault((name, device_id), (value, number))
        if name in _ADDRESS_KEYS and before[0] != value:
            raise DiscoveryError(
                f'{path} has {name}_{device_id} twice: "{before[0]}" in line {before[1]} and "{value}" in '
                f"line {number}",
                hint=f"check the device: hccn_tool -i {device_id} -ip -g, and remove the wrong line",
            )
    return values
