"""Ask the hosts that the options name, and report on their answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hccl_tools.cli.gather_options import REACHING
from hccl_tools.cli.site_options import is_from_site, state
from hccl_tools.errors import HcclToolsError, UsageError
from hccl_tools.gathering import consistency, default_engine, over_connections, within_job
from hccl_tools.gathering.coordinator import observe_hosts, survey_hosts
from hccl_tools.gathering.failures import listed
from hccl_tools.gathering.options import VIA_ENGINE, GatherOptions
from hccl_tools.host import site_defaults
from hccl_tools.notation import exclusion, host_list
from hccl_tools.notation.phrases import count, operand
from hccl_tools.notation.printable import tell
from hccl_tools.programs.slurm import allocated_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.gathering.failures import Failure, Gathered
    from hccl_tools.gathering.messages import SurveyAnswer
    from hccl_tools.host.facts import HostFacts
    from hccl_tools.host.observation import Observation, ObservationRequest
    from hccl_tools.host.survey import SurveyRequest
    from hccl_tools.notation.exclusion import Exclusion

_LIST = "the list of hosts"
#: What Ctrl-C prevents while hosts are asked.
_NOT_WRITTEN = "no table is written"


def observe(
    hosts: Sequence[str], request: ObservationRequest, options: dict[str, Any]
) -> tuple[dict[str, Observation], list[Failure]]:
    """Observe hosts as the options of :func:`named_hosts` say; return the answers, and who did not answer.

    Raises:
        GatheringError: The engine failed without naming a host.
        UsageError: ``--via`` cannot be used as it is, or the engine is missing.
    """
    found = observe_hosts(hosts, request, _announced(reached(options), hosts))
    return {one.host: one.seen for one in found.answers if one.seen is not None}, found.left_out


def hosts_of(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the hosts of ``--hosts`` or ``--hostfile``; none if neither is given.

    Raises:
        UsageError: Both are given, or the list cannot be read.
    """
    typed = options["hosts"]
    if typed and options["hostfile"]:
        raise UsageError("--hosts and --hostfile exclude each other", hint="keep one of them")
    if options["hostfile"]:
        return host_list.read_hostfile(options["hostfile"])
    if typed and typed.isascii() and typed.isdecimal():
        raise UsageError(
            f"--hosts {typed[:20]} is a number, not a list of hosts",
            hint=f"name the hosts: node[1-{typed[:5]}]; `gen --simulate` takes --servers {typed[:5]}",
        )
    return typed_hosts(typed, "--hosts") if typed else ()


def typed_hosts(typed: str, option: str) -> tuple[str, ...]:
    """Return the hosts of a list; a hostfile in place of hosts is refused.

    Raises:
        UsageError: The list cannot be read, or it is the name of a file with hosts.
    """
    hosts = host_list.parse(typed, option=option)
    if len(hosts) == 1 and not hosts[0].replace(".", "").isdecimal() and os.path.isfile(hosts[0]):  # noqa: PTH113
        try:
            host_list.read_hostfile(hosts[0])
        except HcclToolsError:
            return hosts
        raise UsageError(f"{hosts[0]} is a file, not a host", hint=f"type --hostfile {operand(hosts[0])}")
    return hosts


def facts_of(host: str, request: SurveyRequest, options: dict[str, Any]) -> HostFacts:
    """Survey one host and print what was found; removes the options of :func:`one_host` from ``options``.

    Raises:
        GatheringError: The host did not answer.
        UsageError: ``host`` is not a host name.
    """
    how = reached(options)
    for name in REACHING:
        del options[name]
    hosts = host_list.parse(host, option="the host")
    try:
        gathered = survey_hosts(hosts, request, _announced(how, hosts))
    except KeyboardInterrupt as error:
        error.args = (_NOT_WRITTEN,)
        raise
    found = next(answer.facts for answer in gathered.answers if answer.facts is not None)
    tell(*found.summary())
    return found


def facts(request: SurveyRequest, options: dict[str, Any]) -> tuple[list[HostFacts], list[str]] | None:
    """Survey the hosts and print what was found; return None after sending an answer to another process.

    Returns:
        The facts of all hosts in the order of the table, and the name of each host in the host list.

    Raises:
        GatheringError: A host did not answer, or the answers of the hosts are inconsistent.
    """
    try:
        gathered = _gathered(request, options)
    except KeyboardInterrupt as error:
        error.args = (_NOT_WRITTEN,)
        raise
    if gathered is None:
        return None
    found = consistency.check(gathered.answers)
    if options["order"] == "ip":
        found = consistency.by_address(found)
    names = {id(answer.facts): answer.host for answer in gathered.answers}
    tell(*_summary(gathered, found))
    return found, [names[id(one)] for one in found]


