"""The options of ``gen`` that query many hosts, and the report on their answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import exclude_option
from hccl_tools.cli.options import together
from hccl_tools.cli.site_options import is_from_site, state
from hccl_tools.cli.values import Choice, Seconds
from hccl_tools.errors import UsageError
from hccl_tools.host import site_defaults
from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.gathering.failures import Failure, Gathered
    from hccl_tools.gathering.options import GatherOptions
    from hccl_tools.host.facts import HostFacts
    from hccl_tools.host.observation import Observation, ObservationRequest
    from hccl_tools.host.survey import SurveyRequest

_WANTED = ("hosts", "hostfile", "gather")
#: The names of the options of :func:`one_host`.
REACHING = ("engine", "gather_timeout", "ssh", "via")


#: The options for reaching a host.
_REACHING = (
    click.option(
        "--ssh",
        metavar="COMMAND",
        show_envvar=True,
        envvar=site_defaults.SSH,
        help="The ssh command: 'ssh -p 2222 -i KEY'. Default: Open MPI's setting, else ssh.",
    ),
    click.option(
        "--via",
        metavar="COMMAND",
        show_envvar=True,
        envvar=site_defaults.VIA,
        help="Reach the hosts with this command in place of ssh: 'kubectl exec -i {host} --', "
        "'docker exec -i {host}', 'ssh -J jump {host}'. python3 (3.8 or later) is enough there.",
    ),
    click.option(
        "--gather-timeout",
        "--host-timeout",
        "gather_timeout",
        type=Seconds(5, 86400),
        metavar="SECONDS",
        default=60,
        show_default=True,
        help="Time limit for the answers of all hosts.",
    ),
    click.option(
        "--engine",
        type=Choice(["mpirun", "slurm", "ssh"]),
        help="How to query the hosts. ssh needs only python3 (3.8 or later) there. Default: slurm inside an "
        "allocation, else mpirun if Open MPI's is on PATH and mpi4py is installed, else ssh.",
    ),
)
#: The options that name hosts.
_NAMES = (
    click.option(
        "--hostfile", metavar="FILE", help="The hosts, one per line, in the format of Open MPI and MPICH."
    ),
    click.option(
        "--hosts",
        metavar="LIST",
        help="Query these hosts: 10.0.0.[1-16], node[01-04,7], $SLURM_JOB_NODELIST.",
    ),
)
#: The options for querying many hosts.
_HOSTS = (
    click.option(
        "--allow-missing",
        is_flag=True,
        help="Make the table without the hosts that do not answer, and list them.",
    ),
    click.option(
        "--order",
        type=Choice(["given", "ip"]),
        default="given",
        show_default=True,
        help="Order of the servers: as the hosts are given, or by numeric address.",
    ),
    click.option(
        "--gather",
        is_flag=True,
        help="Collect the answers of all hosts on which mpirun or srun runs this command. In a Slurm "
        "allocation without srun: query all its nodes.",
    ),
    exclude_option.option,
)


#: ``--engine``, ``--gather-timeout`` and ``--ssh``; ``many_hosts`` adds the options that name the hosts.
one_host = together(*_REACHING)
many_hosts = together(*_REACHING, *_HOSTS, *_NAMES)
#: ``--hostfile``, and the options of :data:`one_host` without ``--engine``.
without_engine = together(*_REACHING[:-1], _NAMES[0])
#: The options that name hosts, and those for reaching them.
named_hosts = together(*_REACHING, *_NAMES)


def observe(
    hosts: Sequence[str], request: ObservationRequest, options: dict[str, Any]
) -> tuple[dict[str, Observation], list[Failure]]:
    """Observe hosts as the options of :func:`named_hosts` say; return the answers, and who did not answer.

    Raises:
        GatheringError: The engine failed without naming a host.
        UsageError: ``--via`` cannot be used as it is, or the engine is missing.
    """
    from hccl_tools.gathering.coordinator import observe_hosts  # noqa: PLC0415

    found = observe_hosts(hosts, request, _announced(reached(options), hosts))
    return {one.host: one.seen for one in found.answers if one.seen is not None}, found.left_out


def hosts_of(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the hosts of ``--hosts`` or ``--hostfile``; none if neither is given.

    Raises:
        UsageError: Both are given, or the list cannot be read.
    """
    from hccl_tools.notation import host_list  # noqa: PLC0415

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
    return host_list.parse(typed) if typed else ()


#: What Ctrl-C prevents while hosts are asked.
_NOT_WRITTEN = "no table is written"


