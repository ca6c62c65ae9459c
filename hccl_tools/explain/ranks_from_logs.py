"""The ranks that a job had, from its run logs: rank, host, physical device and address of each process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.explain.candidates import MOST_RANKS
from hccl_tools.explain.locations import NO_ADDRESS
from hccl_tools.explain.scanner import Scanner
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.explain.events import Event
    from hccl_tools.explain.sources import Source

#: The messages with a rank's identity: of CANN 8, and the two lines of CANN 8.5 and later.
_SETUP, _COMMUNICATOR, _LOCAL = "HCM321", "HCM323", "HCM322"
#: The thread, which follows the place in the source of HCCL: ``[hccl.cc:12] [4711]``.
_THREAD = re.compile(r"\] ?\[(\d+)\]")
_MOST_NAMED = 4


class Member(NamedTuple):
    """A rank as a line of a log has it; ``address`` is "" if the line has none.

    Attributes:
        at: The file and the line.
        super_pod: Whether the job used super pods.
        folder: The host in the path of the file, "" if the path names none.
    """

    rank: int
    host: str
    device: int
    address: str
    at: str
    super_pod: bool = False
    folder: str = ""

    @property
    def place(self) -> tuple[str, int, str]:
        """What two lines about one rank must agree on."""
        return self.host, self.device, self.address


class Communicator(NamedTuple):
    """A communicator: its size, its ranks that have logs, and where lines contradict each other."""

    identifier: str
    size: int
    first: float
    members: dict[int, Member]
    contradictions: list[str]

    @property
    def missing(self) -> list[int]:
        """The ranks without a line, of those that a job can have."""
        return [rank for rank in range(min(self.size, MOST_RANKS)) if rank not in self.members]

    def hosts(self) -> dict[str, list[Member]]:
        """Return the ranks by host, in the order of their lowest ranks."""
        found: dict[str, list[Member]] = {}
        for rank in sorted(self.members):
            found.setdefault(self.members[rank].host, []).append(self.members[rank])
        return found


def communicators(logs: Sequence[Source]) -> tuple[list[Communicator], list[str]]:
    """Return the communicators in logs, the one of the whole job first, and sentences on what was not read.

    That is the one with the most ranks; of several the earliest.
    """
    scanner = Scanner(most_alike=10_000)
    found: dict[tuple[str, int], Communicator] = {}
    notes = []
    for index, log in enumerate(logs):
        scan = scanner.scan(log.path, index)
        notes += [scan.note] if scan.note else []
        for identifier, size, event in _identities(scan.events):
            key = (identifier, size)
            time = event.time or 0.0
            known = found.setdefault(key, Communicator(identifier, size, time, {}, []))
            if time < known.first:
                found[key] = known = known._replace(first=time)
            _add(known, event, f"{log.shown}:{event.line}", log.host)
    for communicator in found.values():
        if _has_host_of_root(communicator):
            _take_hosts_of_folders(communicator)
        communicator.contradictions.extend(_same_device(communicator))
    return sorted(found.values(), key=lambda one: (-one.size, one.first)), notes


def _identities(events: Iterable[Event]) -> Iterable[tuple[str, int, Event]]:
    """Yield each line with a rank, with the identifier and the size of its communicator."""
    named: dict[tuple[str, str], Event] = {}
    for event in events:
        if event.message.id == _SETUP:
            yield event.fields.get("identifier", ""), int(event.fields["size"]), event
            continue
        thread = _THREAD.search(event.text)
        key = (event.pid, thread[1] if thread else "")
        if event.message.id == _COMMUNICATOR:
            named[key] = event
        elif event.message.id == _LOCAL and key in named:
            yield named[key].fields.get("identifier", ""), int(named[key].fields["size"]), event


def _has_host_of_root(communicator: Communicator) -> bool:
    """Whether the lines have the host of the root instead of the rank's: a device is there twice then."""
    hosts = {member.host for member in communicator.members.values()}
    devices = [member.device for member in communicator.members.values()]
    is_root = all(communicator.identifier.startswith(f"{host}%") for host in hosts)
    return is_root and len(set(devices)) < len(devices)


def _take_hosts_of_folders(communicator: Communicator) -> None:
    """Take the hosts from the paths of the logs; if a path names none, say how to arrange the logs."""
    if all(member.folder for member in communicator.members.values()):
        for rank, member in communicator.members.items():
            communicator.members[rank] = member._replace(host=member.folder)
        return
    communicator.contradictions.append(
        "the lines name the host of rank 0 only: put the logs of each host into a folder with its address"
    )


def _add(communicator: Communicator, event: Event, at: str, folder: str) -> None:
    fields = event.fields
    address = fields.get("address", "")
    member = Member(
        int(fields["rank"]),
        fields.get("server", ""),
        int(fields["device"]),
        "" if address in NO_ADDRESS else address,
        at,
        super_pod=event.message.id == _LOCAL and fields.get("local") == "1",
        folder=folder,
    )
    known = communicator.members.setdefault(member.rank, member)
    if known.place != member.place and known.place[:2] == member.place[:2] and not known.address:
        communicator.members[member.rank] = member
    elif known.place != member.place and (member.address or known.place[:2] != member.place[:2]):
        communicator.contradictions.append(
            f"rank {member.rank} is {_device(known)} in {known.at}, and {_device(member)} in {member.at}"
        )


def _device(member: Member) -> str:
    address = f" with {member.address}" if member.address else ""
    return f"device {member.device} of {member.host}{address}"


def _same_device(communicator: Communicator) -> list[str]:
    seen: dict[tuple[str, int], Member] = {}
    said = []
    for rank in sorted(communicator.members):
        member = communicator.members[rank]
        other = seen.setdefault((member.host, member.device), member)
        if other is not member:
            said.append(
                f"ranks {other.rank} and {rank} are both device {member.device} of {member.host}"
                f" ({other.at}, {member.at})"
            )
    return said


def gaps(communicator: Communicator) -> str:
    """Return what the logs lack for a table, as a sentence; "" if nothing."""
    if communicator.missing:
        known = [f"{host} ({count(len(ranks), 'rank')})" for host, ranks in communicator.hosts().items()]
        return (
            f"the logs have {len(communicator.members)} of {count(communicator.size, 'rank')}:"
            f" there is no log of rank {number_list.fold(communicator.missing)};"
            f" there are logs of {and_more(known, _MOST_NAMED)}"
        )
    without = [rank for rank, member in sorted(communicator.members.items()) if not member.address]
    if without and (len(communicator.hosts()) > 1 or len(without) < communicator.size):
        return (
            f"the logs do not hold the address of rank {number_list.fold(without)} (deviceIp[0.0.0.0]),"
            " which a table of several hosts needs"
        )
    return ""
