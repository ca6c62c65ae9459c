"""CANN's HCCL Performance Tester: where ``all_reduce_test`` is, how it is called, and what it prints.

It is an MPI program that CANN ships as source. A process uses the device with the number of its rank modulo
``-p``, among the devices of ASCEND_RT_VISIBLE_DEVICES. Not tried on NPUs.

Sources: CANN, HCCL Performance Tester (the guide); oam-tools, src/hccl_test (the program).
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hccl_tools.notation.printable import escaped
from hccl_tools.programs.lookup import is_program
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PLACE = "tools/hccl_test/bin/all_reduce_test"
#: The devices of a process in place of those that ``-p`` selects: it must not be inherited.
OWN_SELECTION = "HCCL_TEST_USE_DEVS"
WRONG = "failed"
_SIZE = "64M"
_BANDWIDTH, _VERDICT = "alg_bandwidth(GB/s)", "check_result"
_VERDICTS = ("success", WRONG, "NULL")
_NUMBER = re.compile(r"[0-9]{1,12}\.[0-9]{1,12}")
#: Only rank 0 prints the table; another rank whose sum is wrong prints this.
_WRONG_ELSEWHERE = re.compile(r"local rank_id [0-9]+, check result failed")
_CAUSE = re.compile(
    r"\berr|fail|invalid|no such|cannot|could not|unable|not found|denied|refused", re.IGNORECASE
)
_LONGEST_CAUSE = 200


class Reading(NamedTuple):
    """A line of the result.

    Attributes:
        gigabytes: The size of the data divided by the time of one operation, in GB/s.
        verdict: ``success``, ``failed``, or ``NULL`` if the sum was not checked.
    """

    gigabytes: float
    verdict: str


def find_all_reduce_test(homes: Iterable[str]) -> str | None:
    """Return the path of the program in the first of CANN's folders that has it."""
    paths = (os.path.join(home, PLACE) for home in homes if home)
    return next((path for path in paths if is_program(path)), None)


def arguments(program: str, devices: int) -> list[str]:
    """Return the command line of each process; ``devices`` is the number of devices used per host."""
    sizes = ["-b", _SIZE, "-e", _SIZE, "-d", "fp32", "-o", "sum"]
    return [program, *sizes, "-c", "1", "-p", str(devices)]


def read_output(lines: Sequence[str]) -> tuple[Reading | None, str]:
    """Return the result of a run with one size, or None and why there is none."""
    columns: list[str] = []
    found: list[Reading] = []
    for line in lines:
        cells = [cell.strip().rstrip(":") for cell in line.split("|")]
        if _BANDWIDTH in cells and _VERDICT in cells:
            columns = cells
        elif len(cells) == len(columns) > 1 and not _WRONG_ELSEWHERE.search(line):
            found += _row(dict(zip(columns, cells, strict=True)))
    if len(found) > 1:
        return (
            None,
            "the processes of all_reduce_test ran alone: it was built with another MPI than this mpirun's",
        )
    if not found:
        return None, _cause(lines)
    if any(map(_WRONG_ELSEWHERE.search, lines)):
        return found[0]._replace(verdict=WRONG), ""
    return found[0], ""


def _row(cells: dict[str, str]) -> list[Reading]:
    number, verdict = cells[_BANDWIDTH], cells[_VERDICT]
    if not _NUMBER.fullmatch(number) or not float(number) or verdict not in _VERDICTS:
        return []
    return [Reading(float(number), verdict)]


def _cause(lines: Sequence[str]) -> str:
    """Return the first line that names a cause, else the last one."""
    texts = [line.strip() for line in lines if line.strip("-=* \n")]
    text = next(filter(_CAUSE.search, texts), texts[-1] if texts else "")
    return (
        f"all_reduce_test or mpirun printed: {escaped(text[:_LONGEST_CAUSE])}"
        if text
        else "all_reduce_test printed nothing"
    )
