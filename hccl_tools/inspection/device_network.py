"""Read link, network health, TLS switch, gateway and netdetect address of devices with ``hccn_tool``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.discover import hccn_tool
from hccl_tools.discover.site import ToolHangsError
from hccl_tools.errors import DiscoveryError
from hccl_tools.inspection.observation import DeviceObservation, Unknown
from hccl_tools.table.addresses import UNSET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.discover.site import Site, ToolOutput

#: Field of a device -> option of hccn_tool, what it is called, and the pattern of its value.
_QUERIES = {
    "link": ("-link", "the link", re.compile(r"^link status\s*:\s*(\S+)", re.MULTILINE)),
    "health": (
        "-net_health",
        "the network health",
        re.compile(r"^net health status\s*:\s*(.+)", re.MULTILINE),
    ),
    "tls": ("-tls", "the TLS switch", re.compile(r"tls switch\[(\d)\]")),
    "gateway": ("-gateway", "the gateway", re.compile(r"^default gateway\s*:\s*([^,\s]+)", re.MULTILINE)),
    "netdetect": (
        "-netdetect",
        "the netdetect address",
        re.compile(r"^netdetect address\s*:\s*(\S+)", re.MULTILINE),
    ),
}
_IN_SUPER_POD = {
    "vnic": ("-vnic", "the vnic address", re.compile(r"^vnic ipaddr\s*:\s*(\S+)", re.MULTILINE)),
}
#: Facts that not every version of the tool gives: nothing is reported where they are missing.
_OPTIONAL = {
    "speed": ("-speed", "the speed", re.compile(r"^Speed\s*:\s*(\d+)", re.MULTILINE)),
    "errors": ("-stat", "the counters", re.compile(r"^roce_rx_err_pkt_num\s*:\s*(\d+)", re.MULTILINE)),
    "netmask": ("-ip", "the netmask", re.compile(r"^netmask\s*:\s*(\S+)", re.MULTILINE)),
    "mtu": ("-mtu", "the MTU", re.compile(r"^.*\bmtu\b\D{0,8}(\d+)", re.MULTILINE | re.IGNORECASE)),
}
#: What is asked of a device whose link is down: when that happened.
_CHANGES = re.compile(r"^\[[^\]]*\]\s+(\S.*?\d{4})\s+LINK DOWN\s*$", re.MULTILINE)
_NO_GATEWAY = "no gateway was preset"


def read_network(
    devices: Sequence[DeviceObservation], site: Site, *, super_pod: bool = False
) -> tuple[list[DeviceObservation], list[Unknown]]:
    """Return devices with what their network says, and what could not be read.

    The tool is not called again once it hangs or stays busy.

    Args:
        super_pod: Whether to query the addresses inside the super pod as well.

    Raises:
        InputError: A tool that the user specified cannot be used.
    """
    tool = hccn_tool.find_hccn_tool(site)
    if tool is None:
        ids = tuple(one.device for one in devices)
        return list(devices), [Unknown("link, TLS switch and network health", hccn_tool.ABSENT, ids)]
    queries = {**_QUERIES, **(_IN_SUPER_POD if super_pod else {}), **_OPTIONAL}
    found, unknown, stopped = [], list[Unknown](), ""
    for one in devices:
        values: dict[str, str | None] = {}
        for field, (option, topic, pattern) in queries.items():
            reason = stopped
            if not stopped:
                value, reason, goes_on = _query([tool, "-i", str(one.device), option, "-g"], pattern, site)
                values[field] = value
                stopped = "" if goes_on else reason
            if reason and field not in _OPTIONAL:
                unknown.append(Unknown(topic, reason, (one.device,)))
        found.append(_with_values(one, values))
        if values.get("link") == "DOWN" and not stopped:
            found[-1] = found[-1]._replace(changed=_last_down(tool, one.device, site))
    return found, unknown


def _last_down(tool: str, device: int, site: Site) -> str | None:
    """Return when the link of a device went down, as the tool prints it; the last change is its first."""
    return _query([tool, "-i", str(device), "-link_stat", "-g"], _CHANGES, site)[0]


def _with_values(one: DeviceObservation, values: dict[str, str | None]) -> DeviceObservation:
    tls, netdetect = values.get("tls"), values.get("netdetect")
    return one._replace(
        link=values.get("link"),
        health=values.get("health"),
        tls=_number(tls),
        speed=_number(values.get("speed")),
        errors=_number(values.get("errors")),
        gateway=values.get("gateway"),
        netdetect="" if netdetect == UNSET else netdetect,
        vnic=values.get("vnic"),
        netmask=values.get("netmask"),
        mtu=_number(values.get("mtu")),
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _query(command: list[str], pattern: re.Pattern[str], site: Site) -> tuple[str | None, str, bool]:
    """Return the value, why there is none, and whether the tool is worth another call."""
    try:
        answer = hccn_tool.run_hccn_tool(command, site)
    except ToolHangsError as error:
        return None, error.message, False
    except DiscoveryError as error:
        return None, error.message, False
    if hccn_tool.is_busy(answer):
        return None, f"hccn_tool stays busy: {answer.summary()}", False
    return _value(answer, pattern)


def _value(answer: ToolOutput, pattern: re.Pattern[str]) -> tuple[str | None, str, bool]:
    if _NO_GATEWAY in answer.stderr + answer.stdout:
        return "", "", True
    match = pattern.search(answer.stdout)
    if match is None or answer.status != 0:
        return None, f"hccn_tool printed {answer.summary()}", True
    return match[1].strip(), "", True
