"""Rules that compare the table's devices with those of this host (``validate --local``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.host.recognition import listed_addresses, same
from hccl_tools.notation.phrases import devices
from hccl_tools.rules.local_servers import GENERATE, rows_here
from hccl_tools.rules.registry import Finding, LocalSubject, rule
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.host.facts import DeviceState

#: The message of hccn_tool for an id that is out of range or not mapped into the container.
_ABSENT = "The device is not exist!"


def is_absent(problem: str | None) -> bool:
    """Return whether a device is not on its host, by what the tool said when it was asked for its address."""
    return _ABSENT in (problem or "")


def _state(subject: LocalSubject, device_id: int) -> DeviceState | None:
    nodes = subject.host.nodes
    return None if nodes and device_id not in nodes else subject.host.devices.get(device_id)


@rule(
    "HCC341",
    "device-not-on-this-host",
    "refused",
    code="EI0014",
    stage="topology",
    source="topoinfo_ranktableConcise.cc:181 (devicePhyId)",
)
def device_not_on_this_host(subject: LocalSubject) -> Iterator[Finding]:
    """A device of this host's server has no /dev/davinciN on this host.

    Every process compares its entry with the physical id of its device, so no process on this host can run
    as the rank of the device. Tables contain physical ids, including tables made in a container.

    Base: 1.0 1x2
    Example: host remove /devices/1
    Instead: host
    Hint: this host has device 0; make a new table on this host: `hccl-tools gen`
    """
    nodes = subject.host.nodes
    absent = {device_id for device_id, one in subject.host.devices.items() if is_absent(one.problem)}
    present = [device_id for device_id in nodes if device_id not in absent]
    have = f"this host has {devices(present)}; " if present else ""
    listed = sorted(device_id for _row, device_id in rows_here(subject))
    if nodes and listed == list(range(len(nodes))) and listed != sorted(nodes):
        have = f"this host has {devices(nodes)}, and the table their logical ids; "
    for row, device_id in rows_here(subject):
        state = subject.host.devices.get(device_id)
        if nodes and device_id not in nodes:
            why = f"no /dev/davinci{device_id}"
        elif state is not None and is_absent(state.problem):
            why = state.problem or ""
        else:
            continue
        lost = f"/dev/davinci{device_id} is there, so the NPU may be lost: see `dmesg`, and restart the host; else "
        yield Finding(
            f"this host has no device {device_id}: {why}",
            subject.device_path(row, "device_id"),
            (lost if device_id in nodes else "") + have + GENERATE,
            devices=(device_id,),
        )


@rule(
    "HCC431",
    "address-not-the-device-s",
    "fails-later",
    code="EI0014",
    stage="none",
    source="HCCL fault guide, EI0014 (inconsistent with the network adapter); ra_rdev_init_check_ip",
)
def address_not_the_device_s(subject: LocalSubject) -> Iterator[Finding]:
    """The address of a device differs from the address in the table.

    The parser accepts any address. HCCL fails later, when it sets up the network and no adapter has the
    address.

    Base: 1.0 1x2
    Example: host /devices/1 = "10.9.9.9"
    Instead: host
    Hint: /etc/hccn.conf has this address, but is out of date; make a new table on this host: `hccl-tools gen`
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
                    f"{subject.host.conf} has this address, but is out of date; "
                    if same(text) in configured
                    else ""
                )
                yield Finding(
                    f'device {device_id} has {", ".join(state.ips)}, not "{text}"',
                    subject.device_path(row) + path,
                    f"{stale}{GENERATE}",
                    devices=(device_id,),
                )


@rule(
    "HCC553",
    "super-device-id-not-the-device-s",
    "refused",
    code="EI0014",
    stage="topology",
    source="hccl_communicator_attrs.cc:199 (the driver's SDID)",
)
def super_device_id_not_the_device_s(subject: LocalSubject) -> Iterator[Finding]:
    """A super_device_id differs from the SDID that the driver reports, for example after a hardware change.

    Base: 1.2 1x2
    Example: host sdid 1 = 77
    Instead: host
    Hint: `npu-smi info -t spod-info` shows the SDID; make a new table on this host: `hccl-tools gen`
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
                f"`npu-smi info -t spod-info` shows the SDID; {GENERATE}",
                devices=(device_id,),
            )


@rule(
    "HCC641", "stale-hccn-conf", "advice", source="observed: one of 32 addresses in hccn.conf was out of date"
)
def stale_hccn_conf(subject: LocalSubject) -> Iterator[Finding]:
    """The address of a device in hccn.conf differs from the current address of the device.

    The driver sets the addresses in hccn.conf at every boot. A table with the current addresses is wrong after
    the next boot; a table made from the file is wrong now.

    Base: 1.0 1x2
    Example: host conf 1 = "10.9.9.9"
    Instead: host
    Hint: correct address_1 in the file; the driver sets it at the next boot
    """
    for row, device_id in rows_here(subject):
        state = _state(subject, device_id)
        if state is None or not state.ips or not state.configured:
            continue
        if not {same(ip) for ip in state.configured} <= {same(ip) for ip in state.ips}:
            old = ", ".join(state.configured)
            yield Finding(
                f"{subject.host.conf} gives device {device_id} {old}, but the device has {', '.join(state.ips)}",
                subject.device_path(row, "device_ip"),
                f"correct address_{device_id} in the file; the driver sets it at the next boot",
                devices=(device_id,),
            )


@rule("HCC643", "not-compared", "advice", source="hccn_tool and npu-smi as sources of addresses")
def not_compared(subject: LocalSubject) -> Iterator[Finding]:
    """A fact about this host is unknown, so the table was not compared with it.

    Base: 1.0 1x2
    Example: host /devices/0 = ""; host is 10.0.0.1
    Instead: host
    Hint: run the check where hccn_tool is on PATH and works, as root if necessary
    """
    silent: dict[str, list[int]] = {}
    for row, device_id in rows_here(subject):
        state = _state(subject, device_id)
        if state is None or state.ips or _ABSENT in (state.problem or ""):
            continue
        if next(listed_addresses(subject.table, row), None) is not None:
            silent.setdefault(state.problem or "the device has no address", []).append(device_id)
    for why, ids in silent.items():
        yield Finding(
            f"the address of {devices(ids)} is not compared: {why}",
            (),
            "run the check where hccn_tool is on PATH and works, as root if necessary",
            devices=tuple(ids),
        )
    for problem in subject.host.problems:
        if problem not in silent:
            yield Finding(f"not compared: {problem}")
