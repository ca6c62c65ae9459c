"""Judge what was observed on the hosts of a job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from hccl_tools.diagnostics.wording import next_step
from hccl_tools.doctor import bandwidth, ping_results, table_comparison
from hccl_tools.doctor.check_input import Case
from hccl_tools.doctor.cross_host_checks import NO_ANSWER, Silent, silence
from hccl_tools.doctor.findings import (
    Examination,
    HostFinding,
    checks_of,
    compare,
    folded,
    judge,
    without_consequences,
)
from hccl_tools.doctor.registry import all_checks
from hccl_tools.host.observation import HCCS, Observation, ObservationRequest
from hccl_tools.host.pings import USUAL_TIME
from hccl_tools.host.recognition import recognise
from hccl_tools.notation import host_list
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.diagnostics.registry import Selection
    from hccl_tools.table.model import RankTable


#: How much longer than usual the pings of a host may take: one without an answer waits.
_PING_SLACK = 3.0


class Job(NamedTuple):
    """What is to run.

    Attributes:
        report: The checked table, if there is one.
        product: The product of ``--product``.
        target: The framework of ``--target``.
        start_port: The first port of ``--start-port``.
        code: The paths of ``--code``, absolute.
        data: The paths of ``--data``, absolute.
        pings: Which devices of other servers each device pings: the ``next`` of its rail, ``all``, ``none``.
        bandwidth: Whether the bandwidth of pairs of devices is measured.
        connects: Whether each host connects to the others.
        cpu: Whether the job is a rehearsal without NPUs.
        command: The user's own health check for each host, and the seconds for it.
    """

    report: Report | None = None
    product: str | None = None
    target: str | None = None
    start_port: int | None = None
    code: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    pings: Literal["none", "next", "all"] = "none"
    bandwidth: bool = False
    connects: bool = True
    cpu: bool = False
    command: tuple[str, float] = ("", 0.0)

    @property
    def table(self) -> RankTable | None:
        """The table, if it can be read."""
        return None if self.report is None else self.report.table

    def request(self, tool_timeout: float) -> ObservationRequest:
        """Return what is to be looked at on each host."""
        ports: tuple[int, ...] = ()
        if self.start_port is not None:
            ports = tuple(port for port in range(self.start_port, self.start_port + 16) if port < 65536)
        table = self.table
        asked = ObservationRequest(
            ports=ports, tool_timeout=tool_timeout, code=self.code, data=self.data, cpu=self.cpu,
            command=self.command[0], command_time=self.command[1],
        )  # fmt: skip
        if table is None:
            return asked
        known = {number for number in table.device_numbers if number is not None}
        stated = (text for server in table.servers for text in ping_results.stated_addresses(server))
        servers = ping_results.ping_servers(table) if self.pings != "none" else ()
        return asked._replace(
            device_ids=tuple(sorted(known)),
            addresses=tuple(dict.fromkeys(stated)),
            ping=servers,
            ping_all=self.pings == "all",
            ping_time=_PING_SLACK * USUAL_TIME * ping_results.most_pings(servers, every=self.pings == "all"),
            super_pod=table.format == "1.2" and "super_device_id" in table.columns,
            levels=table.format == "2.0",
            table=os.path.abspath(self.report.file) if self.report else "",
            reach=_addresses_of_hosts(table) if self.connects else (),
            start_port=self.start_port or 0,
        )

    def request_in_super_pods(
        self, cases: Mapping[str, Case], tool_timeout: float
    ) -> ObservationRequest | None:
        """Return the request for the pings over HCCS, at the addresses that the devices have in a super pod.

        Args:
            cases: The hosts that answered the first request; None is returned if there is nothing to ping.
        """
        every = self.pings == "all"
        if self.table is None or self.pings == "none":
            return None
        servers = ping_results.servers_in_super_pods(self.table, cases, every=every)
        number = ping_results.most_pings(servers, every=every, over=HCCS)
        if number == 0:
            return None
        return ObservationRequest(
            addresses=tuple(name for server in servers for name in server.names),
            tool_timeout=tool_timeout,
            ping=servers,
            ping_all=every,
            ping_over=HCCS,
            ping_time=_PING_SLACK * USUAL_TIME * number,
        )


def _addresses_of_hosts(table: RankTable) -> tuple[str, ...]:
    """Return an address of each host of a table with several; none for a table with one host."""
    stated = (one.address for one in table.servers)
    found = dict.fromkeys(name for name in stated if not host_list.why_not_a_host(name, ipv6=True))
    return tuple(found) if len(found) > 1 else ()


def examine(
    seen: Mapping[str, Observation], job: Job, selection: Selection, silent: Sequence[Silent] = ()
) -> Examination:
    """Return the findings on hosts, by the names under which they were asked.

    Args:
        silent: The hosts that did not answer.
    """
    found: list[HostFinding] = []
    cases = {host: case_of(one, job) for host, one in seen.items()}
    for host, case in cases.items():
        found += judge(host, case)
        if job.report is not None and job.report.table is not None and not job.cpu:
            found += table_comparison.compared(host, job.report, table_comparison.host_state(case.seen))
    found += compare(cases)
    found += (silence(one) for one in silent)
    kept = (
        one
        for one in without_consequences(found)
        if selection.keeps(one.check, one.name) or _was_not_looked_at(one, selection)
    )
    hosts = (*seen, *(one.host for one in silent))
    asked = _asked(cases, job, selection, many=len(hosts) > 1)
    return Examination(hosts, folded(kept, hosts), job.report.file if job.report else None, asked)


def _was_not_looked_at(one: HostFinding, selection: Selection) -> bool:
    """Return whether a finding says that what was selected may not have been looked at.

    A verdict without it would be one on hosts that nobody has seen.
    """
    if selection.ignores(one.check, one.name):
        return False
    of_npus = any(check.of_npus and selection.keeps(check.id, check.name) for check in all_checks().values())
    return one.check == NO_ANSWER or (one.is_unknown and of_npus)


def _asked(
    cases: Mapping[str, Case], job: Job, selection: Selection, *, many: bool
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return id and name of the checks asked of each host; ``many``: hosts were compared as well."""
    shared = [
        (one.id, one.name)
        for one in all_checks().values()
        if one.between
        and (job.bandwidth if one.id in bandwidth.CHECKS else many)
        and not (job.cpu and one.of_npus)
    ]
    shared += table_comparison.rules() if job.table is not None and not job.cpu else []
    return {
        host: tuple(
            one for one in ((check.id, check.name) for check in checks_of(case)) if selection.keeps(*one)
        )
        + tuple(one for one in shared if selection.keeps(*one))
        for host, case in cases.items()
    }


