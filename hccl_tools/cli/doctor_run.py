"""What ``hccl-tools doctor`` asks, and of which hosts."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import click

from hccl_tools.cli import asked_hosts
from hccl_tools.cli.options import write
from hccl_tools.diagnostics.hint_files import with_files
from hccl_tools.diagnostics.wording import no_rank_table
from hccl_tools.doctor import ping_results, registry
from hccl_tools.doctor.bandwidth import CHECKS
from hccl_tools.doctor.cross_host_checks import Silent
from hccl_tools.doctor.report import as_matrix, remedies
from hccl_tools.doctor.run_checks import case_of
from hccl_tools.errors import HcclToolsError, TableError, UsageError
from hccl_tools.files.next_command import simulated_product
from hccl_tools.gathering import default_engine
from hccl_tools.host.local_addresses import is_this_host
from hccl_tools.host.observation import Unknown
from hccl_tools.host.observing import observe
from hccl_tools.host.pings import USUAL_TIME
from hccl_tools.host.site_defaults import Site
from hccl_tools.launch.planning import table_source
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import count, operand, time_span
from hccl_tools.notation.printable import stdout_is_ascii, tell
from hccl_tools.runs import parents
from hccl_tools.table.products import PRODUCT_VARIABLE, PRODUCTS
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.diagnostics.diagnostic import Report
    from hccl_tools.diagnostics.registry import Selection
    from hccl_tools.doctor import run_checks
    from hccl_tools.doctor.findings import Examination
    from hccl_tools.gathering.failures import Failure
    from hccl_tools.host.observation import Observation, ObservationRequest

    Answers = tuple[dict[str, Observation], list[Failure]]

#: Standard output in place of a folder.
STDOUT = "-"
#: The rules of frameworks on mode and links of the table's file: HCD312 checks the file of the job itself.
_FILE_RULES = ("HCC861", "HCC871", "HCC881")


def checked_table(
    table: str | None, product: str | None, target: str | None, *, quietly: bool = False
) -> Report | None:
    """Return the report on the table of the job, if there is one; say so if it is that of a variable.

    Raises:
        InputError: The file cannot be read.
        TableError: The file is known, but is not a rank table.
    """
    if table is None and (variable := table_source.naming_variable(os.environ)):
        table = table_source.usual_file(os.environ[variable])
        if not quietly:
            tell(f"note: no TABLE given: using {variable}={os.environ[variable]}")
    if table is None:
        return None

    _refuse_host(table)
    report = validate(table, product=product, target=target, ignore=_FILE_RULES)
    if other := no_rank_table(report):
        raise TableError(f"{report.file} cannot be used: {other[0]}", hint=other[1])
    if report.table is None:
        if not table.endswith((".py", ".sh")):
            _refuse_hostfile(table)
        _refuse_text(report)
    return report


def _refuse_text(report: Report) -> None:
    """Refuse a file without any JSON, such as the program of the job.

    Raises:
        TableError: The file has no JSON object.
    """
    if report.document is not None and b"{" not in report.document.data and report.errors:
        first = report.errors[0]
        raise TableError(
            f"{report.file} cannot be used: {first.message}",
            hint=first.hint and with_files(first.hint, report),
        )


def _refuse_hostfile(name: str) -> None:
    """Refuse a hostfile in place of a table.

    Raises:
        UsageError: The file is a list of hosts.
    """
    try:
        hosts = host_list.read_hostfile(name)
    except HcclToolsError:
        return
    if hosts:
        hint = f"type `hccl-tools doctor --hostfile {quote(name)}`"
        raise UsageError(f"{name} is a list of hosts, not a rank table", hint=hint)


def _refuse_host(name: str) -> None:
    """Refuse a host in place of a table.

    Raises:
        UsageError: No file has the name, and it may be that of hosts.
    """
    if os.path.lexists(name) or os.sep in name or name.endswith((".json", ".yaml", ".yml")) or name == "-":
        return
    try:
        host_list.parse(name)
    except HcclToolsError:
        return
    context = click.get_current_context(silent=True)
    given = context.params.get("hosts") if context is not None else None
    hosts = quote(",".join([*([given] if isinstance(given, str) else []), name]))
    hint = f"{'a list of hosts has commas' if given else 'hosts'}: `hccl-tools doctor --hosts {hosts}`"
    raise UsageError(f"no such file: {name}", hint=hint)


def announced_hosts(job: run_checks.Job, options: dict[str, Any], *, local: bool) -> tuple[str, ...]:
    """Return the hosts to ask; say before they are asked that HCCL refuses the table, if it does.

    Raises:
        InputError: A server of the table has a name that no host can have.
        UsageError: The options contradict each other.
    """
    hosts, report = hosts_to_ask(job, options, local=local), job.report
    if report is not None and report.table is not None and simulated_product(report.table):
        tell("note: these are addresses of simulated machines; `hccl-tools doctor --cpu` checks this host")
    if report is not None and report.errors:
        first = report.errors[0]
        asked = f"{count(len(hosts), 'host')} of it are asked" if len(hosts) > 1 else "this host is looked at"
        tell(
            f"warning: HCCL refuses {report.file}: {first.rule.id} {first.message}",
            f"  help: `hccl-tools validate {operand(report.file)}` shows all; {asked} nevertheless",
        )
    return hosts


def absolute(option: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the absolute paths of an option.

    Raises:
        UsageError: A path does not exist on this host.
    """
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110  (pathlib raises on a long name)
            raise UsageError(f"{option} {path} does not exist here", hint="name a path that all hosts have")
    return tuple(str(Path(path).absolute()) for path in paths)


