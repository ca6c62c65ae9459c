"""Dumps of flight recorders: which rank is behind, differs, or waits in another order than the others."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.explain.test_stacks_of_ranks import READ, REDUCE, spied
from tests.support.jobs import LONG
from tests.support.recorder_dumps import Recorder
from tests.support.torch_python import TORCH_PYTHON, needs_torch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.support.commands import CommandLine

NAMES = ["trace_{rank}.json", "nccl_trace_rank_{rank}", "hccl_trace_rank_{rank}", "rank_{rank}.pkl"]


@pytest.fixture
def folder(command_line: CommandLine) -> Path:
    path = command_line.folder / "dumps"
    path.mkdir()
    return path


def recorders(size: int, titles: Sequence[str] = (), **about: str | bool) -> list[Recorder]:
    """Return the recorders of all ranks; each group has all of them, and ten collectives have ended."""
    groups = {title: range(size) for title in ("default_pg", *titles)}
    found = [Recorder(rank, groups, **about) for rank in range(size)]  # type: ignore[arg-type]
    return [one.calls(10) for one in found]


def written(folder: Path, ranks: Sequence[Recorder], name: str = NAMES[0]) -> None:
    for one in ranks:
        one.write(folder, name)


def answer(command_line: CommandLine) -> str:
    return command_line("explain", "dumps").out


@pytest.mark.parametrize("size", [2, 4, 20, 64])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", ["gloo", "nccl", "hccl"])
def test_a_rank_that_has_not_come_is_behind(
    command_line: CommandLine, folder: Path, size: int, name: str, backend: str
) -> None:
    ranks = recorders(size, backend=backend)
    late = size // 2
    for one in ranks:
        if one.rank != late:
            one.call("all_gather", done=False)
    written(folder, ranks, name)

    out = answer(command_line)

    assert out.startswith(f"Rank {late}: the rank is behind the others")
    assert f"in all_gather number 11 of group default_pg; rank {late} last issued number 10" in out
    assert "(inferred from the lines of the ranks)" in out


def test_its_stack_says_where_it_is(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(4)
    for one in ranks[:3]:
        one.call(done=False)
    written(folder, ranks)
    (folder / "rank3.txt").write_text(spied(3, READ))

    assert "rank 3 last issued number 10 and is in read (nfs_reader.py:57)" in answer(command_line)


def test_ranks_that_issue_ahead_do_not_hide_the_first_one(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(4, backend="hccl")
    for one in ranks[:3]:
        one.calls(5, done=False)
    written(folder, ranks)

    assert "Ranks 0-2 wait in all_reduce number 11 of group default_pg; rank 3 last" in answer(command_line)


def test_a_group_without_all_ranks_misses_its_own_members_only(
    command_line: CommandLine, folder: Path
) -> None:
    groups = {"default_pg": range(8), "tp0": range(4), "tp1": range(4, 8)}
    ranks = [Recorder(rank, groups).calls(3) for rank in range(8)]
    for one in ranks:
        title = f"tp{one.rank // 4}"
        one.calls(2, group=title)
        if one.rank not in {0, 1, 2, 3}:
            one.call(done=False)
        elif one.rank != 2:
            one.call(group=title, done=False)
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 2: the rank is behind")
    assert "rank 2 last issued number" in out


def test_another_operation(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(4)
    for one in ranks:
        one.call("broadcast" if one.rank == 1 else "all_reduce", done=False)
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 1: the ranks of a communicator are in different operations.")
    assert "At number 11 of group default_pg, ranks 0,2-3 in all_reduce, rank 1 in broadcast" in out


def test_another_size(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(3)
    for one in ranks:
        one.call(size=(8, 4) if one.rank == 2 else (8, 8), done=False)
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 2: the ranks of a communicator are in different operations.")
    assert "all are in all_reduce, ranks 0-1 with [[8, 8]], rank 2 with [[8, 4]]" in out


def test_sizes_that_may_differ_are_no_difference(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(3)
    for one in ranks:
        one.call("all_to_all", size=(one.rank + 1,), done=False)
    written(folder, ranks)

    assert "all ranks have begun the operation, and it has not ended" in answer(command_line)


def test_another_order_of_two_groups(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(4, ("a", "b"))
    for one in ranks:
        one.call(group="b" if one.rank == 3 else "a", done=False)
    written(folder, ranks)

    out = answer(command_line)

    assert "Ranks 0-2 wait in all_reduce number 1 of group a for rank 3" in out
    assert "rank 3 waits in all_reduce number 1 of group b for ranks 0-2" in out
    assert "they use the two groups in another order, or some have left out one operation" in out
    assert out.startswith("Rank 3: ")


def test_another_type(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(3)
    for one in ranks:
        one.call(done=False, dtype="Half" if one.rank == 1 else "Float")
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 1: the ranks of a communicator are in different operations")
    assert "ranks 0,2 with elements of type Float, rank 1 with elements of type Half" in out


def test_the_group_in_which_a_rank_is_missing_comes_before_those_that_wait_for_its_group(
    command_line: CommandLine, folder: Path
) -> None:
    groups = {"default_pg": range(8), "tp0": range(4), "tp1": range(4, 8)}
    ranks = [Recorder(rank, groups) for rank in range(8)]
    for one in ranks:
        group = "tp0" if one.rank < 4 else "tp1"
        one.call().call(group=group)
        if one.rank < 4:
            one.call(done=False)
        elif one.rank != 5:
            one.call(group=group, done=False)
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 5: the rank is behind the others")
    assert "Ranks 4,6-7 wait in all_reduce number 2 of group tp1; rank 5 last issued number 1" in out


def test_ranks_that_are_behind_in_two_groups_are_named_together(
    command_line: CommandLine, folder: Path
) -> None:
    groups = {"default_pg": range(8), "tp0": range(4), "tp1": range(4, 8)}
    ranks = [Recorder(rank, groups) for rank in range(8)]
    for one in ranks:
        one.call(group="tp0" if one.rank < 4 else "tp1")
        if one.rank not in {1, 6}:
            one.call(group="tp0" if one.rank < 4 else "tp1", done=False)
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Ranks 1,6: the rank is behind the others")
    assert (
        "group tp0, ranks 4-5,7 wait in all_reduce number 2 of group tp1; rank 1 last issued number 1" in out
    )


def test_a_collective_that_a_device_has_not_begun_is_not_begun(
    command_line: CommandLine, folder: Path
) -> None:
    groups = {"default_pg": range(2), "tp0": range(2)}
    ranks = [Recorder(rank, groups, backend="nccl") for rank in range(2)]
    for one, (first, second) in zip(ranks, (("default_pg", "tp0"), ("tp0", "default_pg")), strict=True):
        one.call(group=first, done=False, state="started").call(group=second, done=False)
    written(folder, ranks)

    assert "they use the two groups in another order" in answer(command_line)


def test_a_rank_whose_device_has_not_begun_what_the_others_have(
    command_line: CommandLine, folder: Path
) -> None:
    ranks = recorders(3, backend="nccl")
    for one in ranks:
        one.call(done=False, state="scheduled" if one.rank == 2 else "started")
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 2: ")
    assert "rank 2 has issued it, and its device has not begun it" in out


def test_a_send_and_its_receive_of_another_size(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(2, backend="nccl")
    ranks[0].transfer("send", 1, done=False, size=(2, 1024))
    ranks[1].transfer("recv", 0, done=False, size=(2, 2048))
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Ranks 0-1: the ranks of a communicator are in different operations")
    assert "rank 0 sends [[2, 1024]] to rank 1, which expects [[2, 2048]]" in out


@pytest.mark.parametrize(
    ("ahead", "said"), [(20, "the dumps of the ranks are of different times"), (1, "HCM940")]
)
def test_dumps_of_different_times(command_line: CommandLine, folder: Path, ahead: int, said: str) -> None:
    ranks = recorders(3)
    ranks[0].call("broadcast", done=False)
    for one in ranks[1:]:
        one.calls(ahead, name="broadcast")
    written(folder, ranks)

    found = command_line("explain", "dumps", "-f", "json").out if said == "HCM940" else answer(command_line)

    assert said in found


def test_a_dump_that_lacks_what_others_have_ended_is_older(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(3)
    for one in ranks[:2]:
        one.calls(6).call(done=False)
    ranks[2] = Recorder(2, {"default_pg": range(3)})
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 2: the dumps of the ranks are of different times, or some are empty")
    assert "other ranks have ended operations that the dump of rank 2 lacks" in out


def test_an_older_dump_does_not_hide_the_rank_that_is_behind(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(4)
    for one in ranks:
        one.calls(2 if one.rank == 2 else 6)
    for one in (ranks[0], ranks[3]):
        one.call(done=False)
    written(folder, ranks)

    assert answer(command_line).startswith("Rank 1: the rank is behind the others")


def test_of_two_groups_that_lack_a_rank_the_one_that_waits_longer_comes_first(
    command_line: CommandLine, folder: Path
) -> None:
    groups = {"default_pg": range(4), "dp0": (0, 2), "tp0": (2, 3)}
    ranks = [Recorder(rank, groups) for rank in range(4)]
    for one in ranks:
        one.call()
    ranks[0].call(group="dp0", done=False, after=9.0)
    ranks[3].call(group="tp0", done=False)
    written(folder, ranks)

    assert "Rank 3 waits in all_reduce number 1 of group tp0" in answer(command_line)


@pytest.mark.parametrize(
    ("dumps", "first"),
    [(3, "Rank 2: the rank is behind"), (2, "A container or job reached its memory limit")],
)
def test_a_process_that_was_killed_is_no_rank_if_all_have_a_dump(
    command_line: CommandLine, folder: Path, dumps: int, first: str
) -> None:
    ranks = recorders(3)
    for one in ranks[:2]:
        one.call(done=False)
    written(folder, ranks[:dumps])
    line = "Memory cgroup out of memory: Killed process 2210 (node_exporter) total-vm:1241231kB"
    (folder / "dmesg.txt").write_text(f"[  811.120440] {line}\n")

    assert answer(command_line).startswith(first)


@pytest.mark.parametrize(
    ("rank", "first"), [(1, "Rank 2: the rank is behind"), (2, "Rank 2: the device has no memory")]
)
def test_a_fault_of_a_rank_that_waits_is_not_the_cause(
    command_line: CommandLine, folder: Path, rank: int, first: str
) -> None:
    ranks = recorders(3)
    for one in ranks[:2]:
        one.call(done=False)
    written(folder, ranks)
    text = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity)\n"
    (folder / f"rank_{rank}.log").write_text(text)

    assert answer(command_line).startswith(first)


def test_dumps_of_two_jobs_are_not_mixed(command_line: CommandLine, folder: Path) -> None:
    first, second = folder / "a", folder / "b"
    for name, size in ((first, 3), (second, 2)):
        name.mkdir()
        ranks = recorders(size)
        for one in ranks[:2] if size == 3 else ():
            one.call(done=False)
        written(name, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 2: the rank is behind the others")
    assert "the dumps in dumps/a are explained; dumps/b has dumps of the same ranks" in " ".join(out.split())


@pytest.mark.parametrize("config", [True, False])
def test_all_have_come_and_the_transport_is_at_fault(
    command_line: CommandLine, folder: Path, config: bool
) -> None:
    ranks = recorders(4, config=config)
    for one in ranks:
        one.call(done=False)
    written(folder, ranks)

    out = answer(command_line)

    assert "all ranks have begun the operation, and it has not ended: none is behind" in out
    assert "All 4 ranks of the group have begun all_reduce number 11 of group default_pg" in out


def test_a_rank_without_a_dump_is_no_rank_that_is_behind(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(4)
    for one in ranks[:3]:
        one.call(done=False)
    written(folder, ranks[:3])

    out = answer(command_line)

    assert out.startswith("Rank 3: the rank has left no dump of its flight recorder, and the others wait.")
    assert "The logs do not show the cause" in out or "the logs do not show the cause" in out


def test_a_pipeline_waits_for_its_first_stage(command_line: CommandLine, folder: Path) -> None:
    groups = {"default_pg": range(8), "pp": (1, 3, 5, 7)}
    ranks = {rank: Recorder(rank, groups, backend="nccl") for rank in (1, 3, 5, 7)}
    for rank, one in ranks.items():
        for step in range(3):
            is_last = step == 2
            if rank > 1:
                one.transfer("recv", rank - 2, "pp", done=not is_last)
            if rank < 7 and not is_last:
                one.transfer("send", rank + 2, "pp")
        one.write(folder)
    (folder / "rank1.txt").write_text(spied(1, READ))

    out = answer(command_line)

    assert out.startswith("Rank 1: the rank is behind the others")
    assert (
        "Rank 3 waits in recv from rank 1 in group pp; rank 1 has not issued the send and is in read" in out
    )


def test_two_ranks_that_both_receive_wait_for_each_other(command_line: CommandLine, folder: Path) -> None:
    for rank in range(2):
        one = Recorder(rank, {"default_pg": range(2)}, backend="nccl").calls(3)
        one.transfer("recv", 1 - rank, done=False).write(folder)

    assert "for rank 1, and rank 1 waits in recv from rank 0" in answer(command_line)


def test_a_rank_that_comes_last_each_time(command_line: CommandLine, folder: Path) -> None:
    groups = {"default_pg": range(4)}
    ranks = [Recorder(rank, groups).calls(20, after=0.6 if rank == 2 else rank / 1000) for rank in range(4)]
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 2: the rank comes last to the operations of its group")
    assert "the last to begin 20 of the last 20 collectives of group default_pg, 0.597 s after" in out


def test_a_healthy_job_has_no_cause(command_line: CommandLine, folder: Path) -> None:
    written(folder, recorders(4))

    assert answer(command_line).startswith("no cause found")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            pickle.dumps({"pg_config": os.system}, 2),
            "it is no pickle of plain values (it names posix.system)",
        ),
        (pickle.dumps({"pg_config": {}, "entries": []}, 2)[:-9], "it is no pickle of plain values"),
        (b'{"pg_config": {}, "entries": [', "this is not JSON"),
        (json.dumps({"pg_config": [], "pg_status": 3, "entries": {"a": 1}, "rank": -7}).encode(), "the rank"),
    ],
)
def test_a_dump_that_is_none_costs_a_note(
    command_line: CommandLine, folder: Path, content: bytes, why: str
) -> None:
    (folder / "trace_").write_bytes(content)
    ranks = recorders(3)
    for one in ranks[:2]:
        one.call(done=False)
    written(folder, ranks)

    out = answer(command_line)

    assert out.startswith("Rank 2: the rank is behind")
    assert "dumps/trace_ was not read: " in out
    assert why in out


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_pickle_of_another_user_is_not_read(command_line: CommandLine, folder: Path) -> None:
    written(folder, recorders(2), "nccl_trace_rank_{rank}")
    os.chown(folder / "nccl_trace_rank_0", 65534, 65534)

    assert "dumps/nccl_trace_rank_0 was not read: it is a pickle of another user" in answer(command_line)


WATCHDOG = (
    "[rank{rank}]:[E119 04:12:55.018230101 compiler_depend.ts:1] [Rank {rank}] Watchdog caught collective operation"
    " timeout: WorkHCCL(SeqNum=362249, OpType=ALLGATHER, Timeout(ms)=1800000) ran for 1800278 milliseconds\n"
)
LAST = (
    "[rank{rank}]:[E119 04:12:56.018230101 ProcessGroupHCCL.cpp:1717] [PG ID 0 PG GUID 0 Rank {rank}] Received a dump"
    " signal due to a collective timeout from rank 0. Last enqueued HCCL work: {last}, last completed HCCL work: 362248.\n"
)


def test_lines_of_the_watchdog_and_a_stack(command_line: CommandLine, folder: Path) -> None:
    for rank in range(19):
        (folder / f"rank_{rank}.log").write_text(WATCHDOG.format(rank=rank))
    (folder / "rank_19.log").write_text("step 7\n" + spied(19, READ))

    out = answer(command_line)

    assert out.startswith("Rank 19: the rank is not in the operation in which the others wait for it.")
    assert "Ranks 0-18 wait in allgather number 362,249 of group 0; rank 19 is in read" in out


def test_lines_of_the_watchdog_with_the_last_work_of_each_rank(
    command_line: CommandLine, folder: Path
) -> None:
    for rank in range(20):
        lines = WATCHDOG.format(rank=rank) if rank != 19 else ""
        lines += LAST.format(rank=rank, last=362248 if rank == 19 else 362249)
        (folder / f"rank_{rank}.log").write_text(lines)
    (folder / "stack_rank_19.txt").write_text(spied(19, READ))

    out = answer(command_line)

    assert out.startswith("Rank 19: the rank is behind the others")
    assert "rank 19 last issued number 362,248 and is in read (nfs_reader.py:57)" in out


def test_the_last_work_of_each_rank_alone(command_line: CommandLine, folder: Path) -> None:
    for rank in range(4):
        text = LAST.format(rank=rank, last=362248 if rank == 1 else 362249)
        (folder / f"rank_{rank}.log").write_text(text)

    out = answer(command_line)

    assert out.startswith("Rank 1: the rank is behind the others")
    assert "Ranks 0,2-3 wait in operation number 362,249 of group 0; rank 1 last issued number 362,248" in out


@pytest.mark.parametrize("reason", ["timeout", "hang"])
def test_a_collective_on_its_way_when_a_job_was_ended_is_no_hang(
    command_line: CommandLine, folder: Path, reason: str
) -> None:
    ranks = recorders(3)
    for one in ranks:
        one.call(done=False)
    written(folder, ranks)
    about = [{"rank": rank, "pid": 1, "recorder_problem": ""} for rank in range(3)]
    host = {
        "host": "a",
        "reason": reason,
        "taken": "2026-03-18T10:00:00+0000",
        "seconds": 1.0,
        "ranks": about,
    }
    (folder / "evidence_0.json").write_text(json.dumps(host))

    assert ("all ranks have begun the operation" in answer(command_line)) is (reason == "hang")


def test_a_stack_in_the_collective_itself_names_no_other_rank(
    command_line: CommandLine, folder: Path
) -> None:
    for rank in range(3):
        (folder / f"rank_{rank}.log").write_text(WATCHDOG.format(rank=rank))
    (folder / "rank_3.log").write_text("step 7\n" + spied(3, REDUCE))

    assert "rank 3 is in" not in answer(command_line)


def test_ranks_that_gave_up_waiting_are_not_the_cause(command_line: CommandLine, folder: Path) -> None:
    said = "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation"
    ranks = recorders(4)
    for one in ranks:
        if one.rank != 2:
            one.call(done=False)
            (folder / f"rank_{one.rank}.log").write_text(f"{said} to complete\n")
    written(folder, ranks)

    assert answer(command_line).startswith("Rank 2: the rank is behind the others")


def test_an_exception_of_a_rank_comes_first(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(4)
    for one in ranks:
        if one.rank != 2:
            one.call(done=False)
    written(folder, [ranks[0], ranks[1], ranks[3]])
    text = (
        'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    x()\nValueError: bad\n'
    )
    (folder / "rank_2.log").write_text(text)

    assert answer(command_line).startswith("Rank 2: the program raised an exception: ValueError: bad")


def test_a_rank_that_says_that_it_is_done_is_awaited(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(4)
    for one in ranks[:3]:
        one.call(done=False)
    written(folder, ranks[:3])
    (folder / "rank_3.log").write_text("epoch 9\ntraining finished\n")

    assert answer(command_line).startswith("Rank 3: the rank has left no dump")


@pytest.mark.parametrize("kind", ["by rank", "list", "compressed"])
def test_other_places_of_dumps(command_line: CommandLine, folder: Path, kind: str) -> None:
    ranks = recorders(4)
    for one in ranks[1:]:
        one.call(done=False)
    dumps = {f"rank {one.rank}": one.dump() for one in ranks}
    if kind == "by rank":
        (folder / "all.json").write_text(json.dumps(dumps))
    elif kind == "list":
        (folder / "all.json").write_text(
            json.dumps([{**dump, "rank": rank} for rank, dump in enumerate(dumps.values())])
        )
    else:
        for rank, dump in enumerate(dumps.values()):
            (folder / f"trace_{rank}.json.gz").write_bytes(gzip.compress(json.dumps(dump).encode()))

    assert answer(command_line).startswith("Rank 0: the rank is behind the others")


def test_dumps_of_an_earlier_start_do_not_count(command_line: CommandLine, folder: Path) -> None:
    for number, late in enumerate((0, 2)):
        for one in recorders(3):
            if one.rank != late:
                one.call(done=False)
            end = ".restart_1" if number else ""
            one.write(folder, f"recorder_rank_{{rank}}{end}.json")

    assert answer(command_line).startswith("Rank 2: the rank is behind")


def test_ranks_of_hosts_without_evidence_here_are_not_missing(
    command_line: CommandLine, folder: Path
) -> None:
    ranks = recorders(3)
    for one in ranks[:2]:
        one.call(done=False)
    written(folder, ranks[:2])
    about = [{"rank": rank, "pid": 1, "recorder_problem": ""} for rank in range(2)]
    host = {
        "host": "a",
        "reason": "hang",
        "taken": "2026-03-18T10:00:00+0000",
        "seconds": 1.0,
        "ranks": about,
    }
    (folder / "evidence_0.json").write_text(json.dumps(host))

    assert "has left no dump" not in answer(command_line)


def test_evidence_is_read_beside_dumps(command_line: CommandLine, folder: Path) -> None:
    ranks = recorders(3)
    for one in ranks[:2]:
        one.call(done=False)
    written(folder, ranks[:2])
    stack = [
        '  File "/home/me/train.py", line 11 in compute',
        '  File "/home/me/train.py", line 30 in <module>',
    ]
    rank = {
        "rank": 2,
        "pid": 11,
        "doing": "running",
        "stack": stack,
        "recorder_problem": "it has not answered",
    }
    host = {
        "host": "a",
        "reason": "hang",
        "taken": "2026-03-18T10:00:00+0000",
        "seconds": 1.0,
        "ranks": [rank],
    }
    (folder / "evidence_0.json").write_text(json.dumps(host))

    out = answer(command_line)

    assert out.startswith("Rank 2: the rank has left no dump")
    assert "it has not answered and is in compute (/home/me/train.py:11)" in out


#: What torch's own analyser calls each hang.
ANALYSER = {
    "missing": "missing ranks: {2}",
    "operation": "Culprit rank 2; Error type: COLLECTIVE_TYPE_MISMATCH",
    "size": "Culprit rank 2; Error type: SIZE_OR_SYNTAX_MISMATCH",
}


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("kind", ANALYSER)
def test_the_rank_is_that_of_torchs_own_analyser(command_line: CommandLine, folder: Path, kind: str) -> None:
    for one in recorders(4, backend="nccl"):
        if kind != "missing" or one.rank != 2:
            name = "broadcast" if kind == "operation" and one.rank == 2 else "all_reduce"
            one.call(name, size=(4,) if kind == "size" and one.rank == 2 else (16,), done=False)
        one.write(folder, "trace_{rank}")
    torchs = subprocess.run(
        [TORCH_PYTHON, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder), "-p", "trace_"],
        capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip

    assert ANALYSER[kind] in torchs.stdout + torchs.stderr
    assert answer(command_line).startswith("Rank 2: ")


def doubled(value: object, times: int) -> object:
    for _ in range(times):
        value = [value, value]
    return value


def within_itself() -> list[object]:
    value: list[object] = []
    value.append([value])
    return value


def test_frames_that_all_calls_share_are_read(command_line: CommandLine, folder: Path) -> None:
    """As torch writes them."""
    ranks = recorders(2)
    ranks[0].call(done=False)
    frames = [{"name": "step", "filename": "/home/me/train.py", "line": 5}]
    for one in ranks:
        dump = one.dump()
        for entry in dump["entries"]:
            entry["frames"] = [frames[0], frames[0]]
        (folder / f"nccl_trace_rank_{one.rank}").write_bytes(pickle.dumps(dump, 2))

    assert answer(command_line).startswith("Rank 1: the rank is behind the others")


#: Two ranks of torch, of which the first has begun one operation more, write pickles with their stacks.
REAL_DUMPS = """\
import os, pickle, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
def step(**options):
    return dist.all_reduce(torch.ones(4), **options)
