"""Read the state of this host, for comparison with an existing table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import device_addresses, hccn_conf, visible
from hccl_tools.host.facts import DeviceState, HostState
from hccl_tools.host.levels import query_devices
from hccl_tools.host.local_addresses import is_local
from hccl_tools.host.site_defaults import ADDRESS_VARIABLES
from hccl_tools.host.super_pod import find_super_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.host.site_defaults import Site


def read_host_state(
    device_ids: Iterable[int], site: Site, *, super_pod: bool = False, levels: bool = False
) -> HostState:
    """Return the state of this host and its devices, as far as it can be determined.

    Args:
        device_ids: The physical ids to query if no device nodes exist; otherwise all nodes are queried.
        super_pod: Whether to query the places of the devices in their super pod.
        levels: Whether to query EIDs instead of addresses, for a 2.0 table.

    Raises:
        InputError: A tool or file that the user specified cannot be used.
    """
    nodes = visible.present(site)
    wanted = nodes or tuple(sorted(set(device_ids)))
    problems: list[str] = []
    devices = _levels(wanted, site, nodes) if levels else _addresses(wanted, site, problems)
    pod, sdids = _super_pod(nodes or wanted, site, problems) if super_pod and devices else ("", {})
    for device_id, sdid in sdids.items():
        devices[device_id] = devices[device_id]._replace(super_device_id=sdid)
    stated = frozenset(text for name in ADDRESS_VARIABLES if (text := site.environ.get(name)))
    conf = site.hccn_conf or site.path(hccn_conf.USUAL_PLACE)
    return HostState(nodes, devices, own_names(site), is_local, stated, conf, tuple(problems), pod)


def own_names(site: Site) -> frozenset[str]:
    """Return the names of this host, and that of the pod."""
    name = os.uname().nodename
    return frozenset({name, name.split(".")[0], *filter(None, [site.environ.get("POD_NAME")])})


def _addresses(device_ids: Sequence[int], site: Site, problems: list[str]) -> dict[int, DeviceState]:
    try:
        found, _conf = device_addresses.query_sources(device_ids, site)
    except DiscoveryError as error:
        problems.append(error.message)
        return {device_id: DeviceState(problem=error.message) for device_id in device_ids}
    return {one.device_id: DeviceState(one.tool.ips, one.conf.ips, one.tool.problem) for one in found}


def _levels(device_ids: Sequence[int], site: Site, nodes: Sequence[int]) -> dict[int, DeviceState]:
    found = query_devices(device_ids, site, nodes)
    return {
        device_id: DeviceState((*info.eids, *info.ips), problem=info.problem) for device_id, info in found
    }


def _super_pod(device_ids: Sequence[int], site: Site, problems: list[str]) -> tuple[str, dict[int, int]]:
    """Return the id of the super pod and the SDIDs of the devices, as far as known."""
    try:
        found = find_super_pod(device_ids, site)
    except DiscoveryError as error:
        problems.append(error.message)
        return "", {}
    return found.super_pod_id, dict(found.super_device_ids)
