"""Whether a count or the list it counts is wrong, shared by the rules on counts. This module declares no rules.

A count that differs from a list is wrong, or the list has lost an entry, or it has one too many. ``validate --fix``
corrects the count only if nothing else in the file speaks against it: a list that has lost its last entry looks
complete, so that a higher count follows from the list only if something else confirms the list.
"""

from __future__ import annotations

import re
from itertools import islice
from os.path import basename
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation import placeholders
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import and_more, count, devices, those
from hccl_tools.records import NamedTuple
from hccl_tools.rules import run_together, strays
from hccl_tools.rules.clusters import listed_servers
from hccl_tools.rules.copies import (
    LostDevices,
    absent_ranks,
    lost_devices,
    named_server,
    names_of_hosts,
    server_copies,
)
from hccl_tools.rules.doubled_keys import continued, doubled_list, joined
from hccl_tools.rules.entries_again import are_counted_once, said_of_entries
from hccl_tools.rules.name_holes import in_row
from hccl_tools.rules.nodes_again import counted_once
from hccl_tools.rules.rank_devices import add_lost
from hccl_tools.rules.rank_holes import missing_ranks, rank_holes
from hccl_tools.rules.rank_order import named_host
from hccl_tools.rules.rank_restarts import half_again, restarts
from hccl_tools.rules.registry import shared
from hccl_tools.rules.super_pod_list import listed_pods
from hccl_tools.table.addresses import is_loopback, is_unset
from hccl_tools.table.products import WHOLE_MACHINES

if TYPE_CHECKING:
    from hccl_tools.rules.rank_holes import Holes
    from hccl_tools.rules.registry import Subject
    from hccl_tools.table.model import Group

#: The most nodes that a reason names.
_MOST_NODES = 3
#: The numbers of devices that a job uses of each machine.
_USUAL_SIZES = (1, 2, 4, *WHOLE_MACHINES)

_BEGIN, _END = r"(?:^|[_.-])", r"(?=[_.-]|$)"
#: ``hccl_2s_16p``, ``table-2nodes-16ranks``; the part ``p`` counts processes, one for each device.
_SERVERS = rf"(?i){_BEGIN}([0-9]{{1,5}})-?(?:s|n|servers?|nodes?|machines?|hosts?|pods?){_END}"
_RANKS = rf"(?i){_BEGIN}([0-9]{{1,6}})-?(?:p|ranks?|devices?|cards?|npus?|chips?){_END}"
#: ``2x8``: servers and the devices of each.
_BOTH = rf"(?i){_BEGIN}([0-9]{{1,5}})x([0-9]{{1,2}})p?{_END}"


class Doubt(NamedTuple):
    """Why a count may be right and its list wrong.

    Attributes:
        reason: What says so, as a phrase; "" if nothing says which of the two is wrong.
        hint: What to do.
        related: The place of what says so, if it has one.
    """

    reason: str
    hint: str
    related: tuple[Related, ...] = ()


def on_servers(subject: Subject, stated: int) -> Doubt | None:
    """Return why server_list may be the wrong one of count and list; None if the count follows from the list.

    Args:
        stated: The server_count of the file.
    """
    listed = len(subject.table.servers)
    right = f'write "server_count": "{listed}"'
    if again := doubled_list(subject):
        return Doubt(*again)
    if parted := joined(subject):
        return Doubt(
            "" if subject.document and continued(subject.document) else "two entries are joined", parted
        )
    if server_copies(subject):
        hint = f"remove the copied server or give it its own values, then {right} if that is their number"
        return Doubt("a server of it is a copy", hint)
    if (both := run_together.run_together(subject)) is not None:
        own = named_server(subject, both.server)
        hint = (
            run_together.part_it(subject, both) if both.has_twice else run_together.how_to_part(subject, both)
        )
        return Doubt(f"the list of {own} has the devices of two servers", hint)
    if stated < listed:
        return _surplus(subject, stated, right)
    return _lost(subject, stated, right)


