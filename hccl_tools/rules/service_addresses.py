"""Rules on the addresses and ports of service tables.

Source: MindIE-Motor 5dfb024e, RankTableLoader.cpp and ConfigParams.cpp (IsValidIp, IsValidPort).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hccl_tools.rules import address_texts, right_texts
from hccl_tools.rules.registry import Finding, Input, rule
from hccl_tools.rules.service_structure import service_table
from hccl_tools.table.addresses import joined_ipv4, packed, query
from hccl_tools.table.hccl_numbers import read_int

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.rules.registry import Found
    from hccl_tools.table.service_table import ServiceTable

#: The ports that a server of an instance binds.
PORTS = ("predict_port", "mgmt_port", "metric_port", "inter_comm_port")
_MOST_NAMED = 4
_LOWEST, _HIGHEST = 1024, 65535
_UNSET = frozenset({"0.0.0.0", "::"})  # noqa: S104  (compared, never bound)  # nosec B104


@rule(
    "HCC731",
    "service-address",
    "refused",
    source="RankTableLoader.cpp:474, :521-527, :613; ConfigParams.cpp:62",
)
def address(subject: Input) -> Iterator[Found]:
    """A server_ip, a device_ip or the server_id of an instance is not an address, or is 0.0.0.0 or ::.

    The server_id of coordinators and controllers may be any name.

    Example: /server_group_list/2/server_list/0/server_ip = "pod-0"
    Instead: /server_group_list/2/server_list/0/server_ip = "192.168.3.1"
    Hint: write the address of the pod: `kubectl get pod -o wide` shows it
    """
    table = service_table(subject)
    texts = [*table.server_column("server_ip"), *table.server_column("server_id")]
    is_plain = _are_plain([text for text in texts if text is not None])
    for index, server in enumerate(() if is_plain else table.servers):
        is_instance = table.groups[server.group].role == "instance"
        for key in ("server_ip", "server_id") if is_instance else ("server_ip",):
            text = server.text(key)
            if text is not None and not _is_address(text):
                yield partial(_of_a_server, table, index, key, text)
    column = table.column("device_ip")
    alike: dict[str, tuple[str, str]] = {}
    for row, text in enumerate(() if _are_plain(column) else column):
        if text is not None and not _is_address(text):
            if _lacks_host(table, table.server_of_row(row)):
                continue  # The finding on the empty server_id or server_ip names them.
            yield partial(_of_a_device, table, row, text, alike)


def _of_a_server(table: ServiceTable, index: int, key: str, text: str) -> Finding:
    finding = Finding(f'{key} "{text}" is not an address', table.server_path(index, key), _of_server(key))
    if text:
        return _with_cause(finding, key, text)
    beside = _beside(table, index)
    also = f"; {_how(table, table.servers[index].rows[0])}, and so on for each" if beside else ""
    return finding._replace(message=f"{key} is empty{beside}", hint=f"{finding.hint}{also}")


def _of_a_device(table: ServiceTable, row: int, text: str, alike: dict[str, tuple[str, str]]) -> Finding:
    column, path = table.column("device_ip"), table.device_path(row, "device_ip")
    finding = Finding(f'device_ip "{text}" is not an address', path, _how(table, row))
    if rows := address_texts.counted_past(column, row):
        return _counted_past(finding._replace(hint=_how(table, rows[0])), column, rows, alike)
    return _with_cause(finding, "device_ip", text)


def _lacks_host(table: ServiceTable, server: int) -> bool:
    """Return whether a server has an empty address, and device_ips without their beginning: a program wrote nothing there."""
    one, column = table.servers[server], table.column("device_ip")
    is_empty = table.groups[one.group].role == "instance" and "" in (
        one.text("server_id"),
        one.text("server_ip"),
    )
    texts = [column[row] for row in one.rows] if is_empty else []
    return bool(texts) and all(
        text is not None and text[:1] in ("", ".", ":") and packed(text) is None for text in texts
    )


def _beside(table: ServiceTable, server: int) -> str:
    """Return what is damaged in the devices of a server without an address, as the end of a message."""
    if not _lacks_host(table, server):
        return ""
    first = table.column("device_ip")[table.servers[server].rows[0]]
    what = (
        f'its device_ips lack their beginning ("{first}" and so on)'
        if first
        else "all its device_ips are empty"
    )
    return f", and {what}: a program probably filled in a template with variables that were not set"


def _of_server(key: str) -> str:
    """Return the hint on an address of a server, with what shows it."""
    if key == "server_id":
        return "write the address of the host of the pod: `hostname -I` on the host prints its addresses"
    return "write the address of the pod: `kubectl get pod -o wide` shows it"


def _how(table: ServiceTable, row: int) -> str:
    """Return the hint on the address of a device, with the command that shows it."""
    device, host = table.device_numbers[row], table.servers[table.server_of_row(row)].text("server_id") or ""
    number, on_host = (
        "N" if device is None else device,
        f" on {host[:64]}" if _is_address(host) else " on its host",
    )
    return f"write the address of the device: `hccn_tool -i {number} {query(table.column('device_ip'))}`{on_host} shows it"


def _with_cause(finding: Finding, key: str, text: str) -> Finding:
    """Return a finding with what is wrong with a text, and the text without it."""
    if names := address_texts.joined_names(text):
        shown = " or ".join(f'"{name}"' for name in names[:_MOST_NAMED])
        return finding._replace(
            message=f'{key} "{text}" has {len(names)} addresses: it must be one',
            hint=f"keep one of {shown}: {(finding.hint or '').replace('write ', 'that is ', 1)}",
        )
    return right_texts.address(finding, text)


def _counted_past(
    finding: Finding, column: list[str | None], rows: range, alike: dict[str, tuple[str, str]]
) -> Finding:
    """Return the finding on an address that was counted on above 255: those before it were counted as well."""
    counted = (
        f'numbers are above 255; the addresses "{column[rows[0]]}" to "{column[rows[-1]]}" are counted on from one device to the next, '
        "as a spreadsheet fills a column, so that those below 256 are perhaps wrong, too"
    )
    said = (
        f"device_ips are not addresses: {counted}",
        f"{(finding.hint or '').replace('the address of the device', 'the addresses that these devices have, all of them', 1)}, and so on for each",
    )
    return finding._replace(
        message=f"{finding.message}: {counted}", hint=said[1], alike=alike.setdefault(said[0], said)
    )


def _are_plain(texts: list[str | None]) -> bool:
    """Return whether all texts are IPv4 addresses, as in nearly all tables."""
    return None not in texts and _UNSET.isdisjoint(texts) and joined_ipv4(texts) is not None  # type: ignore[arg-type]


def _is_address(text: str) -> bool:
    return text not in _UNSET and "%" not in text and packed(text) is not None


@rule("HCC732", "service-port", "refused", source="RankTableLoader.cpp:528-538; ConfigParams.cpp:119")
def port(subject: Input) -> Iterator[Finding]:
    """A port of a server of an instance is not a number from 1024 to 65535.

    MindIE-Motor refuses the ports 1 to 1023 as well.

    Example: /server_group_list/2/server_list/0/mgmt_port = "1023"
    Instead: /server_group_list/2/server_list/0/mgmt_port = "1024"
    Hint: write a port from 1024 to 65535
    """
    table = service_table(subject)
    texts = set().union(*map(table.server_column, PORTS)) - {None}
    wrong = {text for text in texts if text is not None and not _LOWEST <= (read_int(text) or 0) <= _HIGHEST}
    for instance in table.instances if wrong else ():
        for server in instance.servers:
            for key in PORTS:
                text = table.servers[server].text(key)
                if text in wrong:
                    message = f'{key} "{text}" is not a port from {_LOWEST} to {_HIGHEST}'
                    hint = f"write a port from {_LOWEST} to {_HIGHEST}"
                    yield Finding(message, table.server_path(server, key), hint)
