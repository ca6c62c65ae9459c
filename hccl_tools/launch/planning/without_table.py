"""Jobs without a rank table: which devices, on which hosts, and which of the hosts this is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.discover.local_addresses import is_local
from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.notation.phrases import count as counted
from hccl_tools.table.addresses import is_loopback, packed

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.visible_devices import VisibleDevices


def hosts(request: LaunchRequest) -> tuple[str, ...]:
    """Return the hosts in rank order: those of ``--ips``, else one name for each of ``--nnodes``."""
    if request.ips:
        if request.node_count not in (None, len(request.ips)):
            raise UsageError(f"--nnodes {request.node_count}, but --ips names {len(request.ips)} machines")
        if len(set(request.ips)) < len(request.ips):
            raise UsageError(f"--ips names a machine twice: {','.join(request.ips)}")
        return request.ips
    count = request.node_count or 1
    return ("localhost",) if count == 1 else tuple(f"node{index}" for index in range(count))


def this_host(names: tuple[str, ...], request: LaunchRequest) -> int:
    """Return the index of this host among the hosts of a job.

    Raises:
        LaunchError: It is not among them, or cannot be told from them.
    """
    if request.node_rank is not None:
        if request.node_rank >= len(names):
            raise UsageError(f"--node-rank {request.node_rank}, but there are {len(names)} machines")
        return request.node_rank
    if len(names) == 1:
        return 0
    if not request.ips:
        raise UsageError(
            f"which of the {len(names)} machines is this?",
            hint="add --node-rank 0 on the first, 1 on the next",
        )
    found = [index for index, name in enumerate(names) if is_local(name) and not is_loopback(name)]
    if len(found) == 1:
        return found[0]
    told = "none" if not found else "more than one"
    raise LaunchError(
        f"{told} of the addresses {', '.join(names)} is this host's",
        hint="say which it is with --node-rank I",
    )


def master(names: tuple[str, ...], request: LaunchRequest) -> str:
    """Return the address where the ranks meet: the first host's.

    Raises:
        UsageError: There are several hosts and nobody said how to reach the first.
    """
    if request.master_address:
        return request.master_address
    if len(names) == 1:
        return "127.0.0.1"
    if packed(names[0]) is None:
        raise UsageError(
            "where do the machines meet?", hint="add --master-addr, the address of the first machine"
        )
    if is_loopback(names[0]):
        raise UsageError(
            f"the machines cannot meet at {names[0]}: on each of them that is itself",
            hint="name the first machine by the address that the others reach it by",
        )
    return names[0]


def devices(request: LaunchRequest, visible: VisibleDevices, host_count: int) -> list[int]:
    """Return the physical devices that the job uses on each host, in rank order.

    Raises:
        UsageError: Nobody said how many, or two options disagree.
        LaunchError: More ranks than visible devices.
    """
    available = visible.chosen
    if request.ranks is not None and request.ranks % host_count:
        raise UsageError(f"{request.ranks} ranks cannot be shared out evenly to {host_count} machines")
    count = request.per_node if request.ranks is None else request.ranks // host_count
    if request.physical is not None:
        return list(request.physical)
    if request.devices is not None:
        ids = listed(request.devices, available)
        if count not in (None, len(ids)):
            raise UsageError(
                f"{counted(count, 'rank')} per machine, but --devices names {len(ids)}",
                hint="leave one out",
            )
        return ids
    if count is None:
        if available and (request.all_visible or not request.cpu):
            return list(available)
        if request.all_visible:
            raise UsageError(
                "--nproc-per-node asks for a rank on each visible device, but no NPU is visible here",
                hint="say how many, or --cpu --nproc-per-node cpu for a rank on each core",
            )
        raise UsageError(
            "how many ranks, and on which devices?",
            hint="name a table (--rank-table FILE), devices (--devices 4-7) or a count (-n 4)",
        )
    if available and count <= len(available):
        return list(available[:count])
    if available and not (request.cpu or request.no_table or request.ignore_visible):
        are = "is" if len(available) == 1 else "are"
        raise LaunchError(
            f"{count} ranks need {count} devices, but {len(available)} {are} visible ({visible.source})",
            hint="ask for fewer, rehearse on the CPU with --cpu, or say --no-table if none is needed",
        )
    return list(range(count))


def listed(text: str, available: tuple[int, ...] | None) -> list[int]:
    """Return the physical devices that ``--devices`` means: it counts within those that are available.

    Raises:
        UsageError: The text cannot be read, or names one that is not there.
    """
    from hccl_tools.notation import device_range  # noqa: PLC0415  (rarely needed)

    limit = len(available) if available else 1024
    beyond = f"name visible devices, counted from 0 to {limit - 1}"
    ids = device_range.parse(text, device_limit=limit, product="this host", beyond=beyond).ids
    return [available[index] for index in ids] if available else list(ids)