def _lost(subject: Subject, stated: int, right: str) -> Doubt | None:
    """Return the doubt about a list that has fewer servers than server_count."""
    if is_waiting(subject):
        return Doubt("", "wait: the program that writes the table adds the other servers before the status")
    if found := strays.servers(subject):
        return _elsewhere(subject, stated, right, found)
    both = f"add the missing {those(stated - len(subject.table.servers), 'server')}, or, if none is missing, {right}"
    if other := _named_elsewhere(subject):
        return Doubt(f"other lists of the table name {and_more(other)}", both)
    if gap := _of_ranks(subject):
        return Doubt(gap, f"{both} and number the ranks without a gap", _after_hole(subject))
    if short := _short_end(subject):
        again = "the end of the table is missing: copy the complete file again"
        return Doubt(short, f"{again}; or, if no server is missing, {right}")
    said = sizes(subject.path)
    if said is not None and said.fits(stated, stated * _usual_size(subject)):
        return Doubt(f"the file name says {said.text(stated)}", both)
    is_confirmed = said is not None and said.fits(len(subject.table.servers), len(subject.table))
    return None if is_confirmed or _are_all_in_pods(subject) else Doubt("", both)


def _elsewhere(subject: Subject, stated: int, right: str, found: list[strays.Stray]) -> Doubt:
    """Return the doubt about a table with servers outside server_list."""
    names = [quoted(one.server_id) for one in found if one.server_id]
    noun = "server" if len(found) == 1 else "servers"
    where = found[0].where
    who = f"{noun} {and_more(names)}" if names else f"{len(found)} further {noun}"
    is_are, it = ("is", "it") if len(found) == 1 else ("are", "them")
    form = ', with "device" in place of "devices" and with rank ids' if found[0].is_of_group else ""
    then = (
        "; server_count is then right"
        if stated == len(subject.table.servers) + len(found)
        else f"; if the job does not use {it}, {right}"
    )
    return Doubt(
        f"{who} {is_are} {where}, where HCCL does not read {it}",
        f"move {it} into server_list, as {'an entry of its own' if it == 'it' else 'entries of their own'}{form}{then}",
        (Related(found[0].path, "the other server"),),
    )


def _surplus(subject: Subject, stated: int, right: str) -> Doubt | None:
    """Return the doubt about a list that has more servers than server_count."""
    table = subject.table
    if stated == len({server.server_id for server in table.servers}):
        verb = "is" if stated == 1 else "are"
        one_entry = "list the devices of each server in one entry; server_count is then right"
        again = "remove the entries that list a server again; server_count is then right"
        if (names := names_of_hosts(subject)) is not None:
            return _hosts_of_one_name(names, right)
        return Doubt(
            f"{count(stated, 'server_id')} {verb} different", again if _is_repeated(subject) else one_entry
        )
    either = f"{right} if all listed servers belong to the job, or remove those that do not"
    if (pair := _same_ranks(subject)) is not None:
        own, first = (named_server(subject, index) for index in pair)
        rest = "; server_count is then right" if stated == len(table.servers) - 1 else ""
        hint = (
            f"if it replaces that server, write it in place of the entry of {first}{rest}; if both belong to the job, number the "
            f"ranks of the second on, and {right}"
        )
        path = subject.server_path(pair[1])
        return Doubt(f"{own} has the ranks of {first}", hint, (Related(path, "the first of the two"),))
    if gap := _of_ranks(subject):
        return Doubt(gap, either)
    if (begun := restarts(subject)) and not _are_numbered(subject):
        own = named_server(subject, begun[0].server)
        return Doubt(
            f"{own} starts at rank 0 again, as if two tables were joined",
            f"{right}, and number the ranks on (HCC203)",
        )
    said = sizes(subject.path)
    if said is not None and said.fits(stated, stated * _usual_size(subject)):
        return Doubt(f"the file name says {said.text(stated)}", either)
    return None if _are_numbered(subject) and not _not_in_pods(subject) else Doubt("", either)


def is_waiting(subject: Subject) -> bool:
    """Return whether the program that writes a table has not completed it; a template that nobody filled in has no such program."""
    if not isinstance(subject.value, dict) or subject.value.get("status") != "initializing":
        return False
    return unfilled_placeholder(subject) is None


@shared
def unfilled_placeholder(subject: Subject) -> str | None:
    """Return the first placeholder of a template in the document, ``None`` if it has none."""
    return placeholders.first_in(subject.value)


def _named_elsewhere(subject: Subject) -> list[str]:
    """Return the server_ids in quotes that other lists of the table have and server_list has not."""
    table = subject.table
    known = {server.server_id for server in table.servers}
    named = [name for pod in listed_pods(subject) for name in pod.server_ids] if table.format == "1.2" else []
    return [quoted(name) for name in dict.fromkeys([*named, *_of_clusters(subject)]) if name not in known]


def _of_clusters(subject: Subject) -> list[str]:
    return listed_servers(subject) if "cluster_list" in subject.table.fields else []


