"""The rules of ``validate --local`` on what was observed on a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.diagnostics.placing import place
from hccl_tools.doctor.findings import HostFinding, Place
from hccl_tools.formats.file_kinds import LOCAL
from hccl_tools.host.facts import DeviceState, HostState
from hccl_tools.rules.registry import rules_for
from hccl_tools.validation.local_check import compare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Report
    from hccl_tools.doctor.registry import Consequence
    from hccl_tools.host.observation import Observation

#: Advice that is more, or less, than a warning for the job at hand.
_ADVICE: dict[str, Consequence] = {"HCC643": "note"}
_WRONG_ADDRESS, _STALE_CONF = "HCC431", "HCC641"


def rules() -> list[tuple[str, str]]:
    """Return id and name of the rules that compare a table with a host."""
    return [(one.facts.id, one.facts.name) for one in rules_for(LOCAL.name)]


def host_state(seen: Observation) -> HostState:
    """Return an observation as the rules of ``validate --local`` read it."""
    devices = {
        one.device: DeviceState(one.ips, one.configured, one.problem, one.super_device_id)
        for one in seen.devices
    }
    own = frozenset(seen.local_addresses)
    return HostState(
        seen.nodes, devices, frozenset(seen.names), own.__contains__, frozenset(seen.stated), seen.conf,
        seen.problems,
    )  # fmt: skip


def compared(host: str, report: Report, state: HostState) -> Iterator[HostFinding]:
    """Yield the differences between a host and the table of a report."""
    found = compare(report, state)
    wrong = {one.path[:-1] for one in found if one.rule.id == _WRONG_ADDRESS}
    # Where the table and hccn.conf have the same wrong address, the first finding tells both.
    found = tuple(one for one in found if one.rule.id != _STALE_CONF or one.path[:-1] not in wrong)
    for diagnostic, where, _others in place(report, found):
        start = where.start if where and diagnostic.path else None
        yield _finding(host, diagnostic, start and Place(report.file, start.line, start.column))


def _finding(host: str, found: Diagnostic, at: Place | None) -> HostFinding:
    rule = found.rule
    severe: Consequence = "stops" if rule.severity == "error" else "may-stop"
    consequence = _ADVICE.get(rule.id, severe)
    return HostFinding(
        rule.id, rule.name, consequence, found.message, (host,), found.devices, found.hint or "",
        rule.source, at,
    )  # fmt: skip
