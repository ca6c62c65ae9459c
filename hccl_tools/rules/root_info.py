"""Rules on the root info of an Ascend 950 host (``hccl_rootinfo.json``), as HCCL reads it.

HCCL adds rank_id to the entry of a device and reads the result as a 2.0 table, so the rules on devices, levels
and addresses of 2.0 tables apply as well (see ``seen_as_table``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.host import eid
from hccl_tools.rules import file_structure
from hccl_tools.rules.registry import Finding, Input, rule, shared
from hccl_tools.table.addresses import is_eid
from hccl_tools.table.hccl_numbers import read_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path

VERSION = "2.0"
_CLIENT = "hcomm rank_info_detect_client.cc"
_CODE = "EI0016"


def seen_as_table(value: Any) -> Any:
    """Return the table that HCCL makes of a root info: its entries with rank ids."""
    ranks = value.get("rank_list") if isinstance(value, dict) else None
    if not isinstance(ranks, list):
        return value
    numbered = [
        {**rank, "rank_id": row} if isinstance(rank, dict) else rank for row, rank in enumerate(ranks)
    ]
    return {**value, "rank_list": numbered}


@shared
def devices(subject: Input) -> list[dict[str, Any]]:
    """Return the entries of rank_list."""
    found: list[dict[str, Any]] = subject.value["rank_list"]
    return found


def eids(rank: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the EIDs of an entry with their paths in it."""
    for number, level in enumerate(rank["level_list"]):
        for index, address in enumerate(level["rank_addr_list"]):
            if address["addr_type"] == "EID":
                yield ("level_list", number, "rank_addr_list", index, "addr"), address["addr"]


@rule("HCC841", "root-info-directory", "refused", stage="load", source=f"{_CLIENT}, ConstructRankTable")
def root_info_directory(subject: Input) -> Iterator[Finding]:
    """A directory has the name of the root info, so that the process of each rank aborts.

    `docker run -v FILE:FILE` makes an empty directory on the host if the file does not exist there. HCCL
    reports "basic_filebuf::underflow error reading the file: Is a directory".

    Base: rootinfo
    Example: directory
    Instead: table
    Hint: remove the directory, create the file, and start the container again
    """
    yield from file_structure.directory(subject)


@rule(
    "HCC842", "root-info-version", "refused", code=_CODE, stage="load", source=f"{_CLIENT}, CheckRootInfoJson"
)
def root_info_version(subject: Input) -> Iterator[Finding]:
    """The version is not "2.0". Versions 1.0 and 1.2 are left over from Atlas A2 and A3.

    Base: rootinfo
    Example: /version = "1.2"
    Instead: /version = "2.0"
    Hint: make the file again on this host, or remove it: HCCL then asks the driver
    """
    version = subject.value.get("version") if isinstance(subject.value, dict) else None
    if isinstance(version, str) and version != VERSION:
        yield Finding(
            f'version is {quoted(version)}; HCCL reads "{VERSION}"',
            ("version",),
            "make the file again on this host, or remove it: HCCL then asks the driver",
        )


@rule(
    "HCC843",
    "root-info-structure",
    "refused",
    code=_CODE,
    stage="structure",
    source=f"{_CLIENT}, CheckRootInfoJson",
)
def root_info_structure(subject: Input) -> Iterator[Finding]:
    """A key is missing or has the wrong type.

    Older versions of mindcluster-tools write neither topo_file_path nor rank_count, which HCCL requires.

    Base: rootinfo
    Example: remove /topo_file_path
    Instead: table
    Hint: add the path of the topology file of this machine
    """
    yield from file_structure.faults(subject, seen_as_table(subject.value), "rootinfo")


@rule("HCC844", "root-info-rank-count", "refused", code=_CODE, source=f"{_CLIENT}, CheckRootInfoJson")
def root_info_rank_count(subject: Input) -> Iterator[Finding]:
    """The rank_count is not the number of entries of rank_list.

    Base: rootinfo
    Example: /rank_count = 7
    Instead: /rank_count = 8
    Hint: write "rank_count": 8
    """
    number = len(devices(subject))
    if read_integer(subject.value["rank_count"]) != number:
        message = f"rank_count is {subject.value['rank_count']}; rank_list has {number} entries"
        yield Finding(message, ("rank_count",), f'write "rank_count": {number}')


@rule("HCC845", "root-info-device-twice", "fails-later", source=f"{_CLIENT}, GetLocalDevInfoJson")
def root_info_device_twice(subject: Input) -> Iterator[Finding]:
    """Two entries have the same device_id or local_id.

    HCCL takes the first entry of its device_id, so a device gets the addresses of another one.

    Base: rootinfo
    Example: /rank_list/1/device_id = 0
    Instead: /rank_list/1/device_id = 1
    Hint: give every entry its own device_id
    """
    for key in ("device_id", "local_id"):
        first: dict[Any, int] = {}
        for row, rank in enumerate(devices(subject)):
            seen = first.setdefault(read_integer(rank[key]), row)
            if seen != row:
                related = (Related(("rank_list", seen, key), "first used here"),)
                hint = f"give every entry its own {key}"
                yield Finding(f"{key} {rank[key]} is used twice", ("rank_list", row, key), hint, related)


@rule(
    "HCC846",
    "root-info-eid-twice",
    "fails-later",
    source="an EID belongs to one device (mind-cluster, parse_eid.py)",
)
def root_info_eid_twice(subject: Input) -> Iterator[Finding]:
    """Two devices have the same EID.

    Base: rootinfo
    Example: /rank_list/1/level_list/0/rank_addr_list/0/addr = "000000000000002000100000dfdf0001"
    Instead: table
    Hint: make the root info again from the devices: `hccl-tools gen --rootinfo-out PATH`
    """
    first: dict[str, tuple[int, Path]] = {}
    for row, rank in enumerate(devices(subject)):
        for inside, text in eids(rank):
            path: Path = ("rank_list", row, *inside)
            seen, where = first.setdefault(text.lower(), (row, path))
            if seen != row:
                yield Finding(
                    f"device_id {rank['device_id']} has an EID of device_id {devices(subject)[seen]['device_id']}",
                    path,
                    "make the root info again from the devices: `hccl-tools gen --rootinfo-out PATH`",
                    (Related(where, "first used here"),),
                )


@rule("HCC675", "local-id-of-other-eids", "advice", source="mind-cluster mindcluster_tools, parse_eid.py")
def local_id_of_other_eids(subject: Input) -> Iterator[Finding]:
    """The EIDs of an entry are those of another local_id.

    Only EIDs of the layout that mindcluster-tools describes are compared.

    Base: rootinfo
    Example: /rank_list/1/local_id = 9
    Instead: /rank_list/1/local_id = 1
    Hint: compare the local_id with the topology file
    """
    encoded = [{_local_id(text) for _, text in eids(rank)} for rank in devices(subject)]
    if any(len(ids) != 1 or None in ids for ids in encoded):
        return
    for row, (rank, (number,)) in enumerate(zip(devices(subject), encoded, strict=True)):
        if read_integer(rank["local_id"]) != number:
            yield Finding(
                f"local_id is {rank['local_id']}, but the EIDs are those of local_id {number}",
                ("rank_list", row, "local_id"),
                "compare the local_id with the topology file",
            )


def _local_id(text: str) -> int | None:
    """Return the local_id in an EID, None if it has another layout."""
    decoded = eid.read(text) if is_eid(text) else None
    return None if decoded is None else decoded.local_id
