"""Leave out hosts that fail the checks before the start, and give their ranks to spares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.document.document import Document
from hccl_tools.launch.spares.replacement import Spares, add_way, line
from hccl_tools.programs import resolving
from hccl_tools.records import NamedTuple
from hccl_tools.runs import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hccl_tools.doctor.findings import HostFinding
    from hccl_tools.launch.model.request import JobTable, LaunchRequest
    from hccl_tools.table.model import RankTable

#: Checks whose finding on two hosts is about what is between them: without one of the two, it is gone.
_BETWEEN_TWO = frozenset({"HCD512", "HCD601", "HCD604"})


class Faults(NamedTuple):
    """The finding that speaks against each host.

    Attributes:
        stops: A job with the host would stop.
        may_stop: It may stop, and most hosts do not have this fault.
    """

    stops: Mapping[str, HostFinding]
    may_stop: Mapping[str, HostFinding]


def faults(findings: Iterable[HostFinding], hosts: int) -> Faults:
    """Return the faults of each host; ``hosts`` is the number of hosts that were asked."""
    found = list(findings)
    stops: dict[str, HostFinding] = {}
    for one in found:
        if one.consequence == "stops" and not _is_between(one):
            stops.update({host: one for host in one.hosts if host not in stops})
    for one in found:
        if one.consequence == "stops" and _is_between(one) and not any(host in stops for host in one.hosts):
            stops[one.hosts[-1]] = one  # the later host: a spare, or one without rank 0
    few: dict[str, HostFinding] = {}
    for one in found:
        if one.consequence == "may-stop" and not one.is_unknown and 2 * len(one.hosts) < hosts:
            few.update({host: one for host in one.hosts if host not in few})
    return Faults(stops, few)


def _is_between(one: HostFinding) -> bool:
    return one.check in _BETWEEN_TWO and len(one.hosts) == 2


def admitted(
    request: LaunchRequest, loaded: JobTable, asked: Sequence[str], findings: Iterable[HostFinding]
) -> LaunchRequest:
    """Return the request with sound spares in the places of hosts that failed, and the spares that are left.

    A host that may stop the job is left out only for a spare without a fault.

    Args:
        loaded: The table of the job.
        asked: The hosts that were asked, by the names of the findings.
        findings: What was found on the hosts of the job and on the spares.

    Raises:
        LaunchError: Too few sound spares are left that fit.
    """
    found = faults(findings, len(asked))
    reached = dict(loaded.reached)
    ways = [reached.get(one.address, one.address) for one in loaded.table.servers]
    called = _asked_names([*ways, *(one.way for one in request.spares)], asked)
    sound = [one for one in request.spares if called[one.way] not in found.stops]
    left_out = [one for one in request.spares if one not in sound]
    sound.sort(key=lambda one: called[one.way] in found.may_stop)
    spares = Spares(request._replace(spares=tuple(sound)), loaded.product)
    hosts = {index: called[way] for index, way in enumerate(ways)}
    sick = {index: found.stops[host] for index, host in hosts.items() if host in found.stops}
    if len(sick) > len(spares.left):
        raise spares.too_few([loaded.table.servers[index].address for index in sick])
    data, facts, news = loaded.data, list[dict[str, Any]](), list[str]()
    for index, finding in sick.items():
        data, spare, changed = spares.replace(data, index, loaded.table.servers[index].address, news)
        add_way(reached, loaded.table.servers[index].address, spare)
        facts.append({"restart": 0, **changed, "finding": _shown(finding)})
    doubtful = {index: found.may_stop[host] for index, host in hosts.items() if host in found.may_stop}
    for index, finding in doubtful.items():
        spares.left = [one for one in spares.left if called[one.way] not in found.may_stop]
        if index not in sick and spares.left:
            data, spare, changed = spares.replace(data, index, loaded.table.servers[index].address, news)
            add_way(reached, loaded.table.servers[index].address, spare)
            facts.append({"restart": 0, **changed, "finding": _shown(finding)})
    lines = [f"spare {one.label} is left out: {found.stops[called[one.way]].message}" for one in left_out]
    lines += [*news, *(f"{line(one)}: {one['finding']['message']}" for one in facts)]
    used = {one["spare"] for one in facts}
    left = tuple(one for one in request.spares if one in sound and one.name not in used)
    request = request._replace(spares=left, remarks=(*request.remarks, *lines), replaced=tuple(facts))
    return _with_table(request, loaded._replace(reached=reached), data) if facts else request


def _shown(finding: HostFinding) -> dict[str, str]:
    return {"check": finding.check, "message": finding.message}


def _with_table(request: LaunchRequest, loaded: JobTable, data: bytes) -> LaunchRequest:
    made = loaded._replace(path="", table=table_in(data), data=data, why=None)
    return request._replace(table=request.table._replace(made=made, file=None, exclude=()))


def table_in(data: bytes) -> RankTable:
    """Return the table in the bytes for the ranks."""
    return formats.read(Document.parse(data, names.TABLE).value)


def _asked_names(hosts: Iterable[str], asked: Sequence[str]) -> dict[str, str]:
    """Return the names under which hosts were asked: in an allocation of Slurm, those of its nodes."""
    found = {host: host for host in hosts}
    others = found.keys() - set(asked)
    if others:
        addresses = resolving.looked_up([*others, *asked])
        names = {address: name for name in reversed(asked) for address in addresses.get(name, ())}
        for host in others:
            found[host] = next((names[one] for one in addresses.get(host, ()) if one in names), host)
    return found