def observed(
    job: run_checks.Job, options: dict[str, Any], *, tool_timeout: float, local: bool
) -> tuple[dict[str, Observation], list[Silent]]:
    """Observe the hosts of the options or the table, or this host; return also who did not answer.

    Raises:
        InputError: A tool or file that the user specified cannot be used.
        UsageError: The options contradict each other.
        GatheringError: The hosts cannot be asked.
    """
    hosts = hosts_to_ask(job, options, local=local)

    def ask(hosts: Sequence[str], request: ObservationRequest) -> Answers:
        _announce_pings(request)
        if not hosts:
            return {os.uname().nodename: observe(request, Site())}, []
        longer = {"gather_timeout": options["gather_timeout"] + (request.ping_time if request.ping else 0)}
        return asked_hosts.observe(hosts, request, options | longer)

    asked = job if hosts else job._replace(connects=False)  # one host alone: the others may not be up yet
    seen, failures = ask(hosts, asked.request(tool_timeout))
    cases = {host: case_of(one, job) for host, one in seen.items()}
    request = job.request_in_super_pods(cases, tool_timeout)
    if request is not None:  # the addresses in a super pod are known once all hosts have answered
        again = [host for server in request.ping for host in server.names[:1]] if hosts else []
        found, silent = ask(again, request)
        seen |= {host: seen[host].with_pings(one) for host, one in found.items()}
        lost = {one.host: Unknown("the way over HCCS", one.message) for one in silent}
        seen |= {host: seen[host]._replace(unknown=(*seen[host].unknown, one)) for host, one in lost.items()}
    return seen, [Silent(one.host, one.reason, one.hint) for one in failures]


def pings_of(
    selection: Selection, of_npus: Mapping[str, bool], *, cpu: bool
) -> Literal["none", "next", "all"]:
    """Return who pings whom; ``of_npus``: which options that ask NPUs are given, by name.

    Raises:
        UsageError: One of them is given with ``--cpu``.
    """
    for option in (name for name, given in of_npus.items() if cpu and given):
        raise UsageError(
            f"--cpu and {option} exclude each other: a rehearsal uses no NPU", hint="leave one of them out"
        )
    return "none" if cpu else pings(selection, every=of_npus["--full"])


