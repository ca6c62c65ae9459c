"""The answer as a colleague would say it: what, where, when; whose lines; no numbers without a meaning."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

#: The columns are the two ends, the port, a number, the role, the result and the TLS switch.
LINK = "|  {peer}({there})  |  16666  |  {own}({here})  |  0  |  client  | time out |  DISABLE  |"
HEARTBEAT = (
    "[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[{host}/{device}],"
    " ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited"
)


def waiting(job: Plogs, rank: int, tag: str) -> None:
    job.error(
        rank, 1840, f"Task run failed, base information is streamID:[5], taskType[Notify Wait], tag[{tag}]"
    )


def answer(command_line: CommandLine, *options: str) -> str:
    return command_line("explain", "logs", *options).out


def test_the_first_line_says_when(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.error(1, 5, "socket type[0], listen on ip[192.168.0.101] and specific port[16666] fail.")

    assert " that HCCL needs: port 16666, at 2026-03-18 10:00:05. " in answer(command_line).splitlines()[0]


def test_a_time_without_a_year_is_given_none(command_line: CommandLine) -> None:
    command_line.write(
        "logs",
        "[rank3]:[E119 04:12:55.018230101 x.cpp:1] [Rank 3] Watchdog caught collective operation timeout:"
        " WorkHCCL(SeqNum=9, OpType=ALLGATHER, Timeout(ms)=1800000) ran for 1800278 milliseconds before timing out.\n",
    )
    at = json.loads(answer(command_line, "-f", "json"))["causes"][0]["at"]

    assert ", at 01-19 04:12:55. " in answer(command_line).splitlines()[0]
    assert "2000" not in answer(command_line)
    assert at["time"] is None


def test_lines_that_differ_stand_side_by_side(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 3).start()
    for rank in range(3):
        waiting(job, rank, "Broadcast_world" if rank == 2 else "AllReduce_world")
    lines = answer(command_line).splitlines()
    cause = json.loads(answer(command_line, "-f", "json"))["causes"][0]

    assert lines[1].startswith("  in logs/10.0.0.1/debug/plog/plog-4002_")
    assert ", which rank 2 wrote, at 2026-03-18 10:30:40.000:" in lines[1]
    assert "tag[Broadcast_world]" in lines[2]
    assert lines[3].startswith("  beside it, in logs/10.0.0.1/debug/plog/plog-4000_")
    assert "tag[AllReduce_world]" in lines[4]
    assert [
        "tag[Broadcast_world]" in cause["at"]["text"],
        "tag[AllReduce_world]" in cause["beside"]["text"],
    ] == [
        True,
        True,
    ]


def test_the_line_of_another_rank_is_said_to_be_one(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    for rank in (0, 1, 2):
        job.screen(
            rank, "EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time."
        )
    job.screen(3, "step 1")
    lines = answer(command_line).splitlines()

    assert lines[0].startswith(
        "Rank 3 (device 3 of 10.0.0.1, address 192.168.0.103): silent while other ranks wait: the last line of rank 3 is: step 1. "
    )
    assert ", which rank 3 wrote" in lines[1]
    assert ", which rank 0 wrote" in lines[3]


def test_the_own_line_of_a_rank_needs_no_writer(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.error(1, 5, "socket type[0], listen on ip[192.168.0.101] and specific port[16666] fail.")

    assert "wrote" not in answer(command_line)


def test_a_link_is_described_without_its_columns(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2, 1).start()
    job.error(0, 125, LINK.format(peer=job.address(1), there=1, own=job.address(0), here=0))
    first = answer(command_line).splitlines()[0]

    assert "port 16666, the other end is rank 1" in first
    assert "DISABLE" not in first


def test_a_variable_is_named_once(command_line: CommandLine) -> None:
    command_line.write("logs", "EI0014: Value [9] for ranktable variable [device_id] is invalid.\n")
    table = answer(command_line).splitlines()[0]
    command_line.write("logs", "set ASCEND_RT_VISIBLE_DEVICES:4 error, input data rang[0-2)\n")
    variable = answer(command_line).splitlines()[0]

    assert ": device_id is 9" in table
    assert variable.count("ASCEND_RT_VISIBLE_DEVICES") == 1


def test_a_verdict_is_said_once(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 3).start()
    job.error(0, 60, HEARTBEAT.format(host=job.host(2), device=2))
    first = answer(command_line).splitlines()[0]

    assert first.startswith("Rank 2 (")
    assert first.count("Heartbeat Lost Occurred") == 1


def test_the_ranks_of_lost_hosts_are_named_by_their_hosts(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 16, 4).start()
    for rank in range(8):
        job.notify(rank, None, 1840)
    lines = answer(command_line).splitlines()

    assert lines[0].startswith("Hosts 10.0.0.[3-4] (ranks 8-15): ")
    for line, host, ranks in zip(lines[3:5], (3, 4), ("8|9|10|11", "12|13|14|15"), strict=True):
        assert line.startswith("  look at the logs of ranks ")
        assert f" on 10.0.0.{host}: `grep -rl -E '(rank|userRank)\\[({ranks})\\]' ~/ascend/log`" in line


def test_some_ranks_of_a_host_are_not_the_host(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 16, 4).start()
    for rank in range(6):
        job.notify(rank, None, 1840)
    for rank in (6, 7):
        job.error(rank, 1840, "[TaskExecStage] step 1")

    assert answer(command_line).splitlines()[0].startswith("Ranks 6-7: silent while other ranks wait: ")


def test_a_log_that_was_read_is_named_by_its_path(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 3).start()
    for rank in range(3):
        waiting(job, rank, "Broadcast_world" if rank == 2 else "AllReduce_world")
    looked_at = [line for line in answer(command_line).splitlines() if line.startswith("  look at ")]

    assert looked_at == ["  look at logs/10.0.0.1/debug/plog/plog-4002_20260318100000000.log"]


def test_the_cause_is_not_among_what_does_not_matter(command_line: CommandLine) -> None:
    command_line.write(
        "logs",
        "slurmstepd: error: *** STEP 13.0 ON node1 CANCELLED AT 2026-03-18T12:00:00 ***\n[rank0]: received SIGTERM\n",
    )
    lines = answer(command_line).splitlines()

    assert lines[0].startswith("The job was cancelled")
    assert not [line for line in lines[1:] if "the job was cancelled" in line]


def test_missing_ranks_that_fill_a_host(command_line: CommandLine) -> None:
    root = "[InitGroupStage][DisplayConnectionedRank]"
    gave_up = "[InitGroupStage][RanktableDetect]topo exchange server get socket timeout! timeout[120 s]"
    ranks = ",".join(f"[{rank:016}]" for rank in range(16))
    line = "[ERROR] HCCL(2001,python):2026-03-18-09:00:01.100.300 [x.cc:1] [2301]"
    for needed, says in ((24, True), (23, False), (20, False)):
        command_line.write(
            "logs",
            f"{line}{gave_up}\n{line}{root}need connect rankNum is [{needed}]\n{line}{root}connected rankinfo[LINE 0]: {ranks};\n",
        )

        assert ("with 8 devices per host, they are one whole host" in answer(command_line)) == says


def test_a_send_and_its_receive_do_not_differ_from_each_other(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    for rank, name in enumerate(("Send", "Receive", "AllReduce", "AllReduce")):
        waiting(job, rank, f"{name}_world")

    assert "Rank 0 is in Send, ranks 2-3 are in AllReduce" in answer(command_line).splitlines()[0]
