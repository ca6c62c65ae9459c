"""Ping from the devices of this host to devices of other servers, with ``hccn_tool``, one after another."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import hccn_tool
from hccl_tools.host.observation import HCCS, ROCE, PingObservation, Unknown
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hccl_tools.host.observation import DeviceObservation, PingServer
    from hccl_tools.host.site_defaults import Site

#: Seconds that a ping usually takes: three packets.
USUAL_TIME = 3.0
_TOPIC = "the way to devices of other servers over {over}"
_COUNTS = re.compile(r"(\d{1,9}) packets transmitted, (\d{1,9}) received")


class Target(NamedTuple):
    """An address to ping from a device of this host, by physical id."""

    device: int
    address: str


def targets(servers: Sequence[PingServer], own: int, *, every: bool, over: str = ROCE) -> list[Target]:
    """Return what the devices of one server ping.

    Each device pings the device at its place in the next server of the table that it reaches over this
    network, so that each device of the job pings once and is pinged once. Servers of one super pod
    communicate over HCCS, others over RoCE.

    Args:
        own: The index of the server.
        every: Ping all devices of all such servers instead; over HCCS, the other devices of the own server
            as well.
    """
    own_devices = servers[own].devices if every and over == HCCS else ()
    found = [Target(one[0], other[1]) for one in own_devices for other in own_devices if one[0] != other[0]]
    others = list(reached(servers, own, over))
    for place, one in enumerate(servers[own].devices):
        for number in others if every else others[:1]:
            peers = servers[number].devices
            found += [Target(one[0], peer[1]) for peer in (peers if every else peers[place : place + 1])]
    return found


def reached(servers: Sequence[PingServer], own: int, over: str) -> Iterator[int]:
    """Yield the indices of the servers that a server reaches over a network, from the next one on."""
    pod = servers[own].super_pod
    for distance in range(1, len(servers)):
        number = (own + distance) % len(servers)
        if (pod != "" and servers[number].super_pod == pod) == (over == HCCS):
            yield number


def own_server(
    servers: Sequence[PingServer], names: frozenset[str], devices: Sequence[DeviceObservation]
) -> int | None:
    """Return the index of this host's server: by address or name, else by the addresses of its devices."""
    named = [number for number, one in enumerate(servers) if names & set(one.names)]
    if len(named) == 1:
        return named[0]
    ips = {ip for one in devices for ip in one.ips}
    equal = [sum(ip in ips for _device, ip in one.devices) for one in servers]
    best = max(equal, default=0)
    return equal.index(best) if best and equal.count(best) == 1 else None


def read_pings(
    wanted: Sequence[Target], time_limit: float, site: Site, *, over: str = ROCE
) -> tuple[list[PingObservation], list[Unknown]]:
    """Return how many packets came back from each target, and which targets could not be pinged.

    The tool refuses parallel calls, so the time grows with the number of targets.

    Args:
        time_limit: Seconds for all pings; the targets that are left are unknown.

    Raises:
        InputError: A tool that the user specified cannot be used.
    """
    tool = hccn_tool.find_hccn_tool(site)
    if tool is None or not wanted:
        return [], []  # the missing tool is reported with the queries of the network
    found: list[PingObservation] = []
    reasons: dict[str, list[int]] = {}
    deadline, stopped = time.monotonic() + time_limit, ""
    for one in wanted:
        if not stopped and time.monotonic() > deadline:
            stopped = f"not asked within {time_limit:.0f} s"
        if not stopped:
            counts, reason, stopped = _ping([tool, "-i", str(one.device), *_options(one.address, over)], site)
            if counts is not None:
                found.append(PingObservation(one.device, one.address, *counts, over))
                continue
            reasons.setdefault(reason, []).append(one.device)
        else:
            reasons.setdefault(stopped, []).append(one.device)
    return found, [unanswered(over, reason, devices) for reason, devices in reasons.items()]


def unanswered(over: str, reason: str, devices: Iterable[int] = ()) -> Unknown:
    """Return that the way from some devices to those of other servers is unknown, and why."""
    return Unknown(_TOPIC.format(over=over), reason, tuple(dict.fromkeys(devices)))


def _options(address: str, over: str) -> list[str]:
    if over == HCCS:
        return ["-hccs_ping", "-g", "address", address]
    if ":" in address:
        return ["-ping", "-inet6", "-g", "ipv6_address", address]
    return ["-ping", "-g", "address", address]


def _ping(command: list[str], site: Site) -> tuple[tuple[int, int] | None, str, str]:
    """Return packets sent and received, why they are unknown, and why not to call the tool again."""
    try:
        answer = hccn_tool.run_hccn_tool(command, site)
    except DiscoveryError as error:
        return None, error.message, error.message
    if hccn_tool.is_busy(answer):
        reason = f"hccn_tool stays busy: {answer.summary()}"
        return None, reason, reason
    match = _COUNTS.search(answer.stdout)
    if match is None:
        return None, f"hccn_tool printed {answer.summary()}", ""
    return (int(match[1]), int(match[2])), "", ""
