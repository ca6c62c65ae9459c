"""The options of ``gen`` for the root info and the endpoint files of an Ascend 950 host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli.options import together
from hccl_tools.errors import TableError, UsageError
from hccl_tools.notation.printable import tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.formats.topology_file import TopologyFile
    from hccl_tools.host.facts import HostFacts
    from hccl_tools.host.survey import SurveyRequest
    from hccl_tools.transform.host_files import Entry

#: Options of ``gen`` that concern a table or other hosts.
_OF_TABLES = ("output", "target", "from_log", "hosts", "hostfile", "gather", "mode", "vnic", "host_ip",
              "container_ip", "device_port")  # fmt: skip

files = together(
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


def are_wanted(settings: dict[str, Any], given: Sequence[str]) -> bool:
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
                f"--{name.replace('_', '-')} - is no path: these files are not printed",
                hint="specify a path; `./-` is a file with this name",
            )
    other = next((name for name in given if name in _OF_TABLES), None)
    if other is not None:
        first, second = (f"--{name.replace('_', '-')}" for name in (wanted[0], other))
        raise UsageError(
            f"{first} and {second} exclude each other", hint="write the table with another call of gen"
        )
    return True


def write(settings: dict[str, Any], request: SurveyRequest) -> None:
    """Write the files that the options ask for, all of them or none."""
    from hccl_tools.files import host_files as saving  # noqa: PLC0415
    from hccl_tools.host.survey import survey  # noqa: PLC0415
    from hccl_tools.transform import host_files  # noqa: PLC0415

    facts = survey(request)
    tell(*facts.summary())
    if facts.table_format != "2.0":
        raise UsageError(
            f"root infos and endpoint files are for Ascend 950; the product is {facts.product}",
            hint="omit --rootinfo-out and --endpoints, or specify --product a5",
        )
    if settings["rootinfo_out"] is not None:
        _refuse_root_info_as_source(facts)
    topology = _topology(settings["topology"], request, needs_path=settings["rootinfo_out"] is not None)
    made: dict[str, Entry] = {}
    if settings["rootinfo_out"] is not None:
        made[settings["rootinfo_out"]] = host_files.root_info(facts.devices, topology)
    if settings["endpoints"] is not None:
        made |= _endpoints(settings["endpoints"], facts, topology)
    saving.check(made)
    done = saving.save(made, force=settings["force"])
    tell(*[f"{done}:", *(f"  {path}" for path in made)])


def _endpoints(folder: str, facts: HostFacts, topology: TopologyFile) -> dict[str, Entry]:
    from hccl_tools.files import host_files as saving  # noqa: PLC0415
    from hccl_tools.transform import host_files  # noqa: PLC0415

    made = host_files.endpoint_files(facts.devices, topology)
    if made.left_out:
        tell(f"note: {made.left_out} IP addresses are left out: only EIDs are written")
    for name in saving.left_over(folder, made.values):
        tell(f"warning: {Path(folder, name)} is for a device that is not in this call")
    return saving.endpoint_paths(folder, made.values)


def _refuse_root_info_as_source(facts: HostFacts) -> None:
    from hccl_tools.host import levels, simulated  # noqa: PLC0415

    source = next(
        (one.source for one in facts.devices if one.source not in (levels.FROM_EIDS, simulated.SOURCE)), None
    )
    if source is not None:
        raise TableError(
            f"a root info is not made from a root info: the levels are from {source}",
            hint="move that file aside, so that gen asks hccn_tool",
        )


def _topology(named: str | None, request: SurveyRequest, *, needs_path: bool) -> TopologyFile:
    """Load the topology file that the user or the root info names."""
    from hccl_tools.formats.topology_file import load  # noqa: PLC0415
    from hccl_tools.host import levels  # noqa: PLC0415

    if named is not None:
        return load(str(Path(named).absolute()))
    root = levels.load_root_info(request.site) if request.simulate is None and not needs_path else None
    if root is None or root.topology is None:
        raise TableError(
            "no source states the topology file of this machine",
            hint="specify it with --topology FILE (usually in /usr/local/Ascend/driver/topo)",
        )
    return load(request.site.path(root.topology))
