"""With a job key, what is not proved neither ends a job nor leads elsewhere; it is shown as a claim."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

from hccl_tools.launch.cluster import consistency, membership, rendezvous_client
from hccl_tools.launch.cluster.credentials import Credentials
from hccl_tools.launch.cluster.job_hosts import JobHosts
from hccl_tools.launch.cluster.rendezvous_server import RendezvousServer
from hccl_tools.launch.model.rank_messages import Join
from hccl_tools.launch.planning import ports
from hccl_tools.launch.protocol import connection
from hccl_tools.launch.protocol.connection import Connection, connect
from hccl_tools.launch.protocol.messages import Ready, Refused, Waiting
from hccl_tools.launch.protocol.session import Problem, Session
from tests.support.impostors import KINDS, Impostor
from tests.support.jobs import LONG, eventually
from tests.support.meetings import HOSTS, MASTER, Clock, Meeting, everybody, set_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.protocol.messages import Message

#: Threads that wait for each other.
pytestmark = pytest.mark.slow

KEY = Credentials("this host", b"k" * 32, 12.0)
OTHER_KEY = KEY._replace(secret=b"o" * 32)
NO_KEY = KEY._replace(secret=b"", addresses=frozenset({MASTER}))
#: The times that users get, but hosts without an answer give up early, and refusals do not linger.
TIMES = membership.Timing(notice=LONG, linger=0.5, answer=0.3, discovery=10 * LONG, retry=0.05)


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    set_times(monkeypatch, TIMES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_goes_on_asking_until_the_real_one_answers(kind: str) -> None:
    serve, said = KINDS[kind]
    first, second, third = everybody()
    met = Meeting(credentials=KEY)
    with closing(Impostor((MASTER, met.port), serve)) as impostor:
        met.invite(second)
        for _ in range(2):
            assert impostor.served.acquire(timeout=LONG), met.refused
    for own in (first, third):
        met.invite(own)

    assert met.end() == {}
    told = met.told.get(second.host, "")
    if said.endswith("(not proved)"):
        assert told.count(f"{MASTER} (port {met.port}) {said}; this host goes on waiting") == 1
    else:
        assert said not in told  # An attempt may meet a host that is not ready.


@pytest.mark.parametrize("kind", KINDS)
def test_at_the_end_of_its_time_a_host_says_what_it_has_heard(kind: str) -> None:
    serve, said = KINDS[kind]
    met = Meeting(credentials=KEY, wait=1.0)
    with closing(Impostor((MASTER, met.port), serve)):
        met.invite(everybody()[1])
        for thread in met._threads:
            thread.join()

    assert met.refused["10.0.0.2"].startswith(f"host 10.0.0.1 (port {met.port}) did not join within 1 s; ")
    assert f"{MASTER} (port {met.port}) {said}" in met.refused["10.0.0.2"]


def test_a_refusal_is_told_after_an_impostor_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent only to the host that proves that it has the key."""
    set_times(monkeypatch, TIMES._replace(linger=LONG))
    first, second, third = everybody()
    met = Meeting(credentials=KEY)
    hosts = JobHosts(second.server, 0, HOSTS, (MASTER, met.port), frozenset({MASTER}))
    with ExitStack() as stack:
        impostor = stack.enter_context(closing(Impostor((MASTER, met.port), KINDS["no key"][0])))

        def replace(*_: object) -> None:
            assert impostor.served.acquire(timeout=LONG)
            impostor.close()
            met.invite(first)
            met.invite(third)

        waiting = threading.Thread(target=replace)
        waiting.start()
        consistency.refuse_all(second, hosts, "no device", credentials=KEY, discovery_port=met.discovery)
        waiting.join()

    said = "10.0.0.2 does not start its part: no device"
    assert met.end() == dict.fromkeys((first.host, third.host), said)


@pytest.mark.parametrize(
    ("without", "says"),
    [(NO_KEY, "says that it has no job key"), (OTHER_KEY, "says that it has another job key")],
)
def test_each_host_names_the_host_without_the_key(without: Credentials, says: str) -> None:
    first, second, third = everybody()
    met, other = Meeting(credentials=KEY), Meeting(credentials=without, wait=1.0)
    met.invite(first)
    met.invite(second)
    other.invite(third, port=met.port)
    force = " --force" if without is OTHER_KEY else ""
    line = (
        f"{MASTER} {says} (not proved): run `hccl-tools key copy {MASTER}{force}` on {MASTER}, "
        f"then start the job on {MASTER} again"
    )
    for host in (first, second):
        met.tells(host.host, line)
    for thread in other._threads:
        thread.join()
    assert met.refused == {}
    met.invite(third)

    assert met.end() == {}
    assert [met.told[host].count(line) for host in HOSTS] == [
        1,
        1,
        1,
    ]  # The last learns it with its admission.
    assert set(other.refused) == {third.host}


