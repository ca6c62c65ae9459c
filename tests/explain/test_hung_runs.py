"""``explain`` of a run that was ended because it hung: the last line, and the line of the user's code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.processes.stack_dump import shortened_frame, users_line

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

LIBRARY = "/opt/python/3.11.7/lib/python3.11/threading.py"
STACK = [f'  File "{LIBRARY}", line 327 in wait', '  File "/home/me/train.py", line 11 in <module>']


def explained(command_line: CommandLine, hung: list[dict[str, Any]]) -> str:
    folder = "log/20261127-151046-d345bd5c"
    ranks = [{"rank": rank, "host": "localhost", "here": True, "log": f"rank_{rank}.log", "argv": ["true"]}
             for rank in range(4)]  # fmt: skip
    command_line.write(f"{folder}/plan.json", {"world_size": 4, "hosts": ["localhost"], "processes": ranks})
    for rank in range(4):
        command_line.write(f"{folder}/rank_{rank}.log", "step 2\n")
    report = {"schema_version": 1, "exit_code": 124, "reason": "hang", "detail": "rank 1 stopped first",
              "hung": hung, "ranks": []}  # fmt: skip
    command_line.write(f"{folder}/report.json", report)
    done = command_line("explain", "20261127")
    assert done.code == 0, done.err
    return done.out


def hung(rank: int, stack: list[str]) -> dict[str, Any]:
    return {"rank": rank, "name": f"rank {rank}", "host": "localhost", "is_first": True,
            "last_line": f"step {rank} loss 0.3", "stack": stack}  # fmt: skip


def test_the_last_line_and_the_line_of_the_users_code_are_shown(command_line: CommandLine) -> None:
    shown = explained(command_line, [hung(1, STACK)])

    assert "  its last line: step 1 loss 0.3\n" in shown
    assert "  its innermost line of code: /home/me/train.py:11 in <module>\n" in shown


def test_several_ranks_are_named(command_line: CommandLine) -> None:
    shown = explained(command_line, [hung(1, STACK), hung(3, STACK[:1])])

    assert "  rank 1's innermost line of code: /home/me/train.py:11 in <module>\n" in shown
    assert "  rank 3's last line: step 3 loss 0.3\n" in shown
    assert "rank 3's innermost" not in shown


@pytest.mark.parametrize(
    ("stack", "line"),
    [
        (["wait (threading.py:320)", "step (train.py:9)"], "threading.py:320 in wait"),
        (
            [
                '  File "<frozen runpy>", line 1 in run',
                '  File "/a/venv/lib/python3.9/site-packages/t/x.py", line 2',
            ],
            "",
        ),
        ([], ""),
        (["no frame at all"], ""),
    ],
)
def test_which_line_is_the_users(stack: list[str], line: str) -> None:
    assert users_line(stack) == line


def test_a_long_path_does_not_hide_the_number_of_its_line() -> None:
    assert shortened_frame(STACK[0]) == '  File ".../python3.11/threading.py", line 327 in wait'
    assert shortened_frame(STACK[1]) == STACK[1]


def test_a_run_that_is_named_twice_is_read_once(command_line: CommandLine) -> None:
    explained(command_line, [hung(1, STACK)])
    (command_line.folder / "log" / "latest").symlink_to("20261127-151046-d345bd5c")

    twice = command_line("explain", "log/latest", "log/20261127-151046-d345bd5c", "-f", "json")
    once = command_line("explain", "log/latest", "-f", "json")

    found, expected = json.loads(twice.out), json.loads(once.out)
    assert (found["logs"], found["causes"][0]["sentence"]) == (
        expected["logs"],
        expected["causes"][0]["sentence"],
    )
