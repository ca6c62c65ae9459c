"""A child of ssh's engine that has ended is a lost host only if no supervisor has ended its part before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.cluster import missing_hosts
from tests.support.jobs import eventually
from tests.support.processes import has_ended

if TYPE_CHECKING:
    from collections.abc import Iterator


_ENGINE = """
import os, signal
if child := os.fork():
    print(child, flush=True)
    signal.pause()
os.read(0, 1)
"""


class Attempt:
    """An attempt with its engine, its timers and the end that was decided."""

    def __init__(self, engine: int) -> None:
        process = SimpleNamespace(rank=0)
        self.state = SimpleNamespace(ends=[SimpleNamespace(process=process, pid=engine)])
        self.timers: dict[str, Any] = {}
        self.ended: tuple[str, ...] = ()

    def call_later(self, name: str, _seconds: float, act: Any) -> None:
        self.timers[name] = act

    def end(self, *why: str) -> None:
        self.ended = why


class Engine:
    """An engine with one child, which ends when the engine's input does and is not reaped."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _ENGINE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.child = int(self.process.stdout.readline())

    def end_child(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert eventually(lambda: has_ended(self.child))


@pytest.fixture
def engine() -> Iterator[Engine]:
    # The process of the tests may itself have children of other tests that have ended.
    found = Engine()
    with found.process:
        yield found
        found.process.kill()


def watched(attempt: Attempt, hosts: Any) -> None:
    missing_hosts.watch(attempt, hosts, str(Path.cwd()), lambda _what: None)  # type: ignore[arg-type]


def test_a_child_that_ends_while_the_supervisors_are_read_is_not_a_lost_host(engine: Engine) -> None:
    """Its supervisor may have left after the reading and before the child ended."""
    attempt = Attempt(engine.process.pid)

    def hosts() -> tuple[list[str], int]:
        engine.end_child()
        return ["10.1.0.2"], 0

    watched(attempt, hosts)

    assert (attempt.ended, list(attempt.timers)) == ((), ["unreached"])


@pytest.mark.parametrize(
    ("gone", "ended"), [(0, ("refused", "10.1.0.2 cannot be reached")), (1, ())], ids=["lost", "left"]
)
def test_a_child_that_had_ended_before_is_counted_against_the_supervisors_that_left(
    engine: Engine, gone: int, ended: tuple[str, ...]
) -> None:
    engine.end_child()
    attempt = Attempt(engine.process.pid)

    watched(attempt, lambda: (["10.1.0.2"], gone))

    assert attempt.ended == ended
