"""Keys with other names than HCCL reads, recognised by what their values are. This module declares no rules.

Other programs and translations name the lists and values of a table in their own words, which are not similar to the
keys. The values show what they are: a list of objects with addresses in them, an address, a number.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from hccl_tools.rules.registry import shared
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hccl_tools.rules.registry import DamagedInput, Subject

_NUMBER = r"(?a)\d{1,9}"
#: Keys that tables of other programs have beside these, and the lists of other formats.
_EXTRA = frozenset(
    {
        "host_nic_ip", "host_ip", "container_ip", "hardware_type", "pod_ip", "name", "pod_name", "container_id",
        "server_list", "rank_list", "group_list", "super_pod_list", "cluster_list", "server_group_list",
    }
)  # fmt: skip
#: Keys of a device that HCCL reads, and that may have an address.
_OF_DEVICES = frozenset({"device_ip", "backup_device_ip", "device_vnic_ip"})
#: For each format its lists from the outermost on.
_LISTS = {
    "1.0": ("server_list", "device"),
    "1.2": ("server_list", "device"),
    "2.0": ("rank_list", "level_list", "rank_addr_list"),
    "group_list": ("group_list", "instance_list", "devices"),
}


@shared
def other_names(subject: DamagedInput) -> dict[str, str]:
    """Return the required keys that the first entries of a table lack, with the keys that stand for them.

    Each key of the table stands for at most one, and only if no other key can.
    """
    table_format = subject.violations.table_format
    known = subject.violations.known_keys | _EXTRA
    return dict(_names(subject.value, table_format, known)) if table_format in _LISTS else {}


def other_name(subject: DamagedInput, holder: Any, missing: str) -> str | None:
    """Return the only unknown key of one object whose value is what a key that is missing there stands for."""
    keys = subject.violations.known_keys
    is_such: Callable[[Any], bool] = _is_address
    if missing in _LISTS.get(subject.violations.table_format, ()):
        is_such = partial(_has_entries, keys - _EXTRA)
    elif missing != "server_id":
        return None
    return dict(_one(holder, missing, keys | _EXTRA, is_such)).get(missing) if type(holder) is dict else None


def _has_entries(keys: frozenset[str], value: Any) -> bool:
    """Return whether a value is a list of objects with a key of a table."""
    return _is_list(value) and not keys.isdisjoint(value[0])


def key_of_address(subject: Subject, row: int) -> str | None:
    """Return the only key of a device that is not read and has an address."""
    found = [
        key
        for key, column in subject.table.columns.items()
        if key not in _OF_DEVICES and key not in _EXTRA and _is_address(column[row])
    ]
    return found[0] if len(found) == 1 else None


def column_of_addresses(subject: Subject) -> str | None:
    """Return the only key of devices without a device_ip that is not read and whose values are addresses."""
    if "device_ip" in subject.table.columns and any(subject.table.device_ips):
        return None
    return key_of_address(subject, 0)


def _names(value: Any, table_format: str, known: frozenset[str]) -> Iterator[tuple[str, str]]:
    lists = _LISTS[table_format]
    for name in lists:
        if type(value) is not dict:
            return
        if name in {"device", "devices"}:
            yield from _one(value, "server_id", known, _is_address)
        if name not in value:
            own = [key for key, one in value.items() if key not in known and _is_list(one)]
            if len(own) != 1:
                return
            yield name, own[0]
            value = value[own[0]][0]
            continue
        entries = value[name]
        value = entries[0] if _is_list(entries) else None
    if type(value) is dict and lists[-1] in ("device", "devices"):
        yield from _of_device(value, known)


def _of_device(value: dict[str, Any], known: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of the values of a device: its rank is named so, and its id is the other number."""
    ranks = [
        key for key, one in value.items() if key not in known and _is_number(one) and "rank" in key.lower()
    ]
    if "rank_id" not in value and len(ranks) == 1:
        yield "rank_id", ranks[0]
    numbers = [key for key, one in value.items() if key not in known and _is_number(one) and key not in ranks]
    if "device_id" not in value and len(numbers) == 1:
        yield "device_id", numbers[0]
    yield from _one(value, "device_ip", known, _is_address)


def _one(
    value: dict[str, Any], name: str, known: frozenset[str], is_such: Callable[[Any], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the only unknown key of an object whose value is of a kind, as the name of a key that is missing."""
    own = [key for key, one in value.items() if key not in known and is_such(one)]
    if name not in value and len(own) == 1:
        yield name, own[0]


def _is_list(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(one) is dict and one for one in value[:2])


def _is_address(value: Any) -> bool:
    return type(value) is str and packed(value) is not None


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is str and re.fullmatch(_NUMBER, value) is not None)