def facts_of(host: str, request: SurveyRequest, options: dict[str, Any]) -> HostFacts:
    """Survey one host and print what was found; removes the options of :func:`one_host` from ``options``.

    Raises:
        GatheringError: The host did not answer.
        UsageError: ``host`` is not a host name.
    """
    from hccl_tools.gathering.coordinator import survey_hosts  # noqa: PLC0415
    from hccl_tools.notation import host_list  # noqa: PLC0415

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


def wanted(options: dict[str, Any]) -> bool:
    """Return whether the options name many hosts.

    Raises:
        UsageError: Options name hosts in two ways, or ``--order`` is given without hosts.
    """
    named = [name for name in _WANTED if options[name]]
    if len(named) > 1:
        raise UsageError(
            " and ".join(f"--{name}" for name in named) + " exclude each other", hint="keep one of them"
        )
    if not named and options["via"] is not None and not is_from_site("via"):
        raise UsageError("--via is for the tables of other hosts", hint="add --hosts LIST, or leave it out")
    if not named and options["order"] != "given":
        raise UsageError("--order is for the tables of many hosts", hint="add --hosts LIST, or leave it out")
    if not named and options["exclude"]:
        raise UsageError(
            "--exclude is for the tables of many hosts",
            hint="add --hosts LIST; for this host alone, name the devices to use with --devices",
        )
    return bool(named)


def facts(request: SurveyRequest, options: dict[str, Any]) -> tuple[list[HostFacts], list[str]] | None:
    """Survey the hosts and print what was found; return None after sending an answer to another process.

    Returns:
        The facts of all hosts in the order of the table, and the name of each host in the host list.

    Raises:
        GatheringError: A host did not answer, or the answers of the hosts are inconsistent.
    """
    from hccl_tools.gathering import consistency  # noqa: PLC0415

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
    if options["gather"]:
        from hccl_tools.gathering import within_job  # noqa: PLC0415

        if within_job.is_started_by_launcher(os.environ) or not os.environ.get("SLURM_JOB_NODELIST"):
            if options["exclude"]:
                raise UsageError(
                    "--exclude cannot be used with --gather inside a running job",
                    hint="start the job on the other hosts only, or use --hosts LIST",
                )
            return within_job.gather_within_job(request, seconds=seconds, allow_missing=allow_missing)
    from hccl_tools.gathering.coordinator import survey_hosts  # noqa: PLC0415

    hosts = exclude_option.hosts_left(_hosts(options), options["exclude"])
    how = reached(options)._replace(allow_missing=allow_missing)
    gathered = survey_hosts(hosts, request, _announced(how, hosts))
    answers = exclude_option.answers_left(gathered.answers, options["exclude"])
    return gathered._replace(answers=answers)


def reached(options: dict[str, Any]) -> GatherOptions:
    """Return how the hosts are reached.

    Raises:
        UsageError: ``--via`` cannot be used as it is, or with another option.
    """
    from hccl_tools.gathering import over_ssh  # noqa: PLC0415
    from hccl_tools.gathering.options import VIA_ENGINE, GatherOptions  # noqa: PLC0415

    program, own_ssh = _ways(options)
    how = GatherOptions(options["engine"], options["gather_timeout"], ssh=own_ssh)
    if program is None:
        if how.ssh is not None and is_from_site("ssh"):
            state("--ssh", how.ssh, site_defaults.SSH)
        return how
    if how.ssh is not None or how.engine not in {None, VIA_ENGINE}:
        other = "--ssh" if how.ssh is not None else f"--engine {how.engine}"
        raise UsageError(f"--via and {other} exclude each other", hint="leave one of them out")
    return how._replace(engine=VIA_ENGINE, via=over_ssh.parse(program, how.environ))


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
    from hccl_tools.gathering import default_engine  # noqa: PLC0415
    from hccl_tools.notation.phrases import count  # noqa: PLC0415

    engine, reason = (
        default_engine.Choice(how.engine, "--engine") if how.engine else default_engine.default(how.environ)
    )
    via_source = site_defaults.origin(site_defaults.VIA, os.environ) if is_from_site("via") else "--via"
    shown = f"{how.via[0]} ({via_source})" if how.via else f"{engine} ({reason})"
    tell(f"querying {count(len(hosts), 'host')} with {shown}")
    return how._replace(engine=engine)


def _hosts(options: dict[str, Any]) -> tuple[str, ...]:
    from hccl_tools.programs.slurm import allocated_nodes  # noqa: PLC0415

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
        from hccl_tools.gathering.failures import listed  # noqa: PLC0415
        from hccl_tools.notation.phrases import count  # noqa: PLC0415

        lines.append(f"left out: {count(len(gathered.left_out), 'host')}")
        lines += listed(gathered.left_out)
    return lines
