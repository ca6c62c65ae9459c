"""Determine the network levels of Ascend 950 devices from the host's root info, else from ``hccn_tool``.

The driver's tools write the levels to ``/etc/hccl_rootinfo.json``. Without this file the
levels are derived from the EIDs and ports of each device; incomplete or inconsistent EIDs and ports are an
error. If both sources answer, they must agree.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import DiscoveryError, InputError
from hccl_tools.host import dev_info, eid, hccn_tool
from hccl_tools.host.dev_info import DeviceInfo
from hccl_tools.host.facts import DeviceFacts
from hccl_tools.notation import bounded_file
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.host.eid import Eid
    from hccl_tools.host.site_defaults import Site

USUAL_PLACE = "/etc/hccl_rootinfo.json"
#: The source of levels that are not from a root info.
FROM_EIDS = "hccn_tool -dev_info"
#: Bytes.
_LARGEST = 16 << 20
_HOW = f"specify the host's root info with --rootinfo PATH (usually {USUAL_PLACE})"


class RootInfo(NamedTuple):
    """The host's root info.

    Attributes:
        entries: By device id.
        missing: Why an entry is missing.
        topology: The path of the topology file that it names.
    """

    path: str
    entries: dict[int, dict[str, Any]]
    missing: str | None = None
    topology: str | None = None


def find_levels(
    device_ids: Sequence[int], site: Site, *, nodes: Sequence[int], server_id: str, prefer: str | None = None
) -> tuple[list[DeviceFacts], list[str]]:
    """Return devices with their levels, by physical id, and warnings.

    Args:
        device_ids: In the order of the result.
        nodes: All devices of this host or container; the tool uses their indices as ids.
        server_id: The name of layer 0 if the layer consists of this host only.
        prefer: ``rootinfo`` or ``hccn_tool``: the source to use if the sources disagree.

    Raises:
        DiscoveryError: A device has no levels in either source, or the sources disagree.
        InputError: A tool or file that the user specified cannot be used.
    """
    root = load_root_info(site)
    found, warnings = [], []
    for device_id, info in query_devices(device_ids, site, nodes):
        entry = root.entries.get(device_id)
        apart = _apart(entry, info) if entry is not None else ""
        if apart and prefer is None:
            raise DiscoveryError(
                f"the sources disagree about device {device_id}: {root.path} contains the EID {apart}, which "
                "hccn_tool does not list",
                hint="--prefer hccn_tool uses the EIDs of the device, --prefer rootinfo the EIDs of the file",
            )
        if apart:
            warnings.append(f"device {device_id}: hccn_tool does not list the EID {apart} of {root.path}")
        if entry is not None and not (apart and prefer == "hccn_tool"):
            found.append(_from_root_info(device_id, entry, root.path, warnings))
        elif info.problem is not None:
            raise DiscoveryError(
                f"no addresses for device {device_id}: {info.problem}, and {root.path} {root.missing}",
                hint=_HOW,
            )
        else:
            found.append(of_eids(device_id, info, server_id))
    inner = [one.levels[0] for one in found if one.source == FROM_EIDS and one.levels]
    if names := sorted({level["net_instance_id"] for level in inner if level["net_layer"] == 0}):
        warnings.append(
            f"{root.path} {root.missing}: layer 0 is named {', '.join(names)} after the EIDs; hosts in one "
            "chassis must use the same name"
        )
    return found, warnings


def query_devices(
    device_ids: Sequence[int], site: Site, nodes: Sequence[int]
) -> Iterator[tuple[int, DeviceInfo]]:
    """Query ``hccn_tool`` for devices by physical id; an error is part of the result."""
    tool = hccn_tool.find_hccn_tool(site)
    stopped = DeviceInfo(problem=hccn_tool.ABSENT) if tool is None else None
    for device_id in device_ids:
        logical_id = sorted(nodes).index(device_id) if device_id in nodes else device_id
        info = stopped or dev_info.read(tool or "", logical_id, site)
        yield device_id, info
        if not info.worth_asking:
            stopped = info


def load_root_info(site: Site) -> RootInfo:
    """Read the host's root info.

    Raises:
        InputError: The file that the user specified cannot be read or has no devices.
    """
    path = site.rootinfo if site.rootinfo is not None else site.path(USUAL_PLACE)
    topology = None
    try:
        value = json.loads(bounded_file.read(path, _LARGEST))
        ranks = [_checked(rank) for rank in value.get("rank_list", ()) if rank["level_list"]]
        entries = {int(rank["device_id"]): rank for rank in ranks}
        missing = None if entries else "lists no devices"
        topology = value.get("topo_file_path")
    except FileNotFoundError:
        entries, missing = {}, "does not exist"
    except OSError as error:
        entries, missing = {}, f"cannot be read: {error.strerror}"
    except (ValueError, OverflowError, AttributeError, KeyError, TypeError, RecursionError):
        entries, missing = {}, "is not a root info file"
    if missing and site.rootinfo is not None:
        raise InputError(f"--rootinfo {path} {missing}", hint=f"its default path is {USUAL_PLACE}")
    topology = topology if isinstance(topology, str) else None
    return RootInfo(path, entries, missing or "does not list the device", topology)


def _checked(rank: dict[str, Any]) -> dict[str, Any]:
    int(rank.get("local_id", 0))
    addresses = [one for level in rank["level_list"] for one in level["rank_addr_list"]]
    texts = [one[key] for one in addresses for key in ("addr_type", "addr")]
    lists = [one["ports"] for one in addresses]
    numbers = [level["net_layer"] for level in rank["level_list"]]
    kinds = {*map(type, texts)} <= {str} and {*map(type, lists)} <= {list} and {*map(type, numbers)} <= {int}
    if not kinds:
        raise ValueError("an entry of the root info is invalid")
    return rank


def _apart(entry: dict[str, Any], info: DeviceInfo) -> str:
    """Return the first EID of a root info that the tool does not list, or ""."""
    named = (
        address["addr"].lower()
        for level in entry["level_list"]
        for address in level["rank_addr_list"]
        if address["addr_type"] == "EID"
    )
    return next((text for text in named if info.eids and text not in info.eids), "")


def _from_root_info(device_id: int, entry: dict[str, Any], path: str, warnings: list[str]) -> DeviceFacts:
    levels = []
    for level in entry["level_list"]:
        usable = [address for address in level["rank_addr_list"] if address["ports"]]
        if usable:
            levels.append({**level, "rank_addr_list": usable})
        if without := len(level["rank_addr_list"]) - len(usable):
            omitted = "1 address is" if without == 1 else f"{without} addresses are"
            warnings.append(
                f"device {device_id}: {omitted} omitted from layer {level['net_layer']}: {path} "
                "does not list their ports, which a table requires"
            )
    local_id = int(entry.get("local_id", device_id))
    return DeviceFacts(device_id, (), path, local_id=local_id, levels=tuple(levels))


def of_eids(device_id: int, info: DeviceInfo, server_id: str) -> DeviceFacts:
    """Derive a device's levels 0 and 1 from its EIDs and ports.

    Raises:
        DiscoveryError: An EID is unknown, or contradicts the ports or another EID.
    """
    eids = [_decoded(device_id, text) for text in info.eids]
    local_ids = sorted({one.local_id for one in eids})
    if len(local_ids) > 1:
        names = ", ".join(map(str, local_ids))
        raise DiscoveryError(f"the EIDs of device {device_id} belong to several NPUs: {names}", hint=_HOW)
    levels = [_level(layer, device_id, eids, info, server_id) for layer in (0, 1)]
    return DeviceFacts(
        device_id, (), FROM_EIDS, local_id=local_ids[0],
        levels=tuple(level for level in levels if level["rank_addr_list"]),
    )  # fmt: skip


def _decoded(device_id: int, text: str) -> Eid:
    found = eid.read(text)
    if found is None:
        raise DiscoveryError(f"the EID {text} of device {device_id} does not contain a port", hint=_HOW)
    return found


def _level(
    layer: int, device_id: int, eids: Sequence[Eid], info: DeviceInfo, server_id: str
) -> dict[str, Any]:
    """Return one level of a device: the EIDs of a layer with their ports; each die is a plane."""
    links = {(port.die, port.number) for port in info.ports if port.kind == "UB"}
    single = {(one.die, one.port) for one in eids if one.port is not None and one.layer == 0}
    # Ports without an EID of layer 0 lead to other layers.
    reached = links & single if layer == 0 else links - single
    addresses = []
    # The ports of a die have a common EID, too; the guide allows one address per port and layer.
    alone = layer == 0 and bool(single)
    for one in (one for one in eids if one.layer == layer and not (alone and one.port is None)):
        ports = sorted(port for die, port in reached if die == one.die)
        if one.port is not None:
            ports = [one.port] if (one.die, one.port) in links else []
        if not ports:
            name = f"port {one.die}/{one.port}" if one.port is not None else f"ports of die {one.die}"
            raise DiscoveryError(
                f"device {device_id}: the EID {one.text} is for {name}, which hccn_tool does not list",
                hint=_HOW,
            )
        addresses.append(
            {"addr_type": "EID", "addr": one.text, "ports": [f"{one.die}/{port}" for port in ports],
             "plane_id": str(one.die)}
        )  # fmt: skip
    first = eids[0]
    # A host with NPUs 0 to 7 is its own layer 0; the hosts of a larger chassis share a layer 0.
    whole = f"{first.super_pod}_{first.chassis}" if first.local_id >= eid.NPUS_PER_BOARD else server_id
    instance, kind = (whole, "TOPO_FILE_DESC") if layer == 0 else (str(first.super_pod), "CLOS")
    return {
        "net_layer": layer, "net_instance_id": instance, "net_type": kind, "net_attr": "",
        "rank_addr_list": addresses,
    }  # fmt: skip
