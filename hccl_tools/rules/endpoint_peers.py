"""Rules that compare an endpoint file with the other endpoint files and the root info of its host."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hccl_tools.document.document import Document
from hccl_tools.document.reading import read_file
from hccl_tools.errors import InputError
from hccl_tools.formats.endpoint_file import Endpoint, device_of, files_beside
from hccl_tools.formats.file_kinds import ROOT_INFO_NAME
from hccl_tools.rules.endpoint_files import entries, entry_path
from hccl_tools.rules.registry import Finding, Input, rule, shared
from hccl_tools.table.addresses import is_eid

if TYPE_CHECKING:
    from collections.abc import Iterator

_MATCHER = "hixl endpoint_matcher.h, MatchKey::Matches"
_LARGEST_ROOT_INFO = 16 << 20


@shared
def _others(subject: Input) -> dict[str, list[Endpoint]]:
    """Return the endpoints of the other files in the folder, by file name; {} for a file of another name."""
    is_named = subject.path is not None and device_of(subject.path) is not None
    return files_beside(subject.path or "") if is_named else {}


@shared
def _owners(subject: Input) -> dict[str, list[tuple[str, Endpoint]]]:
    """Return the files and entries of other devices by their comm_id in lower case."""
    found: dict[str, list[tuple[str, Endpoint]]] = {}
    for name, listed in _others(subject).items():
        for one in listed:
            if one.placement == "device":
                found.setdefault(one.comm_id.lower(), []).append((name, one))
    return found


@rule("HCC808", "one-sided-link", "fails-later", source=_MATCHER)
def one_sided_link(subject: Input) -> Iterator[Finding]:
    """A direct link has only one side: the peer's file does not name this device as the other end.

    hixl joins two devices if the dst_eid of each is the comm_id of the other, character by character. The
    other endpoint files are read from the folder of the file.

    Base: endpoints
    Example: beside 1 /endpoint_list/0/dst_eid = "000000000000002000100000dfdf0099"
    Instead: table
    Hint: make all files of the host again: `hccl-tools gen --endpoints DIR`
    """
    own = {one.comm_id for one in entries(subject)}
    for one in entries(subject):
        if not (one.is_direct and is_eid(one.dst_eid) and is_eid(one.comm_id)):
            continue
        message = ""
        peers = _owners(subject).get(one.dst_eid.lower(), [])
        if one.dst_eid in own:
            message = "dst_eid is an EID of this device itself"
        elif peers and not any(peer.comm_id == one.dst_eid for _, peer in peers):
            message = f"dst_eid differs in upper and lower case from the comm_id in {peers[0][0]}"
        elif peers and not any(peer.dst_eid == one.comm_id for _, peer in peers):
            name, peer = peers[0]
            back = f"its dst_eid is {peer.dst_eid}" if peer.dst_eid else "it has no dst_eid"
            message = f"{name} has this EID, but {back}, not {one.comm_id}"
        if message:
            hint = "make all files of the host again: `hccl-tools gen --endpoints DIR`"
            yield Finding(message, entry_path(one, "dst_eid"), hint)


@rule(
    "HCC809",
    "endpoint-of-another-device",
    "fails-later",
    source="an EID belongs to one device (mind-cluster, parse_eid.py)",
)
def endpoint_of_another_device(subject: Input) -> Iterator[Finding]:
    """The file of another device has the same EID, for example because a file was copied.

    Base: endpoints
    Example: beside 1 /endpoint_list/0/comm_id = "000000000000002000100000dfdf0001"
    Instead: table
    Hint: make all files of the host again: `hccl-tools gen --endpoints DIR`
    """
    shared_with: dict[str, list[Endpoint]] = {}
    for one in entries(subject):
        if one.placement == "device" and is_eid(one.comm_id):
            for name in {name for name, _ in _owners(subject).get(one.comm_id.lower(), [])}:
                shared_with.setdefault(name, []).append(one)
    for name, ones in sorted(shared_with.items()):
        more = f", and {len(ones) - 1} more of this file" if len(ones) > 1 else ""
        hint = "make all files of the host again: `hccl-tools gen --endpoints DIR`"
        yield Finding(f"{name} has the same EID{more}", entry_path(ones[0], "comm_id"), hint)


@rule(
    "HCC810",
    "endpoint-file-number",
    "fails-later",
    source="vllm-ascend utils.py, setup_ascend_local_comm_res",
)
def endpoint_file_number(subject: Input) -> Iterator[Finding]:
    """The number in the file name is not the device_id to which the root info gives these EIDs.

    Readers look for the device_id. A generator of these files uses the local_id instead, which differs in a
    pod. The root info is read from the folder of the file or the folder above it.

    Base: endpoints
    Example: file ub_endpoint_npu_70.json
    Instead: table
    Hint: rename the file to ub_endpoint_npu_0.json: readers look for the device_id
    """
    number = device_of(subject.path) if subject.path is not None else None
    if number is None or subject.path is None:
        return
    path, by_eid = _devices_by_eid(subject.path)
    owners = {by_eid.get(one.comm_id.lower()) for one in entries(subject) if one.placement == "device"} - {
        None
    }
    if len(owners) == 1 and number not in owners:
        (owner,) = owners
        yield Finding(
            f"the file is numbered {number}, but its EIDs are those of device_id {owner} in {path}",
            (),
            f"rename the file to ub_endpoint_npu_{owner}.json: readers look for the device_id",
        )


def _devices_by_eid(path: str) -> tuple[str, dict[str, int]]:
    """Return the root info near a file and its device_id by EID in lower case; {} if it cannot be read."""
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    for place in (folder, os.path.dirname(folder)):  # noqa: PTH120
        file = os.path.join(place, ROOT_INFO_NAME)  # noqa: PTH118
        try:
            if os.path.getsize(file) <= _LARGEST_ROOT_INFO:  # noqa: PTH202
                return file, dict(_eids(Document.parse(read_file(file), file).value))
        except (InputError, OSError):
            continue
    return "", {}


def _eids(value: Any) -> Iterator[tuple[str, int]]:
    """Yield the EIDs of a root info with their device_id; damaged entries are left out."""
    for rank in _objects(value, "rank_list"):
        device_id = rank.get("device_id")
        if type(device_id) is int:
            for level in _objects(rank, "level_list"):
                for address in _objects(level, "rank_addr_list"):
                    if isinstance(address.get("addr"), str):
                        yield address["addr"].lower(), device_id


def _objects(holder: Any, key: str) -> list[dict[str, Any]]:
    found = holder.get(key) if isinstance(holder, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


@rule("HCC674", "peer-elsewhere", "advice", source=_MATCHER)
def peer_elsewhere(subject: Input) -> Iterator[Finding]:
    """No endpoint file in this folder has the EID of a peer. That is right only if the peer is on another host.

    Base: endpoints
    Example: /endpoint_list/0/dst_eid = "000000000000002000100000dfdf1001"
    Instead: table
    Hint: check that the files of all devices of this host are in this folder
    """
    if not _others(subject):
        return
    own = {one.comm_id for one in entries(subject)}
    for one in entries(subject):
        known = one.dst_eid in own or one.dst_eid.lower() in _owners(subject)
        if one.is_direct and is_eid(one.dst_eid) and not known:
            yield Finding(
                f"no other file in this folder has the EID {one.dst_eid}",
                entry_path(one, "dst_eid"),
                "check that the files of all devices of this host are in this folder",
            )
