"""Recognise regular tables, in which no rule finds anything, so that a job need not load the rules.

A regular table is one as ``gen`` and ``merge`` make it for whole machines of a usual size: no key too many,
ranks and devices in order, and addresses that count on in the same way on each machine. Each condition is
stricter than the rules. A table that is not regular may be sound as well; the rules decide.

``tests/validation/test_regular_tables.py`` holds it against the rules.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from struct import unpack
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.formats import StructureError, read
from hccl_tools.rules import job_variables
from hccl_tools.table.addresses import is_host, is_link_local, joined_ipv4
from hccl_tools.validation import product_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.document.document import Document
    from hccl_tools.table.format_names import Format
    from hccl_tools.table.model import RankTable
    from hccl_tools.table.products import Product
    from hccl_tools.validation.product_choice import Choice

_FORMAT: Format = "1.0"
_KEYS = {"device_id", "device_ip", "rank_id"}
#: What the entry of a server has beside the keys that HCCL reads.
_FIELDS: tuple[dict[str, str], ...] = ({}, {"host_nic_ip": "reserve"})
#: A text without escapes, and without characters that an editor may not show.
_PLAIN = rb"[ \t!#-\[\]-~\n\r\"]*"
_WHOLE = tuple(range(8))
#: The devices of a job on one machine, within the groups of the first generation.
_ON_ONE = (*((device,) for device in _WHOLE), (0, 1), (0, 1, 2, 3), (4, 5, 6, 7), _WHOLE)
#: The devices at the same places of two groups may share a network.
_GROUP = 4
#: The first numbers of addresses that are valid on one host alone.
_NO_NETWORKS = (0, 127)
#: The only server of a table may have it.
_LOOPBACK = "127.0.0.1"
#: Addresses of one kind are in one network of this size.
_HOST_BITS = 16
_ENDING = ".json"


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
    try:
        table = read(document.value, _FORMAT)
    except StructureError:
        return None
    if begin is not None:
        begin(table)
    size = devices_of_each(table)
    choice = product_choice.choose(product, _FORMAT, on_this_host=on_this_host)
    choice = product_choice.refined(choice, table, lambda: size)
    return (table, choice) if is_regular(table, size, choice.product, env) else None


def may_be_regular(document: Document | None) -> bool:
    """Return whether a document is not obviously irregular, so that it is worth a look at its table."""
    value = None if document is None else document.value
    return (
        document is not None
        and isinstance(value, dict)
        and value.get("version") == _FORMAT
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
    if is_new and not table.declared:
        table = replace(table, declared={"server_count": str(len(table.servers))})
    return (
        size > 0
        and _has_usual_keys(table)
        and _has_regular_addresses(table, size)
        and _is_usual(product)
        and not any(job_variables.problems(env, product))
    )


def _is_plain(document: Document) -> bool:
    real = "" if document.path is None else links.real_path(document.path)
    has_name = real.find(_ENDING) + len(_ENDING) == len(real) and not real.endswith("/" + _ENDING)
    return has_name and document.is_clean and re.fullmatch(_PLAIN, document.data) is not None


def _has_usual_keys(table: RankTable) -> bool:
    return (
        table.status == "completed"
        and table.declared == {"server_count": str(len(table.servers))}
        and not table.fields
        and table.columns.keys() == _KEYS
        and all(server.host_ip is None and server.fields in _FIELDS for server in table.servers)
    )


def devices_of_each(table: RankTable) -> int:
    """Return the number of devices of each server, 0 if ids are not in order: the table is not regular."""
    count = len(table.servers)
    if table.format != _FORMAT or not count or table.rank_ids != list(map(str, range(len(table)))):
        return 0
    devices = _WHOLE if count > 1 else next((one for one in _ON_ONE if _ids(one) == table.device_ids), ())
    is_even = all(len(server.rows) == len(devices) for server in table.servers)
    return len(devices) if is_even and table.device_ids == _ids(devices) * count else 0


def _ids(devices: tuple[int, ...]) -> list[str]:
    return list(map(str, devices))


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
        and own == [start + place for start in starts for place in places]
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


def _is_usual(product: Product) -> bool:
    """Return whether the devices above are right on a product, and rules on its own kind find nothing."""
    return (
        product.default_format == _FORMAT
        and product.server_size == len(_WHOLE)
        and product.dies_per_npu == 1
        and not product.single_server
    )
