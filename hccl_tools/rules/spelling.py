"""Advice on numbers that HCCL reads in an unexpected way, on server_ids that are not names, and on keys that it ignores."""

from __future__ import annotations

from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.formats.column_checks import rows_with
from hccl_tools.rules import numbers
from hccl_tools.rules.address_columns import all_plain, refused_values
from hccl_tools.rules.addresses import servers_of_no_host
from hccl_tools.rules.commands import how_super_device
from hccl_tools.rules.copies import absent_devices
from hccl_tools.rules.key_names import READ_KEYS, is_same_name, same_name, similar_key
from hccl_tools.rules.key_places import keys_read, with_other_keys
from hccl_tools.rules.lost_digits import rows_without_digit
from hccl_tools.rules.moved_entries import with_address_as_id
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, rule, shared
from hccl_tools.rules.server_names import wrong_names
from hccl_tools.rules.super_pod_list import is_used
from hccl_tools.table.hccl_numbers import are_digits, read_uint

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.table.model import Column

_NUMBER_KEYS = ("rank_id", "device_id", "host_port", "device_port", "super_device_id")
#: The keys of servers and instances that HCCL reads.
_OF_SERVERS = ("server_id", "device", "devices", "host_ip", "pod_name")
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
        alike = dict[str, tuple[str, str]]()
        for row, value in enumerate(column):
            if not isinstance(value, str) or (number := read_uint(value)) is None or value == str(number):
                continue
            if with_address_as_id(subject).get(row) == key:
                continue  # HCC403 reports it.
            if key == "super_device_id" and row in rows_without_digit(subject):
                continue  # HCC632 reports it.
            path = subject.device_path(row, key)
            kind = numbers.kind_of(value)
            if kind and kind not in alike:
                alike[kind] = numbers.all_read_wrong(subject, key, kind, row)
            if not kind and value == f"{number}.0":
                kind = "decimal"
                alike.setdefault(
                    kind,
                    (
                        f"{key}s are decimal numbers, as spreadsheets write them",
                        f'write each without the decimal point: "{value}" as "{number}"',
                    ),
                )
            if kind == "exponent":
                hint = numbers.how_lost(subject, key, row)
                yield Finding(numbers.rounded(key, value, number), path, hint, alike=alike[kind])
            else:
                right = _certain(subject, key, value, number)
                if right is not None and not kind:
                    hint = f'write "{right}" in place of {quoted(value)}, and the others in the same way'
                    alike.setdefault(
                        kind, (f"{key}s have zeros, blanks or other signs beside their numbers", hint)
                    )
                yield Finding(
                    f"{key} {numbers.as_read(value, None)} is read as {number}", path, _right_number(subject, key, row, number),
                    right=right,
                    alike=alike.get(kind) if kind or right is not None else None,
                )  # fmt: skip


def _right_number(subject: Subject, key: str, row: int, number: int) -> str:
    """Return the hint on a number with other signs: a value only if it is certain that it is meant."""
    text = subject.table.columns[key][row]
    if (meant := numbers.hexadecimal(text)) is not None:
        return f'write "{meant}", the decimal number; HCCL does not read hexadecimal ones'
    if (whole := numbers.grouped(text)) is not None:
        return f'write "{whole}", without signs between the digits'
    if numbers.is_padded(text) or key in _expected(subject):
        return f'write "{number}"'
    how = how_super_device(subject, row) if key == "super_device_id" else ""
    return f"write the number without other signs{f'; {how}' if how else ''}"


def _certain(subject: Subject, key: str, text: str, number: int) -> str | None:
    """Return the value that the hint states; None if it states none."""
    if (meant := numbers.hexadecimal(text)) is not None:
        return str(meant)
    if (whole := numbers.grouped(text)) is not None:
        return whole
    return str(number) if numbers.is_padded(text) or key in _expected(subject) else None


@shared
def _expected(subject: Subject) -> frozenset[str]:
    """Return the keys of ids whose numbers, as HCCL reads them, are those that such a table must have."""
    table = subject.table
    ranks = set(table.rank_numbers) == set(range(len(table)))
    devices = all(not absent_devices(subject, server.rows) for server in table.servers)
    return frozenset(key for key, are_right in (("rank_id", ranks), ("device_id", devices)) if are_right)


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


@rule(
    "HCC619",
    "server-id-no-name",
    "advice",
    formats=(*SERVER_LIST, "group_list"),
    source="topoinfo_ranktableConcise.cc (ids are compared as texts); server_id is the address of its host in the guide",
)
def server_id_no_name(subject: Subject) -> Iterator[Finding]:
    """A server_id has signs that no address and no host name has, such as the words after it in a list of hosts.

    HCCL accepts each text. Tools that connect to the host, and a second table of it, need its name.

    Example: /server_list/0/server_id = "10.0.0.1 slots=8"
    Instead: /server_list/0/server_id = "10.0.0.1"
    Hint: write "10.0.0.1", wherever the table has this server_id
    """
    yield from wrong_names(subject).values()


