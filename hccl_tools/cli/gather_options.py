"""The options of ``gen`` that ask many hosts, and what is said about their answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from hccl_tools.cli.seconds import Seconds
from hccl_tools.cli.values import Choice
from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.discover.facts import HostFacts
    from hccl_tools.discover.survey import SurveyRequest
    from hccl_tools.gathering.failures import Gathered

_F = TypeVar("_F", bound="Callable[..., Any]")
_WANTED = ("hosts", "hostfile", "gather")


#: How a host is asked; the last option first, as click shows them the other way round.
_ASKING = (
    click.option(
        "--ssh",
        metavar="COMMAND",
        help="The ssh that mpirun takes: 'ssh -p 2222 -i KEY'. Default: Open MPI's setting, else ssh.",
    ),
    click.option(
        "--gather-timeout",
        "--gather_timeout",
        type=Seconds(5, 86400),
        metavar="SECONDS",
        default=60,
        show_default=True,
        help="In this time all hosts must have answered.",
    ),
    click.option(
        "--engine",
        type=Choice(["mpirun", "slurm"]),
        help="What starts the processes. Default: srun inside a Slurm allocation, else mpirun over ssh.",
    ),
)
#: Which hosts are asked, and what becomes of their answers.
_HOSTS = (
    click.option(
        "--allow-missing",
        "--allow_missing",
        is_flag=True,
        help="Make the table without the hosts that cannot answer, and say which.",
    ),
    click.option(
        "--order",
        type=Choice(["given", "ip"]),
        default="given",
        show_default=True,
        help="Which server comes first: as the hosts are given, or by address as a number.",
    ),
    click.option(
        "--gather",
        is_flag=True,
        help="mpirun or srun runs this very command on every host: gather what they find. In a "
        "Slurm allocation without srun: ask all its nodes.",
    ),
    click.option(
        "--hostfile",
        metavar="FILE",
        help="The hosts of --hosts, line by line, as Open MPI and MPICH take it.",
    ),
    click.option(
        "--hosts",
        metavar="LIST",
        help="Ask these hosts: 10.0.0.[1-16], node[01-04,7], $SLURM_JOB_NODELIST.",
    ),
)


class Facts(NamedTuple):
    """The facts of all hosts in the order of the table, and what the user calls each."""

    facts: list[HostFacts]
    origins: list[str]


def many_hosts(function: _F) -> _F:
    """Add ``--hosts``, ``--hostfile``, ``--gather`` and what goes with them."""
    for option in (*_ASKING, *_HOSTS):
        function = option(function)
    return function


def one_host(function: _F) -> _F:
    """Add what goes with asking one host: ``--engine``, ``--gather-timeout``, ``--ssh``."""
    for option in _ASKING:
        function = option(function)
    return function


def facts_of(host: str, request: SurveyRequest, options: dict[str, Any]) -> HostFacts:
    """Ask one host and say what it told; takes the options of :func:`one_host` out of the others.

    Raises:
        GatheringError: It has not answered.
        UsageError: It is no host.
    """
    from hccl_tools.gathering.coordinator import Asking, ask  # noqa: PLC0415
    from hccl_tools.notation import host_list  # noqa: PLC0415

    asking = Asking(options.pop("engine"), options.pop("gather_timeout"), ssh=options.pop("ssh"))
    gathered = ask(host_list.parse(host, option="the host"), request, asking)
    found = next(answer.facts for answer in gathered.answers if answer.facts is not None)
    click.echo("\n".join(found.told()), err=True)
    return found


def wanted(options: dict[str, Any]) -> bool:
    """Return whether many hosts are asked for.

    Raises:
        UsageError: In two ways at once, or in none where an option is for many.
    """
    named = [name for name in _WANTED if options[name]]
    if len(named) > 1:
        raise UsageError(
            " and ".join(f"--{name}" for name in named) + " exclude each other", hint="keep one of them"
        )
    if not named and options["order"] != "given":
        raise UsageError("--order is for the tables of many hosts", hint="add --hosts LIST, or leave it out")
    return bool(named)


def facts(request: SurveyRequest, options: dict[str, Any]) -> Facts | None:
    """Ask the hosts and say what they told; None in a process that has given its answer to the first.

    Raises:
        GatheringError: A host has not answered, or the hosts do not fit together.
    """
    from hccl_tools.gathering import agreement  # noqa: PLC0415

    gathered = _gathered(request, options)
    if gathered is None:
        return None
    found = agreement.check(gathered.answers)
    if options["order"] == "ip":
        found = agreement.by_address(found)
    names = {id(answer.facts): answer.host for answer in gathered.answers}
    click.echo("\n".join(_told(gathered, found)), err=True)
    return Facts(found, [names[id(one)] for one in found])


def _gathered(request: SurveyRequest, options: dict[str, Any]) -> Gathered | None:
    seconds, allow_missing = options["gather_timeout"], options["allow_missing"]
    if options["gather"]:
        from hccl_tools.gathering import within_job  # noqa: PLC0415

        if within_job.was_started_by_a_launcher(os.environ) or not os.environ.get("SLURM_JOB_NODELIST"):
            return within_job.take_part(request, seconds=seconds, allow_missing=allow_missing)
    from hccl_tools.gathering.coordinator import Asking, ask  # noqa: PLC0415

    asking = Asking(options["engine"], seconds, allow_missing, options["ssh"])
    return ask(_hosts(options), request, asking)


def _hosts(options: dict[str, Any]) -> tuple[str, ...]:
    from hccl_tools.notation import host_list  # noqa: PLC0415

    if options["hostfile"]:
        return host_list.read_hostfile(options["hostfile"])
    if options["gather"]:
        return host_list.parse(os.environ["SLURM_JOB_NODELIST"], option="SLURM_JOB_NODELIST")
    return host_list.parse(options["hosts"])


def _told(gathered: Gathered, found: list[HostFacts]) -> list[str]:
    """Return what the user should know of the answers, line by line."""
    from hccl_tools.gathering.failures import told  # noqa: PLC0415

    first = found[0]
    lines = [f"product {first.product} ({first.product_source})"]
    lines += [
        f"warning: {answer.host}: {warning}"
        for answer in gathered.answers
        if answer.facts is not None
        for warning in answer.facts.warnings
    ]
    if gathered.left_out:
        count = len(gathered.left_out)
        lines.append(f"left out: {count} host{'s' if count > 1 else ''}\n{told(gathered.left_out)}")
    return lines
