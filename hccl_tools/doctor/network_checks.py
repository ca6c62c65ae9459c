"""Checks of the devices' network: link, network health, TLS, netdetect, hccn.conf."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import Example, Finding, check
from hccl_tools.host.recognition import same
from hccl_tools.notation.phrases import devices
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.doctor.check_input import Case
    from hccl_tools.doctor.registry import Consequence
    from hccl_tools.host.observation import DeviceObservation

#: No netdetect address is set, so the device has nothing to test.
_UNTESTED = frozenset({"Init", "Detect ip set"})
_HEALTHY = frozenset({"Success", "Unknown"})


def used(case: Case) -> list[DeviceObservation]:
    """Return the devices of the job, all devices without a table."""
    return [one for one in case.seen.devices if not case.devices or one.device in case.devices]


def network_fault(case: Case) -> Consequence | None:
    """Return the consequence of a network fault, if it is less than that of the check.

    The devices of one server, and of one A3 super pod, communicate over HCCS.
    """
    if case.needs_roce is not None:
        return None if case.needs_roce else "note"
    known = PRODUCTS.get(case.product or "")
    return "note" if known is not None and known.super_pods else "may-stop"


def why(case: Case) -> str:
    """Return which jobs need the network of the devices, as the end of a message."""
    if case.needs_roce is None:
        return "; needed by jobs on several hosts"
    if case.needs_roce:
        return ""
    where = "inside one super pod" if case.table is not None and case.table.super_pods else "on one host"
    return f"; this job {where} does not need it"


@check(
    "HCD201",
    "hccn-conf-differs",
    "may-stop",
    remedy="correct address_{device} in hccn.conf; the driver sets it at the next boot",
    source="hccn.conf is applied at boot; EI0014 with a table made from the other source",
    example=Example("file", "/etc/hccn.conf", "address_3=10.9.9.9\n"),
    of_npus=True,
)
def hccn_conf_differs(case: Case) -> Iterator[Finding]:
    """Do hccn_tool and hccn.conf have the same addresses?

    With a table, rule HCC641 asks this.
    """
    for one in case.seen.devices if case.table is None else ():
        now, later = set(map(same, one.ips)), set(map(same, one.configured))
        if now and later and not later <= now:
            yield Finding(
                f"{case.seen.conf} gives device {one.device} {', '.join(one.configured)}, but the device has "
                f"{', '.join(one.ips)}",
                (one.device,),
            )


@check(
    "HCD202",
    "link-down",
    "stops",
    remedy="check the optical module and the cable of each such device: `hccn_tool -i {device} -optical -g`, "
    "`hccn_tool -i {device} -link_stat -g`",
    commands=("hccn_tool -i {device} -optical -g", "hccn_tool -i {device} -link_stat -g"),
    source="hccn_tool -link; HCCL communicates over RoCE between hosts",
    example=Example("tool", "hccn_tool -i 3 -link -g", "link status: DOWN\n"),
    of_npus=True,
)
def link_down(case: Case) -> Iterator[Finding]:
    """Is the network link of every device up?"""
    without = [one for one in used(case) if one.link == "DOWN"]
    if without:
        down = tuple(one.device for one in without)
        since = {one.changed for one in without}
        when = f" since {time}" if len(since) == 1 and (time := since.pop()) else ""
        yield Finding(
            f"the network link of {devices(down)} is DOWN{when}{why(case)}",
            down,
            consequence=network_fault(case),
        )


@check(
    "HCD203",
    "network-unhealthy",
    "may-stop",
    remedy="check that the netdetect address answers: `hccn_tool -i {device} -netdetect -g`, then "
    "`hccn_tool -i {device} -ping -g address ADDRESS`",
    commands=("hccn_tool -i {device} -netdetect -g",),
    source="hccn_tool -net_health",
    example=Example("tool", "hccn_tool -i 3 -net_health -g", "net health status: Socket failed\n"),
    of_npus=True,
)
def network_unhealthy(case: Case) -> Iterator[Finding]:
    """Does every device reach its netdetect address?"""
    for one in used(case):
        if one.link != "DOWN" and one.health and one.health not in _HEALTHY | _UNTESTED:
            yield Finding(
                f'hccn_tool reports the network health of device {one.device} as "{one.health}"{why(case)}',
                (one.device,),
                consequence=network_fault(case),
            )


@check(
    "HCD204",
    "tls-differs",
    "stops",
    remedy="set one value on all devices of the job: `hccn_tool -i {device} -tls -s enable 0` (or 1)",
    source="HCCL requires equal TLS switches on all devices (EI0016), not a certain value",
    example=Example(
        "tool",
        "hccn_tool -i 3 -tls -g",
        "dev_id:3, tls switch[1](0:disable, 1:enable), tls preconfigured[1](0:non-preset, 1:preset), "
        "tls alarm time threshold[60]days\n",
    ),
    of_npus=True,
)
def tls_differs(case: Case) -> Iterator[Finding]:
    """Is the TLS switch equal on all devices?"""
    known = {one.device: one.tls for one in used(case) if one.tls is not None}
    common = Counter(known.values()).most_common(1)
    odd = tuple(device for device, value in known.items() if value != common[0][0])
    if odd:
        words = {0: "off", 1: "on"}
        own = words.get(known[odd[0]], "unknown")
        yield Finding(
            f"TLS is {own} on {devices(odd)} and {words.get(common[0][0])} on the others",
            odd,
            commands=set_tls(odd, common[0][0]),
        )


def set_tls(ids: Iterable[int], value: int) -> tuple[tuple[str, ...], ...]:
    """Return the commands that set the TLS switch of devices to 0 or 1."""
    return tuple(("hccn_tool", "-i", str(device), "-tls", "-s", "enable", str(value)) for device in ids)


@check(
    "HCD205",
    "no-netdetect-address",
    "note",
    remedy="set one, such as the gateway: `hccn_tool -i {device} -netdetect -s address ADDRESS`",
    source="hccn_tool -net_health: Init means that no netdetect address is set, not a fault",
    example=Example("tool", "hccn_tool -i 3 -net_health -g", "net health status: Init\n"),
    of_npus=True,
)
def no_netdetect_address(case: Case) -> Iterator[Finding]:
    """Does every device have an address with which it tests its network?"""
    untested = tuple(one.device for one in used(case) if one.health in _UNTESTED)
    if untested:
        yield Finding(
            f"{devices(untested)} cannot test the network: no netdetect address is set (net_health: Init)",
            untested,
        )


@check(
    "HCD206",
    "speed-differs",
    "slows",
    remedy="check the optical module, the cable, and the switch port of the device: `hccn_tool -i {device} -optical -g`",
    commands=("hccn_tool -i {device} -optical -g",),
    source="hccn_tool -speed; a collective is as fast as its slowest link",
    example=Example("tool", "hccn_tool -i 3 -speed -g", "Speed: 100000 Mb/s\n"),
    of_npus=True,
)
def speed_differs(case: Case) -> Iterator[Finding]:
    """Do the links of all devices have the same speed?"""
    known = {one.device: one.speed for one in used(case) if one.speed and one.link != "DOWN"}
    common = Counter(known.values()).most_common(1)
    slow = tuple(device for device, speed in known.items() if speed < common[0][0])
    if slow:
        speeds = ", ".join(f"{known[device] // 1000} Gb/s" for device in slow[:1])
        yield Finding(
            f"the link of {devices(slow)} has {speeds}, those of the others {common[0][0] // 1000} Gb/s",
            slow,
            consequence="slows" if network_fault(case) is None else "note",
        )


@check(
    "HCD207",
    "packets-faulty",
    "note",
    remedy="ask again later, and check cable and optical module if the number grows: "
    "`hccn_tool -i {device} -stat -g`",
    commands=("hccn_tool -i {device} -stat -g",),
    source="hccn_tool -stat, roce_rx_err_pkt_num; the counter starts at the boot of the device",
    example=Example("tool", "hccn_tool -i 3 -stat -g", "packet statistics:\nroce_rx_err_pkt_num:71\n"),
    of_npus=True,
)
def packets_faulty(case: Case) -> Iterator[Finding]:
    """Have the devices received faulty packets?"""
    faulty = {one.device: one.errors for one in used(case) if one.errors}
    if faulty:
        listed = ", ".join(f"device {device} {number:,}" for device, number in faulty.items())
        yield Finding(f"faulty packets were received since the boot: {listed}", tuple(faulty))
