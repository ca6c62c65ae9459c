"""How the supervisor of a host finds its launcher, although something else may answer in its place."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import agent
from hccl_tools.launch.cluster.agent import AgentLink
from hccl_tools.launch.model.variables import LAUNCHER_VARIABLE
from hccl_tools.launch.planning.ports import free_port
from hccl_tools.launch.protocol.listener import Listener
from hccl_tools.launch.protocol.messages import Table
from tests.support.impostors import KINDS, Impostor
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from hccl_tools.launch.protocol.listener import Guest

pytestmark = pytest.mark.slow

KEY = b"k" * 32
#: Where the impostor listens, and where the launcher does.
THERE, LAUNCHER = "127.0.0.1", "127.0.0.2"


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "TIMING", agent.Timing(answer=0.3, retry=0.05, table=LONG))


def search(port: int, seconds: float) -> AgentLink:
    return AgentLink({LAUNCHER_VARIABLE: f"{KEY.hex()}@{port}@{LAUNCHER}"}, 12.0, seconds)


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_goes_on_searching_while_something_else_answers(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    serve, said = KINDS[kind]
    port = free_port()
    links: list[AgentLink] = []
    searching = threading.Thread(target=lambda: links.append(search(port, 10 * LONG)))
    guests: list[Guest] = []

    def served() -> bool:
        for guest in listener.guests():
            guest.connection.send(Table(b"{}"))
            guests.append(guest)
        return bool(links)

    with closing(Listener(KEY, silence=12.0)) as listener:
        with closing(Impostor((THERE, port), serve)) as impostor:
            searching.start()
            for _ in range(2):
                assert impostor.served.acquire(timeout=LONG)
            listener.listen([LAUNCHER], port)
            assert eventually(served)
        searching.join()
        assert links[0].table() == b"{}"
        links[0]._connection.close()
        for guest in guests:
            guest.connection.close()

    claim = f"{THERE} (port {port}) {said}; this host goes on waiting\n"
    assert capfd.readouterr().err.count(claim) == said.endswith("(not proved)")


@pytest.mark.parametrize("kind", KINDS)
def test_at_the_end_of_its_time_it_says_what_it_has_heard(kind: str) -> None:
    serve, said = KINDS[kind]
    port = free_port()
    with (
        closing(Impostor((THERE, port), serve)),
        pytest.raises(LaunchError) as caught,
    ):
        search(port, 0.0)

    heard = f"{THERE} (port {port}) {said}"
    assert f"no answer at {LAUNCHER}, {THERE}, port {port}; {heard}" in caught.value.message


def test_without_any_answer_the_search_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_again(seconds: float) -> None:
        pytest.fail(f"it waits for {seconds} s")

    monkeypatch.setattr("hccl_tools.launch.cluster.agent.time.sleep", not_again)
    with pytest.raises(LaunchError) as caught:
        search(port := free_port(), 10 * LONG)

    assert caught.value.message.endswith(f"no answer at {LAUNCHER}, {THERE}, port {port}")
