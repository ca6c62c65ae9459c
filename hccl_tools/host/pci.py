"""Find the Ascend product of this host by PCI ids: from the kernel's list, else from ``lspci``."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host.host_tools import find_tool, run_tool
from hccl_tools.table.products import by_pci_id

if TYPE_CHECKING:
    from hccl_tools.host.site import Site

#: Huawei.
_VENDOR = "0x19e5"
_LINE = r"(?i)Processing accelerators.{0,80}?Huawei.{0,80}?Device\s{1,9}(?P<device>[0-9a-f]{4})"


def product_of_cards(site: Site) -> tuple[str, str] | None:
    """Return the product and its source (``lspci: device d802``), or None if no known card is found.

    Raises:
        DiscoveryError: This machine has cards of several products.
    """
    source, found = "/sys/bus/pci", _from_kernel(site)
    if not found:
        source, found = "lspci", _from_lspci(site)
    known = {device: product.name for device in found if (product := by_pci_id(device)) is not None}
    if len(set(known.values())) > 1:
        raise DiscoveryError(
            f"{source} lists cards of several products: {', '.join(sorted(known))}",
            hint="specify the product of the table with --product",
        )
    return next(((name, f"{source}: device {device}") for device, name in known.items()), None)


def _from_kernel(site: Site) -> set[str]:
    folder = site.path("/sys/bus/pci/devices")
    try:
        slots = os.listdir(folder)
    except OSError:
        return set()
    cards = (_card(f"{folder}/{slot}") for slot in slots)
    return {device for vendor, device in cards if vendor == _VENDOR and by_pci_id(device)}


def _card(folder: str) -> tuple[str, str]:
    return _id(f"{folder}/vendor"), _id(f"{folder}/device").replace("0x", "", 1)


def _id(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(16).strip().lower()
    except (OSError, UnicodeError):
        return ""


def _from_lspci(site: Site) -> set[str]:
    tool = find_tool(site, "lspci", "/usr/bin/lspci", "/sbin/lspci")
    if tool is None:
        return set()
    try:
        answer = run_tool([tool], site)
    except DiscoveryError:
        # npu-smi is queried next.
        return set()
    devices = (match["device"].lower() for match in re.finditer(_LINE, answer.stdout))
    return {device for device in devices if by_pci_id(device)}