@rule(
    "HCC604",
    "misspelt-key",
    "advice",
    source="topoinfo_ranktableConcise.cc (unknown keys are ignored)",
)
def misspelt_key(subject: Subject) -> Iterator[Finding]:
    """A key looks like a misspelling of a key that HCCL reads; HCCL ignores the misspelt key.

    Example: /server_list/0/device/0/devicePort = "16666"
    Instead: /server_list/0/device/0/device_port = "16666"
    Hint: did you mean "device_port"?
    """
    if subject.table.format == "2.0":
        yield from _misspelt_in_2_0(subject)
        return
    intended_of: dict[str, str | None] = {}
    told = misspelt(subject, "super_device_id") if is_used(subject) else {}
    for key, path, beside, row in _places(subject):
        if key not in intended_of:
            intended_of[key] = None if key in READ_KEYS or key in _KNOWN else similar_key(key)
        intended = intended_of[key]
        if intended is None or intended in subject.damaged:
            continue
        if intended == "super_device_id" and told:
            continue  # HCC527 reports the cause.
        if row is not None and _lacks(subject, row, intended):
            if not _is_told_as_missing(subject, row, key, intended):
                yield _instead(subject, row, key, intended)
            continue
        right = intended if is_same_name(key, intended) and intended not in beside else None
        hint = f'did you mean "{intended}"?'
        if intended in beside:
            hint = _beside(subject, (*path, key), intended)
        yield Finding(f'key "{key}" is ignored', (*path, key), hint, at_key=True, right_key=right)


def _lacks(subject: Subject, row: int, key: str) -> bool:
    """Return whether a device has no value of a key that other devices have."""
    column = subject.table.columns.get(key)
    return column is not None and column[row] is None


def _instead(subject: Subject, row: int, key: str, intended: str) -> Finding:
    """Return the finding on a misspelt key of a device that has no value of the right one for it."""
    return Finding(
        f'key "{key}" is ignored, so that {subject.rank_name(row)} has no {intended}',
        subject.device_path(row, key),
        f'rename "{key}" to "{intended}"',
        at_key=True,
        right_key=intended,
    )


def _is_told_as_missing(subject: Subject, row: int, key: str, intended: str) -> bool:
    """Return whether HCC401 reports a device_ip that is missing with the key that looks like it."""
    if intended != "device_ip" or "host_ip" in subject.damaged or all_plain(subject):
        return False
    server = subject.table.server_of_row[row]
    first = next(one for one in subject.table.columns if similar_key(one) == intended != one)
    is_refused = None in refused_values(subject)[server] and server not in servers_of_no_host(subject)
    return is_refused and key == first


def _beside(subject: Subject, path: Path, intended: str) -> str:
    """Return the hint on a misspelt key of an object that has the right one, too: renaming it would make two of them."""
    try:
        value = reduce(getitem, path, subject.value)
        own = reduce(getitem, path[:-1], subject.value)[intended]
    except (KeyError, IndexError, TypeError):
        return f'did you mean "{intended}"? It is there, too: delete one of the two keys'
    if isinstance(value, list) and isinstance(own, list):
        return f'"{intended}" is there, too: move the entries of this list into it if the job uses them, and delete this key'
    if value == own:
        return f'"{intended}" is there, too, with the same value: delete this key'
    return (
        f'"{intended}" is there, too: delete this key, and if its value {_shown(value)} is the right one, write it in place of '
        f'{_shown(own)} in "{intended}"'
    )


def _shown(value: Any) -> str:
    return (
        quoted(value)
        if isinstance(value, str)
        else "of this key"
        if isinstance(value, (dict, list))
        else str(value)
    )


def _misspelt_in_2_0(subject: Subject) -> Iterator[Finding]:
    """Yield the keys of a 2.0 table that are those of their object in another spelling."""
    for found in with_other_keys(subject, "2.0", lambda key: same_name(key, keys_read("2.0")) is not None):
        for key in found.value:
            right = None if key in found.kind.keys else same_name(key, found.kind.keys)
            if right is not None and right not in subject.damaged:
                yield Finding(
                    f'key "{key}" is ignored', (*found.path, key), f'did you mean "{right}"?', at_key=True,
                    right_key=None if right in found.value else right,
                )  # fmt: skip


def _places(subject: Subject) -> Iterator[tuple[str, Path, Container[str], int | None]]:
    """Yield the keys that the document, the servers and the devices have beside those of the model, and the device's row."""
    table = subject.table
    for key in table.fields:
        yield key, (), subject.value if isinstance(subject.value, dict) else (), None
    for index, server in enumerate(table.servers):
        for key in server.fields:
            yield key, subject.server_path(index), _OF_SERVERS, None
    for key, column in table.columns.items():
        if key in READ_KEYS or key in _KNOWN or similar_key(key) is None:
            continue
        meant = table.columns.get(similar_key(key) or "")
        for row in rows_with(column):
            beside = (similar_key(key) or "",) if meant is not None and meant[row] is not None else ()
            yield key, subject.device_path(row), beside, row


def misspelt(subject: Subject, key: str) -> dict[int, str]:
    """Return the rows of devices without a key that have it in another spelling, with that spelling."""
    found: dict[int, str] = {}
    columns = subject.table.columns
    own = columns.get(key)
    for name in columns:
        if name in READ_KEYS or name in _KNOWN or similar_key(name) != key:
            continue
        for row in rows_with(columns[name]):
            if own is None or own[row] is None:
                found.setdefault(row, name)
    return found


def renamed(subject: Subject, row: int, key: str, right: str) -> Finding:
    """Return the finding on a required key of a device that is missing, because it is misspelt."""
    message, hint = f'"{right}" is missing, and "{key}" looks like it', f'rename "{key}" to "{right}"'
    path = subject.device_path(row, key)
    return Finding(
        message, path, hint, at_key=True, right_key=right, alike=(message, f"{hint} in each place")
    )
