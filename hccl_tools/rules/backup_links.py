"""Rules on backup addresses, which an A3 uses for retries between super pods.

HCCL reads them only with AI CPU expansion, which is on by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.rules import job_variables, right_texts
from hccl_tools.rules.address_columns import addresses_read, split_addresses
from hccl_tools.rules.ports import HIGHEST_PORT
from hccl_tools.rules.registry import Finding, Subject, rule
from hccl_tools.table.addresses import family, is_unset
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator


def _rows(subject: Subject) -> Iterator[tuple[int, Any]]:
    """Yield the rows with a backup_device_ip that HCCL reads, and its value."""
    if subject.product.dies_per_npu > 1 and job_variables.reads_backup_addresses(subject.env):
        for row, value in enumerate(subject.table.columns.get("backup_device_ip", ())):
            if value is not None:
                yield row, value


@rule("HCC441", "backup-ip", "refused", code="EI0014", source="topoinfo_ranktableConcise.cc:572-620")
def backup_ip(subject: Subject) -> Iterator[Finding]:
    """A backup_device_ip is not an IP address, or is used twice.

    Base: 1.2 2x8 env HCCL_OP_RETRY_ENABLE=L2:1
    Example: /server_list/0/device/0/backup_device_ip = "192.168.1"
    Instead: /server_list/0/device/0/backup_device_ip = "192.168.0.101"
    Hint: write the address of the NPU's other die
    """
    first: dict[str, int] = {}
    for row, value in _rows(subject):
        path = subject.device_path(row, "backup_device_ip")
        if not isinstance(value, str):
            yield Finding("backup_device_ip is not a string", path, "write the address as a string")
        for address in split_addresses(value):
            if family(address) is None or is_unset(address):
                finding = Finding(
                    f'"{address}" is not an IP address', path, "write the address of the NPU's other die"
                )
                yield right_texts.address(finding, address, value)
            elif address in first:
                related = (
                    Related(subject.device_path(first[address], "backup_device_ip"), "first used here"),
                )
                yield Finding(
                    f'backup_device_ip "{address}" is used twice',
                    path,
                    "give every device its own backup address",
                    related,
                )
            first.setdefault(address, row)


@rule("HCC442", "backup-port", "refused", source="topoinfo_ranktableConcise.cc:732-760")
def backup_port(subject: Subject) -> Iterator[Finding]:
    """A backup_device_port next to a backup_device_ip is not between 1 and 65535.

    Base: 1.2 2x8 env HCCL_OP_RETRY_ENABLE=L2:1
    Example: /server_list/0/device/0/backup_device_ip = "192.168.0.101"; /server_list/0/device/0/backup_device_port = "0"
    Instead: /server_list/0/device/0/backup_device_ip = "192.168.0.101"; /server_list/0/device/0/backup_device_port = "16667"
    Hint: write a port as a string: "16667"
    """
    ports = subject.table.column("backup_device_port")
    for row, value in _rows(subject):
        port = ports[row]
        if not split_addresses(value) or port is None:
            continue
        number = read_uint(port) if isinstance(port, str) else None
        if number is None or not 1 <= number <= HIGHEST_PORT:
            path = subject.device_path(row, "backup_device_port")
            yield Finding(
                f'backup_device_port "{port}" is not between 1 and 65535',
                path,
                'write a port as a string: "16667"',
            )


@rule(
    "HCC443",
    "backup-partner",
    "refused",
    needs=("device_id", "device_ip"),
    stage="check",
    source="topoinfo_ranktableConcise.cc:773-833",
)
def backup_partner(subject: Subject) -> Iterator[Finding]:
    """A backup address is not the address of the NPU's other die, or the backup port is in use on that die.

    HCCL looks up the other die by its index on its server, but searches all ranks. It therefore checks only
    the first server correctly, and may report a port clash with a device of another server.

    Base: 1.2 2x8 env HCCL_OP_RETRY_ENABLE=L2:1
    Example: /server_list/0/device/0/backup_device_ip = "192.168.0.100"
    Instead: /server_list/0/device/0/backup_device_ip = "192.168.0.101"
    Hint: write the address of the NPU's other die
    """
    rows = list(_rows(subject))
    place: dict[str, int] = {}
    for server in subject.table.servers if rows else ():
        for index, row in enumerate(server.rows):
            for address in addresses_read(subject)[row]:
                place.setdefault(address.partition("%")[0], index)
    for row, value in rows:
        for address in split_addresses(value):
            partner = place.get(address.partition("%")[0])
            fault = None if partner is None else _partner_fault(subject, row, partner)
            if fault:
                path = subject.device_path(row, "backup_device_ip")
                yield Finding(
                    f"backup address {address} {fault}", path, "write the address of the NPU's other die"
                )


def _partner_fault(subject: Subject, row: int, partner: int) -> str | None:
    own, other = subject.table.device_numbers[row], subject.table.device_numbers[partner]
    if own is None or other is None:
        return None
    if own == other:
        return "is the address of the device itself"
    dies = subject.product.dies_per_npu
    if own // dies != other // dies:
        return f"belongs to device {other}, which is not on the same NPU as device {own}"
    port, taken = (
        subject.table.column(key)[at] for key, at in (("backup_device_port", row), ("device_port", partner))
    )
    if isinstance(port, str) and isinstance(taken, str) and read_uint(port) == read_uint(taken):
        return f"and backup_device_port {port} clash with device_port of device {other}"
    return None
