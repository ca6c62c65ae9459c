"""``explain`` of a run whose logs are outside of its directory: ``--flat-logs``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hccl_tools.runs import own_runs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

RUN = "log/20261128-103732-fccacd30"
MEMORY = "RuntimeError: NPU out of memory\n"


def explained(command_line: CommandLine, logs: dict[str, str], **report: Any) -> str:
    """Return what ``explain`` says of a run of three ranks whose rank 1 failed."""
    folder = command_line.folder / "log"
    ranks = [{"rank": rank, "host": os.uname().nodename, "here": True, "argv": ["true"], "device": rank,
              "log": f"{folder}/workerlog.{rank}"} for rank in range(3)]  # fmt: skip
    command_line.write(
        f"{RUN}/plan.json", {"world_size": 3, "hosts": [os.uname().nodename], "processes": ranks}
    )
    first = {"rank": 1, "name": "rank 1", "how": "exit code 1", "host": "localhost"}
    command_line.write(
        f"{RUN}/report.json", {"exit_code": 1, "reason": "rank", "ranks": [], "first_failure": first} | report
    )
    for name, text in logs.items():
        command_line.write(f"log/{name}", text)
    own_runs.note(str(command_line.folder / RUN), os.environ)
    done = command_line("explain", "20261128")
    assert done.code == 0, done.err
    return done.out


def test_the_logs_of_all_ranks_are_read(command_line: CommandLine) -> None:
    shown = explained(command_line, {"workerlog.0": "", "workerlog.1": MEMORY, "workerlog.2": ""})

    assert "the device has no memory left" in shown
    assert "was not read" not in shown


def test_the_logs_after_a_restart_are_read(command_line: CommandLine) -> None:
    first = {"workerlog.0": "", "workerlog.1": "PermissionError: [Errno 13] 'a'\n", "workerlog.2": ""}

    shown = explained(command_line, {**first, "workerlog.1.restart_1": MEMORY}, restarts=1)

    assert shown.startswith("Rank 1 (device 1 of ")
    assert "the device has no memory left" in shown.split("also seen")[0]


def test_a_log_in_the_run_directory_counts_whatever_its_name(command_line: CommandLine) -> None:
    """Files with such a name are no logs in a folder that the user names."""
    ranks = [{"rank": 0, "host": "localhost", "here": True, "log": "rank_0.json", "argv": ["true"]}]
    command_line.write(f"{RUN}/plan.json", {"world_size": 1, "hosts": ["localhost"], "processes": ranks})
    command_line.write(f"{RUN}/rank_0.json", MEMORY)

    done = command_line("explain", "20261128")

    assert "the device has no memory left" in done.out
