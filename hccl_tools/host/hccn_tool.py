"""Read device addresses with ``hccn_tool``, the program that sets them.

The tool refuses parallel calls with a notice on stdout, so it is called for one device after another.
Notices, usage texts and empty answers are not addresses, regardless of the exit status.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import InputError
from hccl_tools.host import host_tools
from hccl_tools.host.facts import Reading
from hccl_tools.host.host_tools import ToolHangsError, find_tool, run_tool
from hccl_tools.programs.lookup import is_program
from hccl_tools.table.addresses import is_set

if TYPE_CHECKING:
    from hccl_tools.host.host_tools import ToolOutput
    from hccl_tools.host.site_defaults import Site

SOURCE = "hccn_tool"
USUAL_PLACE = "/usr/local/Ascend/driver/tools/hccn_tool"
#: The problem if the tool is missing.
ABSENT = f"no hccn_tool on PATH or at {USUAL_PLACE}"

#: The labels of lines with an address: IPv4, two spellings of IPv6, vnic.
_LABELS = {"ipaddr", "ipv6_address", "ipv6 address", "vnic ipaddr"}
#: Notices: the first on stdout while another call runs, the second on stderr while the device is busy.
_BUSY = ("is busy, please try again", "The cmd line execute timeout!")
_NOT_SET = "no ip was preset"
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0


def find_hccn_tool(site: Site) -> str | None:
    """Return the path of ``hccn_tool``: as specified, on PATH or in the driver's folder, else None.

    Raises:
        InputError: The specified tool does not exist or cannot be executed.
    """
    if site.hccn_tool is not None:
        if not is_program(site.hccn_tool):
            what = "is not executable" if os.path.exists(site.hccn_tool) else "does not exist"
            raise InputError(
                f"--hccn-tool {site.hccn_tool} {what}", hint=f"its default path is {USUAL_PLACE}"
            )
        return os.path.abspath(site.hccn_tool)
    return find_tool(site, "hccn_tool", USUAL_PLACE)


def read_addresses(tool: str, device_id: int, site: Site) -> Reading:
    """Return the addresses of a device by physical id: IPv4, or IPv6 if no IPv4 address is set."""
    try:
        answer = run_hccn_tool([tool, "-i", str(device_id), "-ip", "-g"], site)
        reading = _understand(answer)
        if not reading.ips and _NOT_SET in answer.stderr + answer.stdout:
            six = _understand(run_hccn_tool([tool, "-i", str(device_id), "-ip", "-inet6", "-g"], site))
            return six if six.ips else reading
    except ToolHangsError as error:
        return Reading(SOURCE, problem=error.message, worth_asking=False)
    return reading


def read_vnic(tool: str, device_id: int, site: Site) -> Reading:
    """Return the address of a device inside its super pod; other machines may have the same address."""
    try:
        return _understand(run_hccn_tool([tool, "-i", str(device_id), "-vnic", "-g"], site))._replace(
            source="vnic"
        )
    except ToolHangsError as error:
        return Reading(SOURCE, problem=error.message, worth_asking=False)


def run_hccn_tool(command: list[str], site: Site) -> ToolOutput:
    """Run the tool; retry while it is busy, within the time limit of one call."""
    deadline = time.monotonic() + site.tool_timeout
    pause = _FIRST_WAIT
    while True:
        answer = run_tool(command, site)
        if not is_busy(answer) or time.monotonic() + pause > deadline:
            return answer
        host_tools.wait(pause, site)
        pause = min(2 * pause, _LONGEST_WAIT)


def is_busy(answer: ToolOutput) -> bool:
    """Return whether the tool only reports that it is busy."""
    return any(notice in answer.stdout or notice in answer.stderr for notice in _BUSY)


def _understand(answer: ToolOutput) -> Reading:
    values = addresses(answer.stdout)
    wrong = next((value for value in values if not is_set(value)), None)
    if is_busy(answer):
        return Reading(SOURCE, problem=f"hccn_tool stays busy: {answer.summary()}", worth_asking=False)
    if wrong is not None:
        return Reading(SOURCE, problem=f'hccn_tool printed "{wrong}", which is not an address of a device')
    if answer.status != 0 or not values:
        return Reading(SOURCE, problem=f"hccn_tool printed {answer.summary()}")
    return Reading(SOURCE, tuple(values))


def addresses(stdout: str) -> list[str]:
    r"""Return the values of the address labels, one per port, without a prefix length.

    >>> addresses("ipaddr:10.0.245.11\nnetmask:255.255.255.0\n")
    ['10.0.245.11']
    >>> addresses("ipv6 address: 2001:db8::1/64\n")
    ['2001:db8::1']
    """
    found = []
    for line in stdout.splitlines():
        label, colon, value = line.partition(":")
        if colon and label.strip().lower() in _LABELS:
            found.append(value.strip().split("/", 1)[0])
    return found
