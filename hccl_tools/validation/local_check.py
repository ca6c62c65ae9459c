"""Compare tables with this host: ``validate --local``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import KEPT
from hccl_tools.formats.file_kinds import LOCAL, OTHER_FILES
from hccl_tools.host import host_state
from hccl_tools.host.recognition import Recognised, recognise
from hccl_tools.host.site_defaults import Site
from hccl_tools.rules.findings import Findings
from hccl_tools.rules.registry import Input, InputFacts, LocalSubject, Subject, rules_for
from hccl_tools.table.products import PRODUCTS
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    import os

    from hccl_tools.diagnostics.diagnostic import Diagnostic, Report
    from hccl_tools.host.facts import HostState
    from hccl_tools.table.model import RankTable


class LocalCheck:
    """Compares tables with this host, whose state is determined once."""

    def __init__(self, site: Site | None = None) -> None:
        self._site = site or Site()
        self._looks: dict[tuple[tuple[int, ...], bool], HostState] = {}

    def validate(self, source: str | os.PathLike[str] | bytes | Any, **checks: Any) -> Report:
        """Check a table and compare it with this host.

        Args:
            source: See ``hccl_tools.validate``.
            checks: The other arguments of ``hccl_tools.validate``.

        Raises:
            InputError: The file, or a tool that the user specified, cannot be used.
            UsageError: The product or a rule is unknown.
        """
        return validate(source, host=self.look, **checks)

    def look(self, table: RankTable) -> HostState:
        """Return the state of this host for the devices of a table."""
        in_pods = table.format == "1.2" and "super_device_id" in table.columns
        ids = tuple(sorted({number for number in table.device_numbers if number is not None}))
        key = (ids, in_pods)
        if key not in self._looks:
            self._looks[key] = host_state.read_host_state(
                ids, self._site, super_pod=in_pods, levels=table.format == "2.0"
            )
        return self._looks[key]

    def summary(self, report: Report) -> str:
        """Return the sentence that reports which server of a checked table is this host."""
        if report.is_service:
            return f"{report.file}: not compared with this host because it is a service table"
        if report.format in OTHER_FILES and not self._has_devices():
            return f"{report.file}: not compared: this host has no Ascend device (no /dev/davinciN)"
        if report.format in OTHER_FILES:
            return f"{report.file}: compared with the devices of this host"
        if report.table is None:
            return f"{report.file}: not compared with this host because the table cannot be read"
        found: Recognised = recognise(report.table, self.look(report.table))
        names = {report.table.servers[index].server_id for index in found.servers}
        if len(names) != 1:
            return f"{report.file}: this host matches {'several' if names else 'none'} of its servers"
        server = report.table.servers[found.servers[0]]
        return f'{report.file}: this host is server "{server.server_id}", by {found.way}'

    def _has_devices(self) -> bool:
        """Return whether a look at this host found a device node, or an address of a device."""
        return any(
            state.nodes or any(one.ips for one in state.devices.values()) for state in self._looks.values()
        )


def compare(report: Report, state: HostState) -> tuple[Diagnostic, ...]:
    """Return the findings of the rules that compare a host with the table of a report."""
    if report.table is None:
        return ()
    given = Input(InputFacts(PRODUCTS[report.product], document=report.document))
    subject = LocalSubject(Subject(given, report.table), state)
    findings = Findings(KEPT, lambda _rule: True)
    findings.run(rules_for(LOCAL.name), subject)
    return tuple(findings.kept)
