"""The options of ``gen`` for fields of single formats, and for the framework that reads the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import table_options
from hccl_tools.cli.options import together, write
from hccl_tools.cli.values import IntRange
from hccl_tools.errors import UsageError

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
        type=table_options.TARGET,
        help="Write the table as this framework requires it (MindIE: mode 640, container_ip; torch: "
        "no symlink) and print the variables to export.",
    ),
)


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
    from hccl_tools.files.export_targets import TARGETS, mode_to_write  # noqa: PLC0415  (only with --target)

    found = TARGETS[options["target"]]
    options["mode"] = mode_to_write(found, options["mode"])
    if found.container_ip and options["container_ip"] is None:
        options["container_ip"] = "auto"
    return found


def print_variables(found: Target, path: str, hosts: Sequence[HostFacts]) -> None:
    """Print the variables as shell commands, for ``eval "$(hccl-tools gen --target torch)"``."""
    from hccl_tools.cli.env import exports  # noqa: PLC0415
    from hccl_tools.files.export_targets import variables  # noqa: PLC0415

    own = (hosts[0].container_ip or hosts[0].server_id) if len(hosts) == 1 else None
    write(exports(variables(found, path, own)))
