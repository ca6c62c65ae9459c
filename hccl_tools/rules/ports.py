"""Rules on port numbers, which must be 1 to 65535."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.rules import right_texts
from hccl_tools.rules.registry import Finding, Subject, rule
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

HIGHEST_PORT = 65535
_KEYS = ("host_port", "device_port", "device_vnic_port")
_UINT32 = 1 << 32
_UINT64 = 1 << 64


@rule(
    "HCC421",
    "port-out-of-range",
    "refused",
    needs=_KEYS,
    source="topoinfo_ranktableConcise.cc:622-723; new_rank_info.cc:28",
)
def port_out_of_range(subject: Subject) -> Iterator[Finding]:
    """A port is not between 1 and 65535.

    HCCL reads device_vnic_port only if the device has a device_port; device_vnic_port must then be a string.

    Example: /server_list/0/device/0/device_port = "65536"
    Instead: /server_list/0/device/0/device_port = "16666"
    Hint: choose a port, or leave device_port out
    """
    read = _wrapped if subject.table.format == "2.0" else _text
    for key in _KEYS:
        column = subject.table.columns.get(key)
        if column is None or (key == "device_vnic_port" and subject.table.format == "2.0"):
            continue
        beside = subject.table.column("device_port")
        for row, value in enumerate(column):
            if value is None or (key == "device_vnic_port" and beside[row] is None):
                continue
            number = read(value)
            if number is None or not 1 <= number <= HIGHEST_PORT:
                shown = f'"{value}"' if isinstance(value, str) else value
                finding = Finding(
                    f"{key} {shown} is not between 1 and 65535",
                    subject.device_path(row, key),
                    f"choose a port, or leave {key} out",
                )
                yield right_texts.named(finding, value, _is_port)


def _is_port(text: str) -> bool:
    return 1 <= (read_uint(text) or 0) <= HIGHEST_PORT


def _text(value: Any) -> int | None:
    return read_uint(value) if isinstance(value, str) else None


def _wrapped(value: Any) -> int | None:
    """Read an optional number of a 2.0 table: HCCL keeps the lowest 32 bits (``json.value<u32>``)."""
    number = int(value) if abs(value) < _UINT64 else 0
    return number % _UINT32
