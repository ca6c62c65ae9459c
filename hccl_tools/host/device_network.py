"""Read link, network health, TLS switch, gateway and netdetect address of devices with ``hccn_tool``."""

from __future__ import annotations

import calendar
import re
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import hccn_tool
from hccl_tools.host.observation import DeviceObservation, Unknown
from hccl_tools.table.addresses import UNSET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.host.host_tools import ToolOutput
    from hccl_tools.host.site_defaults import Site

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
    "history": (
        "-link_stat",
        "the history of the link",
        re.compile(r"^\[[^\]\n]*\]current time", re.MULTILINE),
    ),
    "mtu": ("-mtu", "the MTU", re.compile(r"^.*\bmtu\b\D{0,8}(\d+)", re.MULTILINE | re.IGNORECASE)),
}
#: A certificate of TLS that has expired or soon will; the tool prints the worst in an error.
_EXPIRY = re.compile(r"tls expiration status\[(\d)\]")
#: The tool ends with an error once a certificate has expired; the switch is stated all the same.
_STATED_WITH_ERROR = frozenset({"-tls"})
#: The history of a link: the time on the device, and when the link went down.
_NOW = re.compile(r"^\[[^\]\n]*\]current time\s*: (\S.*?\d{4})\s*$", re.MULTILINE)
_DOWN = re.compile(r"^\[[^\]\n]*\][ \t]+(\S.*?\d{4})[ \t]+LINK DOWN[ \t\r]*$", re.MULTILINE)
_HOUR = 3600
_NOT_SET = ("no gateway was preset", "no ip was preset")


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
        printed: dict[str, str] = {}
        for field, (option, topic, pattern) in queries.items():
            answer, reason = None, stopped
            if not stopped:
                answer, reason = _asked([tool, "-i", str(one.device), option, "-g"], site)
                stopped = reason
            if answer is not None and not stopped:
                printed[option] = f"{answer.stderr}\n{answer.stdout}"
                values[field], reason = _value(answer, pattern, with_error=option in _STATED_WITH_ERROR)
            if reason and field not in _OPTIONAL:
                unknown.append(Unknown(topic, reason, (one.device,)))
        expiry = max(map(int, _EXPIRY.findall(printed.get("-tls", ""))), default=None)
        found.append(
            _with_history(_with_values(one, values), printed.get("-link_stat", ""))._replace(expiry=expiry)
        )
    return found, unknown


def _with_history(one: DeviceObservation, text: str) -> DeviceObservation:
    """Return a device with what ``-link_stat`` prints of its link: the last change is the first line."""
    now, downs = _NOW.search(text), _DOWN.findall(text)
    seconds = _seconds(now[1]) if now is not None else None
    if seconds is None:
        return one._replace(changed=downs[0] if downs else None)
    recent = [known for known in map(_seconds, downs) if known is not None and 0 <= seconds - known <= _HOUR]
    return one._replace(changed=downs[0] if downs else None, downs=len(recent))


def _seconds(text: str) -> int | None:
    """Return the seconds of a time such as ``Wed Aug  2 03:09:26 2022``."""
    try:
        return calendar.timegm(time.strptime(text))
    except ValueError:
        return None


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


def _asked(command: list[str], site: Site) -> tuple[ToolOutput | None, str]:
    """Return the answer of the tool, or why it is not worth another call."""
    try:
        answer = hccn_tool.run_hccn_tool(command, site)
    except DiscoveryError as error:
        return None, error.message
    return answer, f"hccn_tool stays busy: {answer.summary()}" if hccn_tool.is_busy(answer) else ""


def _value(answer: ToolOutput, pattern: re.Pattern[str], *, with_error: bool) -> tuple[str | None, str]:
    """Return the value in an answer, ``""`` if none is set, and why there is none.

    Args:
        with_error: Whether a value counts although the tool ends with an error.
    """
    if any(text in answer.stderr + answer.stdout for text in _NOT_SET):
        return "", ""
    match = pattern.search(answer.stdout)
    if match is None or (answer.status != 0 and not with_error):
        return None, f"hccn_tool printed {answer.summary()}"
    return (match[1] if match.re.groups else match[0]).strip(), ""
