"""What files beside the logs say of the hosts: the output of df, ss, npu-smi, hccn_tool, kubectl and sinfo.

Such a file has no time of the failure, and may be of a host, a disk or a node that the job did not use. It
counts where the logs name no cause; else it only says which process holds a port or a device.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.errors import HcclToolsError
from hccl_tools.explain import holders, host_files, link_records, pod_events, pods, shell_settings
from hccl_tools.explain.cause import Cause, is_before
from hccl_tools.explain.cluster import RanksOfFiles
from hccl_tools.explain.identities import STATES
from hccl_tools.explain.locations import Place
from hccl_tools.explain.waiting import ranks_text
from hccl_tools.notation import host_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.explain.cause import Case
    from hccl_tools.explain.events import Seen

#: How sure an answer is that says no more than who waits for whom.
_GUESSES = {"open", "silent", "waits", "reported"}
#: Ranks that were late or at work: a disk may be why.
_DELAYED = {"HCM825", "HCM834"}
#: Nodes of Kubernetes and Slurm, of which most are not of the job.
_NODES = {"HCM878", "HCM882", "HCM883", "HCM884", "HCM885"}
#: Disks and nodes that have a fault on many days, without any effect on a job.
_USUAL = {*_NODES, "HCM870"}
#: Faults in the order in which they stop a job at once: pods, nodes, links, devices, disks.
_ORDER = (
    *("HCM879", "HCM876", "HCM877", "HCM881", "HCM992", "HCM880"),
    *("HCM878", "HCM883", "HCM882", "HCM884", "HCM885"),
    *("HCM871", "HCM872", "HCM874", "HCM873", "HCM875", "HCM870"),
)
_MOST_CAUSES = 2
#: The kernel's words on a disk, a file server or a CPU that hangs, and on a server that responds again.
_BLOCKED = "HCM814"
_STORAGE, _RESPONDS = {"HCM814", "HCM815", "HCM816", "HCM818", "HCM819", "HCM929"}, "HCM817"
#: What can follow from it: a lost heartbeat, ranks that are late, silent or at work, and errors of files.
_FOLLOW_STORAGE = {
    "HCM301",
    "HCM302",
    "HCM343",
    "HCM824",
    "HCM825",
    "HCM826",
    "HCM834",
    "HCM893",
    "HCM812",
    "HCM610",
    "HCM690",
    "HCM655",
    "HCM916",
}
_EXCEPTIONS = {"HCM810"}
_STORAGE_ERROR = re.compile(
    r"Errno (?:5|11|107|110|116|121)\b|Input/output error|[Ss]tale file handle"
    r"|Transport endpoint|Remote I/O error"
    r"|Timeout\w{0,20}: .{0,80}(?:read|writ|open|file|disk|checkpoint|ckpt|stor|/mnt|/data)"
)
#: A kernel used an address outside its data; a kernel failed, with its name.
_ADDRESS, _KERNEL = "HCM927", "HCM593"
#: Seconds before a failure in which storage can be its reason, and for which ranks wait after it responds.
_STORAGE_WITHIN, _LATEST_LIMIT, _DELAYS = 7_200.0, 1_900.0, 600.0


def joined(case: Case, found: list[Cause]) -> list[Cause]:
    """Return the causes with what the hosts show: another cause, or who holds a port or a device."""
    first = found[0] if found else None
    if first is not None and (storage := _storage_before(case, first)) is not None:
        return [storage]
    if first is not None and first.confidence not in _GUESSES and first.message.id not in _DELAYED:
        first = shell_settings.explained(case, holders.with_memory(first))
        first = _with_kernel(case, link_records.with_record(case, first))
        first = host_files.explained(case, first)
        return [holders.with_holder(case, first), *found[1:]]
    faults = [one for one in _faults(case) if _may_be_why(case, one, first)]
    tied = [one for one in faults if _is_tied(case, one, first)]
    if first is not None and first.message.id in _DELAYED:
        faults = tied
    causes = [_cause(case, one, first) for one in (tied or faults)[:_MOST_CAUSES]]
    return causes if tied or first is None else [*found, *causes]


def _with_kernel(case: Case, first: Cause) -> Cause:
    """Return the cause with the kernel that used a wrong address, if a line of the same process names it."""
    seen = first.seen
    if first.message.id != _ADDRESS or seen is None or first.beside is not None:
        return first
    own = (one for one in case.cluster.seen if one.event.message.id == _KERNEL and one.actor == seen.actor)
    named = next((one for one in own if one.event.fields.get("reason")), None)
    if named is None:
        return first
    kernel = named.event.fields["reason"].partition("=")[2].strip()
    return first._replace(reason=f"the kernel is {kernel}", beside=named)


def _is_tied(case: Case, one: Seen, first: Cause | None) -> bool:
    """Whether a fault is on the host of the ranks for which the others wait, or of a disk that they name.

    Of a rank without any line of its own, a pod, a link or a device with a fault says more than its silence.
    """
    if first is None:
        return True
    is_unknown = first.seen is None or first.beside is None
    if first.message.id not in _DELAYED and is_unknown and one.event.message.id not in _USUAL:
        return True
    host, mount = _host(case, one), one.event.fields.get("file", "")
    if len(mount) > 1 and first.seen is not None and mount in first.seen.event.text:
        return True
    on_host = bool(host) and any(place.host == host for place in first.places)
    return on_host and first.message.id not in _DELAYED


def _storage_before(case: Case, first: Cause) -> Cause | None:
    """Return a file server, disk or CPU that failed before ranks were lost, waited or had no files."""
    follows = first.message.id in _FOLLOW_STORAGE or first.confidence in _GUESSES
    text = first.seen.event.fields.get("reason", "") if first.seen is not None else ""
    follows = follows or bool(first.message.id in _EXCEPTIONS and _STORAGE_ERROR.search(text))
    seen = first.seen if first.beside is None or first.message.id in _EXCEPTIONS else first.beside
    follows = follows or first.message.id == _BLOCKED
    if not follows or seen is None or first.message.id in _STORAGE - {_BLOCKED}:
        return None
    reasons = _STORAGE - ({_BLOCKED} if first.message.id == _BLOCKED else set())
    failed = None
    # What a wait reports began before its limit: the ranks may have stood still since then.
    within = max(_STORAGE_WITHIN, case.cluster.waits["operation"] + _DELAYS)
    of_files, waited = RanksOfFiles(case.cluster), {place.rank for place in first.places} - {None}
    for one in case.cluster.seen:
        if one.event.message.id in reasons and not is_before(seen, one) and one.since is not None:
            there = of_files.ranks(one.event.file)
            if there and waited and there.isdisjoint(waited):
                continue  # It is on another host than the ranks for which the others wait.
            is_near = seen.since is None or seen.since - one.since <= within
            failed = failed or (one if is_near else None)
        elif (
            one.event.message.id == _RESPONDS
            and is_before(one, seen)
            and seen.since is not None
            and one.since is not None
            and seen.since - one.since > _LATEST_LIMIT
        ):
            failed = None  # The ranks went on after it.
    if failed is None:
        return None
    host = failed.place.host
    places = tuple(place for place in first.places if host and place.host == host)
    places = places or ((Place(None, host),) if host else first.places)
    reason = f"later: {first.message.meaning}"
    if first.message.id in {"HCM824", *_DELAYED}:
        reason = f"later the other ranks gave up waiting for {ranks_text(first.places)}"
    if blocked := _blocked(case, failed):
        places = blocked
        later = "" if first.message.id == _BLOCKED else f"; {reason}"
        reason = f"the kernel reports that the processes of {ranks_text(blocked)} wait for it{later}"
    return Cause(failed.event.message, "order", places, failed, reason, first.fetch, first.seen)


def _blocked(case: Case, failed: Seen) -> tuple[Place, ...]:
    """Return the ranks whose processes wait in the kernel, by the log with the failure of storage."""
    places = dict.fromkeys(
        one.place
        for one in case.cluster.seen
        if one.event.message.id == _BLOCKED and one.event.file == failed.event.file
        if one.place.rank is not None and not is_before(one, failed)
    )
    return tuple(sorted(places, key=lambda place: place.rank or 0))


def _faults(case: Case) -> list[Seen]:
    """Return the first fault of each kind, the most telling kinds first."""
    first: dict[str, Seen] = {}
    over = pod_events.over(case.cluster.seen)
    for one in case.cluster.seen:
        if one.event.message.id in STATES and id(one) not in over:
            first.setdefault(one.event.message.id, one)
    return [first[message] for message in _ORDER if message in first]


def _host(case: Case, one: Seen) -> str:
    """Return the host of a line, by its words or its file; "" if neither names one."""
    return one.event.fields.get("server", "") or one.place.host or case.cluster.sources[one.event.file].host


def _may_be_why(case: Case, one: Seen, first: Cause | None) -> bool:
    """Whether a fault can be of the ranks for which the others wait: it is of no other known host."""
    known = {place.host for place in case.cluster.places.by_rank.values() if place.host}
    host = _host(case, one)
    if one.event.message.id in _NODES and known and host:
        named = set(_listed(host))
        if any(not name[:1].isdigit() for name in known) and not named & known:
            return False  # The hosts of the job have names, and this is not one of them.
    at_fault = {place.host for place in first.places if place.host} if first is not None else set()
    return not host or host not in known or not at_fault or host in at_fault


def _listed(hosts: str) -> Iterable[str]:
    try:
        return host_list.parse(hosts)
    except HcclToolsError:
        return [hosts]


def _cause(case: Case, one: Seen, first: Cause | None) -> Cause:
    host = _host(case, one)
    waited = first.places if first is not None else ()
    own = tuple(place for place in waited if host and place.host == host)
    there = Place(None, host, one.place.device)
    places = own or ((there,) if there != Place() else ())
    one = one._replace(place=places[0] if places else Place())
    if first is None:
        return pods.named(Cause(one.event.message, "alone", places, one), case.cluster.sources)
    is_wait = first.confidence == "open" and first.message.kind == "timeout"
    at_fault = "" if is_wait else ranks_text(waited)  # The ranks of an open wait are those that waited.
    what = "took too long" if first.message.id in _DELAYED else "did not come"
    reason = (
        f"the logs only say that {at_fault} {what}" if at_fault else "the logs only say that ranks waited"
    )
    if not host:
        reason += ", and the line does not say of which host it is"
    beside = first.seen if first.beside is not None or not at_fault else None
    cause = Cause(one.event.message, "waits", places, one, reason, first.fetch, beside)
    return pods.named(cause, case.cluster.sources)
