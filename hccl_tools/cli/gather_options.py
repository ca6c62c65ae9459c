"""The options of ``gen`` that query many hosts, and the report on their answers."""

from __future__ import annotations

from typing import Any

import click

from hccl_tools.cli import exclude_option
from hccl_tools.cli.options import together
from hccl_tools.cli.site_options import is_from_site
from hccl_tools.cli.values import Choice, Seconds
from hccl_tools.errors import UsageError
from hccl_tools.host import site_defaults
from hccl_tools.launch import engines

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
        type=Choice(engines.asking_hosts()),
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
