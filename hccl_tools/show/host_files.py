"""The output of ``show`` for endpoint files and root infos of an Ascend 950 host, as lines or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.formats.endpoint_file import Endpoint, device_of, endpoints, files_beside
from hccl_tools.formats.file_kinds import ENDPOINTS
from hccl_tools.notation.phrases import aligned, count
from hccl_tools.notation.printable import escaped, stdout_is_ascii
from hccl_tools.show.description import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Report

#: The longest value that is shown, in characters: a path. Columns are as wide as their widest value.
_LONGEST = 256


def lines(report: Report, value: dict[str, Any], path: str | None) -> list[str]:
    """Return the lines of text.

    Args:
        value: The document; it may have faults.
        path: The path of the file, None for standard input; the files beside it name the peers.
    """
    ascii_only = stdout_is_ascii()
    rows = (
        _endpoint_lines(report, value, path)
        if report.format == ENDPOINTS.name
        else _root_info_lines(report, value)
    )
    return [escaped(line, ascii_only=ascii_only) for line in rows]


def as_json(report: Report, value: dict[str, Any], path: str | None) -> str:
    """Return the JSON text; see ``lines`` for the arguments."""
    head = {"schema_version": SCHEMA_VERSION, "file": report.file, "format": report.format}
    facts = _endpoint_facts(value, path) if report.format == ENDPOINTS.name else _root_info_facts(value)
    return json.dumps({**head, **facts}, indent=4) + "\n"


def _root_info_facts(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": value.get("version"), "topo_file_path": value.get("topo_file_path"),
        "devices": [
            {
                "device_id": rank.get("device_id"), "local_id": rank.get("local_id"),
                "levels": [
                    {
                        "net_layer": level.get("net_layer"), "net_instance_id": level.get("net_instance_id"),
                        "addresses": [
                            {key: address.get(key) for key in ("addr", "ports", "plane_id")}
                            for address in _objects(level, "rank_addr_list")
                        ],
                    }
                    for level in _objects(rank, "level_list")
                ],
            }
            for rank in _objects(value, "rank_list")
        ],
    }  # fmt: skip


def _root_info_lines(report: Report, value: dict[str, Any]) -> Iterator[str]:
    ranks = _objects(value, "rank_list")
    yield (
        f"{report.file}: root info, version {_shown(value.get('version'))}, {count(len(ranks), 'device')}, "
        f"topology file {_shown(value.get('topo_file_path'))}"
    )
    rows = []
    for rank in ranks:
        levels = [_level_text(level) for level in _objects(rank, "level_list")]
        ids = [f"{key} {_shown(rank.get(key))}" for key in ("device_id", "local_id")]
        rows.append((*ids, ", ".join(levels)))
    if rows:
        yield from (f"  {line}" for line in aligned(rows))


def _level_text(level: dict[str, Any]) -> str:
    number = len(_objects(level, "rank_addr_list"))
    addresses = f"{number} address{'' if number == 1 else 'es'}"
    return f"layer {_shown(level.get('net_layer'))} ({_shown(level.get('net_instance_id'))}): {addresses}"


def _shown(value: object) -> str:
    """Return a value on one line: ``?`` if there is none, cut if a damaged file has a long one."""
    text = "?" if value is None or value == "" else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _objects(holder: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = holder.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _endpoint_facts(value: dict[str, Any], path: str | None) -> dict[str, Any]:
    peers = _peer_files(path)
    listed = [
        {
            "protocol": one.protocol, "comm_id": one.comm_id, "placement": one.placement,
            "plane": one.plane or None, "dst_eid": one.dst_eid or None, "peer_file": peers.get(one.dst_eid),
        }
        for one in endpoints(value)
    ]  # fmt: skip
    return {
        "version": value.get("version"), "device_id": None if path is None else device_of(path),
        "net_instance_id": value.get("net_instance_id"), "endpoints": listed,
    }  # fmt: skip


def _endpoint_lines(report: Report, value: dict[str, Any], path: str | None) -> Iterator[str]:
    listed, peers = endpoints(value), _peer_files(path)
    device = None if path is None else device_of(path)
    owner = "" if device is None else f" of device {device}"
    yield (
        f"{report.file}: endpoint file{owner}, version {_shown(value.get('version'))}, network instance "
        f"{_shown(value.get('net_instance_id'))}, {count(len(listed), 'endpoint')}"
    )
    rows = [
        (_shown(one.placement), _shown(one.protocol), _shown(one.comm_id), _other_end(one, peers))
        for one in listed
    ]
    if rows:
        yield from (f"  {line}" for line in aligned(rows))


def _other_end(one: Endpoint, peers: dict[str, str]) -> str:
    if not one.dst_eid:
        return f"plane {one.plane}" if one.plane else "any peer"
    name = peers.get(one.dst_eid)
    return f"-> {one.dst_eid}" + (f" ({name})" if name else "")


def _peer_files(path: str | None) -> dict[str, str]:
    """Return the names of the files beside a file by the comm_id of their device endpoints."""
    beside = {} if path is None else files_beside(path)
    return {
        one.comm_id: name for name, listed in beside.items() for one in listed if one.placement == "device"
    }