def _in_pods(subject: Subject) -> set[str]:
    pods = listed_pods(subject) if subject.table.format == "1.2" else []
    return {name for pod in pods for name in pod.server_ids}


def _are_all_in_pods(subject: Subject) -> bool:
    """Return whether super_pod_list confirms server_list: it has the same servers."""
    return _in_pods(subject) == {server.server_id for server in subject.table.servers}


def _not_in_pods(subject: Subject) -> bool:
    """Return whether a server is in none of the super pods that the others are in."""
    named = _in_pods(subject)
    return bool(named) and any(server.server_id not in named for server in subject.table.servers)


def _of_ranks(subject: Subject) -> str:
    if "rank_id" in subject.damaged:
        return ""
    numbers, absent = subject.table.rank_numbers, absent_ranks(subject)
    if all((number or 0) < len(numbers) for number in numbers):
        return ""  # A rank that occurs twice does not show that an entry is lost.
    if (holes := rank_holes(subject)) is not None:
        return missing_ranks(subject, holes)
    return f"no device has {rank_list(absent)}" if absent else ""


def _after_hole(subject: Subject) -> tuple[Related, ...]:
    """Return the place of the first entry after ranks that are missing."""
    if (holes := rank_holes(subject)) is None:
        return ()
    return (Related(subject.device_path(holes.rows[0], "rank_id"), "the ranks before this one are missing"),)


def _are_numbered(subject: Subject) -> bool:
    """Return whether the ranks are 0 to N-1, or each server has those of a table of its own, from 0 on."""
    if "rank_id" in subject.damaged:
        return False
    table, numbers = subject.table, subject.table.rank_numbers
    if set(numbers) == set(range(len(table))):
        return True
    return all({numbers[row] for row in one.rows} == set(range(len(one.rows))) for one in table.servers)


def counted_again(subject: Subject, holes: Holes | None = None) -> str:
    """Return the count that a table needs if one more server, or those of its holes, are added; "" if it states none."""
    declared, servers = subject.table.declared, len(subject.table.servers)
    if subject.table.format == "2.0":
        size = len(subject.table) + len(absent_ranks(subject) if holes is None else holes.all_ranks)
        return f' with "rank_count": {size}' if declared.get("rank_count") == len(subject.table) else ""
    right = servers + (1 if holes is None else holes.servers)
    return f' with "server_count": "{right}"' if declared.get("server_count") == str(servers) else ""


def _same_ranks(subject: Subject) -> tuple[int, int] | None:
    """Return a server and the earlier one whose ranks it has, unless all servers begin at rank 0."""
    if "rank_id" in subject.damaged:
        return None
    numbers, first = subject.table.rank_numbers, dict[frozenset[int | None], int]()
    for index, server in enumerate(subject.table.servers):
        own = frozenset(numbers[row] for row in server.rows)
        if own and (seen := first.setdefault(own, index)) != index:
            return None if _are_numbered(subject) or restarts(subject) else (index, seen)
    return None


def _is_repeated(subject: Subject) -> bool:
    """Return whether a server_id is listed again with a device that its first entry has."""
    numbers, seen = subject.table.device_numbers, dict[str, set[int | None]]()
    for server in subject.table.servers:
        known, own = seen.setdefault(server.server_id, set()), {numbers[row] for row in server.rows}
        if not known.isdisjoint(own):
            return True
        known |= own
    return False


def _hosts_of_one_name(names: list[str], right: str) -> Doubt:
    """Return the doubt about entries that have one server_id, and the same devices with other addresses."""
    same = f"entries with the server_id {and_more([quoted(name) for name in names])} have the same devices with different device_ips"
    if all(is_loopback(name) or is_unset(name) for name in names):
        return Doubt(
            f"{same}: they are different hosts", f"{right}, and give each host its own server_id (HCC503)"
        )
    return Doubt(
        same,
        f"{right} if they are different hosts (HCC503 tells how to find out); if one is an old entry of the same host, remove it: "
        "server_count is then right",
    )


def _usual_size(subject: Subject) -> int:
    """Return the greatest number of devices of a server."""
    return max((len(server.rows) for server in subject.table.servers), default=0)


def _short_end(subject: Subject) -> str:
    """Return that the last server has fewer devices than all others, which have the same number; else ""."""
    sizes = [len(server.rows) for server in subject.table.servers]
    if len(sizes) < 2 or len(set(sizes[:-1])) > 1 or sizes[-1] >= sizes[0]:
        return ""
    return f"its last entry has {count(sizes[-1], 'device')}, the others have {sizes[0]}"


