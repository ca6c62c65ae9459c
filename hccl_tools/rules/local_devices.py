"""The table's devices against those of the host it is checked on (``validate --local``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.discover.recognition import listed_addresses, same
from hccl_tools.notation.phrases import devices
from hccl_tools.rules.local_host import ANEW, rows_here
from hccl_tools.rules.registry import LOCAL, Finding, Subject, rule
from hccl_tools.table.model import read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.discover.facts import DeviceState

#: What hccn_tool says to an id that is out of range or not mapped into the container.
_ABSENT = "The device is not exist!"


def _state(subject: Subject, device_id: int) -> DeviceState | None:
    """Return what is known of a device, ``None`` where it is not on this host at all."""
    nodes = subject.host.nodes
    return None if nodes and device_id not in nodes else subject.host.devices.get(device_id)


@rule(
    "HCC341",
    "device-not-on-this-host",
    "refused",
    code="EI0014",
    formats=LOCAL,
    stage="topology",
    source="topoinfo_ranktableConcise.cc:181 (devicePhyId)",
)
def device_not_on_this_host(subject: Subject) -> Iterator[Finding]:
    """A device of this host's server has no /dev/davinciN here.

    Every process compares its own entry with the physical id of the device it runs on, so no process on this
    host can be that rank. In a container the table still names physical ids.

    Base: 1.0 1x2
    Example: host remove /devices/1
    Instead: host
    Hint: this host has device 0; make the table anew on this host: `hccl-tools gen`
    """
    nodes = subject.host.nodes
    have = f"this host has {devices(nodes)}; " if nodes else ""
    for row, device_id in rows_here(subject):
        state = subject.host.devices.get(device_id)
        if nodes and device_id not in nodes:
            why = f"no /dev/davinci{device_id}"
        elif state is not None and _ABSENT in (state.problem or ""):
            why = state.problem or ""
        else:
            continue
        yield Finding(
            f"there is no device {device_id} here: {why}",
            subject.device_path(row, "device_id"),
            have + ANEW,
        )


@rule(
    "HCC431",
    "address-not-the-device-s",
    "fails-later",
    code="EI0014",
    formats=LOCAL,
    stage="none",
    source="HCCL fault guide, EI0014 (inconsistent with the network adapter); ra_rdev_init_check_ip",
)
def address_not_the_device_s(subject: Subject) -> Iterator[Finding]:
    """A device has another address than the table says.

    The parser takes any address; when the network is set up HCCL finds that the adapter has none like it.

    Base: 1.0 1x2
    Example: host /devices/1 = "10.9.9.9"
    Instead: host
    Hint: /etc/hccn.conf has it, but is out of date; make the table anew on this host: `hccl-tools gen`
    """
    for row, device_id in rows_here(subject):
        state = _state(subject, device_id)
        if state is None or not state.ips:
            continue
        real = {same(ip) for ip in state.ips}
        configured = {same(ip) for ip in state.configured}
        for path, text in listed_addresses(subject.table, row):
            if same(text) not in real:
                stale = (
                    f"{subject.host.conf} has it, but is out of date; " if same(text) in configured else ""
                )
                yield Finding(
                    f'device {device_id} has {", ".join(state.ips)}, not "{text}"',
                    subject.device_path(row) + path,
                    f"{stale}{ANEW}",
                )


@rule(
    "HCC553",
    "super-device-id-not-the-device-s",
    "refused",
    code="EI0014",
    formats=LOCAL,
    stage="topology",
    source="hccl_communicator_attrs.cc:199 (the driver's SDID)",
)
def super_device_id_not_the_device_s(subject: Subject) -> Iterator[Finding]:
    """A device's super_device_id is not the one that its driver has (its SDID): seen after hardware was swapped.

    Base: 1.2 1x2
    Example: host sdid 1 = 77
    Instead: host
    Hint: `npu-smi info -t spod-info` shows it; make the table anew on this host: `hccl-tools gen`
    """
    column = subject.table.columns.get("super_device_id")
    for row, device_id in rows_here(subject) if column else ():
        state = _state(subject, device_id)
        text = column[row] if column else None
        if state is None or state.super_device_id is None or not isinstance(text, str):
            continue
        if read_uint(text) != state.super_device_id:
            yield Finding(
                f'device {device_id} has the super_device_id {state.super_device_id}, not "{text}"',
                subject.device_path(row, "super_device_id"),
                f"`npu-smi info -t spod-info` shows it; {ANEW}",
            )


@rule(
    "HCC641",
    "stale-hccn-conf",
    "advice",
    formats=LOCAL,
    stage="none",
    source="users' machines: one address of 32 in hccn.conf was out of date",
)
def stale_hccn_conf(subject: Subject) -> Iterator[Finding]:
    """hccn.conf gives a device another address than it has now.

    The driver sets the addresses of that file at every boot: the table is right until then, or was made from
    the file and is wrong already.

    Base: 1.0 1x2
    Example: host conf 1 = "10.9.9.9"
    Instead: host
    Hint: correct address_1 there: the next boot sets it
    """
    for row, device_id in rows_here(subject):
        state = _state(subject, device_id)
        if state is None or not state.ips or not state.configured:
            continue
        if not {same(ip) for ip in state.configured} <= {same(ip) for ip in state.ips}:
            old = ", ".join(state.configured)
            yield Finding(
                f"{subject.host.conf} gives device {device_id} {old}, but it has {', '.join(state.ips)}",
                subject.device_path(row, "device_ip"),
                f"correct address_{device_id} there: the next boot sets it",
            )


@rule(
    "HCC643",
    "not-compared",
    "advice",
    formats=LOCAL,
    stage="none",
    source="the sources of addresses: hccn_tool, npu-smi",
)
def not_compared(subject: Subject) -> Iterator[Finding]:
    """Something of this host could not be found out, and so was not held against the table.

    Base: 1.0 1x2
    Example: host /devices/0 = ""; host is 10.0.0.1
    Instead: host
    Hint: run it where hccn_tool is on PATH and answers; as root if it says so
    """
    silent: dict[str, list[int]] = {}
    for row, device_id in rows_here(subject):
        state = _state(subject, device_id)
        if state is None or state.ips or _ABSENT in (state.problem or ""):
            continue
        if next(listed_addresses(subject.table, row), None) is not None:
            silent.setdefault(state.problem or "it has none", []).append(device_id)
    for why, ids in silent.items():
        yield Finding(
            f"the address of {devices(ids)} is not compared: {why}",
            (),
            "run it where hccn_tool is on PATH and answers; as root if it says so",
        )
    for problem in subject.host.problems:
        if problem not in silent:
            yield Finding(f"not compared: {problem}")
