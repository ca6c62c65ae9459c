"""Ranks that report nothing: silent, ended from outside, or of a host whose logs were not collected."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

SIGTERM = (
    "W0318 10:40:00.000000 1 torch/distributed/elastic/multiprocessing/api.py:900] Sending process {} closing"
    " signal SIGTERM\n"
)
LINK = (
    "EI0013: An error CQE occurred. Local: server {0}, device ID {1}, device IP {2}. Peer: server {3}, device ID {4},"
    " device IP {5}."
)


def first_line(command_line: CommandLine) -> str:
    return command_line("explain", "logs").out.splitlines()[0]


def end(job: Plogs, *ranks: int) -> None:
    (job.folder / "torchrun.log").write_text("".join(SIGTERM.format(4000 + rank) for rank in ranks))


def link_errors(job: Plogs, ranks: range, peer: int) -> None:
    for rank in ranks:
        ends = [(job.host(one), job.device(one), job.address(one)) for one in (rank, peer)]
        job.error(rank, 60, LINK.format(*ends[0], *ends[1]))


def test_the_logs_of_a_host_that_the_others_name(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 24).start()
    for rank in range(16):
        job.no_link(rank, 16 + rank % 8, 125)
    shutil.rmtree(job.folder / job.host(16))
    first = first_line(command_line)

    assert first.startswith(
        "Host 10.0.0.3 (ranks 16-23): the other ranks wait, and what happened here is in none of"
    )
    assert "No log of them was collected" in first


def test_the_logs_of_a_host_that_no_line_names(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 24).start()
    for rank in range(16):
        job.notify(rank, None, 1840)
    shutil.rmtree(job.folder / job.host(16))
    first = first_line(command_line)

    assert first.startswith(
        "Ranks 16-23: the other ranks wait, and what happened here is in none of these logs"
    )
    assert "with 8 devices per host, they are one whole host" in first


@pytest.mark.parametrize("rank", [11, 15])
def test_a_rank_without_a_log_among_others_of_its_host(command_line: CommandLine, rank: int) -> None:
    job = Plogs(command_line.folder / "logs", 24).start()
    for other in set(range(24)) - {rank}:
        job.notify(other, None, 1840)
    for log in job.folder.glob(f"{job.host(rank)}/*/plog/plog-{4000 + job.device(rank)}_*"):
        log.unlink()

    assert first_line(command_line).startswith(f"Rank {rank}")
    assert ": silent while other ranks wait. " in first_line(command_line)


def test_a_pair_of_which_one_log_is_missing_is_named(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 16).start()
    job.no_link(3, 11, 125)
    shutil.rmtree(job.folder / job.host(11))

    assert "the other end is rank 11 (device 3 of 10.0.0.2" in first_line(command_line)


def test_the_waits_for_a_rank_that_the_launcher_ended(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    for rank in range(3):
        job.notify(rank, 3, 1840)
    job.error(3, 5, "step 1")
    silent = first_line(command_line)
    end(job, 3)
    ended = first_line(command_line)

    assert "silent" in silent
    assert "silent" not in ended
    assert "Rank 3, for which rank 0 waits, was ended from outside (the logs do not show the cause)." in ended


def test_waits_that_name_no_rank_and_a_rank_that_the_launcher_ended(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    for rank in range(3):
        job.notify(rank, None, 1840)
    job.screen(3, "step 1")
    end(job, 3)
    lines = command_line("explain", "logs").out.splitlines()

    assert "silent" not in lines[0]
    assert "Rank 3, which was ended from outside, did not report what happened there" in lines[0]
    assert "  look at logs/rank_3.log" in lines


def test_the_links_to_a_rank_that_the_launcher_ended(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    link_errors(job, range(3), 3)
    silent = first_line(command_line)
    end(job, 3)
    ended = first_line(command_line)

    assert "this rank reports no error" in silent
    assert "silent" not in ended
    assert "3 ranks report errors of their connection to rank 3, which was ended from outside" in ended


@pytest.mark.parametrize("ended", [4, 5])
def test_the_rank_to_which_most_links_failed_was_ended(command_line: CommandLine, ended: int) -> None:
    job = Plogs(command_line.folder / "logs", 6, 6).start()
    for rank, peer in enumerate((4, 5, 4)):
        link_errors(job, range(rank, rank + 1), peer)
    end(job, ended)

    (cause,) = json.loads(command_line("explain", "logs", "-f", "json").out)["causes"]

    assert cause["ranks"] == ([0] if ended == 4 else [4])
    assert cause["peer"]["rank"] == 4
    assert cause["look_at"][0].startswith("the log of rank 4 ")