def claim(server: RendezvousServer, at_port: tuple[str, int], address: str, secret: bytes) -> None:
    """Connect from an address with another key, or with none, and wait until the connection is refused."""
    before = server.listener.refused
    with socket.create_connection(at_port, source_address=(address, 0)) as made:
        there = Connection(made.dup(), Session(secret, listens=False, dialled=at_port), 12.0)

        def served() -> bool:
            server.poll_once()
            there.messages()
            return server.listener.refused > before

        assert eventually(served)
        there.close()


@pytest.mark.parametrize("is_listed", [True, False], ids=["with a table", "without a table"])
def test_no_stranger_is_advised_to_get_the_key(at_port: tuple[str, int], is_listed: bool) -> None:
    """Strangers have all addresses of a network; the host without a key is named all the same."""
    known = frozenset({MASTER}) if is_listed else None
    strangers = [f"127.9.9.{number}" for number in range(1, 10)]
    told: list[str] = []
    with closing(RendezvousServer(everybody()[0], JobHosts(0, 0, HOSTS, at_port, known), KEY)) as server:
        server.listen(ports.free_port())
        for address in strangers:
            for secret in (b"", b"o" * 32):
                claim(server, at_port, address, secret)
        claim(server, at_port, MASTER, b"")
        server.name_hosts_without_key(told.append)

    condition = "" if is_listed else "if it is a host of this job, "
    command = f"run `hccl-tools key copy {MASTER}` on {MASTER}, then start the job on {MASTER} again"
    assert told[-1] == f"{MASTER} says that it has no job key (not proved): {condition}{command}"
    for line in told[:-1]:
        if is_listed:
            assert "which is not an address of the job's hosts" in line
            assert "key copy" not in line
        else:
            assert ": if it is a host of this job, run `" in line


def without_joining(
    stack: ExitStack, server: RendezvousServer, at_port: tuple[str, int], data: bytes
) -> list[Connection]:
    """Prove the empty key over as many connections as may be open, and send data that is not a frame."""
    guests = []
    for _ in range(4):
        made = connect(at_port, b"", silence=12, seconds=LONG, largest=1 << 20)
        assert made is not None
        stack.callback(made.close)

        def served(guest: Connection = made) -> bool:
            server.poll_once()
            guest.messages()
            return guest.is_proved

        assert eventually(served)
        sent = made._socket.send(data)
        assert sent
        guests.append(made)
    return guests


