"""Real training that outlives a host: a spare takes its place, and the ranks resume from their checkpoint."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from tests.beds.three_hosts import isolate
from tests.support.jobs import LONG
from tests.support.mpiruns import Ssh
from tests.support.spare_jobs import OnThreeHosts, SpareJob
from tests.support.training import MARKS, SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.beds.three_hosts import ThreeHosts

pytestmark = MARKS
#: Enough that a host is lost long before the end.
EPOCHS = 20
CHECKPOINT = "digits.ckpt"
TRAINING = [str(SCRIPT), "--epochs", str(EPOCHS), "--checkpoint", CHECKPOINT]
ACCURACY = re.compile(r"^held-out accuracy: ([0-9.]+) ", re.MULTILINE)


def test_a_training_whose_host_is_cut_off_learns_as_much(
    three_hosts: ThreeHosts, own_directory: Path
) -> None:
    lost, spare = (host.address for host in three_hosts.hosts[1:])
    place = OnThreeHosts(three_hosts, Ssh())
    job = SpareJob(place, "--python", sys.executable, "--max-restarts", "1", *TRAINING)
    assert job.waits_for(CHECKPOINT), job.launcher.communicate(timeout=LONG)[0]

    with three_hosts.impaired(*isolate(three_hosts.hosts[1])):
        code, said, report = job.end()

    assert (code, report["restarts"]) == (0, 1), said
    assert [(one["host"], one["spare"], one["ranks"]) for one in report["replaced"]] == [(lost, spare, [1])]
    logs = [(own_directory / f"log/latest/rank_{rank}.restart_1.log").read_text() for rank in (0, 1)]
    for log in logs:
        (step,) = re.findall(r"^resumed from step (\d+)$", log, re.MULTILINE)
        assert 0 < int(step) < EPOCHS * 11
    (accuracy,) = ACCURACY.findall(logs[0])
    assert float(accuracy) >= 0.95
