"""Checks of the bandwidth between devices: they read the measurements of ``--bandwidth``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.bandwidth import SLOW_SHARE, measured_pairs, slow_pairs
from hccl_tools.doctor.registry import Finding, check
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.programs.hccl_test import WRONG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.doctor.bandwidth import MeasuredPair
    from hccl_tools.doctor.check_input import Case

    Cases = Mapping[str, Case]

_SLOWEST = 3
_SOURCE = "CANN, HCCL Performance Tester (all_reduce_test)"


@check(
    "HCD605",
    "slow-pair",
    "slows",
    remedy="measure again while nothing else uses the devices; for RoCE, check optical module, cable and switch "
    "port: `hccn_tool -i {device} -stat -g`",
    commands=("hccn_tool -i {device} -stat -g",),
    source=_SOURCE,
    between=True,
    of_npus=True,
)
def slow_pair(cases: Cases) -> Iterator[Finding]:
    """Are all pairs of devices about as fast as others with the same kind of link?

    Asked only with `--bandwidth`. A pair with less than three quarters of the median of its kind of link is
    slow. The threshold is a choice that was not tried on NPUs: a link at half its speed is far below it. A
    collective operation is as slow as its slowest link.
    """
    for middle, number, slow in slow_pairs(measured_pairs(cases)):
        have = "has" if len(slow) == 1 else "have"
        message = (
            f"{len(slow)} of {count(number, 'pair')} over {slow[0].pair.kind} {have} less than "
            f"{SLOW_SHARE:.0%} of the median of {middle:.2f} GB/s: {and_more(list(map(str, slow)))}"
        )
        yield _finding(message + _in_common(slow), slow)


def _in_common(slow: Sequence[MeasuredPair]) -> str:
    common = set.intersection(*({one.pair.first, one.pair.second} for one in slow))
    return f"; all have {common.pop()}" if len(slow) > 1 and len(common) == 1 else ""


@check(
    "HCD606",
    "wrong-sum",
    "stops",
    remedy="use other devices, and report these with the logs of the driver: a job would compute wrong results",
    source=_SOURCE,
    between=True,
    of_npus=True,
)
def wrong_sum(cases: Cases) -> Iterator[Finding]:
    """Does all_reduce_test compute the right sum?

    Asked only with `--bandwidth`. `check_result` is `failed` if the sum differs from the expected one.
    """
    wrong = [one for one in measured_pairs(cases) if one.verdict == WRONG]
    if wrong:
        named = and_more([str(one.pair) for one in wrong])
        yield _finding(
            f"the sum over {count(len(wrong), 'pair')} is wrong: {named}{_in_common(wrong)}", wrong
        )


@check(
    "HCD607",
    "bandwidth",
    "note",
    remedy="`-f json` has all measured pairs",
    source=_SOURCE,
    between=True,
    of_npus=True,
)
def bandwidth_note(cases: Cases) -> Iterator[Finding]:
    """Which pairs of devices are the slowest?

    Asked only with `--bandwidth`.
    """
    found = measured_pairs(cases)
    if found:
        named = ", ".join(map(str, found[:_SLOWEST]))
        yield _finding(f"{count(len(found), 'pair')} measured; the slowest: {named}", found[:_SLOWEST])


def _finding(message: str, found: Sequence[MeasuredPair]) -> Finding:
    ends = [end for one in found for end in (one.pair.first, one.pair.second)]
    hosts = tuple(dict.fromkeys(end.host for end in ends))
    return Finding(message, tuple(sorted({end.device for end in ends})), hosts=hosts)
