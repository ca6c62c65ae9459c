"""Read NPUs, chips, their product and their place in a super pod with ``npu-smi``.

Its tables differ between products, so columns are found by the header, never by position.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.errors import DiscoveryError
from hccl_tools.host.host_tools import find_tool, run_tool
from hccl_tools.records import NamedTuple
from hccl_tools.table.product_names import by_chip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.host.site_defaults import Site

SOURCE = "npu-smi"
USUAL_PLACE = "/usr/local/sbin/npu-smi"

_GAP = r"\s{2,}|\t+"


class Chip(NamedTuple):
    """One row of ``npu-smi info -m``: a compute chip, not a controller ("Mcu").

    ``logic_id`` is the id within this machine or container, ``physical_id`` the ``N`` of
    ``/dev/davinciN``; None if the table has no such column.
    """

    npu_id: int
    chip_id: int
    logic_id: int | None
    physical_id: int | None
    name: str


class SuperPodPlace(NamedTuple):
    """A chip's place in its super pod (``-t spod-info``); zero is a valid id everywhere."""

    super_device_id: int
    super_pod_size: int
    super_pod_id: int
    server_index: int


def find_npu_smi(site: Site) -> str | None:
    """Return the path of ``npu-smi``, or None."""
    return find_tool(site, "npu-smi", USUAL_PLACE, "/usr/local/Ascend/driver/tools/npu-smi")


def chips(tool: str, site: Site) -> list[Chip]:
    """Return the chips that ``npu-smi info -m`` lists, in its order.

    Raises:
        DiscoveryError: The command fails or prints no table.
    """
    answer = run_tool([tool, "info", "-m"], site)
    found = parse_mapping(answer.stdout)
    if answer.status != 0 or not found:
        raise DiscoveryError(
            f"`npu-smi info -m` printed {answer.summary()}", hint="check that `npu-smi info` works"
        )
    return found


def parse_mapping(text: str) -> list[Chip]:
    """Read the table of ``npu-smi info -m``; rows without a numeric chip id are controllers."""
    header: list[str] = []
    found = []
    for line in text.splitlines():
        cells = re.split(_GAP, line.strip())
        if "NPU ID" in cells and "Chip ID" in cells:
            header = cells
            continue
        row = dict(zip(header, cells)) if header else {}  # noqa: B905  (strict= needs Python 3.10)
        npu_id, chip_id = _number(row.get("NPU ID")), _number(row.get("Chip ID"))
        logic_id, physical_id = _number(row.get("Chip Logic ID")), _number(row.get("Chip Phy-ID"))
        if npu_id is None or chip_id is None or (logic_id is None and physical_id is None):
            continue
        found.append(Chip(npu_id, chip_id, logic_id, physical_id, row.get("Chip Name", "")))
    return found


def product_of_chips(found: Sequence[Chip]) -> str | None:
    """Return the product of chips by their names, or None for unknown names.

    Raises:
        DiscoveryError: The chips are of several products.
    """
    products = {named for chip in found if (named := product_of(chip)) is not None}
    if len(products) > 1:
        raise DiscoveryError(
            f"npu-smi lists chips of several products: {', '.join(sorted({chip.name for chip in found}))}",
            hint="specify one with --product",
        )
    return products.pop() if products else None


def product_of(chip: Chip) -> str | None:
    """Return the product of a chip by its name, or None for an unknown name."""
    known = by_chip(chip.name, has_physical_id=chip.physical_id is not None)
    return known.name if known is not None else None


def super_pod_place(tool: str, npu_id: int, chip_id: int, site: Site) -> SuperPodPlace:
    """Return a chip's place in its super pod.

    Raises:
        DiscoveryError: The chip is not in a super pod, or the output lacks a value.
    """
    answer = run_tool([tool, "info", "-t", "spod-info", "-i", str(npu_id), "-c", str(chip_id)], site)
    pairs = dict(_pairs(answer.stdout))
    values = [_number(pairs.get(key)) for key in ("SDID", "Super Pod Size", "Super Pod ID", "Server Index")]
    numbers = [value for value in values if value is not None]
    if answer.status != 0 or len(numbers) != len(values):
        raise DiscoveryError(
            f"`npu-smi info -t spod-info -i {npu_id} -c {chip_id}` printed {answer.summary()}",
            hint="a machine outside super-pod mode has no such ids; use --format 1.0 there",
        )
    return SuperPodPlace(*numbers)


def _pairs(text: str) -> list[tuple[str, str]]:
    """Return the ``key : value`` lines, with or without blanks around the colon."""
    split = (line.partition(":") for line in text.splitlines())
    return [(key.strip(), value.strip()) for key, colon, value in split if colon]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) <= 10 else None
