"""A number of more digits than Python converts is refused like any other wrong number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
