"""Screens as people have them: prefixes of launchers and containers, colours, progress bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain import explaining, screens, sources
from hccl_tools.explain.scanner import Scanner

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.explain.events import Event

FAULT = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity)"
PLOG = "[ERROR] HCCL(4711,python3):2026-03-18-10:33:52.113.403 [x.cc:1] host nic listen start failed, port[60000]"


def event(line: str) -> Event:
    found = Scanner().event(line.encode())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("before", "host", "rank"),
    [
        ("[pod/job-worker-1/training] ", "job-worker-1", None),
        ("[pod/job-worker-1/training] [rank3]: ", "job-worker-1", 3),
        ("[pod/job-worker-1/training] 2026-03-18T10:33:52.113403012Z ", "job-worker-1", None),
        ("worker-1  | ", "worker-1", None),
        ("stack_trainer_2 | [1,5]<stderr>:", "stack_trainer_2", 5),
        ("job_worker.2.x1y2z3@node-b    | ", "node-b", None),
        ("3: ", "", 3),
        (" 12: ", "", 12),
        ("[1,3]<stderr>:", "", 3),
        ("[1,3]<stderr>: ", "", 3),
        ("Wed Mar 18 10:33:52 2026[1,3]<stdout>:", "", 3),
        ("[prterun-node-a-4711@1,3]<stderr>: ", "", 3),
        ("[3] ", "", 3),
        ("[rank 3] ", "", 3),
        ("[rank3]: ", "", 3),
        ("[default3]:", "", 3),
        ("(RayWorkerWrapper pid=812, ip=10.0.0.2) ", "10.0.0.2", None),
        ("  3%|##        | 3/100 [00:01<00:32,  3.01it/s]", "", None),
        ("\x1b[31m[rank3]:\x1b[0m ", "", 3),
    ],
)
@pytest.mark.parametrize("line", [FAULT, PLOG])
def test_a_prefix_names_rank_and_host(before: str, host: str, rank: int | None, line: str) -> None:
    found = event(screens.plain(f"{before}{line}".encode()).decode())

    assert (found.fields.get("server", ""), found.rank) == (host, rank)
    assert found.message is event(line).message


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: 3: NPU out of memory",
        "pod/job-worker-1/training] NPU out of memory: error",
        "loss | NPU out of memory",
        "[12]: NPU out of memory",
        "[1,] NPU out of memory",
        "(pid 812, ip=10.0.0.2) NPU out of memory",
    ],
)
def test_what_is_no_prefix_names_neither_host_nor_a_wrong_rank(line: str) -> None:
    found = event(line)

    assert "server" not in found.fields
    assert found.rank is None


def test_two_pods_with_the_same_process_id_are_two_processes(tmp_path: Path) -> None:
    line = "[ERROR] HCCL(1,python3):2026-03-18-10:33:52.113.403 [x.cc:1] {}"
    log = tmp_path / "kubectl.log"
    log.write_text(
        f"[pod/job-worker-0/main] {line.format('host nic listen start failed, port[60000]')}\n"
        f"[pod/job-worker-1/main] {line.format('host nic listen start failed, port[60000]')}\n"
    )
    found = Scanner().scan(str(log), 0).events

    assert [one.pid for one in found] == ["job-worker-0:1", "job-worker-1:1"]


def test_the_answer_names_the_pod(tmp_path: Path) -> None:
    log = tmp_path / "kubectl.log"
    log.write_text(f"[pod/job-worker-0/main] step 1\n[pod/job-worker-1/main] {PLOG}\n")
    (first, *_) = explaining.explain([sources.source(str(log))]).causes

    assert [place.host for place in first.places] == ["job-worker-1"]


def test_a_line_after_progress_has_its_number_and_no_progress(tmp_path: Path) -> None:
    log = tmp_path / "screen.log"
    bars = b"\r".join(b" %d%%|##  | %d/100 [00:01<00:32,  3.01it/s]" % (step, step) for step in range(90))
    log.write_bytes(
        b"one\n" + bars * 20 + b"\r" + FAULT.encode() + b"\r" + bars + b"\nthree\n" + PLOG.encode()
    )
    found = Scanner().scan(str(log), 0).events

    assert [(one.line, one.text) for one in found] == [(2, FAULT), (4, PLOG)]


def test_colours_are_no_part_of_a_line(tmp_path: Path) -> None:
    log = tmp_path / "screen.log"
    log.write_bytes(b"\x1b[1;31mValueError\x1b[0m: \x1b]0;title\x070 samples\x1b[K\n")
    (found,) = Scanner().scan(str(log), 0).events

    assert (found.fields["reason"], found.text) == ("ValueError: 0 samples", "ValueError: 0 samples")
