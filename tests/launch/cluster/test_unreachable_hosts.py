"""A child of ssh's engine that has ended is a lost host only if no supervisor has ended its part before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.cluster import unreachable_hosts
from tests.support.jobs import eventually
from tests.support.processes import has_ended

if TYPE_CHECKING:
    from collections.abc import Iterator


class Attempt:
    """An attempt whose engine is this process, with its timers and the end that was decided."""

    def __init__(self) -> None:
        process = SimpleNamespace(rank=0)
        self.state = SimpleNamespace(ends=[SimpleNamespace(process=process, pid=os.getpid())])
        self.timers: dict[str, Any] = {}
        self.ended: tuple[str, ...] = ()

    def call_later(self, name: str, _seconds: float, act: Any) -> None:
        self.timers[name] = act

    def end(self, *why: str) -> None:
        self.ended = why


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A child of the engine, which ends when its input does."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    child.stdin.close()
    child.stdin = None
    assert eventually(lambda: has_ended(child.pid))


def watched(attempt: Attempt, hosts: Any) -> None:
    unreachable_hosts.watch(attempt, hosts, str(Path.cwd()), lambda _what: None)  # type: ignore[arg-type]


def test_a_child_that_ends_while_the_supervisors_are_read_is_not_a_lost_host(
    child: subprocess.Popen[bytes],
) -> None:
    """Its supervisor may have left after the reading and before the child ended."""
    attempt = Attempt()

    def hosts() -> tuple[list[str], int]:
        end(child)
        return ["10.1.0.2"], 0

    watched(attempt, hosts)

    assert (attempt.ended, list(attempt.timers)) == ((), ["unreached"])


@pytest.mark.parametrize(
    ("gone", "ended"), [(0, ("refused", "10.1.0.2 cannot be reached")), (1, ())], ids=["lost", "left"]
)
def test_a_child_that_had_ended_before_is_counted_against_the_supervisors_that_left(
    child: subprocess.Popen[bytes], gone: int, ended: tuple[str, ...]
) -> None:
    end(child)
    attempt = Attempt()

    watched(attempt, lambda: (["10.1.0.2"], gone))

    assert attempt.ended == ended
