"""Whether a job on several hosts hangs is decided in one place: on a clock that the test moves."""

from __future__ import annotations

from hccl_tools.launch.cluster.hang_decision import HangDecision
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.runs.job_report import HungRank

#: Seconds that a job may do nothing.
LIMIT = 10.0
SLEEP, REDUCE = ['  File "train.py", line 9 in <module>'], ['  File "train.py", line 5 in <module>']


def rank(number: int, stack: list[str], idle: float = 20.0) -> HungRank:
    host = f"10.0.0.{number + 1}"
    return HungRank(number, f"rank {number}", host, 7, True, idle, None, "sleeping", "log", stack=stack)


class Job:
    """Three hosts with a rank each."""

    def __init__(self) -> None:
        self.now, self.asked = 0.0, 0
        self.running = {0, 1, 2}
        self.ends = list[tuple[list[HungRank], Cause]]()
        self.decision = HangDecision(
            lambda: self.running,
            self._ask,
            lambda *end: self.ends.append(end),
            limit=LIMIT,
            clock=lambda: self.now,
        )

    def _ask(self) -> None:
        self.asked += 1

    def quiet(self, *servers: int) -> None:
        for server in servers:
            self.decision.report(server, LIMIT)


def test_a_job_in_which_one_host_computes_does_not_hang() -> None:
    job = Job()
    for job.now in range(100):
        job.quiet(0, 2)

    assert (job.asked, job.ends) == (0, [])


def test_hosts_whose_ranks_have_ended_are_not_awaited() -> None:
    job = Job()
    job.running = {0, 2}
    job.quiet(0, 2)

    assert job.asked == 1


def test_the_end_of_a_host_may_be_what_the_others_have_waited_for() -> None:
    job = Job()
    job.quiet(0, 2)
    job.now = 50.0
    job.running = {0, 2}
    job.decision.host_ended()
    for job.now in (50.0, 50.0 + LIMIT - 0.1):
        job.quiet(0, 2)
        assert job.asked == 0

    job.now = 50.0 + LIMIT
    job.quiet(0, 2)

    assert job.asked == 1


def test_a_host_that_ends_withdraws_all_answers() -> None:
    job = Job()
    job.quiet(0, 1, 2)
    job.decision.answer(0, (rank(0, REDUCE),))
    job.running = {0, 2}
    job.decision.host_ended()
    job.decision.answer(2, (rank(2, REDUCE),))
    job.now = 1000.0
    job.decision.check()

    assert job.ends == []


def test_once_all_are_quiet_the_ranks_of_all_hosts_are_compared() -> None:
    job = Job()
    job.quiet(0, 1, 2)
    for server, stack in enumerate((REDUCE, SLEEP, REDUCE)):
        assert not job.ends
        job.decision.answer(server, (rank(server, stack),))

    ((hung, cause),) = job.ends
    assert job.asked == 1
    assert [one.rank for one in hung if one.is_first] == [1]
    assert (hung[0].rank, len(hung)) == (1, 3)
    assert (cause.reason, cause.host, cause.exit_code) == ("hang", "10.0.0.2", 124)
    assert cause.detail == "rank 1 stopped first: sleeping"


def test_a_host_that_goes_on_withdraws_its_report_and_all_answers() -> None:
    job = Job()
    job.quiet(0, 1, 2)
    job.decision.answer(0, (rank(0, REDUCE),))
    job.decision.report(1, 0.0)
    for server in (1, 2):
        job.decision.answer(server, (rank(server, REDUCE),))
    job.now = 1000.0
    job.decision.check()
    assert job.ends == []

    job.quiet(1)

    assert job.asked == 2


def test_a_host_that_does_not_answer_delays_the_end_for_a_limited_time() -> None:
    job = Job()
    job.quiet(0, 1, 2)
    for server in (0, 2):
        job.decision.answer(server, (rank(server, REDUCE),))
    job.now = job.decision.deadline - 0.1
    job.decision.check()
    assert job.ends == []

    job.now += 0.2
    job.decision.check()
    job.decision.check()

    assert [len(hung) for hung, _ in job.ends] == [2]
