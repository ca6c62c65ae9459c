"""The output of the ranks that are shown: only the agent that has told a token writes it."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.cluster.shown_output import ShownOutput
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.protocol.connection import Connection, connect, proved
from hccl_tools.launch.protocol.listener import Listener
from hccl_tools.launch.protocol.messages import LARGEST, Written
from hccl_tools.processes.reactor import Reactor
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.launch.model.plan import Tail

KEY = b"k" * 32


class Bed:
    """A listener, and the output of two servers with two ranks each."""

    def __init__(self, shown: Tail) -> None:
        self.listener = Listener(KEY, silence=12)
        self.port = self.listener.listen(["127.0.0.1"])
        ranks = tuple(
            RankProcess(
                rank, f"h{rank // 2}", rank // 2, rank % 2, rank % 2, {}, ("true",), f"rank_{rank}.log"
            )
            for rank in range(4)
        )
        plan = Plan(ranks, "torch", "mpirun", "/run", "/", 4, shown=shown)
        self.written: list[tuple[int, bytes]] = []
        self.agents: list[Connection] = []
        self.reactor = Reactor()
        self.output = ShownOutput(plan, self.reactor, lambda *each: self.written.append(each))

    def connected(self, token: str) -> Connection:
        """Connect as an agent does, and hand the connection over as the controller does."""
        agent = connect(("127.0.0.1", self.port), KEY, silence=12, seconds=5, largest=LARGEST, output=token)
        assert agent is not None
        self.agents.append(agent)

        def is_proved() -> bool:
            for guest in self.listener.guests():
                self.output.add(guest.connection, guest.messages)
            return proved(agent, 0.05) is not None

        assert eventually(is_proved)
        return agent

    def turn(self, seconds: float = 0.2) -> None:
        """Run the event loop for some time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.reactor.run_ready(self.reactor.poll(end))

    def close(self) -> None:
        """Close both sides."""
        for agent in self.agents:
            agent.close()
        self.output.close()
        self.listener.close()


@pytest.fixture
def bed() -> Iterator[Bed]:
    """A job of which rank 0 is shown."""
    with closing(Bed((0,))) as made:
        yield made


def test_what_an_agent_sends_is_its_servers_output(bed: Bed) -> None:
    bed.output.expect(0, "a" * 32)
    agent = bed.connected("a" * 32)

    agent.send(Written(b"\x1b[31m\xff\n"))
    agent.send(Written(b"b"))
    bed.turn()

    assert {number for number, _ in bed.written} == {0}
    assert b"".join(data for _, data in bed.written) == b"\x1b[31m\xff\nb"


def test_a_connection_waits_for_the_token_of_its_agent(bed: Bed) -> None:
    agent = bed.connected("a" * 32)
    agent.send(Written(b"early\n"))
    bed.turn()
    before = list(bed.written)

    bed.output.expect(0, "a" * 32)
    bed.turn()

    assert before == []
    assert bed.written == [(0, b"early\n")]


def test_a_host_without_a_rank_that_is_shown_writes_nothing(bed: Bed) -> None:
    bed.output.expect(1, "b" * 32)
    agent = bed.connected("b" * 32)

    agent.send(Written(b"forged\n"))
    bed.turn()

    assert bed.written == []


def test_all_hosts_write_if_all_ranks_are_shown() -> None:
    with closing(Bed("all")) as bed:
        for number in (1, 0):
            bed.output.expect(number, str(number) * 32)
            bed.connected(str(number) * 32).send(Written(b"%d" % number))
        bed.turn()

        assert sorted(bed.written) == [(0, b"0"), (1, b"1")]


def test_nobody_takes_the_place_of_an_agent(bed: Bed) -> None:
    bed.output.expect(0, "a" * 32)
    first = bed.connected("a" * 32)
    second = bed.connected("a" * 32)
    bed.output.expect(0, "c" * 32)
    third = bed.connected("c" * 32)

    for number, agent in enumerate((first, second, third)):
        agent.send(Written(b"%d" % number))
    bed.turn()

    assert bed.written == [(0, b"0")]


def test_the_rest_is_read_until_the_agent_has_disconnected(bed: Bed) -> None:
    bed.output.expect(0, "a" * 32)
    agent = bed.connected("a" * 32)
    parts = 64
    for _ in range(parts):
        agent.send(Written(b"x" * (1 << 10)))
    agent.close()
    began = time.monotonic()

    bed.output.wait_for_rest(without=())

    assert sum(len(data) for _, data in bed.written) == parts << 10
    assert time.monotonic() - began < 1


def test_the_rest_of_a_lost_host_is_not_awaited(bed: Bed) -> None:
    bed.output.expect(0, "a" * 32)
    agent = bed.connected("a" * 32)
    began = time.monotonic()

    bed.output.wait_for_rest(without={0})

    assert time.monotonic() - began < 1
    assert not agent.closed


def test_a_launcher_that_does_not_read_lets_output_wait(bed: Bed) -> None:
    bed.output.expect(0, "a" * 32)
    agent = bed.connected("a" * 32)
    agent.wait_for_reader()
    sent = 0
    while not agent.waiting and sent < 1 << 26:
        agent.send(Written(b"x" * (1 << 16)))
        sent += 1 << 16
    assert agent.waiting

    def is_sent() -> bool:
        bed.turn(0.05)
        agent.flush()
        return not agent.waiting

    assert eventually(is_sent, LONG)
    bed.turn()
    assert sum(len(data) for _, data in bed.written) == sent