def pings(selection: Selection, *, every: bool) -> Literal["none", "next", "all"]:
    """Return which host pings which; empty if the results are not reported."""
    checks = (one for one in registry.all_checks().values() if one.id.startswith(ping_results.FAMILY))
    if not any(selection.keeps(one.id, one.name) for one in checks if one.id not in CHECKS):
        return "none"
    return "all" if every else "next"


def _announce_pings(request: ObservationRequest) -> None:
    number = ping_results.most_pings(request.ping, every=request.ping_all, over=request.ping_over)
    if number:
        usual = time_span(number * USUAL_TIME)
        tell(
            f"pinging {count(number, 'device')} of other servers from each host over {request.ping_over}, "
            f"about {usual}"
        )


def hosts_to_ask(job: run_checks.Job, options: dict[str, Any], *, local: bool) -> tuple[str, ...]:
    """Return the hosts of the options, else of the job; none if this host alone is meant.

    Raises:
        InputError: A server of the table has a name that no host can have.
        UsageError: The options contradict each other.
    """
    named = asked_hosts.hosts_of(options)
    if local and named:
        raise UsageError("--local and --hosts exclude each other", hint="leave one of them out")
    if local or named or job.table is None:
        return named
    hosts = default_engine.hosts(job.table, os.environ)
    return () if len(hosts) == 1 and is_this_host(hosts[0]) else hosts


def require_for_output(job: run_checks.Job, hosts: Sequence[str], *, matrix: bool, script: bool) -> None:
    """Refuse a matrix of pings without a table of several servers, and one script for several hosts.

    Run as one script, each host would get the others' commands.

    Raises:
        UsageError: There is nothing to ping, or there are several hosts.
    """
    if matrix and (job.table is None or len(job.table.servers) < 2):
        raise UsageError(
            "-f matrix shows the pings between the servers of a table",
            hint="name a TABLE with several servers; `show -f matrix` shows a single server",
        )
    if script and len(hosts) > 1:
        raise UsageError(
            f"--emit-remedies - prints the script of one host, but {len(hosts)} are asked",
            hint="name a folder: --emit-remedies DIR",
        )


def matrix(seen: Mapping[str, Observation], job: run_checks.Job) -> Iterator[str]:
    """Yield the text of the matrices: what the table states, and what the pings found."""
    job = with_product_of(seen, job)
    if job.table is None or job.report is None:
        return
    cases = {host: case_of(one, job) for host, one in seen.items()}
    product = PRODUCTS[job.report.product]
    found = ping_results.measured(job.table, cases)
    yield from as_matrix.render(job.table, product, found, ascii_only=stdout_is_ascii())


def emit_remedies(result: Examination, destination: str | None) -> None:
    """Write the scripts to a folder, or print that of the only host (``-``); ``None``: do neither.

    Raises:
        WriteError: A file cannot be written.
    """
    if destination is None:
        return
    if destination == STDOUT:
        write([remedies.script(result.hosts[0], list(result.findings))])
        return
    written = remedies.write(destination, remedies.scripts(result))
    tell(f"wrote {count(len(written), 'script')} to {destination}; nothing was run")
    if written:
        tell(*parents.doubts(destination, "the scripts"))


def with_product_of(seen: Mapping[str, Observation], job: run_checks.Job) -> run_checks.Job:
    """Return the job with its table checked for the product of most hosts, unless a product was stated."""
    found = Counter(one.product for one in seen.values() if one.product is not None)
    if job.report is None or job.product or os.environ.get(PRODUCT_VARIABLE) or not found:
        return job
    product = found.most_common(1)[0][0]  # an odd host among equals is a finding of its own
    if product == job.report.product or job.report.format not in PRODUCTS[product].formats:
        return job
    return job._replace(report=checked_table(job.report.file, product, job.target))
