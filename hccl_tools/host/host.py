"""The address by which other hosts reach this host, and the product of this host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError, UsageError
from hccl_tools.host import pci
from hccl_tools.host.local_addresses import FAR_AWAY, interface_addresses, is_reachable, source_address
from hccl_tools.notation import look_alikes
from hccl_tools.table.addresses import is_host, is_link_local, is_loopback, packed

if TYPE_CHECKING:
    from hccl_tools.host.site import Site

_HOW = "specify it with --server_ip ADDRESS (for a single machine: --server_ip 127.0.0.1)"


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
    by_card = pci.product_of_cards(site)
    if by_card is not None:
        return by_card
    from hccl_tools.host import npu_smi  # noqa: PLC0415  (most hosts need lspci alone)

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
