"""``explain RUN`` of a job whose other host keeps its logs on its own disk."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import codec
from hccl_tools.codec import DecodeError
from hccl_tools.explain import explaining, remote_logs
from hccl_tools.explain.events import clock
from hccl_tools.explain.knowledge.pattern_fields import pattern_fields
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.scanner import NUMBERS, Scanner
from hccl_tools.runs import own_runs
from tests.support.bulk import for_each
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.commands import CommandLine

PORT = "[ERROR] HCCL(4001,p):2026-03-18-10:00:05.113.403 [x.cc:1] host nic listen start failed, port[60000]\n"
WAIT = "[ERROR] HCCL(4000,p):2026-03-18-10:02:05.113.403 [x.cc:1] topo exchange agent get socket timeout! timeout[120]\n"


@pytest.fixture
def run_dir(command_line: CommandLine) -> Path:
    """A run of two hosts: rank 0 has its log here, rank 1 on ``hostb``."""
    here = command_line.folder / "log" / "run1"
    here.mkdir(parents=True)
    processes = [
        {"rank": rank, "host": host, "log": f"rank_{rank}.log", "argv": ["x"], "here": rank == 0, "device": 0}
        for rank, host in enumerate(["hosta", "hostb"])
    ]
    (here / "plan.json").write_text(json.dumps({"processes": processes, "hosts": ["hosta", "hostb"]}))
    (here / "rank_table.json").write_text(json.dumps(table("1.0", 2, 1)))
    (here / "rank_0.log").write_text(WAIT)
    there = command_line.folder / "hostb"
    there.mkdir()
    (there / "rank_1.log").write_text(PORT)
    own_runs.note(str(here), os.environ)
    return here


def ssh(folder: Path, text: str) -> str:
    """Write a program that stands for ssh; it gets the host and the command line for its shell."""
    program = folder / "ssh"
    program.write_text(f'#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n{text}\n')
    program.chmod(0o755)
    return str(program)


def test_the_logs_of_the_other_host_are_searched_there(command_line: CommandLine, run_dir: Path) -> None:
    there = shlex.quote(str(command_line.folder / "hostb"))
    python = shlex.quote(sys.executable)
    program = ssh(command_line.folder, f"exec {python} -m hccl_tools explain --serve -- {there}")
    done = command_line("explain", "run1", "--ssh", program)

    lines = done.out.splitlines()
    assert lines[0].startswith("Rank 1 (device 0 of ")
    assert "port 60000" in lines[0]
    assert lines[1].startswith("  in hostb:")
    assert not any("is on hostb only" in line for line in lines)


def test_on_a_shared_disk_a_host_has_the_logs_of_its_own_ranks_only(
    command_line: CommandLine, run_dir: Path
) -> None:
    plan = json.loads((run_dir / "plan.json").read_text())
    plan["processes"][1]["host"] = "hostc"
    plan["processes"].append({"rank": 2, "host": "hostb", "log": "rank_2.log", "argv": ["x"], "device": 1})
    (run_dir / "plan.json").write_text(json.dumps(plan))
    (run_dir / "rank_1.log").write_text(PORT)
    here, python = shlex.quote(str(run_dir)), shlex.quote(sys.executable)
    program = ssh(command_line.folder, f"exec {python} -m hccl_tools explain --serve -- {here}")
    done = command_line("explain", "run1", "--ssh", program)

    lines = done.out.splitlines()
    assert lines[0].startswith("Rank 1 (device 0 of ")
    assert not any("hostb:" in line for line in lines)


def test_a_host_that_cannot_be_reached_costs_a_note(command_line: CommandLine, run_dir: Path) -> None:
    program = ssh(
        command_line.folder, "echo 'ssh: connect to host hostb port 22: No route to host' >&2; exit 255"
    )
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code == 0
    assert "  hostb: ssh: connect to host hostb port 22: No route to host" in done.out


def test_a_host_that_floods_is_given_up_and_another_one_is_read(
    command_line: CommandLine, run_dir: Path
) -> None:
    """The flood has no end: the answer comes because its size has a limit."""
    plan = json.loads((run_dir / "plan.json").read_text())
    plan["processes"].append({**plan["processes"][1], "rank": 2, "host": "hostc", "log": "rank_2.log"})
    plan["hosts"].append("hostc")
    (run_dir / "plan.json").write_text(json.dumps(plan))
    own_runs.note(str(run_dir), os.environ)
    program = ssh(
        command_line.folder,
        f"case $2 in hostc) exec cat /dev/zero;; esac; echo {shlex.quote(json.dumps(ANSWER))}",
    )
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code == 0
    assert "  in hostb:/log/rank_1.log:1 " in done.out
    assert "  hostc has sent more than 64 MiB: its answer was not read" in done.out.splitlines()


@pytest.mark.parametrize("answer", ["{}", "nonsense", '{"sources": [], "events": [["X"]], "notes": []}'])
def test_an_answer_of_another_form_costs_a_note(
    command_line: CommandLine, run_dir: Path, answer: str
) -> None:
    program = ssh(command_line.folder, f"echo {shlex.quote(answer)}")
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code == 0
    assert "  the answer of hostb cannot be read: " in done.out


#: What an answer may have in the place of anything.
OTHERS: tuple[Any, ...] = (
    *(None, True, -7, 10**9, 10**30, 1.5, 1e300, "", "x", "\x1b[31m;$(id)", "y" * 70_000, "\ud800"),
    *([], {}, [[]], {"a": 1}, [1, "2"]),
)
EVENT = {
    "message": "HCM205", "fields": {"port": "60000"}, "codes": ["EJ0003"], "file": 0, "line": 1,
    "time": 1.0, "pid": "7", "rank": None, "text": "line", "after": None, "before": None, "program": "",
    "is_yearless": False,
}  # fmt: skip
ANSWER = {
    "sources": [{"path": "/log/rank_1.log", "rank": 1, "pid": "", "group": "/log"}],
    "events": [EVENT],
    "notes": ["a note"],
}


def changed(value: Any) -> Iterator[Any]:
    """Yield a value with each of its places, itself included, replaced, left out, or added to."""
    yield from OTHERS
    if isinstance(value, dict):
        yield {**value, "more": 1}
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
            yield from ({**value, key: other} for other in changed(value[key]))
    elif isinstance(value, list) and value:
        yield from ([other, *value[1:]] for other in changed(value[0]))


@for_each(list(changed(ANSWER)), repr)
def test_a_hostile_answer_costs_a_note(answer: Any) -> None:
    fetched = remote_logs.Fetched([], [], [])
    with suppress(DecodeError):
        remote_logs._add(fetched, "hostb", {1}, codec.from_json(remote_logs.HostLogs, json.dumps(answer)))

    assert all(source.host == "hostb" and source.rank in {1, None} for source in fetched.sources)
    for event in fetched.events:
        assert event.time is None or clock(event.time).startswith(("19", "20"))
        assert all(isinstance(text, str) for text in (*event.fields.values(), *event.codes, event.pid))


def test_the_answer_that_is_changed_is_right() -> None:
    fetched = remote_logs.Fetched([], [], [])
    remote_logs._add(fetched, "hostb", {1}, codec.from_json(remote_logs.HostLogs, json.dumps(ANSWER)))

    assert [event.message.id for event in fetched.events] == ["HCM205"]


@pytest.mark.parametrize("size", ["x", "", "-1", "1.5", "\u00b2", "1" * 8])
def test_a_number_of_a_line_that_is_none_costs_a_note(
    command_line: CommandLine, run_dir: Path, size: str
) -> None:
    event = {**EVENT, "message": "HCM323", "fields": {"size": size}}
    answer = json.dumps({**ANSWER, "events": [event]})
    program = ssh(command_line.folder, f"echo {shlex.quote(answer)}")
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code == 0
    assert "  the answer of hostb cannot be read: events[0]: fields[size]: " in done.out


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        ("HCM308", "rank"), ("HCM320", "logical"), ("HCM321", "device"), ("HCM322", "device"),
        ("HCM323", "size"), ("HCM328", "rank"),
    ],
)  # fmt: skip
def test_a_line_about_a_process_without_its_numbers_costs_a_note(
    command_line: CommandLine, run_dir: Path, message: str, missing: str
) -> None:
    answer = json.dumps({**ANSWER, "events": [{**EVENT, "message": message, "fields": {}}]})
    program = ssh(command_line.folder, f"echo {shlex.quote(answer)}")
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code == 0
    assert f"  the answer of hostb cannot be read: events[0]: fields: {missing} is missing" in done.out


@pytest.mark.parametrize(
    ("message", "fields", "problem"),
    [
        ("HCM721", {}, "fields: pid is missing"),
        ("HCM817", {}, "fields: reason is missing"),
        ("HCM733", {"status": "x"}, 'fields[status]: "x" is not a number of up to 3 digits'),
        ("HCM306", {"index": "\u00b2"}, 'fields[index]: "\\u00b2" is not a number of up to 12 digits'),
        ("HCM888", {"pid": "7", "device": "1", "program": "p", "value": "1" * 10}, "fields[value]: "),
    ],
)  # fmt: skip
def test_fields_that_no_line_can_have_cost_a_note(
    command_line: CommandLine, run_dir: Path, message: str, fields: dict[str, str], problem: str
) -> None:
    answer = json.dumps({**ANSWER, "events": [{**EVENT, "message": message, "fields": fields, "codes": []}]})
    program = ssh(command_line.folder, f"echo {shlex.quote(answer)}")
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code == 0, done.err
    assert f"  the answer of hostb cannot be read: events[0]: {problem}" in done.out


def test_each_line_that_a_host_finds_can_be_sent() -> None:
    scanner = Scanner()
    for message in messages().values():
        event = scanner.event(message.example.encode())
        if event is not None:
            assert remote_logs.FoundEvent(event.message.id, *event[1:]).check() == "", message.id


def test_any_text_of_a_host_in_a_field_is_explained(command_line: CommandLine, run_dir: Path) -> None:
    """All messages in one answer, each with fields that are not numbers, where a line can have these."""
    events = []
    for line, message in enumerate(messages().values(), 1):
        known = pattern_fields(message.pattern)
        names = re.compile(message.pattern).groupindex
        fields = {name: "5" if name in known.numbers or name in NUMBERS else "\u00b2" for name in names}
        events.append({**EVENT, "message": message.id, "fields": fields, "line": line, "codes": []})
    answer = json.dumps({**ANSWER, "events": events})
    (command_line.folder / "answer").write_text(answer)
    program = ssh(command_line.folder, f"cat {shlex.quote(str(command_line.folder / 'answer'))}")
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code in {0, 1}, done.err
    assert "cannot be read" not in done.out
    assert not done.err


@pytest.mark.parametrize(
    "forged",
    [
        {"rank": 0}, {"fields": {"rank": "0"}}, {"fields": {"server": "10.0.0.1", "device": "0"}},
        {"fields": {"address": "192.168.0.100"}},
    ],
    ids=["prefix", "field", "device", "address"],
)  # fmt: skip
@pytest.mark.parametrize("is_known", [True, False], ids=["log of rank 1", "log of no rank"])
def test_a_host_does_not_speak_for_the_rank_of_another(
    command_line: CommandLine, run_dir: Path, forged: dict[str, Any], is_known: bool
) -> None:
    source = {"path": "/log/plog-7_1.log", "rank": 1 if is_known else None, "pid": "7", "group": "/log"}
    answer = {"sources": [source], "events": [{**EVENT, **forged}], "notes": []}
    program = ssh(command_line.folder, f"echo {shlex.quote(json.dumps(answer))}")
    (run_dir / "rank_0.log").write_text("step 1\n")
    done = command_line("explain", "run1", "--ssh", program)

    first = done.out.splitlines()[0]
    assert done.code == (0 if is_known else 1), done.err
    assert first.startswith("Rank 1 (device 0 of " if is_known else "no cause found")


def test_a_host_does_not_identify_its_process_as_the_rank_of_another(
    command_line: CommandLine, run_dir: Path
) -> None:
    source = {"path": "/log/plog-7_1.log", "rank": None, "pid": "7", "group": "/log"}
    identity = {**EVENT, "message": "HCM328", "fields": {"rank": "0", "size": "2"}}
    answer = {"sources": [source], "events": [identity, EVENT], "notes": []}
    program = ssh(command_line.folder, f"echo {shlex.quote(json.dumps(answer))}")
    (run_dir / "rank_0.log").write_text("step 1\n")
    done = command_line("explain", "run1", "--ssh", program)

    assert done.out.splitlines()[0].startswith("Host hostb: ")

    own = {**answer, "events": [{**identity, "fields": {"rank": "1", "size": "2"}}, {**EVENT, "rank": 0}]}
    program = ssh(command_line.folder, f"echo {shlex.quote(json.dumps(own))}")
    done = command_line("explain", "run1", "--ssh", program)

    assert done.out.splitlines()[0].startswith("Rank 1 (device 0 of ")


@pytest.mark.parametrize("size", [{}, {"size": "9999999"}], ids=["no size", "ten million ranks"])
def test_a_size_that_cannot_be_is_not_believed(
    command_line: CommandLine, run_dir: Path, size: dict[str, str]
) -> None:
    lines = [
        {**EVENT, "message": "HCM228", "fields": {"connected": "[0]" + "1" * 5000}},
        {**EVENT, "message": "HCM229", "fields": size},
    ]
    program = ssh(command_line.folder, f"echo {shlex.quote(json.dumps({**ANSWER, 'events': lines}))}")
    done = command_line("explain", "run1", "--ssh", program)

    assert done.code == 0, done.err
    assert len(done.out) < 5000


def test_many_hosts_take_one_note(tmp_path: Path) -> None:
    processes = [
        {"rank": rank, "host": f"node{rank // 8:03d}", "log": f"{rank}.log", "argv": ["x"], "here": False}
        for rank in range(2000)
    ]
    (tmp_path / "plan.json").write_text(json.dumps({"processes": processes}))
    answer = explaining.explain([], run=str(tmp_path))

    assert [note for note in answer.notes if "rank" in note] == [
        "the logs of ranks 0-1999 are on node[000-249] only"
    ]