def on_ranks(subject: Subject, stated: int) -> Doubt | None:
    """Return why rank_list may be the wrong one of count and list; None if the count follows from the list.

    Args:
        stated: The rank_count of the file.
    """
    size = len(subject.table)
    right = f'write "rank_count": {size}'
    if again := doubled_list(subject):
        return Doubt(*again)
    if parted := joined(subject):
        return Doubt(
            "" if subject.document and continued(subject.document) else "two entries are joined", parted
        )
    if half := half_again(subject):
        repeated = (
            f"its entries from {half} on are those before it again, as if a list was joined with itself"
        )
        return Doubt(repeated, f"remove the entries from {half} on; rank_count is then right")
    if are_counted_once(subject):
        return Doubt(*said_of_entries(subject))
    if listed_again := counted_once(subject):
        return Doubt(*listed_again)
    gap, said = _of_ranks(subject), sizes(subject.path)
    is_named = said is not None and said.fits(None, size)
    lost = None if is_named else lost_devices(subject)
    if lost is not None and lost.why and len(lost.rows) == stated - size:
        return _lost_entries(subject, stated, lost, gap)
    entries = "entry" if stated - size == 1 else f"{stated - size} entries"
    both = f"add the missing {entries}, or, if none is missing, {right}"
    if gap:
        return Doubt(gap, f"{both} and number the ranks without a gap", _after_hole(subject))
    if stated < size:
        either = f"{right} if all listed ranks belong to the job, or remove those that do not"
        is_numbered = "rank_id" not in subject.damaged and set(subject.table.rank_numbers) == set(range(size))
        return None if is_numbered else Doubt("", either)
    if said is not None and said.fits(None, stated):
        return Doubt(f"the file name says {said.text(None)}", both)
    return None if is_named else Doubt("", both)


def _lost_entries(subject: Subject, stated: int, lost: LostDevices, gap: str) -> Doubt:
    """Return the doubt about a rank_list in which nodes lack devices that other nodes have."""
    absent = tuple(rank for rank in range(stated) if rank not in {*subject.table.rank_numbers})
    are, size = "it is" if len(lost.rows) == 1 else "they are", len(subject.table)
    number = " and number the ranks without a gap" if gap else ""
    shown = [
        f"{named_host(subject, index)} has no {devices(own)}"
        for index, own in islice(lost.of_server.items(), _MOST_NODES)
    ]
    named = and_more(shown, _MOST_NODES, unlisted=len(lost.of_server) - len(shown))
    add = f"{lost.why}{named}: add {'its entry' if len(lost.rows) == 1 else 'their entries'}"
    if len(absent) == len(lost.rows):
        add = add_lost(subject, lost, absent)
    return Doubt(
        gap or named, f'{add}; only if {are} left out on purpose, write "rank_count": {size}{number}'
    )


def on_group(
    subject: Subject, group: Group, counts: dict[str, tuple[int | None, int]], key: str
) -> Doubt | None:
    """Return why a group may be the wrong one of a count and its list; None if the count follows from the list.

    Args:
        counts: For each count of the group its stated and its actual number.
        key: The count.
    """
    actual = counts[key][1]
    right = f'write "{key}": "{actual}"'
    lower = [one for one, (stated, number) in counts.items() if stated is not None and stated > number]
    lost = "instance" if key == "instance_count" or len(lower) == len(counts) else "device"
    stated, number = counts[f"{lost}_count"]
    both = f"add the missing {those((stated or 0) - number, lost)}, or, if none is missing, {right}"
    if is_waiting(subject) and lower:
        return Doubt("", "wait: the program that writes the table adds the other instances before the status")
    if (unfilled := unfilled_placeholder(subject)) is not None:
        said = f"the file has placeholders of a template such as {quoted(unfilled)}"
        return Doubt(
            said, f"fill in the template with all devices; {right} only if this is then their number"
        )
    if len(lower) == len(counts):
        number = (counts["instance_count"][0] or 0) - counts["instance_count"][1]
        verb = "is" if number == 1 else "are"
        which, after = in_row(subject, group.servers) if number == 1 else ("", ())
        missing = f"{count(number, 'instance')} {verb} missing{which}"
        return Doubt(f"both counts of the group say that {missing}", both, after)
    sizes = [len(subject.table.servers[index].rows) for index in group.servers]
    if "device_count" in lower:
        if len(set(sizes)) > 1:
            shown = " and ".join(map(str, sorted(set(sizes))))
            return Doubt(f"its instances have {shown} devices", both)
        if len(sizes) < 2 or sizes[0] not in _USUAL_SIZES:
            return Doubt("", both)
    elif key == "device_count" and _listed_again(subject, group):
        return None
    elif not lower and (pods := pods_again(subject).keys() & set(group.servers)):
        return _of_pods(subject, min(pods), key, right, counts)
    elif not lower and len({subject.table.servers[one].server_id for one in group.servers}) < len(sizes):
        either = f"{right} if all instances belong to the job, or remove those that do not"
        return Doubt("two instances have one server_id", either)
    return None


