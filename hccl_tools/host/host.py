"""The address by which other hosts reach this host, and the product of this host."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.host import npu_smi
from hccl_tools.host.host_tools import find_tool, run_tool
from hccl_tools.host.local_addresses import FAR_AWAY, interface_addresses, is_reachable, source_address
from hccl_tools.notation import look_alikes
from hccl_tools.table.addresses import is_host, is_link_local, is_loopback, packed
from hccl_tools.table.products import by_pci_id

if TYPE_CHECKING:
    from hccl_tools.host.site_defaults import Site

_HOW = "specify it with --server_ip ADDRESS (for a single machine: --server_ip 127.0.0.1)"

#: Huawei.
_VENDOR = "0x19e5"
_LINE = r"(?i)Processing accelerators.{0,80}?Huawei.{0,80}?Device\s{1,9}(?P<device>[0-9a-f]{4})"


def own_address() -> tuple[str, str]:
    """Return the address by which this host reaches its network, else its only address, with its source.

    Raises:
        DiscoveryError: This host has no reachable address, or several and no default route.
    """
    for found in map(source_address, FAR_AWAY):
        if found is not None and is_reachable(found):
            return found, "the address by which this host reaches its network"
    found_all = interface_addresses()
    if len(found_all) == 1:
        return found_all[0], "the only address of this host"
    if found_all:
        raise DiscoveryError(
            f"this host has several addresses ({', '.join(found_all)}) and no default route", hint=_HOW
        )
    raise DiscoveryError("this host has no address that other hosts can reach", hint=_HOW)


def stated_address(text: str, option: str = "--server_ip") -> tuple[str, str | None]:
    """Check an address from an option or variable; ``option`` is its name in messages.

    Returns:
        The address, and a warning for a loopback or link-local address, else None.

    Raises:
        UsageError: The text is not the address of one host.
    """
    ip = text.strip()
    raw = None if "%" in ip else packed(ip)
    if raw is None and (typed := look_alikes.mistyped(text)):
        raise UsageError(f"{option}: {typed[0]}", hint=typed[1])
    if raw is None or not is_host(raw):
        raise UsageError(
            f'{option} "{text}" is not an IP address of a host', hint="specify an address such as 10.0.0.1"
        )
    if is_loopback(ip):
        return ip, (
            f"server_id {ip} is valid on this machine only: in a table of several machines, each machine "
            "needs an address that the other machines can reach"
        )
    if is_link_local(raw):
        return ip, f"server_id {ip} is a link-local address: machines on other links cannot reach it"
    return ip, None


def find_product(site: Site) -> tuple[str | None, str]:
    """Return the product of this host and its source, or None and the reason.

    Raises:
        DiscoveryError: A source lists cards of several products.
    """
    by_card = product_of_cards(site)
    if by_card is not None:
        return by_card
    tool = npu_smi.find_npu_smi(site)
    if tool is None:
        return None, "neither lspci nor npu-smi shows the product"
    try:
        chips = npu_smi.chips(tool, site)
    except DiscoveryError as error:
        return None, error.message
    named = npu_smi.product_of_chips(chips)
    if named is None:
        return None, f'npu-smi calls the chips "{chips[0].name}"'
    return named, "npu-smi info -m"


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
