"""The options of ``gen`` for fields of formats, the framework that reads the table, logs, and host files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import options
from hccl_tools.cli.options import together, write
from hccl_tools.cli.values import IntRange
from hccl_tools.errors import UsageError
from hccl_tools.files.export_targets import TARGETS, exports, mode_to_write, variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.files.export_targets import Target
    from hccl_tools.host.facts import HostFacts


contents = together(
    click.option("--rootinfo", metavar="PATH", help="For 2.0: the hccl_rootinfo.json to read."),
    click.option(
        "--vnic", is_flag=True, help="For 1.2: addresses inside the super pod (hccn_tool -vnic -g)."
    ),
    click.option(
        "--device-port",
        type=IntRange(1, 65535),
        metavar="PORT",
        help="Write a device_port. HCCL's own default is 16666.",
    ),
    click.option(
        "--container-ip",
        metavar="ADDRESS|auto",
        help="Write a container_ip; auto: POD_IP, else the server's address.",
    ),
    click.option(
        "--host-ip",
        metavar="ADDRESS|auto",
        help="Write a host_ip; auto: MA_CURRENT_HOST_IP, HOST_IP, else the server's address.",
    ),
    click.option(
        "--target",
        type=options.TARGET,
        help="Write the table as this framework requires it (MindIE: mode 640, container_ip; torch: "
        "no symlink) and print the variables to export.",
    ),
)
#: Options of ``gen`` that concern a table or other hosts.
_OF_TABLES = ("output", "target", "from_log", "hosts", "hostfile", "gather", "mode", "vnic", "host_ip",
              "container_ip", "device_port")  # fmt: skip
host_files = together(
    click.option(
        "--topology",
        metavar="FILE",
        help="For --rootinfo-out and --endpoints: the topology file of this machine, usually in "
        "/usr/local/Ascend/driver/topo.",
    ),
    click.option(
        "--endpoints",
        metavar="DIR",
        help="Ascend 950: write the endpoint files ub_endpoint_npu_N.json to DIR instead of a table.",
    ),
    click.option(
        "--rootinfo-out", metavar="PATH", help="Ascend 950: write the root info to PATH instead of a table."
    ),
)
from_log = click.option(
    "--from-log",
    "from_log",
    multiple=True,
    metavar="PATH",
    help="Take ranks, hosts, devices and addresses from the run logs (files, folders) of a job. Repeatable.",
)


def are_host_files_wanted(settings: dict[str, Any], given: Sequence[str]) -> bool:
    """Return whether gen writes these files instead of a table.

    Raises:
        UsageError: An option that concerns tables is given as well.
    """
    wanted = [name for name in ("rootinfo_out", "endpoints") if settings[name] is not None]
    if not wanted:
        if settings["topology"] is not None:
            raise UsageError("--topology is for --rootinfo-out and --endpoints", hint="omit --topology")
        return False
    for name in wanted:
        if settings[name] == "-":
            raise UsageError(
                f"--{name.replace('_', '-')} - is not a path: these files are not printed",
                hint="specify a path; `./-` is a file with this name",
            )
    other = next((name for name in given if name in _OF_TABLES), None)
    if other is not None:
        first, second = (f"--{name.replace('_', '-')}" for name in (wanted[0], other))
        raise UsageError(
            f"{first} and {second} exclude each other", hint="write the table with another call of gen"
        )
    return True


def target(options: dict[str, Any], *, many: bool) -> Target | None:
    """Return the framework of ``--target`` and set the other options as it requires.

    Raises:
        UsageError: An option gives the address of one host for many hosts.
    """
    for name in ("host_ip", "container_ip"):
        if many and options[name] not in (None, "auto"):
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} {options[name]} is the address of one host",
                hint=f"for many hosts use --{option} auto",
            )
    if options["target"] is None:
        return None
    found = TARGETS[options["target"]]
    options["mode"] = mode_to_write(found, options["mode"])
    if found.container_ip and options["container_ip"] is None:
        options["container_ip"] = "auto"
    return found


def print_variables(found: Target, path: str, hosts: Sequence[HostFacts]) -> None:
    """Print the variables as shell commands, for ``eval "$(hccl-tools gen --target torch)"``."""
    own = (hosts[0].container_ip or hosts[0].server_id) if len(hosts) == 1 else None
    write(exports(variables(found, path, own)))
