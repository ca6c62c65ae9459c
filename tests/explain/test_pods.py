"""The pod of a fault and the signal of its container, in the output of kubectl describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

EVICTED = """\
Name:         llm-worker-2
Namespace:    train
Status:       Failed
Reason:       Evicted
Message:      The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 8911Mi.
"""
KILLED = """\
Name:         llm-worker-{pod}
    State:          Terminated
      Reason:       {reason}
      Exit Code:    {code}
"""


def first(command_line: CommandLine, text: str) -> str:
    (command_line.folder / "pods.txt").write_text(text)
    return command_line("explain", "pods.txt").out.splitlines()[0]


def test_an_evicted_pod_is_named_with_the_resource(command_line: CommandLine) -> None:
    said = first(command_line, f"Name:         llm-worker-1\nStatus:  Running\n\n{EVICTED}")
    assert said.startswith(
        "Kubernetes evicted the pod, because its node was short of a resource: pod llm-worker-2, ephemeral-storage."
    )


def test_an_event_names_its_pod(command_line: CommandLine) -> None:
    said = first(
        command_line,
        "12m  Warning  Evicted  pod/llm-worker-7  The node was low on resource: memory. Threshold quantity: 1Gi\n",
    )
    assert "pod llm-worker-7" in said


@pytest.mark.parametrize("code", [134, 137, 139])
def test_a_container_that_a_signal_ended(command_line: CommandLine, code: int) -> None:
    text = KILLED.format(pod=1, reason="Completed", code=0) + KILLED.format(pod=3, reason="Error", code=code)
    said = first(command_line, text)
    assert said.startswith(f"A container ended with the exit code of a signal: pod llm-worker-3, {code}.")


@pytest.mark.parametrize("code", [0, 1, 143])
def test_other_exit_codes_of_a_container(command_line: CommandLine, code: int) -> None:
    assert first(command_line, KILLED.format(pod=1, reason="Error", code=code)).startswith("no cause found")


def test_the_memory_limit_of_a_container_says_more_than_its_exit_code(command_line: CommandLine) -> None:
    said = first(command_line, KILLED.format(pod=3, reason="OOMKilled", code=137))
    assert said.startswith("A container reached its memory limit, and the kernel ended it: pod llm-worker-3.")
