"""A number of more digits than Python converts is refused like any other wrong number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.tables import table

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

LONG = "9" * 5000


@pytest.mark.parametrize(
    "args",
    [
        ("--nnodes", LONG),
        ("--nproc_per_node", LONG),
        ("-n", "2", "--tail", f"0,{LONG}"),
        ("-n", "2", "--tee", LONG),
        ("-n", "2", "--tee", f"0:{LONG}"),
        ("-n", "2", "--master", f"10.0.0.1:{LONG}"),
        ("-n", "2", "--rdzv_endpoint", f"10.0.0.1:{LONG}"),
    ],
    ids=lambda args: " ".join(args)[:30],
)
def test_launch_refuses_a_long_number(command_line: CommandLine, args: tuple[str, ...]) -> None:
    command_line.write("train.py", "")

    done = command_line("launch", *args, "train.py")

    assert done.code != 0
    assert LONG[:40] in done.sentence


@pytest.mark.parametrize("number", ["99999999", "9" * 400])
@pytest.mark.parametrize("option", ["-n", "--nnodes", "--nproc-per-node"])
def test_launch_refuses_more_ranks_and_machines_than_there_are(
    command_line: CommandLine, option: str, number: str
) -> None:
    command_line.write("train.py", "")

    done = command_line("launch", "--cpu", "--dry-run", option, number, "train.py")

    assert done.code == 2
    assert "more than" in done.sentence or "is not a " in done.sentence


LONG_NAME = "n" * 300


@pytest.mark.parametrize(
    "args",
    [
        ("subset", "good.json", "--devices", "0", "-o", LONG_NAME),
        ("subset", "good.json", "--devices", "0", "-o", f"{LONG_NAME}.json"),
        ("replace", "good.json", "--server", "10.0.0.1", "--with", "good.json", "-o", LONG_NAME),
        ("merge", "good.json", "-o", f"{LONG_NAME}.json"),
        ("convert", "good.json", "--to", "group_list", "-o", f"{LONG_NAME}.json"),
        ("doctor", "--local", "--code", LONG_NAME),
        ("doctor", "--local", "--data", LONG_NAME),
        ("doctor", LONG_NAME),
        ("explain", LONG_NAME),
        ("logs", LONG_NAME),
        ("launch", "-n", "2", "--cpu", "--log-dir", LONG_NAME, "train.py"),
        ("scaling", "report", LONG_NAME),
    ],
    ids=lambda args: " ".join(args)[:30],
)
def test_a_name_that_is_too_long_for_a_file_is_refused(
    command_line: CommandLine, args: tuple[str, ...]
) -> None:
    command_line.write("train.py", "")
    command_line.write("good.json", table("1.0", 1, 2))

    done = command_line(*args)

    assert done.code != 0
    assert LONG_NAME in done.err
