"""Ranks that did not start because another rank failed: that they have no log is not a cause."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain import explaining, runs
from hccl_tools.runs.ends import NOT_STARTED
from tests.support.hostile_inputs import saved_run

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT = "EI0006: Getting socket times out. Reason: topo exchange agent\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of four ranks on this host, of which the last two were not started."""
    plan, report = saved_run()
    first = plan["processes"][0]
    plan["processes"] = [{**first, "rank": rank, "log": f"rank_{rank}.log"} for rank in range(4)]
    end = report["ranks"][0]
    report["ranks"] = [
        {**end, "rank": rank, "how": "exited with 3" if rank < 2 else NOT_STARTED} for rank in range(4)
    ]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "report.json").write_text(json.dumps(report))
    (tmp_path / "launcher").write_text(f"1\n{os.uname().nodename}\n1790000000.5\nlaunch\n5\n")
    for rank in range(2):
        (tmp_path / f"rank_{rank}.log").write_text(TIMEOUT)
    return tmp_path


def test_they_are_named_and_no_host_is_asked(run: Path) -> None:
    found = runs.read(str(run))

    assert found.not_started == {2, 3}
    assert found.elsewhere == {}
    assert found.notes == ["ranks 2-3 were not started"]


def test_they_are_not_silent(run: Path) -> None:
    answer = explaining.explain([], run=str(run))

    assert answer.causes
    assert {place.rank for cause in answer.causes for place in cause.places} <= {0, 1, None}


def test_a_started_rank_without_a_log_is_named(run: Path) -> None:
    (run / "rank_1.log").unlink()
    found = runs.read(str(run))

    assert found.elsewhere == {}
    assert found.notes[0] == f"rank 1 has no log: {run}/rank_1.log does not exist"


def test_many_ranks_without_logs_take_one_note(run: Path) -> None:
    for rank in range(2):
        (run / f"rank_{rank}.log").unlink()

    assert runs.read(str(run)).notes == [
        f"ranks 0-1 have no logs: {run}/rank_0.log and 1 more do not exist",
        "ranks 2-3 were not started",
    ]


@pytest.mark.parametrize(
    ("asked", "named"),
    [([True, True], "ranks 0-1 were still running; "), ([False, True], "rank 1 was still")],
)
def test_those_that_a_signal_to_the_launcher_found_running_are_named(
    run: Path, asked: list[bool], named: str
) -> None:
    report = json.loads((run / "report.json").read_text())
    report |= {"reason": "signal", "signal": "SIGTERM", "first_failure": None}
    for end in report["ranks"]:
        end["asked_to_end"] = end["rank"] < 2 and asked[end["rank"]]
    (run / "report.json").write_text(json.dumps(report))

    (note,) = (one for one in runs.read(str(run)).notes if "running" in one)

    assert note.startswith(named)
    assert "`hccl-tools stacks`" in note


def test_no_rank_was_running_when_a_signal_reached_the_launcher(run: Path) -> None:
    report = json.loads((run / "report.json").read_text())
    report |= {"reason": "signal", "signal": "SIGTERM", "first_failure": None}
    for end in report["ranks"]:
        end["asked_to_end"] = False
    (run / "report.json").write_text(json.dumps(report))

    assert not any("running" in one for one in runs.read(str(run)).notes)