#: What is to be done with the counts if an instance is removed.
_LOWER = ", and lower the counts of the group if they count it"


@shared
def pods_again(subject: Subject) -> dict[int, int]:
    """Return the instances of a group_list with the pod_name of an earlier one on another server, with that one."""
    first, found, servers = dict[str, int](), dict[int, int](), subject.table.servers
    if len({str(server.fields.get("pod_name")) for server in servers}) == len(servers):
        return found
    for index, server in enumerate(servers if subject.table.format == "group_list" else ()):
        name = server.fields.get("pod_name")
        if not isinstance(name, str) or not name:
            continue
        if (seen := first.setdefault(name, index)) != index and servers[seen].server_id != server.server_id:
            found[index] = seen
    return found


def one_of_two_pods(subject: Subject, index: int) -> str:
    """Return the hint on an instance with the pod_name of another one: a new place of the pod, or a pod of its own."""
    own, first = (named_server(subject, one) for one in (index, pods_again(subject)[index]))
    own, first = (name.replace("server", "instance", 1) for name in (own, first))
    return (
        f"either {own} replaces {first}: remove the old one{_LOWER}; or both "
        "are in the job: give each its own pod_name"
    )


def _of_pods(
    subject: Subject, index: int, key: str, right: str, counts: dict[str, tuple[int | None, int]]
) -> Doubt:
    """Return the doubt about a group in which two instances have one pod_name."""
    stated, actual = counts[key]
    again = pods_again(subject)
    rows = [len(subject.table.servers[one].rows) for one in again]
    less = len(again) if key == "instance_count" else sum(rows)
    then = f"; {key} is then right" if stated == actual - less else _LOWER
    hint = one_of_two_pods(subject, index).replace(_LOWER, then)
    path = subject.server_path(again[index], "pod_name")
    related = (Related(path, "the first of the two"),)
    return Doubt("two instances have one pod_name", f"{hint}, and {right}", related)


def counts_each_once(subject: Subject, group: Group, stated: int | None) -> bool:
    """Return whether a device_count is right without the devices that their instance lists again."""
    again = _listed_again(subject, group)
    listed = sum(len(subject.table.servers[index].rows) for index in group.servers)
    return again > 0 and stated == listed - again


def _listed_again(subject: Subject, group: Group) -> int:
    """Return the number of entries of a group with a device that their instance has before."""
    numbers, found = subject.table.device_numbers, 0
    for index in group.servers:
        own = [number for row in subject.table.servers[index].rows if (number := numbers[row]) is not None]
        found += len(own) - len({*own})
    return found


class Sizes(NamedTuple):
    """The numbers that a file name states; None for those that it does not."""

    servers: int | None
    ranks: int | None

    def fits(self, servers: int | None, ranks: int) -> bool:
        """Return whether the name states these numbers, or one of them; ``None`` leaves out the servers."""
        is_other = servers is not None and self.servers is not None and self.servers != servers
        return not is_other and (self.ranks == ranks or (self.ranks is None and servers is not None))

    def text(self, servers: int | None) -> str:
        """Return the number that the name states, as a phrase."""
        if self.servers is not None and servers is not None:
            return count(self.servers, "server")
        return count(self.ranks or 0, "rank")


def sizes(path: str | None) -> Sizes | None:
    """Return the numbers in the name of a file; None if it has none, and for tables without a file."""
    name = basename(path or "")  # noqa: PTH119  (the name alone)
    if (both := re.search(_BOTH, name)) is not None:
        return Sizes(int(both[1]), int(both[1]) * int(both[2]))
    servers, ranks = re.search(_SERVERS, name), re.search(_RANKS, name)
    if servers is None and ranks is None:
        return None
    return Sizes(servers and int(servers[1]), ranks and int(ranks[1]))
