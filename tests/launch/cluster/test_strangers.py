"""Strangers at the ports of a job that was typed by hand on its hosts: here two launchers on this machine."""

from __future__ import annotations

import re
import socket
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.planning.ports import DISCOVERY_PORT
from tests.support.attackers import Attackers, Recorder, command_lines, files_with, peak_mib, ports
from tests.support.attacks import KINDS, LIKE_A_HOST
from tests.support.jobs import LONG
from tests.support.typed_jobs import BETWEEN, HERE, KEY, Typed, recorded_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

#: What strangers may add to the duration of a job, in seconds, and to its memory, in MiB.
DELAY_S, MEMORY_MIB = 1.0, 24.0
ATTEMPTS = 3
HARMLESS_WITHOUT_KEY = [kind for kind in KINDS if kind not in LIKE_A_HOST]
#: The kinds of which nothing is refused before the job has started, after less than 10 s.
PATIENT = ("half-open", "slow", "again and again")
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


@pytest.fixture
def typed() -> Iterator[Callable[..., Typed]]:
    with ExitStack() as started:

        def make(*args: Any, **options: Any) -> Typed:
            job = Typed(*args, **options)
            started.callback(job.kill)
            return job

        yield make


def best(run: Callable[[], float], limit: float) -> float:
    """Return the duration of a job, or the best of several if it is too long: other work slows it down."""
    found = float("inf")
    for _ in range(ATTEMPTS):
        found = min(found, run())
        if found <= limit:
            break
    return found


def met(job: Typed, master: str = HERE) -> float:
    """Start the second host, and return the seconds until both hosts have ended well."""
    began = time.monotonic()
    job.start(1, master)
    assert job.end() == [0, 0], job.said
    return time.monotonic() - began


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """How long the second host of a job needs without strangers, and the memory of the first."""
    durations, memory = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("usual"))
        for _ in range(3):
            job = Typed("exit 0")
            job.start(0)
            job.waits()
            memory.append(peak_mib(job.launchers[0].pid))
            durations.append(met(job))
    return {"duration": min(durations), "memory": max(memory)}


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


def attacked(job: Typed, *kinds: str, conversation: bytes, memory: list[float]) -> float:
    """Return the seconds from the start of the second host to the end of an attacked job."""
    with closing(Attackers(*kinds)) as attackers:
        job.start(0)
        job.waits()
        attackers.attack((HERE, job.port), recorded=conversation)
        attackers.are_in_place()
        memory.append(peak_mib(job.launchers[0].pid))
        return met(job)


@pytest.mark.parametrize("kind", KINDS)
def test_while_a_host_waits_for_the_other(
    typed: Callable[..., Typed], usual: dict[str, float], with_key: bytes, kind: str
) -> None:
    limit, memory = usual["duration"] + DELAY_S, list[float]()

    def run() -> float:
        job = typed("exit 0")
        duration = attacked(job, kind, conversation=with_key, memory=memory)
        said = [line for line in job.said[0].splitlines() if line.startswith("hccl-tools: refused")]
        assert kind in PATIENT or len(said) == 1, job.said[0]
        assert all(f" from {HERE}: " in line for line in said)
        return duration

    assert best(run, limit) <= limit
    assert min(memory) < usual["memory"] + MEMORY_MIB


def test_while_hosts_without_a_key_wait(
    typed: Callable[..., Typed], usual: dict[str, float], without_key: bytes
) -> None:
    limit, memory = usual["duration"] + DELAY_S, list[float]()

    def run() -> float:
        job = typed("exit 0", key="")
        return attacked(job, *HARMLESS_WITHOUT_KEY, conversation=without_key, memory=memory)

    assert best(run, limit) <= limit
    assert min(memory) < usual["memory"] + MEMORY_MIB


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("garbage", "not an agent of this job"),
        ("replayed messages", "the host has another job key"),
        ("wrong key", "the host has another job key"),
        ("no key", "the host has no job key"),
        ("wrong version", "the host has another job key"),
    ],
)
def test_strangers_are_named_once(typed: Callable[..., Typed], with_key: bytes, kind: str, why: str) -> None:
    job = typed("exit 0")
    attacked(job, kind, conversation=with_key, memory=[])

    (line,) = [line for line in job.said[0].splitlines() if "refused" in line]
    # A job of somebody else on this machine may have looked at the discovery port.
    assert re.fullmatch(f"hccl-tools: refused [0-9]+ connections? from {HERE}: {why}", line)


def test_at_the_discovery_port(typed: Callable[..., Typed], usual: dict[str, float], with_key: bytes) -> None:
    limit = usual["duration"] + DELAY_S

    def run() -> float:
        job = typed("exit 0")
        with closing(Attackers()) as attackers:
            job.start(0)
            job.waits()
            if DISCOVERY_PORT not in ports([job.launchers[0].pid]):
                pytest.skip("another job of this machine has the discovery port")
            attackers.attack((HERE, DISCOVERY_PORT), recorded=with_key)
            attackers.are_in_place()
            return met(job)

    assert best(run, limit) <= limit


@pytest.mark.parametrize("key", [KEY, ""], ids=["key", "no key"])
@pytest.mark.parametrize("frame", [0, 1])
def test_a_frame_that_an_eavesdropper_repeats(typed: Callable[..., Typed], key: str, frame: int) -> None:
    """The host connects again: what was repeated is neither believed nor a reason to end the job."""
    job = typed("exit 0", key=key)
    job.start(0)
    job.waits()
    with closing(Recorder((BETWEEN, job.port), (HERE, job.port), repeat=frame)) as recorder:
        met(job, BETWEEN)

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


def life(job: Typed, attackers: Attackers | None, conversation: bytes) -> dict[str, float]:
    """Run a job through all its phases; return the seconds from what begins each to its effect."""
    times = {}

    def attack(phase: str) -> None:
        assert phase == "start" or ports(job.pids) == set()
        if attackers is not None:
            attackers.attack((HERE, job.port), recorded=conversation)
            attackers.attack((HERE, DISCOVERY_PORT), recorded=conversation)
            attackers.are_in_place()
            attackers.are_in_place()

    def timed(phase: str, begin: Callable[[], None], effect: Callable[[], bool]) -> None:
        began = time.monotonic()
        begin()
        assert effect(), job.said
        times[phase] = time.monotonic() - began

    job.start(0)
    job.waits()
    attack("start")
    timed("start", lambda: job.start(1), lambda: job.wrote("up"))
    attack("run")
    timed("restart", Path("go").touch, lambda: job.wrote("up", restart=1))
    attack("run again")
    timed("end", Path("enough").touch, lambda: job.end() == [0, 0])
    return times


@pytest.mark.parametrize("key", [KEY, ""], ids=["key", "no key"])
def test_all_strangers_in_every_phase(
    typed: Callable[..., Typed], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch,
    with_key: bytes, key: str,
) -> None:  # fmt: skip
    """After the start nothing of hccl-tools listens; the connections of the job stay."""

    def run(*kinds: str) -> dict[str, float]:
        monkeypatch.chdir(tmp_path_factory.mktemp("life"))
        job = typed(LIFE, "--max-restarts", "1", key=key)
        if not kinds:
            return life(job, None, with_key)
        with closing(Attackers(*kinds)) as attackers:
            return life(job, attackers, with_key)

    usual = run()
    for attempt in range(ATTEMPTS):
        found = run(*(KINDS if key else HARMLESS_WITHOUT_KEY))
        late = {phase: time for phase, time in found.items() if time > usual[phase] + DELAY_S}
        if not late or attempt == ATTEMPTS - 1:
            break

    assert late == {}


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