def _gathered(request: SurveyRequest, options: dict[str, Any]) -> Gathered | None:
    seconds, allow_missing = options["gather_timeout"], options["allow_missing"]
    is_within = within_job.is_started_by_launcher(os.environ) or not os.environ.get("SLURM_JOB_NODELIST")
    if options["gather"] and is_within:
        if options["exclude"]:
            raise UsageError(
                "--exclude cannot be used with --gather inside a running job",
                hint="start the job on the other hosts only, or use --hosts LIST",
            )
        return within_job.gather_within_job(request, seconds=seconds, allow_missing=allow_missing)
    hosts = hosts_left(_hosts(options), options["exclude"])
    how = reached(options)._replace(allow_missing=allow_missing)
    if request.simulate is not None:
        tell(
            "note: --simulate with a list of hosts asks each host for a simulated machine; "
            f"`--servers {len(hosts)}` in place of the list asks none"
        )
    gathered = survey_hosts(hosts, request, _announced(how, hosts))
    answers = answers_left(gathered.answers, options["exclude"])
    return gathered._replace(answers=answers)


def reached(options: dict[str, Any]) -> GatherOptions:
    """Return how the hosts are reached.

    Raises:
        UsageError: ``--via`` cannot be used as it is, or with another option.
    """
    program, own_ssh = _ways(options)
    how = GatherOptions(options["engine"], options["gather_timeout"], ssh=own_ssh)
    if program is None:
        if how.ssh is not None and is_from_site("ssh"):
            state("--ssh", how.ssh, site_defaults.SSH)
        return how
    if how.ssh is not None or how.engine not in {None, VIA_ENGINE}:
        other = "--ssh" if how.ssh is not None else f"--engine {how.engine}"
        raise UsageError(f"--via and {other} exclude each other", hint="leave one of them out")
    return how._replace(engine=VIA_ENGINE, via=over_connections.parse(program, how.environ))


def _ways(options: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return ``--via`` and ``--ssh``; a default of the site yields to what is typed, and ssh to via."""
    program, own_ssh = options["via"], options["ssh"]
    ssh_is_typed = own_ssh is not None and not is_from_site("ssh")
    if is_from_site("via") and (ssh_is_typed or options["engine"]):
        program = None
    if program is not None and not ssh_is_typed:
        own_ssh = None
    return program, own_ssh


def _announced(how: GatherOptions, hosts: Sequence[str]) -> GatherOptions:
    """Print which engine is used and why; return the options with that engine."""
    engine, reason = (how.engine, "--engine") if how.engine else default_engine.default(how.environ)
    via_source = site_defaults.origin(site_defaults.VIA, os.environ) if is_from_site("via") else "--via"
    shown = f"{how.via[0]} ({via_source})" if how.via else f"{engine} ({reason})"
    tell(f"querying {count(len(hosts), 'host')} with {shown}")
    return how._replace(engine=engine)


def _hosts(options: dict[str, Any]) -> tuple[str, ...]:
    if options["gather"] and not options["hostfile"]:
        return allocated_nodes(os.environ)
    return hosts_of(options)


def _summary(gathered: Gathered, found: list[HostFacts]) -> list[str]:
    first = found[0]
    lines = [f"product {first.product} ({first.product_source})"]
    lines += [
        f"warning: {answer.host}: {warning}"
        for answer in gathered.answers
        if answer.facts is not None
        for warning in answer.facts.warnings
    ]
    if gathered.left_out:
        lines.append(f"left out: {count(len(gathered.left_out), 'host')}")
        lines += listed(gathered.left_out)
    return lines


def hosts_left(hosts: Sequence[str], exclusions: Sequence[Exclusion]) -> tuple[str, ...]:
    """Return the hosts of a list without those that are excluded as a whole; they are not asked.

    Raises:
        UsageError: An excluded host is not in the list, or none is left.
    """
    if not exclusions:
        return tuple(hosts)
    found = exclusion.matched(exclusions, [(host,) for host in hosts], where=_LIST, what="host")
    left = tuple(host for index, host in enumerate(hosts) if found.get(index, ()) is not None)
    if not left:
        raise exclusion.nothing_left(_LIST)
    tell(f"left out by --exclude: {', '.join(map(str, exclusions))}")
    return left


def answers_left(answers: Sequence[SurveyAnswer], exclusions: Sequence[Exclusion]) -> list[SurveyAnswer]:
    """Return the answers of hosts without the devices that are excluded.

    Raises:
        UsageError: A host does not have an excluded device, or nothing is left.
    """
    if not any(one.devices is not None for one in exclusions):
        return list(answers)
    of_host: dict[str, frozenset[int]] = {}
    for one in exclusions:
        of_host[one.host] = frozenset({*of_host.get(one.host, ()), *(one.devices or ())})
    left = []
    for answer in answers:
        if answer.facts is None or not (excluded := of_host.get(answer.host)):
            left.append(answer)
            continue
        devices = answer.facts.devices
        exclusion.refuse_absent_devices(answer.host, excluded, [one.device_id for one in devices])
        if kept := tuple(one for one in devices if one.device_id not in excluded):
            left.append(answer._replace(facts=answer.facts._replace(devices=kept)))
    if not left:
        raise exclusion.nothing_left("the hosts")
    return left
