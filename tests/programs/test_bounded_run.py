"""Programs that may print without end."""

from __future__ import annotations

import os
import subprocess

import pytest

from hccl_tools.programs import bounded_run


def test_the_end_of_both_streams_is_kept() -> None:
    flood = "head -c 300000 /dev/zero"
    program = f"cat > /dev/null; {flood}; echo out; {flood} >&2; echo err >&2; exit 3"

    ended = bounded_run.run(["sh", "-c", program], 60, os.environ, data=b"in ")

    assert (ended.code, ended.output[-5:], ended.errors[-5:]) == (3, "\0out\n", "\0err\n")
    assert (len(ended.output), len(ended.errors)) == (1 << 16, 1 << 16)


def test_standard_input_is_sent() -> None:
    assert bounded_run.run(["cat"], 60, os.environ, data=b"text") == (0, "text", "")


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["", ">&2", "> /dev/null 2>&1"])
def test_a_program_that_does_not_end_is_killed(stream: str) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        bounded_run.run(["sh", "-c", f"exec yes {stream}"], 0.5, os.environ)


def test_a_program_that_closes_its_pipes_and_does_not_end_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        bounded_run.run(["sh", "-c", "exec sleep 600 >&- 2>&- <&-"], 0.5, os.environ, data=b"x")


def test_a_program_that_prints_more_than_is_expected_is_killed() -> None:
    with pytest.raises(bounded_run.TooMuchOutputError):
        bounded_run.run(["yes"], 60, os.environ, most=1 << 20)
