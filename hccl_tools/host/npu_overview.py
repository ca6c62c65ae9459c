"""Read health, processes, driver and firmware of the NPUs with ``npu-smi info`` and its board query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host import npu_smi
from hccl_tools.host.host_tools import ToolHangsError, run_tool
from hccl_tools.host.observation import DeviceProcess, NpuObservation, Unknown
from hccl_tools.notation.whole_number import whole_number

if TYPE_CHECKING:
    from hccl_tools.host.site_defaults import Site

_ABSENT = f"no npu-smi on PATH or at {npu_smi.USUAL_PLACE}"
#: The PCI address in the second line of a chip; the first line has its health there.
_BUS = re.compile(r"[0-9A-Fa-f]+(:[0-9A-Fa-f]+)+(\.[0-9A-Fa-f]+)?|NA")
_TOPIC = "health, processes, driver and firmware of the NPUs"


def read_npus(site: Site) -> tuple[list[NpuObservation], list[DeviceProcess], list[Unknown]]:
    """Return the chips, the processes on them, and what could not be read."""
    tool = npu_smi.find_npu_smi(site)
    if tool is None:
        return [], [], [Unknown(_TOPIC, _ABSENT)]
    try:
        answer = run_tool([tool, "info"], site)
        chips, processes = parse_overview(answer.stdout)
        if answer.status != 0 or not chips:
            return [], [], [Unknown(_TOPIC, f"`npu-smi info` printed {answer.summary()}")]
        boards = {npu: _board(tool, npu, site) for npu in sorted({one.npu for one in chips})}
    except ToolHangsError as error:
        return [], [], [Unknown(_TOPIC, error.message)]
    except DiscoveryError as error:
        return [], [], [Unknown(_TOPIC, error.message)]
    found = [
        one._replace(
            driver=boards[one.npu].get("Software Version"),
            firmware=boards[one.npu].get("Firmware Version"),
            compatibility=boards[one.npu].get("Compatibility"),
        )
        for one in chips
    ]
    return found, processes, []


def parse_overview(text: str) -> tuple[list[NpuObservation], list[DeviceProcess]]:
    """Read the two tables of ``npu-smi info``: two lines for each chip, then one line for each process."""
    chips: list[NpuObservation] = []
    processes: list[DeviceProcess] = []
    upper: tuple[int, str, str] | None = None
    in_processes = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        words = cells[0].split()
        in_processes |= len(cells) > 2 and cells[1].lower().startswith("process id")
        numbers = [whole_number(word) for word in words]
        if len(cells) < 3 or not numbers or (first := numbers[0]) is None:
            continue
        if in_processes:
            pid = whole_number(cells[1])
            if pid is not None and len(numbers) == 2 and (chip := numbers[1]) is not None:
                processes.append(_process(pid, first, chip, cells, chips))
        elif not _BUS.fullmatch(cells[1]):
            upper = first, cells[1], " ".join(words[1:])
        elif upper is not None:
            chips.append(_chip(upper, [number for number in numbers if number is not None]))
            upper = None
    return chips, processes


def _chip(upper: tuple[int, str, str], lower: list[int]) -> NpuObservation:
    npu, health, name = upper
    # The second number is the physical id, on products with several chips per NPU.
    device = lower[1] if len(lower) > 1 else (npu if lower[0] == 0 else None)
    return NpuObservation(npu, lower[0], device, health, name=name)


def _process(pid: int, npu: int, chip: int, cells: list[str], chips: list[NpuObservation]) -> DeviceProcess:
    known = next((one.device for one in chips if (one.npu, one.chip) == (npu, chip)), None)
    memory = whole_number(cells[3]) if len(cells) > 3 else None
    return DeviceProcess(pid, npu if known is None else known, cells[2], memory=memory)


def _board(tool: str, npu: int, site: Site) -> dict[str, str]:
    answer = run_tool([tool, "info", "-t", "board", "-i", str(npu)], site)
    split = (line.partition(":") for line in answer.stdout.splitlines())
    return {key.strip(): value.strip() for key, colon, value in split if colon}