for _ in range(6): step()
kept = [step(async_op=True)] if dist.get_rank() == 0 else []
def dump():
    return torch._C._distributed_c10d._dump_fr_trace(includeStackTraces=True)
def wait(condition):
    while not condition(): time.sleep(0.01)
wait(lambda: all(one["retired"] for one in pickle.loads(dump())["entries"][:6]))
with open(f"dumps/nccl_trace_rank_{dist.get_rank()}", "wb") as file:
    file.write(dump())
wait(lambda: len(os.listdir("dumps")) == 2)
os._exit(0)
"""


@needs_torch
@pytest.mark.slow
def test_pickles_of_torch_with_stacks_are_read(command_line: CommandLine, folder: Path) -> None:
    (folder.parent / "dumps.py").write_text(REAL_DUMPS)
    done = subprocess.run(
        [TORCH_PYTHON, "-m", "torch.distributed.run", "--nproc-per-node=2", "dumps.py"], cwd=folder.parent,
        env={**os.environ, "TORCH_FR_BUFFER_SIZE": "100"}, capture_output=True, text=True, check=False, timeout=LONG,
    )  # fmt: skip

    assert sorted(one.name for one in folder.iterdir()) == ["nccl_trace_rank_0", "nccl_trace_rank_1"], (
        done.stderr
    )
    out = answer(command_line)
    assert out.startswith("Rank 1: the rank is behind the others"), out
    assert "rank 1 last issued number 6" in out


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (pickle.dumps({"pg_config": {}, "entries": doubled(1, 60)}, 2), "it has more than 8,000,000 values"),
        (pickle.dumps({"pg_config": {}, "entries": within_itself()}, 2), "it contains itself"),
        (b"\x80\x02}X\x09\0\0\0pg_statusK\1K\1\x860q\0s.", "it has the instruction POP"),
        (
            b"\x80\x02}X\x09\0\0\0pg_status)" + b"\x85" * 1001 + b"s.",
            "it has more than 1,000 levels of values",
        ),
        (
            pickle.dumps({"pg_config": {(1, 2): 3}}, 2),
            "it has a key that is neither a text nor a small number",
        ),
        (
            pickle.dumps({"pg_config": {1 << 20: 3}}, 2),
            "it has a key that is neither a text nor a small number",
        ),
        (pickle.dumps({"pg_config": {}, "rank": 1 << 20_000}, 2), "a number of more than 64 bits"),
    ],
)
def test_a_small_pickle_of_a_large_value_is_refused(
    command_line: CommandLine, folder: Path, content: bytes, why: str
) -> None:
    (folder / "nccl_trace_rank_0").write_bytes(content)

    done = command_line("explain", "dumps")

    assert why in done.out
    assert "Traceback" not in done.err


@pytest.mark.parametrize("ranks", ["{[]}", "[0, 1", "[[0]]", "[" * 1000, "[99999999999999999999]"])
def test_members_that_are_no_list_are_unknown(command_line: CommandLine, folder: Path, ranks: str) -> None:
    entry = {"process_group": ["0", "d"], "collective_seq_id": 1, "profiling_name": "nccl:all_reduce"}
    dump = {"rank": 0, "pg_config": {"0": {"name": "0", "ranks": ranks}}, "entries": [entry]}
    (folder / "trace_0.json").write_text(json.dumps(dump))
    done = command_line("explain", "dumps")

    assert "was not read" not in done.out + done.err
    assert "Traceback" not in done.err


def nested(times: int) -> object:
    value: object = []
    for _ in range(times):
        value = [value]
    return value


def test_nested_values_are_shortened(command_line: CommandLine, folder: Path) -> None:
    entry = {
        "process_group": ["0", nested(200)], "collective_seq_id": 1, "profiling_name": nested(200),
        "input_sizes": nested(200),
    }  # fmt: skip
    dump = {"rank": 0, "pg_config": {"0": {"name": nested(200)}}, "pg_status": {}, "entries": [entry]}
    (folder / "nccl_trace_rank_0").write_bytes(pickle.dumps(dump, 2))
    done = command_line("explain", "dumps")

    assert "was not read" not in done.out + done.err
    assert "Traceback" not in done.err
