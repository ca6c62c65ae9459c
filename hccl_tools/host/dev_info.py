"""Read ports, interfaces and EIDs of a device with the ``hccn_tool`` of Ascend 950.

``hccn_tool -g -dev_info -i N`` prints three tables; N is the logical id. Columns are found by the header. A
row that continues the row above has an empty first column.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.host import hccn_tool
from hccl_tools.host.host_tools import ToolHangsError
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.records import NamedTuple
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.host.site_defaults import Site

#: A column of each table that the other tables do not have.
_MARKS = ("UDie ID", "Interface Name", "EID Index")
_EID = r"(?a)[0-9a-f]{32}"


class Port(NamedTuple):
    """A port of a device: die, number on the die, kind (``UB``, ``ETH``) and link (``UP``, ``DOWN``)."""

    die: int
    number: int
    kind: str
    link: str


class DeviceInfo(NamedTuple):
    """The ports, interface addresses and EIDs of one device as ``hccn_tool`` lists them.

    Attributes:
        eids: 32 lower-case hex digits each.
        problem: Why the tool did not list the device; includes the tool's message, if any.
        worth_asking: Whether to call the tool for further devices; False if it hangs or stays busy.
    """

    ports: tuple[Port, ...] = ()
    ips: tuple[str, ...] = ()
    eids: tuple[str, ...] = ()
    problem: str | None = None
    worth_asking: bool = True


def read(tool: str, logical_id: int, site: Site) -> DeviceInfo:
    """Run the tool for the device with a logical id and parse its output."""
    try:
        answer = hccn_tool.run_hccn_tool([tool, "-g", "-dev_info", "-i", str(logical_id)], site)
    except ToolHangsError as error:
        return DeviceInfo(problem=error.message, worth_asking=False)
    if hccn_tool.is_busy(answer):
        return DeviceInfo(problem=f"hccn_tool stays busy: {answer.summary()}", worth_asking=False)
    found = parse(answer.stdout)
    if answer.status != 0 or not found.eids:
        return DeviceInfo(problem=f"hccn_tool printed {answer.summary()}")
    return found


def parse(text: str) -> DeviceInfo:
    """Parse the three tables; other lines are skipped."""
    ports: list[Port] = []
    ips: list[str] = []
    eids: list[str] = []
    for row in _rows(text):
        if "UDie ID" in row:
            die, port = whole_number(row["UDie ID"]), whole_number(row.get("Port ID", ""))
            if die is not None and port is not None:
                ports.append(Port(die, port, row.get("Port Type", ""), row.get("Link Status", "")))
        elif "IP Address" in row:
            if packed(row["IP Address"]) is not None:
                ips.append(row["IP Address"])
        elif re.fullmatch(_EID, eid := row.get("EID", "").replace(":", "").lower()):
            eids.append(eid)
    return DeviceInfo(tuple(ports), tuple(ips), tuple(eids))


def _rows(text: str) -> Iterator[dict[str, str]]:
    header: list[str] = []
    for line in text.splitlines():
        if not line.strip().startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if any(mark in cells for mark in _MARKS):
            header = cells
        elif len(cells) == len(header):
            yield dict(zip(header, cells))  # noqa: B905  (strict= needs Python 3.10)
