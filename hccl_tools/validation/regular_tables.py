"""Recognise regular tables, in which no rule finds anything, so that a job need not load the rules.

A regular table is one as ``gen`` and ``merge`` make it for whole machines of a usual size: no key too many,
ranks and devices in order, and addresses that count on in the same way on each machine. Each condition is
stricter than the rules. A table that is not regular may be sound as well; the rules decide.

``tests/validation/test_regular_tables.py`` holds it against the rules.
"""

from __future__ import annotations

from itertools import chain, pairwise
from struct import unpack
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.formats import StructureError, detect, read
from hccl_tools.rules import job_variables
from hccl_tools.table.addresses import is_host, is_link_local, joined_ipv4
from hccl_tools.validation import product_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from hccl_tools.document.document import Document
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product
    from hccl_tools.validation.product_choice import Choice

_KEYS = {"device_id", "device_ip", "rank_id"}
#: The keys of a device, with the rank ids that a group_list gets when it is read.
_KEYS_OF: dict[Format, set[str]] = {
    "1.0": _KEYS,
    "1.2": _KEYS | {"super_device_id"},
    "group_list": _KEYS,
}
#: What the entry of a server has beside the keys that HCCL reads.
_FIELDS: tuple[dict[str, str], ...] = ({}, {"host_nic_ip": "reserve"})
_FIELD_OF_INSTANCE = {"pod_name"}
#: An escape, and a character that an editor does not show. JSON has no others within ASCII.
_NOT_PLAIN = (b"\\", b"\x7f")
_WHOLE = tuple(range(8))
#: The devices of a job on one machine, within the groups of the first generation.
_ON_ONE = (*((device,) for device in _WHOLE), (0, 1), (0, 1, 2, 3), (4, 5, 6, 7), _WHOLE)
#: The devices of a job on each machine of a super pod.
_IN_SUPER_POD = (_WHOLE, tuple(range(16)))
#: The low bits of a super_device_id are the device_id: the others count servers and cards in this unit.
_AFTER_DEVICE = 1 << 16
#: What HCCL reads as no super_device_id, and above.
_NO_SUPER_DEVICE = 0xFFFFFFFF
#: The devices at the same places of two groups may share a network.
_GROUP = 4
#: The first numbers of addresses that are valid on one host alone, and of netmasks.
_NO_NETWORKS = (0, 127, 255)
#: The only server of a table may have it.
_LOOPBACK = "127.0.0.1"
#: Addresses of one kind are in one network of this size.
_HOST_BITS = 16
_ENDING = ".json"
#: The versions of the formats above; a group_list usually has none.
_VERSIONS = ("1.0", "1.2", "")
#: The longest names of groups and pods that are looked at here.
_LONGEST_NAME = 64


def recognise(
    document: Document,
    product: str | None,
    env: Mapping[str, str],
    *,
    on_this_host: bool,
    begin: Callable[[RankTable], None] | None = None,
) -> tuple[RankTable, Choice] | None:
    """Return a regular table and the product for which it was judged; ``None`` for any other document.

    The arguments are those of ``checker.validate``; ``begin`` is called with a table that may not be regular.

    Raises:
        UsageError: The product is unknown.
    """
    if not may_be_regular(document):
        return None
    table_format = detect(document.value).format
    if table_format not in _KEYS_OF:
        return None
    try:
        table = read(document.value, table_format)
    except StructureError:
        return None
    if begin is not None:
        begin(table)
    size = devices_of_each(table)
    choice = product_choice.choose(product, table_format, on_this_host=on_this_host)
    choice = product_choice.refined(choice, table, lambda: size)
    return (table, choice) if is_regular(table, size, choice.product, env) else None


def may_be_regular(document: Document | None) -> bool:
    """Return whether a document is not obviously irregular, so that it is worth a look at its table."""
    value = None if document is None else document.value
    return (
        document is not None
        and isinstance(value, dict)
        and value.get("version", "") in _VERSIONS
        and _names_servers_alone(value.get("super_pod_list", []))
        and _is_plain(document)
    )


def is_regular(
    table: RankTable, size: int, product: Product, env: Mapping[str, str], *, is_new: bool = False
) -> bool:
    """Return whether the rules find nothing in a table: in memory, or of a document that may be regular.

    Args:
        size: What ``devices_of_each`` returns for the table.
        product: What ``product_choice.refined`` returns for the table.
        is_new: The table has the counts that are written with it.
    """
    return (
        size > 0
        and (table.declared == _counts(table) or (is_new and not table.declared))
        and _has_usual_keys(table)
        and _has_usual_entries(table, size)
        and _has_regular_addresses(table, size)
        and _is_usual(product, table.format)
        and not any(job_variables.problems(env, product))
    )


def _is_plain(document: Document) -> bool:
    real = "" if document.path is None else links.real_path(document.path)
    has_name = real.find(_ENDING) + len(_ENDING) == len(real) and not real.endswith("/" + _ENDING)
    data = document.data
    return has_name and document.is_clean and data.isascii() and not any(one in data for one in _NOT_PLAIN)


def _names_servers_alone(pods: object) -> bool:
    """Return whether the entries of super_pod_list have no key that the table does not keep."""
    return isinstance(pods, list) and all(
        isinstance(pod, dict)
        and isinstance(servers := pod.get("server_list"), list)
        and all(isinstance(server, dict) and server.keys() == {"server_id"} for server in servers)
        for pod in pods
    )


def _counts(table: RankTable) -> dict[str, str | list[str]]:
    """Return the counts of a table as a file with it declares them."""
    if table.format != "group_list":
        return {"server_count": str(len(table.servers))}
    groups = table.groups or ()
    ranks = [sum(len(table.servers[index].rows) for index in group.servers) for group in groups]
    return {
        "group_count": str(len(groups)),
        "device_count": _texts(ranks),
        "instance_count": _texts(len(group.servers) for group in groups),
    }


