"""Rules on device ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import NAME_THE_CHIP
from hccl_tools.rules import right_texts
from hccl_tools.rules.registry import LEGACY, Finding, Subject, rule, shared
from hccl_tools.rules.topology import device_sets

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A group_list is the format of the 910A: HCCL accepts only ids up to 7 in it, on every product.
GROUP_LIST_LIMIT = 8


def _limit(subject: Subject) -> int:
    return GROUP_LIST_LIMIT if subject.table.format == "group_list" else subject.product.device_limit


@shared
def _all_in_range(subject: Subject) -> bool:
    right = range(_limit(subject))
    ids: set[Any] = set(right) if subject.table.format == "2.0" else set(map(str, right))
    return ids.issuperset(subject.table.device_ids)


@rule(
    "HCC301",
    "device-id-no-number",
    "refused",
    needs=("device_id",),
    source="topoinfo_ranktableConcise.cc:423",
)
def device_id_no_number(subject: Subject) -> Iterator[Finding]:
    """A device id is not a number that HCCL can read.

    Example: /server_list/0/device/1/device_id = "npu1"
    Instead: /server_list/0/device/1/device_id = "1"
    Hint: write the physical device id, 0 to 7
    """
    if _all_in_range(subject):
        return
    for row, number in enumerate(subject.table.device_numbers):
        if number is None or number < 0:
            value = subject.table.device_ids[row]
            finding = Finding(
                f'device id "{value}" is not a whole number (0, 1, 2, ...)',
                subject.device_path(row, "device_id"),
                f"write the physical device id, 0 to {_limit(subject) - 1}",
            )
            yield right_texts.named(finding, value, right_texts.is_number)


@rule(
    "HCC302",
    "device-id-too-high",
    "refused",
    needs=("device_id",),
    source="topoinfo_ranktableConcise.cc:420-444, device_capacity.cc:238",
)
def device_id_too_high(subject: Subject) -> Iterator[Finding]:
    """A device id is higher than the highest device id of the product.

    Example: /server_list/0/device/1/device_id = "8"
    Instead: /server_list/0/device/1/device_id = "1"
    Hint: write the physical device id, 0 to 7
    """
    if _all_in_range(subject):
        return
    limit = _limit(subject)
    other = f"or {NAME_THE_CHIP}" if subject.product_is_assumed else f"0 to {limit - 1}"
    for row, number in enumerate(subject.table.device_numbers):
        if number is not None and number >= limit:
            where = "a group_list" if subject.table.format == "group_list" else subject.product.title
            yield Finding(
                f'device id "{subject.table.device_ids[row]}" is too high: {where} has devices 0 to {limit - 1}',
                subject.device_path(row, "device_id"),
                f"write the physical device id, {other}",
            )


@rule(
    "HCC303",
    "duplicate-device-id",
    "refused",
    code="EI0014",
    formats=LEGACY,
    needs=("device_id", "server_id"),
    stage="topology",
    source="topoinfo_parse.cc:165",
)
def duplicate_device_id(subject: Subject) -> Iterator[Finding]:
    """Two entries of one server have the same device id.

    HCCL reads device ids as numbers: "1" and "01" are the same device.

    Example: /server_list/0/device/1/device_id = "0"
    Instead: /server_list/0/device/1/device_id = "1"
    Hint: list every device of a server once
    """
    table = subject.table
    ids, numbers = table.device_ids, table.device_numbers
    plain = set(ids) <= set(map(str, range(_limit(subject))))
    first: dict[str, dict[int | None, int]] = {}
    if plain and all(len(set(devices)) == len(devices) for devices in set(device_sets(subject).values())):
        return
    for server in table.servers:
        seen = first.setdefault(server.server_id, {})
        for row in server.rows:
            earlier = seen.setdefault(numbers[row], row)
            if earlier != row and numbers[row] is not None:
                yield Finding(
                    f'device id "{ids[row]}" is used twice on server {quoted(server.server_id)}',
                    subject.device_path(row, "device_id"),
                    "list every device of a server once",
                    (Related(subject.device_path(earlier, "device_id"), "first used here"),),
                )
