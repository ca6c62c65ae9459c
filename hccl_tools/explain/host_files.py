"""What files of hosts beside the logs add to a cause: a device, the version of a package, a crash.

Only small files with names of such lists are read, and only if the cause is of a kind that they can explain.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING

from hccl_tools.explain.cause import Cause
from hccl_tools.explain.events import Event, Seen
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Place
from hccl_tools.explain.reader import LogReader
from hccl_tools.notation import number_list
from hccl_tools.notation.phrases import and_more, count
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.explain.cause import Case
    from hccl_tools.explain.sources import Source

#: A signal ended a rank, and the kernel's line on it.
_SIGNALS, _SEGFAULT = {"HCM702", "HCM726", "HCM820"}, "HCM756"
#: The memory of a device has wrong bits; npu-smi calls a device critical.
_WRONG_BITS, _CRITICAL = {"HCM516", "HCM517", "HCM958"}, "HCM874"
#: A device number that the runtime refuses, and the files in /dev of a container or a host without it.
_REFUSED, _NOT_IN_CONTAINER = "HCM311", "HCM761"
#: Another version of a package, and the exceptions that it can bring about.
_VERSION = "HCM759"
_OF_VERSIONS = re.compile(
    r"(?:[\w.]{0,60}\.)?(?:AttributeError: (?:module|type object|'\w{1,60}' object)"
    r"|ImportError: (?:cannot import name|.{0,200}undefined symbol)|OSError: .{0,200}undefined symbol"
    r"|TypeError: .{0,120}unexpected keyword|ModuleNotFoundError)"
)
_LISTS = re.compile(r"pip|package|requirement|conda|version|env(?:$|[_.-])", re.IGNORECASE)
_ROW = re.compile(
    rb"^([A-Za-z][\w.-]{1,60})(?:[ \t]{1,60}|==|[ \t]{0,4}[=:][ \t]{0,4})[vV]?(\d[\w.+!-]{0,40})[ \t\r]*$",
    re.MULTILINE,
)
#: The output of npu-smi, and its rows with a count of double-bit errors below the number of a device.
_NPU_SMI = re.compile(r"npu[_-]?smi|(?:^|[_.-])ecc(?:$|[_.-])", re.IGNORECASE)
_DOUBLE_BITS = re.compile(
    rb"^\s*NPU ID +: (\d{1,3})\b|^\s*\w{0,8} ?Double[ -]Bit [\w ]{0,20}Count +: (\d{1,9})\b", re.MULTILINE
)
#: A listing of /dev, and a row of it.
_DEV_LISTS = re.compile(r"dev|davinci|container|(?:^|[_.-])ls(?:$|[_.-])", re.IGNORECASE)
_DEV = re.compile(rb"(?:^|[\s/])davinci(\d{1,3})(?=\s|$)", re.MULTILINE)
#: Files that are read, and the bytes of the largest one.
_MOST_FILES, _LARGEST = 64, 1 << 18
_MOST_NAMED, _SHOWN = 3, 300


class _Row(NamedTuple):
    """A row of a file: the index of the file, the number of the line and its text, and what it says."""

    file: int
    line: int
    text: str
    value: str


def explained(case: Case, first: Cause) -> Cause:
    """Return a cause with what the files of hosts add to it, the same one if they add nothing."""
    if first.seen is None or first.beside is not None:
        return first
    if first.message.id in _SIGNALS:
        return _with_crash(case, first, first.seen)
    if first.message.id in _WRONG_BITS:
        return _with_device(case, first)
    if first.message.id == _REFUSED:
        return _with_container(case, first, first.seen)
    if _OF_VERSIONS.match(first.seen.event.fields.get("reason", "")):
        return _with_version(case, first, first.seen)
    return first


def _with_crash(case: Case, first: Cause, seen: Seen) -> Cause:
    """Return the end of a rank by SIGSEGV with the library that the kernel names."""
    pids = {pid for (_, pid), rank in case.cluster.ranks.items() if rank == seen.place.rank}
    pids |= {seen.event.fields.get("pid", "")}
    lines = (one for one in case.cluster.seen if one.event.message.id == _SEGFAULT)
    line = next((one for one in lines if one.event.fields["pid"] in pids - {""}), None)
    if line is None:
        return first
    fields = line.event.fields
    reason = f"the kernel reports a segmentation fault of its process {fields['pid']} in {fields['file']}"
    return first._replace(confidence="named", reason=reason, beside=line._replace(place=Place()))


def _with_device(case: Case, first: Cause) -> Cause:
    """Return wrong bits with the only device that npu-smi calls critical, or that has such errors."""
    if any(place != Place() for place in first.places):
        return first
    critical = {
        (one.event.file, one.event.fields["device"]): _Row(
            one.event.file, one.event.line, one.event.text, "by npu-smi it is in the state Critical"
        )
        for one in case.cluster.seen
        if one.event.message.id == _CRITICAL
    }
    counted = dict(_double_bits(case.cluster.sources))
    found = critical if len(critical) == 1 else counted if len(counted) == 1 else {}
    if not found:
        return first
    ((file, device), row) = next(iter(found.items()))
    host = _host(case.cluster.sources[file])
    place = Place(None, host, int(device))
    reason = f"the line names no device; {row.value}"
    return first._replace(
        confidence="compared", places=(place,), reason=reason, beside=_seen(row, _CRITICAL, place)
    )


def _double_bits(sources: Sequence[Source]) -> Iterator[tuple[tuple[int, str], _Row]]:
    """Yield the devices with double-bit errors in the output of npu-smi."""
    for file, data in _texts(sources, _NPU_SMI):
        device = ""
        for found in _DOUBLE_BITS.finditer(data):
            if found[1]:
                device = found[1].decode()
            elif device and int(found[2]):
                errors = f"by npu-smi it has {count(int(found[2]), 'double-bit error')}"
                yield (file, device), _row(file, data, found, errors)


def _with_container(case: Case, first: Cause, seen: Seen) -> Cause:
    """Return a refused number as that of a device that the only listing of /dev lacks."""
    lists = []
    for file, data in _texts(case.cluster.sources, _DEV_LISTS):
        if found := list(_DEV.finditer(data)):
            lists.append((file, data, found))
    wanted = {place.device for place in first.places if place.device is not None}
    if len(lists) != 1 or not wanted:
        return first
    ((file, data, rows),) = lists
    there = sorted({int(row[1]) for row in rows})
    if wanted & set(there):
        return first
    shown, asked = case.cluster.sources[file].shown, _devices(sorted(wanted))
    reason = f"{shown} lists {_devices(there)}, and the program asks for {asked}"
    beside = _seen(_row(file, data, rows[-1], ""), _NOT_IN_CONTAINER, Place())
    message = messages()[_NOT_IN_CONTAINER]
    event = seen.event._replace(message=message, fields={})
    return Cause(message, "compared", first.places, seen._replace(event=event), reason, first.fetch, beside)


def _devices(numbers: Sequence[int]) -> str:
    return f"device{'' if len(numbers) == 1 else 's'} {number_list.fold(numbers)}"


def _with_version(case: Case, first: Cause, seen: Seen) -> Cause:
    """Return an exception as that of a package whose version differs in the list of the host of the rank."""
    lists = {
        file: {row.text: row for row in _versions(file, data)}
        for file, data in _texts(case.cluster.sources, _LISTS)
    }
    own = _list_beside(case, lists, seen.event.file)
    if own is None:
        return first
    odd = {}
    for name, row in lists[own].items():
        others = Counter(rows[name].value for file, rows in lists.items() if file != own and name in rows)
        if len(others) == 1 and row.value not in others:
            odd[name] = next(iter(others))
    text = seen.event.fields["reason"].replace("-", "_")
    named = [name for name in odd if re.search(rf"\b{re.escape(name.replace('-', '_'))}\b", text)]
    chosen = named or list(odd)
    if not chosen:
        return first
    row = lists[own][chosen[0]]
    differ = [f"{name} {lists[own][name].value}, the others have {odd[name]}" for name in chosen]
    reason = f"by {case.cluster.sources[row.file].shown} it has {and_more(differ, _MOST_NAMED)}"
    message = messages()[_VERSION]
    line = row._replace(text=f"{row.text} {row.value}")
    return Cause(message, "compared", first.places, _seen(line, _VERSION, Place()), reason, (), seen)


def _list_beside(case: Case, lists: Mapping[int, object], file: int) -> int | None:
    """Return the list of packages in the folder of a log, if other folders have one each, too."""
    sources = case.cluster.sources
    folders = {one: os.path.dirname(sources[one].path) for one in lists}
    counted = Counter(folders.values())
    here = os.path.dirname(sources[file].path)
    own = [one for one, folder in folders.items() if here == folder or here.startswith(folder + os.sep)]
    return own[0] if len(own) == 1 and len(counted) > 1 and max(counted.values()) == 1 else None


def _versions(file: int, data: bytes) -> Iterator[_Row]:
    """Yield the packages of a list: the text of a row is the name, its value the version."""
    for found in _ROW.finditer(data):
        yield _row(file, data, found, found[2].decode(errors="replace"))._replace(text=found[1].decode())


def _texts(sources: Sequence[Source], names: re.Pattern[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the indices and texts of the small files with certain names."""
    read = 0
    for file, source in enumerate(sources):
        if (
            not source.is_file
            or source.pid
            or not names.search(os.path.splitext(os.path.basename(source.path))[0])
        ):
            continue
        if source.extent is not None and source.extent.size > _LARGEST:
            continue
        block = next(LogReader(source.path).blocks(), None)
        read += 1
        if block is not None:
            yield file, block.data[:_LARGEST]
        if read == _MOST_FILES:
            break


def _row(file: int, data: bytes, found: re.Match[bytes], value: str) -> _Row:
    begin = data.rfind(b"\n", 0, found.end()) + 1
    end = data.find(b"\n", begin)
    text = data[begin : end if end >= 0 else len(data)].decode(errors="replace").strip()
    return _Row(file, data.count(b"\n", 0, begin) + 1, text[:_SHOWN], value)


def _seen(row: _Row, message: str, place: Place) -> Seen:
    event = Event(messages()[message], {}, (), row.file, row.line, text=row.text)
    return Seen(event, place, "")


def _host(source: Source) -> str:
    """Return the host of a file: that of its path, or the rest of the name of the output of a tool."""
    stem = os.path.splitext(os.path.basename(source.path))[0]
    rest = _NPU_SMI.sub("", stem, count=1).strip("_.-") if _NPU_SMI.search(stem) else ""
    return source.host or source.host_folder or (rest if re.search(r"\d", rest) else "")
