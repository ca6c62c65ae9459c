"""Strangers at the ports of a job that was typed by hand on its hosts: here two launchers on this machine."""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.planning.ports import DISCOVERY_PORT
from hccl_tools.processes.timing import TIMING_VARIABLE
from tests.support.attackers import Attackers, Recorder, command_lines, files_with, peak_mib, ports
from tests.support.attacks import KINDS, LIKE_A_HOST
from tests.support.jobs import LONG
from tests.support.typed_jobs import BETWEEN, HERE, KEY, Typed, recorded_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

#: What strangers may add to the memory of a launcher, in MiB.
MEMORY_MIB = 24.0
#: Nobody may wait for a stranger that says nothing: it has longer to prove itself than a test has patience.
TIMES = f"connection.identify={10 * LONG}"
HARMLESS_WITHOUT_KEY = [kind for kind in KINDS if kind not in LIKE_A_HOST]
#: The kinds of which nothing is refused before the job has started.
PATIENT = ("half-open", "slow", "again and again")
OTHER = "it says that it has another job key (not proved)"
#: A pattern of the reason for a refused connection, by kind of stranger. Other kinds have no message.
WHY = {
    "garbage": "not an agent of this job",
    "replayed messages": re.escape(OTHER),
    "wrong key": re.escape(OTHER),
    "no key": re.escape("it says that it has no job key (not proved)"),
    "wrong version": re.escape(OTHER),
}
#: Rank 1 fails once, when it may; all end when there is enough.
LIFE = """\
echo up
if ! [ -e been ]; then
    while ! [ -e go ]; do sleep 0.02; done
    [ "$RANK_ID" = 0 ] || { touch been; exit 7; }
    exec sleep 6262
fi
while ! [ -e enough ]; do sleep 0.02; done
"""


@pytest.fixture(autouse=True)
def long_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIMING_VARIABLE, TIMES)


@pytest.fixture
def typed() -> Iterator[Callable[..., Typed]]:
    with ExitStack() as started:

        def make(*args: Any, **options: Any) -> Typed:
            job = Typed(*args, **options)
            started.callback(job.kill)
            return job

        yield make


def meet(job: Typed, through: str = HERE) -> None:
    """Start the second host, and wait until both hosts have ended well."""
    job.start(1, through)
    assert job.end() == [0, 0], job.said


@pytest.fixture(scope="module")
def usual_memory(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The memory of the first host of a job that waits for the second, without strangers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("usual"))
        job = Typed("exit 0")
        job.start(0)
        job.waits()
        memory = peak_mib(job.launchers[0].pid)
        job.kill()
    return memory


def recorded(key: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("recorded"))
        return recorded_conversation(Typed("exit 0", key=key))


