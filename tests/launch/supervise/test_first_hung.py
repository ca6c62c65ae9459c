"""Which ranks of a job that hangs stopped first_to_hang."""

from __future__ import annotations

import pytest

from hccl_tools.launch.model.outcome import RankEnd
from hccl_tools.launch.model.plan import RankProcess
from hccl_tools.launch.supervise.hangs import Suspect, first_to_hang
from hccl_tools.processes.wait_state import WaitState

RECV = WaitState("S", "recvfrom", "a socket")
STOPPED = WaitState("T")
DISK = WaitState("D", "", "", "folio_wait_bit")
FILE = WaitState("S", "read", "/mnt/part-7")
RUNS = WaitState("R")
SECOND = 1_000_000_000


def suspect(
    rank: int, waits: WaitState | None, idle: float = 9.0, beat: int = 0, *, computes: bool = False
) -> Suspect:
    process = RankProcess(rank, "host-a", 0, rank, rank, {}, ("train",), f"rank_{rank}.log")
    end = RankEnd(process, process.log, pid=100 + rank)
    return Suspect(end, waits, idle, idle if beat else None, beat, computes)


@pytest.mark.parametrize(
    ("suspects", "ranks"),
    [
        ([suspect(0, RECV, 20.0), suspect(1, STOPPED), suspect(2, RECV)], [1]),
        ([suspect(0, RECV, 20.0), suspect(1, DISK)], [1]),
        ([suspect(0, FILE), suspect(1, RECV, 20.0)], [0]),
        ([suspect(0, STOPPED), suspect(1, FILE), suspect(2, STOPPED)], [0, 2]),
        ([suspect(0, RECV), suspect(1, RECV, 12.0), suspect(2, RECV, 11.5)], [1, 2]),
        ([suspect(0, RECV), suspect(1, RECV)], [0, 1]),
        ([suspect(0, RECV, beat=7 * SECOND), suspect(1, RECV, beat=6 * SECOND)], [1]),
        ([suspect(0, RUNS, beat=7 * SECOND, computes=True), suspect(1, RECV, beat=6 * SECOND)], [1]),
        ([suspect(0, RECV, beat=7 * SECOND), suspect(1, RUNS, beat=7 * SECOND + 1, computes=True)], [1]),
        (
            [suspect(0, RUNS, computes=True, beat=SECOND), suspect(1, RUNS, computes=True, beat=SECOND)],
            [0, 1],
        ),
        ([suspect(0, None), suspect(1, STOPPED)], [1]),
        ([], []),
    ],
)
def test_first(suspects: list[Suspect], ranks: list[int]) -> None:
    assert [one.end.process.rank for one in first_to_hang(suspects, 1.0)] == ranks


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (RECV, "sleeping in recvfrom() on a socket"),
        (STOPPED, "stopped"),
        (DISK, "waiting uninterruptibly in the kernel in folio_wait_bit"),
        (FILE, "sleeping in read() on /mnt/part-7"),
        (WaitState("S", "futex"), "sleeping in futex()"),
        (WaitState("S"), "sleeping"),
        (WaitState("?"), "state ?"),
    ],
)
def test_a_wait_in_words(state: WaitState, text: str) -> None:
    assert state.description == text
