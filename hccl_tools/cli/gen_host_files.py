"""``gen --rootinfo-out`` and ``--endpoints``: the root info and the endpoint files of an Ascend 950 host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import TableError, UsageError
from hccl_tools.files import host_files as saving
from hccl_tools.formats.topology_file import load
from hccl_tools.host import levels, simulated
from hccl_tools.host.survey import survey
from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import tell
from hccl_tools.transform import host_files

if TYPE_CHECKING:
    from hccl_tools.formats.topology_file import TopologyFile
    from hccl_tools.host.facts import HostFacts
    from hccl_tools.host.survey import SurveyRequest
    from hccl_tools.transform.host_files import Entry


def write(settings: dict[str, Any], request: SurveyRequest) -> None:
    """Write the files that the options ask for, all of them or none."""
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
    made = host_files.endpoint_files(facts.devices, topology)
    if made.left_out:
        tell(f"note: {count(made.left_out, 'IP address', 'IP addresses')} left out: only EIDs are written")
    for name in saving.left_over(folder, made.values):
        tell(f"warning: {Path(folder, name)} is for a device that is not in this call")
    return saving.endpoint_paths(folder, made.values)


def _refuse_root_info_as_source(facts: HostFacts) -> None:
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
    if named is not None:
        return load(str(Path(named).absolute()))
    root = levels.load_root_info(request.site) if request.simulate is None and not needs_path else None
    if root is None or root.topology is None:
        raise TableError(
            "no source states the topology file of this machine",
            hint="specify it with --topology FILE (usually in /usr/local/Ascend/driver/topo)",
        )
    return load(request.site.path(root.topology))