def test_without_a_key_a_connection_that_does_not_join_has_little_time_and_memory(
    at_port: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RendezvousServer(everybody()[0], JobHosts(0, 0, HOSTS, at_port, None), NO_KEY)
    with closing(server), ExitStack() as stack:
        server.listen(ports.free_port())
        large = without_joining(stack, server, at_port, (1 << 17).to_bytes(4, "big"))

        def served() -> bool:
            server.poll_once()
            for guest in large:
                guest.messages()
            return all(guest.closed for guest in large)

        assert eventually(served)
        slow = without_joining(stack, server, at_port, (1 << 10).to_bytes(4, "big"))
        server.poll_once()
        assert len(server.joining) == len(slow)
        monkeypatch.setattr(connection, "TIMING", connection.Timing(identify=0.0))
        server.poll_once()

        assert not server.joining


def test_without_a_key_the_number_of_connections_that_do_not_join_is_limited(
    at_port: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_MOST_UNPROVED", -1)  # beside the three hosts of the job
    server = RendezvousServer(everybody()[0], JobHosts(0, 0, HOSTS, at_port, None), NO_KEY)
    with closing(server), ExitStack() as stack:
        server.listen(ports.free_port())
        without_joining(stack, server, at_port, b"\0")

        assert len(server.joining) == 2


def test_a_host_without_a_key_ends_at_once_and_says_what_to_type() -> None:
    first, _, third = everybody()
    met, other = Meeting(credentials=KEY, wait=10 * LONG), Meeting(credentials=NO_KEY, wait=10 * LONG)
    with closing(RendezvousServer(first, JobHosts(0, 0, HOSTS, (MASTER, met.port), None), KEY)) as server:
        server.listen(met.discovery)
        other.invite(third, port=met.port)

        def served() -> bool:
            server.poll_once()
            return third.host in other.refused

        assert eventually(served)
    assert other.refused[third.host] == "10.0.0.1 has a job key, and this host has none"
    assert other.hints[third.host] == "run `hccl-tools key copy 127.0.0.1` on 10.0.0.1"


def test_with_a_key_on_each_host_nothing_is_said_about_keys() -> None:
    met = Meeting(credentials=KEY)
    for own in everybody():
        met.invite(own)

    assert met.end() == {}
    assert "key" not in "".join(met.told.values())


def test_a_host_whose_admission_is_not_followed_by_a_verdict_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it sees a stranger that passes bytes on until it is admitted, and then stops."""
    clock = Clock()
    monkeypatch.setattr(rendezvous_client, "time", clock)
    admitted: list[Connection] = []
    met = Meeting(credentials=KEY, wait=100 * LONG)

    def stop(guest: socket.socket) -> None:
        session = Session(KEY.secret, listens=True)
        there = Connection(guest.dup(), session, 12.0, guest.getpeername())
        assert eventually(lambda: there.messages() and there.is_proved)
        there.send(Waiting(("10.0.0.3",), 0, 5 * LONG))
        admitted.append(there)
        guest.setblocking(True)
        while guest.recv(1 << 16):
            pass

    with closing(Impostor((MASTER, met.port), stop)) as impostor:
        met.invite(everybody()[1])
        assert eventually(lambda: len(admitted) == 1)
        assert not impostor.served.acquire(timeout=1.0), "the host did not wait"
        clock.ahead = 5 * LONG + 2 * TIMES.answer
        assert impostor.served.acquire(timeout=LONG), "the host still waits"
        clock.ahead = 1000 * LONG
        for thread in met._threads:
            thread.join()

    assert "has the job key, but has stopped answering" in met.refused["10.0.0.2"]
    for one in admitted:
        one.close()


@pytest.fixture
def at_port() -> tuple[str, int]:
    return MASTER, ports.free_port()


def guest_of(
    server: RendezvousServer, address: tuple[str, int], join: Join
) -> tuple[Connection, list[Message]]:
    """Join a rendezvous; return the connection and the messages that follow."""
    made = connect(address, KEY.secret, silence=12, seconds=LONG, largest=1 << 20)
    assert made is not None
    heard: list[Message] = []

    def served(done: Callable[[], object]) -> bool:
        server.poll_once()
        heard.extend(made.messages())
        return bool(done())

    assert eventually(lambda: served(lambda: made.is_proved))
    made.send(join)
    made.send(Ready(values=everybody()[1].values))
    assert eventually(lambda: served(lambda: heard))
    return made, heard


@pytest.mark.parametrize(("run_dir", "is_same"), [("/log/1-a1b2", True), ("/log/1-c3d4", False), ("", False)])
def test_a_launcher_that_comes_again_takes_its_own_place(
    at_port: tuple[str, int], run_dir: str, is_same: bool
) -> None:
    """Something may keep the connection open that it has given up; another launcher is a second one."""
    server = RendezvousServer(everybody()[0], JobHosts(0, 0, HOSTS, at_port, None), KEY)
    with closing(server), ExitStack() as stack:
        server.listen(ports.free_port())
        kept, _ = guest_of(server, at_port, Join(1, 5, ("", 0), run_dir="/log/1-a1b2" if run_dir else ""))
        stack.callback(kept.close)
        again, heard = guest_of(server, at_port, Join(1, 5, ("", 0), run_dir=run_dir))
        stack.callback(again.close)

        assert isinstance(heard[0], Waiting if is_same else Refused)
        assert (server.refusal is None) is is_same


def test_a_relay_does_not_lead_a_host_to_another_job_with_the_same_key(at_port: tuple[str, int]) -> None:
    """At its own port a stranger passes everything on to a job that would otherwise refuse all its hosts."""
    theirs = RendezvousServer(everybody()[0], JobHosts(0, 0, HOSTS, at_port, None), KEY)
    ours = Meeting(credentials=KEY)

    def relay(guest: socket.socket) -> None:
        with socket.create_connection(at_port) as other:

            def back() -> None:
                while data := other.recv(1 << 16):
                    guest.sendall(data)

            answering = threading.Thread(target=back)
            answering.start()
            while data := guest.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
            answering.join()

    guest = everybody()[1]
    guest.values["fingerprint of the rank table"] = "9a9a"
    with closing(theirs):
        theirs.listen(ports.free_port())
        with closing(Impostor((MASTER, ours.port), relay)) as impostor:
            ours.invite(guest)

            def served(most: int = 2) -> bool:
                theirs.poll_once()
                return theirs.listener.refused >= most or theirs.refusal is not None

            assert eventually(served)
            assert theirs.refusal is None
            assert theirs.listener.problems[MASTER] == Problem("elsewhere")
            assert eventually(lambda: served(0) and impostor.served.acquire(blocking=False))
    first, _, third = everybody()
    for own in (first, third):
        own.values["fingerprint of the rank table"] = "9a9a"
        ours.invite(own)

    assert ours.end() == {}
    assert "says that the connection was for another address or port (not proved)" in ours.told[guest.host]


def test_a_proved_connection_to_an_address_of_this_host_that_another_one_translates(
    at_port: tuple[str, int],
) -> None:
    """The address of rank 0's host may belong to a service that passes connections on."""
    address = ("192.0.2.1", at_port[1])
    server = RendezvousServer(everybody()[0], JobHosts(0, 0, HOSTS, address, None), KEY)
    with closing(server), socket.create_connection(("127.0.0.1", server_port(server))) as made:
        session = Session(KEY.secret, listens=False, dialled=address)
        there = Connection(made.dup(), session, 12.0)

        def served() -> bool:
            server.poll_once()
            there.messages()
            return there.is_proved or there.closed

        assert eventually(served)
        assert there.is_proved
        there.close()


def server_port(server: RendezvousServer) -> int:
    server.listen(ports.free_port())
    return server.hosts.address[1]
