"""Rules that compare a root info or an endpoint file with the devices of this host (``validate --local``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.formats.endpoint_file import EID_PROTOCOLS, device_of
from hccl_tools.formats.file_kinds import ENDPOINTS, ROOT_INFO
from hccl_tools.notation.phrases import devices as devices_phrase
from hccl_tools.rules import root_info
from hccl_tools.rules.endpoint_files import entries, entry_path
from hccl_tools.rules.registry import Finding, HostFileInput, Input, rule
from hccl_tools.table.addresses import is_eid
from hccl_tools.table.hccl_numbers import read_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path

_ROOT_INFO, _ENDPOINTS = (ROOT_INFO.name,), (ENDPOINTS.name,)


def device_ids(subject: Input) -> list[int]:
    """Return the device ids of a root info, or the one in the name of an endpoint file."""
    if subject.kind is ROOT_INFO:
        numbers = [read_integer(rank["device_id"]) for rank in root_info.devices(subject)]
        return sorted({number for number in numbers if number is not None})
    own = device_of(subject.path) if subject.path is not None else None
    return [] if own is None else [own]


def _eids_of(subject: HostFileInput, device_id: int) -> frozenset[str]:
    """Return the EIDs that hccn_tool lists for a device, in lower case; empty if it lists none."""
    state = subject.host.devices.get(device_id)
    return frozenset(ip.lower() for ip in state.ips if is_eid(ip)) if state is not None else frozenset()


def _absent(subject: HostFileInput, device_id: int, path: Path) -> Iterator[Finding]:
    nodes = subject.host.nodes
    if nodes and device_id not in nodes:
        yield Finding(
            f"there is no device {device_id} here: no /dev/davinci{device_id}",
            path,
            f"this host or container has {devices_phrase(nodes)}; use the file of this host",
        )


@rule(
    "HCC851", "root-info-without-device", "fails-later", formats=_ROOT_INFO, stage="none",
    source="hcomm rank_info_detect_client.cc, GetLocalDevInfoJson",
)  # fmt: skip
def root_info_without_device(subject: Input) -> Iterator[Finding]:
    """A device of this host has no entry, so a rank on it fails. Only with `--local`.

    HCCL logs "no device_id matches devPhyId" and then fails.

    Base: rootinfo
    Example: remove /rank_list/7; /rank_count = 7; host
    Instead: host
    Hint: make the root info again from the devices: `hccl-tools gen --rootinfo-out PATH`
    """
    if not isinstance(subject, HostFileInput):
        return
    listed = device_ids(subject)
    missing = [device_id for device_id in subject.host.nodes if device_id not in listed]
    if missing:
        hint = "make the root info again from the devices: `hccl-tools gen --rootinfo-out PATH`"
        yield Finding(f"no entry for {devices_phrase(missing)} of this host", ("rank_list",), hint)


@rule(
    "HCC852", "root-info-of-other-eids", "fails-later", formats=_ROOT_INFO, stage="none",
    source="hccn_tool -g -dev_info as source of EIDs",
)  # fmt: skip
def root_info_of_other_eids(subject: Input) -> Iterator[Finding]:
    """An EID is not one of the device's, for example in a root info of another host. Only with `--local`.

    Base: rootinfo
    Example: host /devices/1 = "000000000000002000100000dfdf1001"
    Instead: host
    Hint: make the root info again from the devices: `hccl-tools gen --rootinfo-out PATH`
    """
    if not isinstance(subject, HostFileInput):
        return
    for row, rank in enumerate(root_info.devices(subject)):
        number = read_integer(rank["device_id"])
        real = frozenset() if number is None else _eids_of(subject, number)
        for inside, text in root_info.eids(rank):
            if real and text.lower() not in real:
                hint = "make the root info again from the devices: `hccl-tools gen --rootinfo-out PATH`"
                yield Finding(
                    f"device {number} does not have the EID {text}", ("rank_list", row, *inside), hint
                )


@rule(
    "HCC677", "root-info-device-absent", "advice", formats=_ROOT_INFO,
    source="device nodes /dev/davinciN",
)  # fmt: skip
def root_info_device_absent(subject: Input) -> Iterator[Finding]:
    """There is no device with the device_id of an entry here. That is right in a container. Only with `--local`.

    Base: rootinfo
    Example: host remove /devices/7
    Instead: host
    Hint: this host or container has devices 0,1,2,3,4,5,6; use the file of this host
    """
    if isinstance(subject, HostFileInput):
        for row, rank in enumerate(root_info.devices(subject)):
            number = read_integer(rank["device_id"])
            if number is not None:
                yield from _absent(subject, number, ("rank_list", row, "device_id"))


@rule(
    "HCC811", "endpoint-file-of-other-eids", "fails-later", formats=_ENDPOINTS, stage="none",
    source="hccn_tool -g -dev_info as source of EIDs",
)  # fmt: skip
def endpoint_file_of_other_eids(subject: Input) -> Iterator[Finding]:
    """An EID is not one of the device's, for example in a file of another host. Only with `--local`.

    Base: endpoints
    Example: host /devices/0 = "000000000000002000100000dfdf1001"
    Instead: host
    Hint: make the files again on this host: `hccl-tools gen --endpoints DIR`
    """
    if not isinstance(subject, HostFileInput):
        return
    own = device_ids(subject)
    real = _eids_of(subject, own[0]) if own else frozenset()
    for one in entries(subject):
        is_own = one.placement == "device" and one.protocol in EID_PROTOCOLS
        if real and is_own and one.comm_id.lower() not in real:
            hint = "make the files again on this host: `hccl-tools gen --endpoints DIR`"
            message = f"device {own[0]} does not have the EID {one.comm_id}"
            yield Finding(message, entry_path(one, "comm_id"), hint)


@rule(
    "HCC678", "endpoint-file-device-absent", "advice", formats=_ENDPOINTS,
    source="device nodes /dev/davinciN",
)  # fmt: skip
def endpoint_file_device_absent(subject: Input) -> Iterator[Finding]:
    """There is no device with the number in the file name here. That is right in a container. Only with `--local`.

    Base: endpoints
    Example: host remove /devices/0
    Instead: host
    Hint: this host or container has devices 1,2,3,4,5,6,7; use the file of this host
    """
    if not isinstance(subject, HostFileInput):
        return
    for device_id in device_ids(subject):
        yield from _absent(subject, device_id, ())
