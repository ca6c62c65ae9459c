"""When the hosts of a job may end their ranks: all of them have their evidence, or are gone."""

from __future__ import annotations

from hccl_tools.launch.cluster.evidence_round import EvidenceRound


class Round:
    """A round of three hosts, and how often its end was announced."""

    def __init__(self) -> None:
        self.expected, self.announced = {0, 1, 2}, 0
        self.evidence = EvidenceRound(lambda: self.expected, self.announce)

    def announce(self) -> None:
        self.announced += 1


def test_the_last_host_ends_it_once() -> None:
    made = Round()
    for number in (2, 0):
        made.evidence.add(number)
        assert made.announced == 0
    made.evidence.add(1)
    made.evidence.add(1)
    made.evidence.check()

    assert made.announced == 1


def test_a_host_that_is_lost_is_not_awaited() -> None:
    made = Round()
    made.evidence.add(0)
    made.evidence.add(1)
    made.expected = {0, 1}
    made.evidence.check()

    assert made.announced == 1


def test_it_does_not_end_before_it_has_begun() -> None:
    made = Round()
    made.expected = set()
    made.evidence.check()

    assert made.announced == 0
