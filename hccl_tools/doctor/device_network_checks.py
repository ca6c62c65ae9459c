"""Checks of what a device needs before it can communicate: an address, a steady link, a certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.network_checks import network_fault, used, why
from hccl_tools.doctor.registry import Example, Finding, check
from hccl_tools.notation.phrases import count, devices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.check_input import Case

#: The link of a device goes down once or twice in an hour during work on its switch.
_MOST_DOWNS = 2
_NEAR_END, _ENDED = 1, 2


@check(
    "HCD208",
    "device-without-address",
    "stops",
    remedy="set the address: `hccn_tool -i {device} -ip -s address ADDRESS netmask NETMASK`, and in /etc/hccn.conf, "
    "which the driver applies at the next boot",
    source="hccn_tool -ip: no ip was preset; HCCL communicates over RoCE between hosts",
    explains=("HCC643",),
    of_npus=True,
)
def device_without_address(case: Case) -> Iterator[Finding]:
    """Has each device an address, if the job needs its network?"""
    bare = tuple(one.device for one in used(case) if one.is_without_address)
    if bare and case.needs_roce:
        verb, conf = ("has" if len(bare) == 1 else "have"), case.seen.conf
        configured = any(one.configured for one in used(case) if one.device in bare)
        also = f"; {conf} has one" if configured else f", also not in {conf}"
        yield Finding(f"{devices(bare)} {verb} no IP address{also}", bare)


@check(
    "HCD209",
    "link-goes-down",
    "may-stop",
    remedy="check the optical module, the cable and the switch port of the device: `hccn_tool -i {device} -optical -g`, "
    "`hccn_tool -i {device} -link_stat -g`",
    commands=("hccn_tool -i {device} -optical -g", "hccn_tool -i {device} -link_stat -g"),
    source="hccn_tool -link_stat; a connection over RoCE ends when the link goes down",
    example=Example(
        "tool",
        "hccn_tool -i 3 -link_stat -g",
        "[devid 3]current time        : Wed Aug  2 03:09:26 2023\n"
        "[devid 3]link up count       : 40\n"
        "[devid 3]link change records :\n"
        + "".join(
            f"[devid 3]    Wed Aug  2 03:{minute:02}:44 2023    LINK UP\n"
            f"[devid 3]    Wed Aug  2 03:{minute:02}:42 2023    LINK DOWN\n"
            for minute in (8, 6, 3)
        ),
    ),
    of_npus=True,
)
def link_goes_down(case: Case) -> Iterator[Finding]:
    """Has the network link of every device, which is up, been up for an hour?

    A link that went down up to twice is not named. A link that is down is a finding of its own.
    """
    for one in used(case):
        if one.link != "DOWN" and one.downs is not None and one.downs > _MOST_DOWNS:
            last = f", last at {one.changed}" if one.changed else ""
            yield Finding(
                f"the network link of device {one.device} went down {count(one.downs, 'time')} in an hour"
                f"{last}{why(case)}",
                (one.device,),
                consequence=network_fault(case),
            )


@check(
    "HCD210",
    "certificate-expired",
    "stops",
    remedy="renew the certificates of the devices, or switch TLS off on all devices of the job: "
    "`hccn_tool -i {device} -tls -s enable 0`",
    source="hccn_tool -tls: tls expiration status; devices with TLS refuse a certificate that has ended",
    example=Example("observed", "devices", '[{"device": 3, "tls": 1, "expiry": 2}]'),
    of_npus=True,
)
def certificate_expired(case: Case) -> Iterator[Finding]:
    """Are the certificates of the devices valid where TLS is on?

    A certificate that ends soon is a note.
    """
    with_tls = [one for one in used(case) if one.tls]
    ended = tuple(one.device for one in with_tls if one.expiry == _ENDED)
    soon = tuple(one.device for one in with_tls if one.expiry == _NEAR_END)
    if ended:
        yield Finding(f"TLS is on, and the certificate of {devices(ended)} has expired", ended)
    if soon:
        yield Finding(
            f"TLS is on, and the certificate of {devices(soon)} ends soon", soon, consequence="note"
        )
