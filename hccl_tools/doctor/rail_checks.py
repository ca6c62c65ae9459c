"""Checks of the devices with one id on all servers (a rail): netmask, gateway and MTU of their network."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from hccl_tools.doctor.ping_results import Endpoint, ways
from hccl_tools.doctor.registry import Consequence, Finding, check
from hccl_tools.doctor.variable_checks import server_here
from hccl_tools.host.observation import ROCE
from hccl_tools.host.recognition import listed_addresses, same
from hccl_tools.notation.phrases import devices
from hccl_tools.table.addresses import packed
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.host.observation import DeviceObservation

    Cases = Mapping[str, Case]
    Rails = Mapping[int, Mapping[str, DeviceObservation]]


def _rails(cases: Cases) -> Rails:
    """Return the devices of the job by id and host, where they communicate over RoCE.

    A device with another address than that of the table is a finding of its own.
    """
    found: dict[int, dict[str, DeviceObservation]] = defaultdict(dict)
    for host, case in cases.items():
        stated = _stated(case)
        for one in case.seen.devices if _uses_roce(case) else ():
            is_other = bool(one.ips) and stated.get(one.device, same(one.ips[0])) not in set(
                map(same, one.ips)
            )
            if (not case.devices or one.device in case.devices) and not is_other:
                found[one.device][host] = one
    return found


def _stated(case: Case) -> dict[int, bytes | str]:
    """Return the first address of each device of a host in the table, by device id."""
    here = server_here(case)
    if case.table is None or here is None:
        return {}
    numbers = case.table.device_numbers
    listed = ((numbers[row], next(listed_addresses(case.table, row), None)) for row in here.rows)
    return {number: same(found[1]) for number, found in listed if number is not None and found is not None}


def _uses_roce(case: Case) -> bool:
    if case.needs_roce is not None:
        return case.needs_roce
    known = PRODUCTS.get(case.product or "")
    return known is None or not known.super_pods


def _odd(
    rails: Rails, value: Callable[[DeviceObservation], str]
) -> Iterator[tuple[str, str, str, list[int]]]:
    """Yield host, value, the usual value and device ids where a device differs from most of its rail."""
    found: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for device, rail in rails.items():
        known = {host: text for host, one in rail.items() if (text := value(one))}
        usual = Counter(known.values()).most_common(1)
        for host, text in known.items():
            if text != usual[0][0]:
                found[host, text, usual[0][0]].append(device)
    for key, ids in found.items():
        yield *key, ids


@check(
    "HCD517",
    "netmask-differs",
    "may-stop",
    remedy="set the netmask of the rail: `hccn_tool -i {device} -ip -s address ADDRESS netmask NETMASK`, and in "
    "/etc/hccn.conf, which the driver applies at the next boot",
    source="hccn_tool -ip; a device sends to addresses outside its netmask through its gateway",
    between=True,
    of_npus=True,
)
def netmask_differs(cases: Cases) -> Iterator[Finding]:
    """Do the devices with one id have the same netmask on all hosts?"""
    for host, mask, usual, ids in _odd(_rails(cases), lambda one: one.netmask or ""):
        has_gateway = all(one.gateway for one in cases[host].seen.devices if one.device in ids)
        consequence: Consequence | None = "note" if has_gateway else None
        yield Finding(
            f"the netmask of {devices(ids)} is {mask}, that of the same devices on other hosts {usual}",
            tuple(ids), hosts=(host,), consequence=consequence,
        )  # fmt: skip


@check(
    "HCD518",
    "no-gateway",
    "may-stop",
    remedy="set the gateway of the device's network: `hccn_tool -i {device} -gateway -s gateway ADDRESS`, and in "
    "/etc/hccn.conf, which the driver applies at the next boot",
    source="hccn_tool -gateway; RoCE packets to another subnet need a gateway",
    between=True,
    of_npus=True,
)
def no_gateway(cases: Cases) -> Iterator[Finding]:
    """Has each device a gateway if the devices with its id on other hosts are in another subnet?

    If the pings of the host are answered, its devices have another route. This is a note then, unless most of the
    others have a gateway, or a ping of the device is lost.
    """
    found: dict[tuple[str, bool], list[int]] = defaultdict(list)
    answered, lost = _answered_and_lost(cases)
    for device, rail in _rails(cases).items():
        for host, one in rail.items():
            others = (peer.ips[0] for other, peer in rail.items() if other != host and peer.ips)
            if one.gateway == "" and any(_is_outside(ip, one) for ip in others):
                is_odd = 2 * sum(bool(peer.gateway) for peer in rail.values()) > len(rail)
                is_lost = host not in answered or Endpoint(host, device) in lost
                found[host, not (is_odd or is_lost)].append(device)
    for (host, is_answered), ids in found.items():
        consequence: Consequence | None = "note" if is_answered else None
        yield Finding(
            f"{devices(ids)} {'has' if len(ids) == 1 else 'have'} no gateway, and the devices with the same id on other "
            f"hosts are in another subnet{'; the pings are answered all the same' if is_answered else ''}",
            tuple(ids), hosts=(host,), consequence=consequence,
        )  # fmt: skip


def _answered_and_lost(cases: Cases) -> tuple[set[str], set[Endpoint]]:
    """Return the hosts of which a ping over RoCE is answered, and the devices of which one is lost."""
    found = [one for one in ways(cases) if one.over == ROCE]
    answered = {one.source.host for one in found if one.received}
    return answered, {end for one in found if not one.received for end in (one.source, one.target)}


def _is_outside(ip: str, own: DeviceObservation) -> bool:
    """Return whether an address is outside the subnet of a device; False if that is not known."""
    there, here, mask = packed(ip), packed(own.ips[0]) if own.ips else None, packed(own.netmask or "")
    if there is None or here is None or mask is None or not len(there) == len(here) == len(mask):
        return False
    return any((a ^ b) & bits for a, b, bits in zip(there, here, mask, strict=True))


@check(
    "HCD519",
    "device-mtu-differs",
    "may-stop",
    remedy="set one MTU on all devices of the rail: `hccn_tool -i {device} -mtu -s size BYTES`, not above that of the "
    "switch ports",
    source="hccn_tool -mtu; RoCE packets above the MTU of the receiver are lost",
    between=True,
    of_npus=True,
)
def device_mtu_differs(cases: Cases) -> Iterator[Finding]:
    """Do the devices with one id have the same MTU on all hosts?"""
    for host, mtu, usual, ids in _odd(_rails(cases), lambda one: str(one.mtu or "")):
        yield Finding(
            f"the MTU of {devices(ids)} is {mtu} bytes, that of the same devices on other hosts {usual}",
            tuple(ids), hosts=(host,),
        )  # fmt: skip


@check(
    "HCD520",
    "gateway-outside-subnet",
    "may-stop",
    remedy="correct gateway or netmask of the device: `hccn_tool -i {device} -gateway -g`, `hccn_tool -i {device} -ip -g`",
    commands=("hccn_tool -i {device} -gateway -g", "hccn_tool -i {device} -ip -g"),
    source="hccn_tool -gateway; a device reaches its gateway only in its own subnet",
    between=True,
    of_npus=True,
)
def gateway_outside_subnet(cases: Cases) -> Iterator[Finding]:
    """Is the gateway of each device in the subnet of the device, and another address than its own?"""
    for device, rail in _rails(cases).items():
        for host, one in rail.items():
            gateway = one.gateway or ""
            if gateway and (_is_outside(gateway, one) or gateway in one.ips):
                where = "its own address" if gateway in one.ips else f"outside its subnet ({one.netmask})"
                message = f"the gateway {gateway} of device {device} ({', '.join(one.ips)}) is {where}"
                yield Finding(message, (device,), hosts=(host,))
