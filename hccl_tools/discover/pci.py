"""Which Ascend product is plugged in, by PCI ids: the kernel's own list, else ``lspci``."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hccl_tools.discover.run_tool import run
from hccl_tools.errors import DiscoveryError

if TYPE_CHECKING:
    from hccl_tools.discover.site import Site

#: PCI device ids of vendor 19e5 (Huawei) -> product.
PRODUCTS = {"d801": "910a", "d802": "a2", "d803": "a3", "d806": "a5", "d500": "300i"}
_VENDOR = "0x19e5"
_LINE = re.compile(r"Processing accelerators.*Huawei.*Device\s+(?P<device>[0-9a-f]{4})", re.IGNORECASE)


def product(site: Site) -> tuple[str, str] | None:
    """Return the product and where that is from (``lspci d802``), or None where no known card is seen.

    Raises:
        DiscoveryError: Cards of several products are in this machine.
    """
    source, found = "/sys/bus/pci", _from_kernel(site)
    if not found:
        source, found = "lspci", _from_lspci(site)
    if len(found) > 1:
        raise DiscoveryError(
            f"{source} lists cards of several products: {', '.join(sorted(found))}",
            hint="say which one the table is for with --product",
        )
    return next(((PRODUCTS[device], f"{source}: device {device}") for device in found), None)


def _from_kernel(site: Site) -> set[str]:
    folder = site.path("/sys/bus/pci/devices")
    try:
        slots = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return set()
    cards = (_card(f"{folder}/{slot}") for slot in slots)
    return {device for vendor, device in cards if vendor == _VENDOR and device in PRODUCTS}


def _card(folder: str) -> tuple[str, str]:
    return _id(f"{folder}/vendor"), _id(f"{folder}/device").removeprefix("0x")


def _id(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            return file.read(16).strip().lower()
    except (OSError, UnicodeError):
        return ""


def _from_lspci(site: Site) -> set[str]:
    tool = site.program("lspci", "/usr/bin/lspci", "/sbin/lspci")
    if tool is None:
        return set()
    try:
        answer = run([tool], site)
    except DiscoveryError:
        # One source of several, and not the best: npu-smi is asked next.
        return set()
    devices = (match["device"].lower() for match in _LINE.finditer(answer.stdout))
    return {device for device in devices if device in PRODUCTS}