def _has_usual_keys(table: RankTable) -> bool:
    return table.status == "completed" and not table.fields and table.columns.keys() == _KEYS_OF[table.format]


def _has_usual_entries(table: RankTable, size: int) -> bool:
    """Return whether servers, and groups or super pods, have nothing that a rule looks at."""
    if table.format == "group_list":
        return _has_usual_groups(table)
    are_usual = all(server.host_ip is None and server.fields in _FIELDS for server in table.servers)
    return are_usual and (table.format != "1.2" or _has_regular_pods(table, size))


def _has_usual_groups(table: RankTable) -> bool:
    """Return whether a group_list has one group, whose instances are different pods."""
    (group, *more) = table.groups or (None,)
    names = [str(server.fields.get("pod_name")) for server in table.servers]
    return (
        not more
        and group is not None
        and not group.fields
        and len(group.group_name) <= _LONGEST_NAME
        and all(server.fields.keys() == _FIELD_OF_INSTANCE for server in table.servers)
        and len(set(names)) == len(names)
        and max(map(len, names)) <= _LONGEST_NAME
    )


def _has_regular_pods(table: RankTable, size: int) -> bool:
    """Return whether equal super pods list the servers in order, and all super_device_ids count on."""
    pods = table.super_pods or []
    names = [name for pod in pods for name in pod.server_ids]
    return (
        [pod.super_pod_id for pod in pods] == _texts(range(len(pods)))
        and not any(pod.fields for pod in pods)
        and len({len(pod.server_ids) for pod in pods}) == 1
        and names == [server.server_id for server in table.servers]
        and _count_on(table.columns["super_device_id"], size)
    )


def _count_on(texts: Sequence[str], size: int) -> bool:
    """Return whether super_device_ids are those of the first devices of servers at equal distances."""
    try:
        first, starts = list(map(int, texts[:size])), list(map(int, texts[::size]))
    except (TypeError, ValueError):
        return False
    places = [one - first[0] for one in first]
    return (
        [one % _AFTER_DEVICE for one in first] == list(range(size))
        and all(start % _AFTER_DEVICE == 0 for start in starts)
        and first == sorted(first)
        and _is_even(starts)
        and max(starts) + max(places) < _NO_SUPER_DEVICE
        and texts == _texts(_sums(starts, places))
    )


def devices_of_each(table: RankTable) -> int:
    """Return the number of devices of each server, 0 if ids are not in order: the table is not regular."""
    count = len(table.servers)
    if not count or table.format not in _KEYS_OF:
        return 0
    # HCCL itself numbers the devices of a group_list.
    if table.format != "group_list" and table.rank_ids != _texts(range(len(table))):
        return 0
    of_one = table.device_ids[: len(table.servers[0].rows)]
    usual = _IN_SUPER_POD if table.format == "1.2" else (_WHOLE,) if count > 1 else _ON_ONE
    is_usual = any(of_one == _texts(one) for one in usual)
    is_even = all(len(server.rows) == len(of_one) for server in table.servers)
    return len(of_one) if is_usual and is_even and table.device_ids == of_one * count else 0


def _sums(starts: Iterable[int], places: Sequence[int]) -> Iterator[int]:
    """Yield the numbers at the same places after each start."""
    return chain.from_iterable(map(start.__add__, places) for start in starts)


def _texts(numbers: Iterable[int]) -> list[str]:
    return list(map(str, numbers))


def _has_regular_addresses(table: RankTable, size: int) -> bool:
    """Return whether all addresses are of different hosts, and count on in the same way on each server."""
    server_ids = [server.server_id for server in table.servers]
    names = [0] if server_ids == [_LOOPBACK] else _numbers(server_ids)
    own = _numbers(table.device_ips)
    if not (names and own and _is_even(names)) or len({*names, *own}) < len(names) + len(own):
        return False
    first, starts = own[:size], own[::size]
    groups = [first[start : start + _GROUP] for start in range(0, size, _GROUP)]
    steps = {tuple(after - before for before, after in pairwise(group)) for group in groups}
    places = [one - first[0] for one in first]
    return (
        len(steps) == 1
        and all(map(_is_even, groups))
        and _is_even(starts)
        and own == list(_sums(starts, places))
    )


def _numbers(texts: Sequence[str]) -> list[int]:
    """Return IPv4 addresses of hosts in one network as numbers, [] if one is something else."""
    raw = joined_ipv4(texts) if set(map(type, texts)) == {str} else None
    if not raw:
        return []
    found = [*unpack(f"!{len(texts)}I", raw)]
    lowest, highest = min(found), max(found)
    # What is not an address of a host is a network of this size or larger, or its end.
    are_hosts = all(_is_usual_host(number.to_bytes(4, "big")) for number in (lowest, highest))
    return found if are_hosts and lowest >> _HOST_BITS == highest >> _HOST_BITS else []


def _is_usual_host(raw: bytes) -> bool:
    return is_host(raw) and not is_link_local(raw) and raw[0] not in _NO_NETWORKS


def _is_even(numbers: Sequence[int]) -> bool:
    """Return whether numbers ascend by one step."""
    steps = {after - before for before, after in pairwise(numbers)}
    return not steps or (len(steps) == 1 and min(steps) > 0)


def _is_usual(product: Product, table_format: Format) -> bool:
    """Return whether the devices above are right on a product, and rules on its own kind find nothing."""
    if table_format == "1.2":
        return product.default_format == "1.2"
    return (
        product.default_format == "1.0"
        and product.server_size == len(_WHOLE)
        and product.dies_per_npu == 1
        and not product.single_server
    )
