"""Advice on numbers that HCCL reads in an unexpected way, and on keys that it ignores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.rules.key_names import READ_KEYS, similar_key
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule
from hccl_tools.table.hccl_values import are_digits, read_uint
from hccl_tools.table.sparse_column import first_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.model import Column

_NUMBER_KEYS = ("rank_id", "device_id", "host_port", "device_port", "super_device_id")
#: Keys that are in no schema and are not mistakes: other programs read them.
_KNOWN = frozenset(
    {
        "host_nic_ip", "container_ip", "pod_ip", "server_ip", "hardware_type", "IsMindIEEPJob",
        "backup_device_ip", "backup_device_port", "device_vnic_port", "dpu_ip",
        "numa_id", "device_logical_id", "board_id", "server_name",
    }
)  # fmt: skip


@rule(
    "HCC603",
    "sloppy-number",
    "advice",
    formats=SERVER_LIST,
    needs=_NUMBER_KEYS,
    source="sal.cc:185 (std::stoull)",
)
def sloppy_number(subject: Subject) -> Iterator[Finding]:
    """A number has blanks, a sign, leading zeros or text around it.

    HCCL reads only the leading digits: "1a" is 1, "0x10" is 0, " 3" is 3. Other programs may refuse the
    value.

    Example: /server_list/0/device/1/rank_id = "1a"
    Instead: /server_list/0/device/1/rank_id = "1"
    Hint: write "1"
    """
    for key in _NUMBER_KEYS:
        column = subject.table.columns.get(key, ())
        if not column or _are_plain(column):
            continue
        for row, value in enumerate(column):
            if isinstance(value, str) and (number := read_uint(value)) is not None and value != str(number):
                meant = _hexadecimal(value)
                hint = f'write "{number}"'
                if meant is not None:
                    hint = f'write "{meant}", the decimal number; HCCL does not read hexadecimal ones'
                yield Finding(f'{key} "{value}" is read as {number}', subject.device_path(row, key), hint)


def _hexadecimal(text: str) -> int | None:
    found = re.fullmatch(r"\s*0[xX]([0-9a-fA-F]{1,8})\s*", text)
    return None if found is None else int(found[1], 16)


def _are_plain(column: Column) -> bool:
    """Whether all values of a column are numbers in their usual form, checked on the joined column."""
    try:
        lines = "\n".join(["", *column, ""])
    except TypeError:  # not all values are strings
        return False
    return (
        are_digits(lines)
        and lines.count("\n") == len(column) + 1
        and "\n\n" not in lines
        and lines.count("\n0") == lines.count("\n0\n")
    )


@rule("HCC604", "misspelt-key", "advice", source="topoinfo_ranktableConcise.cc (unknown keys are ignored)")
def misspelt_key(subject: Subject) -> Iterator[Finding]:
    """A key looks like a misspelling of a key that HCCL reads; HCCL ignores the misspelt key.

    Example: /server_list/0/device/0/devicePort = "16666"
    Instead: /server_list/0/device/0/device_port = "16666"
    Hint: did you mean "device_port"?
    """
    for keys, path in _key_sets(subject):
        for key in keys:
            if key in READ_KEYS or key in _KNOWN:
                continue
            if (intended := similar_key(key)) and intended not in subject.damaged:
                yield Finding(
                    f'key "{key}" is ignored', (*path, key), f'did you mean "{intended}"?', at_key=True
                )


def _key_sets(subject: Subject) -> Iterator[tuple[Iterable[str], Path]]:
    """Yield the keys of the document, the servers and the devices, each set of keys once, with a path."""
    table = subject.table
    yield list(table.fields), ()
    seen: set[tuple[str, ...]] = set()
    for index, server in enumerate(table.servers):
        if (keys := tuple(server.fields)) not in seen:
            seen.add(keys)
            yield keys, subject.server_path(index)
    for key, column in table.columns.items():
        row = first_row(column)
        if row is not None:
            yield (key,), subject.device_path(row)