def case_of(seen: Observation, job: Job) -> Case:
    """Return one host as the checks read it, with what it was asked for alone."""
    seen = seen._replace(code=_of_paths(seen.code, job.code), data=_of_paths(seen.data, job.data))
    table = job.table
    devices = () if table is None else _devices_here(table, seen)
    product = seen.product or job.product or (job.report.product if job.report else None)
    path = job.report.file if job.report else ""
    problem, remedy = _table_problem(job.report) if job.report else ("", "")
    return Case(
        seen, table, path, product, devices, job.target, job.start_port, job.product, problem, remedy, job.cpu
    )


def _of_paths(found: Mapping[str, str], paths: Sequence[str]) -> dict[str, str]:
    return {path: found[path] for path in paths if path in found}


def _devices_here(table: RankTable, seen: Observation) -> tuple[int, ...]:
    servers = recognise(table, table_comparison.host_state(seen)).servers
    numbers = table.device_numbers
    if len({table.servers[index].server_id for index in servers}) != 1:
        return ()
    found = {numbers[row] for index in servers for row in table.servers[index].rows}
    return tuple(sorted(number for number in found if number is not None))


def _table_problem(report: Report) -> tuple[str, str]:
    if report.ok:
        return "", ""
    first = report.errors[0]
    total = sum(number for rule, number in report.counts.items() if rule.severity == "error")
    more = f" and {total - 1:,} more" if total > 1 else ""
    of_framework = first.rule.reader != report.reader  # plain `validate` does not find it
    remedy = first.hint if of_framework and first.hint else next_step(report)
    return f"the table has errors: {first.rule.id} {first.message}{more}", remedy
