"""Causes that compare two sides: each value is said of the ranks and logs of which the lines say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.log_folders import explained
from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

WAITED = "[ERROR] HCCL(77,python3):2026-03-18-10:02:11.113.403 [hccl_socket_manager.cc:583] [77]   | {} |  time out |  {}  | LinkInfo\n"
ENDS = "192.168.1.{0}({0})  |  16666  |  192.168.0.{1}({1})  |  0  |  server "
TOOL = "dev_id:{}, tls switch[{}](0:disable, 1:enable), tls preconfigured[1](0:non-preset, 1:preset), tls alarm time threshold[60]days\n"


def switches(states: dict[int, str], folders: dict[int, str]) -> dict[str, str]:
    """The logs of ranks whose rows have these switches."""
    last = max(states)
    return {
        f"{folders[rank]}/plog-{500 + rank}_1.log": WAITED.replace("77", str(500 + rank)).format(
            ENDS.format(last - rank, rank), state
        )
        for rank, state in states.items()
    }


@pytest.mark.parametrize("on", [{0, 1}, {2, 3}, {0, 2}])
def test_as_many_devices_have_each_value(command_line: CommandLine, on: set[int]) -> None:
    states = {rank: "ENABLE" if rank in on else "DISABLE" for rank in range(4)}
    folders = {rank: "box-3" if rank < 2 else "box-8" for rank in range(4)}
    out = explained(command_line, switches(states, folders))
    names: dict[tuple[int, ...], str] = {
        (0, 1): "ranks 0-1 (box-3)",
        (2, 3): "ranks 2-3 (box-8)",
        (0, 2): "ranks 0,2",
        (1, 3): "ranks 1,3",
    }
    off = set(range(4)) - on
    one, other = names[tuple(sorted(on))], names[tuple(sorted(off))]
    assert out.splitlines()[0].startswith("Ranks 0-3: the TLS switch is not the same on all devices")
    assert f"It is on for {one}, and off for {other} (certain" in out.splitlines()[0]
    shown = [line for line in out.splitlines() if line.lstrip().startswith("| [ERROR]")]
    assert "ENABLE" in shown[0]
    assert "DISABLE" in shown[1]


@pytest.mark.parametrize(("odd", "state"), [({3}, "DISABLE"), ({0, 1}, "ENABLE")])
def test_few_devices_have_another_value(command_line: CommandLine, odd: set[int], state: str) -> None:
    usual = {"ENABLE": "DISABLE", "DISABLE": "ENABLE"}[state]
    states = {rank: state if rank in odd else usual for rank in range(5)}
    out = explained(command_line, switches(states, dict.fromkeys(range(5), "h")))
    ranks = "Rank 3" if odd == {3} else "Ranks 0-1"
    others = "ranks 0-2,4" if odd == {3} else "ranks 2-4"
    first = out.splitlines()[0]
    assert first.startswith(ranks)
    words = {"ENABLE": "on", "DISABLE": "off"}
    assert f"It is {words[state]} there, and {words[usual]} for {others}" in first
    assert state in next(line for line in out.splitlines() if line.lstrip().startswith("| [ERROR]"))


def test_logs_that_name_no_rank(command_line: CommandLine) -> None:
    """Each log is named for the value that it has, not the first two logs."""
    run = "[INFO] HCCP({0},hccp_service.bin):2026-03-18-10:00:01.113.403 [rs_ssl.c:1529]tid:{0} TLS SWITCH ({1})\n"
    wait = "[ERROR] HCCL({0},python3):2026-03-18-10:02:11.113.403 [a.cc:1] [{0}]EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time.\n"
    values = {31: 1, 32: 1, 33: 0, 34: 0}
    files = {f"plog-{pid}_1.log": run.format(pid, value) + wait.format(pid) for pid, value in values.items()}
    first = explained(command_line, files).splitlines()[0]
    assert "on in logs/plog-31_1.log, logs/plog-32_1.log, and" in first
    assert "off in logs/plog-33_1.log, logs/plog-34_1.log" in first


@pytest.mark.parametrize("odd", [None, 2])
def test_the_devices_in_the_output_of_a_tool(command_line: CommandLine, odd: int | None) -> None:
    """The devices of one output have a value each."""
    wait = "[ERROR] HCCL(9,python3):2026-03-18-10:02:11.113.403 [a.cc:1] [9][Wait][LinkEstablish]wait socket establish timeout, role[1] rank[{0}] timeout[120 s]\n"
    tool = "".join(TOOL.format(device, int(device != odd)) for device in range(4))
    out = explained(command_line, {"10.0.0.4/hccn_tool.txt": tool, "plog-9_1.log": wait.format(1)})
    assert ("the TLS switch is not the same" in out.splitlines()[0]) is (odd is not None)


def test_two_operations_of_which_none_is_usual(command_line: CommandLine) -> None:
    """The sides of the sentence differ, also if the ranks with the rarest operation come first."""
    job = Plogs(command_line.folder / "logs", 8, 8).start()
    names = ["Broadcast"] * 2 + ["AllReduce"] * 3 + ["AllGather"] * 3
    for rank, name in enumerate(names):
        job.error(
            rank,
            1900 + rank / 10,
            f"[TaskExecStage][Timeout]Task run failed, base information is streamID:[5], taskType[Notify Wait], tag[{name}_world]",
        )
    first = command_line("explain", "logs").out.splitlines()[0]
    assert "ranks 0-1 are in" in first.lower()
    assert first.count("Broadcast") == 1
