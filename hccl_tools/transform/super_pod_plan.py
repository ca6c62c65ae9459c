"""Read the super pods of servers for ``convert --super-pods FILE``.

The file has one of two forms: an object by server and device id, as in ``{"10.0.0.1": {"super_pod_id": "0",
"super_device_ids": {"0": "0", "1": "65537"}}}``, or any table with super pods and these servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools import formats
from hccl_tools.errors import TableError
from hccl_tools.formats import StructureError
from hccl_tools.records import NamedTuple
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable

_FORM = 'use {"10.0.0.1": {"super_pod_id": "0", "super_device_ids": {"0": "0", "1": "65537"}}}'


class SuperPodMembership(NamedTuple):
    """A server's super pod, and the super_device_ids of its devices by device id."""

    super_pod_id: str
    super_device_ids: dict[int, str]


def read_super_pods(value: Any, name: str) -> dict[str, SuperPodMembership]:
    """Return the super pod and super_device_ids of each server.

    Raises:
        TableError: The value has neither form, or is a 1.2 table without super pods.
    """
    if isinstance(value, dict) and ("version" in value or "server_list" in value):
        return _of_table(value, name)
    if not isinstance(value, dict) or not value:
        raise TableError(f"{name} does not have the super pod of each server", hint=_FORM)
    return {server: _membership(entry, server, name) for server, entry in value.items()}


def _of_table(value: dict[str, Any], name: str) -> dict[str, SuperPodMembership]:
    if "super_pod_list" in value and value.get("version") == "1.0":  # some generators write the wrong version
        value = {**value, "version": "1.2"}
    try:
        table = formats.read(value)
    except StructureError as error:
        raise TableError(
            f"{name} is not a readable table: {error.head}", hint=_FORM, lines=error.lines
        ) from None
    if not table.super_pods or "super_device_id" not in table.columns:
        raise TableError(
            f"{name} is a {table.format} table without super pods", hint="specify a 1.2 table, or " + _FORM
        )
    pods = {server: pod.super_pod_id for pod in table.super_pods for server in pod.server_ids}
    return {
        server.server_id: SuperPodMembership(pods[server.server_id], _device_ids(table, index))
        for index, server in enumerate(table.servers)
        if server.server_id in pods
    }


def _device_ids(table: RankTable, index: int) -> dict[int, str]:
    ids, column = table.device_numbers, table.column("super_device_id")
    return {
        device: column[row]
        for row in table.servers[index].rows
        if (device := ids[row]) is not None and column[row] is not None
    }


def _membership(entry: Any, server: str, name: str) -> SuperPodMembership:
    if not isinstance(entry, dict) or not {"super_pod_id", "super_device_ids"} <= entry.keys():
        raise TableError(f"{name}: server {server} lacks super_pod_id or super_device_ids", hint=_FORM)
    ids = entry["super_device_ids"]
    pairs = enumerate(ids) if isinstance(ids, list) else ids.items() if isinstance(ids, dict) else None
    if pairs is None or not _is_id(entry["super_pod_id"]):
        raise TableError(
            f"{name}: super_pod_id or super_device_ids of server {server} are invalid", hint=_FORM
        )
    found = {}
    for device, sdid in pairs:
        number = read_uint(str(device))
        if number is None or not _is_id(sdid) or read_uint(str(sdid)) is None:
            raise TableError(
                f'{name}: server {server}: "{device}": {sdid!r} is not a device id with its super_device_id',
                hint=_FORM,
            )
        found[number] = str(sdid)
    return SuperPodMembership(str(entry["super_pod_id"]), found)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
