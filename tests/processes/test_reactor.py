"""The reactor does the same in the same order each time."""

from __future__ import annotations

import os
from contextlib import ExitStack

from hccl_tools.processes.reactor import Reactor


def test_what_is_ready_is_served_in_the_order_of_registration() -> None:
    reactor, served = Reactor(), list[int]()
    with ExitStack() as stack:
        pipes = [os.pipe() for _ in range(20)]
        for descriptor in (end for pipe in pipes for end in pipe):
            stack.callback(os.close, descriptor)
        readers = [reading for reading, _ in reversed(pipes)]
        for reading in readers:
            reactor.on_readable(reading, lambda reading=reading: served.append(reading))  # type: ignore[misc]
        for _, writing in pipes:
            os.write(writing, b"x")

        reactor.run_ready(reactor.poll())

    assert served == readers


def test_a_function_of_several_descriptors_is_called_once() -> None:
    reactor, calls = Reactor(), list[str]()

    def act() -> None:
        calls.append("act")

    with ExitStack() as stack:
        for reading, writing in (os.pipe(), os.pipe()):
            stack.callback(os.close, reading)
            reactor.on_readable(reading, act)
            os.close(writing)

        reactor.run_ready(reactor.poll())

    assert calls == ["act"]