@pytest.fixture(scope="module")
def with_key(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the second host of another job with the same key has sent to the first."""
    return recorded(KEY, tmp_path_factory)


@pytest.fixture(scope="module")
def without_key(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return recorded("", tmp_path_factory)


def attacked(job: Typed, *kinds: str, conversation: bytes) -> float:
    """Run a job that is attacked while its first host waits for the second; return the first's memory."""
    with closing(Attackers(*kinds)) as attackers:
        job.start(0)
        job.waits()
        attackers.attack((HERE, job.port), recorded=conversation)
        attackers.are_in_place()
        memory = peak_mib(job.launchers[0].pid)
        meet(job)
    return memory


@pytest.mark.rotates("kind")
@pytest.mark.parametrize("kind", KINDS)
def test_while_a_host_waits_for_the_other(
    typed: Callable[..., Typed], usual_memory: float, with_key: bytes, kind: str
) -> None:
    """All kinds at once are in another test (in every phase); here each has its sentence and its memory."""
    job = typed("exit 0")
    assert attacked(job, kind, conversation=with_key) < usual_memory + MEMORY_MIB

    said = [line for line in job.said[0].splitlines() if line.startswith("hccl-tools: refused")]
    assert kind in PATIENT or len(said) == 1, job.said[0]
    # A job of somebody else on this machine may have looked at the discovery port.
    named = f"hccl-tools: refused [0-9,]+ connections? from {HERE}: {WHY.get(kind, '.*')}"
    assert all(re.fullmatch(named, line) for line in said), said


def test_while_hosts_without_a_key_wait(
    typed: Callable[..., Typed], usual_memory: float, without_key: bytes
) -> None:
    job = typed("exit 0", key="")
    assert attacked(job, *HARMLESS_WITHOUT_KEY, conversation=without_key) < usual_memory + MEMORY_MIB


def test_at_the_discovery_port(typed: Callable[..., Typed], with_key: bytes) -> None:
    job = typed("exit 0")
    with closing(Attackers()) as attackers:
        job.start(0)
        job.waits()
        if DISCOVERY_PORT not in ports([job.launchers[0].pid]):
            pytest.skip("another job of this machine has the discovery port")
        attackers.attack((HERE, DISCOVERY_PORT), recorded=with_key)
        attackers.are_in_place()
        meet(job)


@pytest.mark.parametrize("key", [KEY, ""], ids=["key", "no key"])
@pytest.mark.parametrize("frame", [0, 1])
def test_a_frame_that_an_eavesdropper_repeats(typed: Callable[..., Typed], key: str, frame: int) -> None:
    """The host connects again: what was repeated is neither believed nor a reason to end the job."""
    job = typed("exit 0", key=key)
    job.start(0)
    job.waits()
    with closing(Recorder((BETWEEN, job.port), (HERE, job.port), repeat=frame)) as recorder:
        meet(job, BETWEEN)

    assert len(recorder.sent) == 2


@pytest.mark.parametrize("key", [KEY, ""], ids=["key", "no key"])
def test_a_repeated_report_that_a_host_is_ready(typed: Callable[..., Typed], key: str) -> None:
    """The ranks may have started: it is as if the eavesdropper had cut the connection."""
    job = typed("exec sleep 6262", key=key)
    job.start(0)
    job.waits()
    with closing(Recorder((BETWEEN, job.port), (HERE, job.port), repeat=2)):
        job.start(1, BETWEEN)
        job.launchers[0].wait(LONG)
        job.launchers[1].terminate()  # If it has heard of no start, it still waits for the first host.

    assert job.end()[0] == 137
    assert "lost contact with the launcher on node1" in job.said[0]


def live(job: Typed, attackers: Attackers, conversation: bytes) -> None:
    """Run a job through all its phases, and attack in each."""

    def attack() -> None:
        attackers.attack((HERE, job.port), recorded=conversation)
        attackers.attack((HERE, DISCOVERY_PORT), recorded=conversation)
        attackers.are_in_place()
        attackers.are_in_place()

    job.start(0)
    job.waits()
    attack()
    job.start(1)
    assert job.wrote("up"), job.said
    assert ports(job.pids) == set()
    attack()
    Path("go").touch()
    assert job.wrote("up", restart=1), job.said
    assert ports(job.pids) == set()
    attack()
    Path("enough").touch()
    assert job.end() == [0, 0]


@pytest.mark.parametrize("key", [KEY, ""], ids=["key", "no key"])
def test_all_strangers_in_every_phase(typed: Callable[..., Typed], with_key: bytes, key: str) -> None:
    """After the start nothing of hccl-tools listens; the connections of the job stay."""
    kinds = KINDS if key else HARMLESS_WITHOUT_KEY
    with closing(Attackers(*kinds)) as attackers:
        live(typed(LIFE, "--max-restarts", "1", key=key), attackers, with_key)


def test_nobody_answers_during_the_run(typed: Callable[..., Typed]) -> None:
    job = typed("echo up; while ! [ -e enough ]; do sleep 0.02; done")
    job.start(0)
    job.start(1)
    assert job.wrote("up")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HERE, job.port))
    Path("enough").touch()

    assert job.end() == [0, 0]


def test_the_key_is_in_no_command_line_log_or_report(typed: Callable[..., Typed]) -> None:
    job = typed("env; echo up; while ! [ -e enough ]; do sleep 0.02; done")
    job.start(0)
    job.start(1)
    assert job.wrote("up")
    shown = [line for line in command_lines() if KEY in line]
    Path("enough").touch()

    assert job.end() == [0, 0]
    assert shown == []
    assert [text for text in job.said if KEY in text] == []
    assert files_with(Path(), KEY) == []
    assert files_with(Path(), "RANK_ID=1") != []  # The logs have the environment of the ranks.
