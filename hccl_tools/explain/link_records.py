"""Which end of a failed link had its port down then, by the records of ``hccn_tool -link_stat``."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from itertools import takewhile
from typing import TYPE_CHECKING

from hccl_tools.explain.candidates import LINK_ERRORS

if TYPE_CHECKING:
    from hccl_tools.explain.cause import Case, Cause
    from hccl_tools.explain.events import Seen
    from hccl_tools.explain.locations import Place

#: A record of a port.
_RECORD = "HCM950"
#: Seconds between a port that goes down and the error of an operation: RoCE sends again for some time.
_WITHIN = 300.0
_FORMAT = "%a %b %d %H:%M:%S %Y"
#: The address of a host, and the number at the end of its name: node-22 is often 10.30.0.22.
_ADDRESS, _LAST_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}"), re.compile(r"(?:^|[^\d.])0{0,4}(\d{1,3})$")


def with_record(case: Case, first: Cause) -> Cause:
    """Return a failed link as that of the end whose port was down shortly before, if only one end's was."""
    seen = first.seen
    if first.message.id not in LINK_ERRORS or seen is None or seen.time is None or seen.peer is None:
        return first
    records = [one for one in case.cluster.seen if one.event.message.id == _RECORD]
    down = {
        end: found
        for end in dict.fromkeys((*first.places, seen.place, seen.peer))
        if (found := next((one for one in records if _is_of(case, one, end, seen)), None)) is not None
    }
    if len(down) != 1:
        return first
    ((end, record),) = down.items()
    when = record.event.fields["reason"]
    reason = (
        f"the port of {end.short} was down at that time ({when}): check its optics, cable and switch port"
    )
    return first._replace(places=(end,), reason=reason, beside=record)


def _is_of(case: Case, record: Seen, end: Place, link: Seen) -> bool:
    """Whether a record is of a device and its host, and from shortly before a link failed."""
    try:
        went_down = (
            datetime.strptime(record.event.fields["reason"], _FORMAT).replace(tzinfo=timezone.utc).timestamp()
        )
    except ValueError:
        return False
    device, after = record.event.fields.get("device", ""), (link.time or 0.0) - went_down + 1.0
    if device != str(end.device) or not 0 <= after <= _WITHIN:
        return False
    by_folder = _by_folder(case, record, end, link)
    return by_folder if by_folder is not None else _is_there(case, record, end)


def _by_folder(case: Case, record: Seen, end: Place, link: Seen) -> bool | None:
    """Whether a record is of an end by the folders of two hosts; None if there are more, or it is named.

    The process that reports the link wrote its line in the folder of its own host.
    """
    if end.host in {case.cluster.sources[record.event.file].host, record.place.host}:
        return None
    if link.peer is None or link.peer.host == link.place.host:
        return None
    paths = [one.path.split("/") for one in case.cluster.sources if one.is_file]
    level = sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))
    folders = {path[level] for path in paths if len(path) > level + 1}
    if len(folders) != 2 or any(len(path) <= level + 1 for path in paths):
        return None
    there, here = (case.cluster.sources[one.event.file].path.split("/")[level] for one in (record, link))
    return (there == here) is (end.host == link.place.host)


def _is_there(case: Case, record: Seen, end: Place) -> bool:
    source = case.cluster.sources[record.event.file]
    named = {source.host, record.place.host} - {""}
    if end.host in named:
        return True
    if named:
        return not _ADDRESS.fullmatch(record.place.host or source.host) and _is_named(
            case, record.place.host or source.host, end
        )
    own = {one.group for one in case.cluster.sources if case.cluster.ranks.get(one.process) == end.rank}
    others = {
        one.group
        for one in case.cluster.sources
        if (rank := case.cluster.ranks.get(one.process)) is not None
        and case.cluster.places.by_rank.get(rank, end).host != end.host
    }
    folder = source.group
    if folder in own and folder not in others:
        return True
    # The file may have the name of the folder: pod-worker-1/ and hccn_worker-1.txt.
    names = [part for group in own for part in group.split("/")]
    foreign = {part for group in others for part in group.split("/")}
    shown = source.path.rpartition("/")[2]
    return any(_same_name(name, shown) for name in names if name not in foreign)


def _is_named(case: Case, name: str, end: Place) -> bool:
    """Whether the host of a device, of which the lines have the address, is the one with a name.

    Its number is the last one of the address, or the logs of the rank are below its folder.
    """
    if not _ADDRESS.fullmatch(end.host):
        return False
    with_logs = {
        one.host_folder or one.host
        for one in case.cluster.sources
        if end.rank is not None and case.cluster.ranks.get(one.process) == end.rank
    } - {""}
    if with_logs:
        return name in with_logs
    number = _LAST_NUMBER.search(name)
    return number is not None and int(number[1]) == int(end.host.rpartition(".")[2])


def _same_name(folder: str, file: str) -> bool:
    words = folder.removeprefix("pod-").removeprefix("host-")
    return len(words) > 2 and words in file
