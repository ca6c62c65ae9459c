"""Rules on super_device_id, the id of a device within its super pod (version 1.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.rules import numbers, right_texts, spelling
from hccl_tools.rules.commands import how_super_device
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.rules.super_pod_list import is_used, listed_pods
from hccl_tools.table.hccl_values import read_column, read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The value that stands for a missing super_device_id (INVALID_UINT).
NO_SUPER_DEVICE = 0xFFFFFFFF


@rule(
    "HCC526",
    "super-device-id-no-number",
    "refused",
    code="EI0014",
    needs=("super_device_id",),
    source="topoinfo_ranktableConcise.cc:835-862",
)
def super_device_id_no_number(subject: Subject) -> Iterator[Finding]:
    """A super_device_id is not a number that HCCL can read. Every product reads it in a 1.2 table.

    Base: 1.2 1x2
    Example: /server_list/0/device/0/super_device_id = ""
    Instead: /server_list/0/device/0/super_device_id = "0"
    Hint: `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.1 shows the SDID of device 0
    """
    if "super_device_id" not in subject.table.columns or None not in _numbers(subject):
        return
    for row, value in enumerate(subject.table.columns["super_device_id"]):
        if value is not None and read_uint(value) is None:
            finding = Finding(
                f'super_device_id "{value}" is not a number',
                subject.device_path(row, "super_device_id"),
                how_super_device(subject, row),
            )
            yield right_texts.named(finding, value, right_texts.is_number)


@shared
def _numbers(subject: Subject) -> list[int | None]:
    return read_column(subject.table.column("super_device_id"))


@rule(
    "HCC527",
    "super-device-id-missing",
    "refused",
    needs=("super_device_id",),
    stage="check",
    source="topoinfo_ranktableConcise.cc:1001-1020",
)
def super_device_id_missing(subject: Subject) -> Iterator[Finding]:
    """A device of a super pod has no super_device_id, or the invalid super_device_id 4294967295.

    Base: 1.2 1x2
    Example: remove /server_list/0/device/0/super_device_id
    Instead: /server_list/0/device/0/super_device_id = "0"
    Hint: `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.1 shows the SDID of device 0
    """
    if not is_used(subject):
        return
    column, sdids = subject.table.column("super_device_id"), _numbers(subject)
    if None not in sdids and NO_SUPER_DEVICE not in sdids:
        return
    misspelt, alike = spelling.misspelt(subject, "super_device_id"), None
    for row, number in enumerate(sdids):
        if column[row] is not None and number != NO_SUPER_DEVICE:
            continue
        if row in misspelt:
            yield spelling.renamed(subject, row, misspelt[row], "super_device_id")
            continue
        how = how_super_device(subject, row)
        alike = alike or (
            "devices have no super_device_id",
            f"{how}, and so on for each device on its own host",
        )
        key = () if column[row] is None else ("super_device_id",)
        yield Finding(
            f"{subject.rank_name(row)} has no super_device_id",
            subject.device_path(row, *key),
            how,
            alike=alike,
        )


@rule(
    "HCC528",
    "duplicate-super-device-id",
    "refused",
    needs=("super_device_id", "server_id"),
    stage="check",
    source="topoinfo_ranktableConcise.cc:1025-1044",
)
def duplicate_super_device_id(subject: Subject) -> Iterator[Finding]:
    """Two devices of one super pod have the same super_device_id.

    A server that is listed in two super pods belongs to the last one.

    Base: 1.2 1x2
    Example: /server_list/0/device/1/super_device_id = "0"
    Instead: /server_list/0/device/1/super_device_id = "1"
    Hint: give every device its own SDID; `npu-smi info -t spod-info -i 0 -c 1` on 10.0.0.1 shows the SDID of device 1
    """
    if not is_used(subject):
        return
    pod_of = {name: pod.super_pod_id for pod in listed_pods(subject) for name in pod.server_ids}
    sdids = _numbers(subject)
    if None not in sdids and len(set(sdids)) == len(sdids):
        return
    first: dict[tuple[str, int], int] = {}
    texts, alike = subject.table.column("super_device_id"), dict[tuple[Any, ...], tuple[str, str]]()
    for index, server in enumerate(subject.table.servers):
        pod = pod_of.get(server.server_id)
        for row in server.rows:
            sdid = sdids[row]
            if pod is None or sdid is None or sdid == NO_SUPER_DEVICE:
                continue
            if (seen := first.setdefault((pod, sdid), row)) == row:
                continue
            lost = numbers.is_exponent(texts[row])
            other = subject.table.server_of_row[seen]
            cause = ("exponent",) if lost else (index, other)
            if cause not in alike:
                alike[cause] = _all_repeated(subject, row, seen, pod, lost=lost)
            read = f'"{sdid}"' if texts[row] == str(sdid) else f'{quoted(texts[row])}, read as "{sdid}",'
            yield Finding(
                numbers.rounded("super_device_id", texts[row], sdid) if lost
                else f"super_device_id {read} is used twice in super pod {quoted(pod)}",
                subject.device_path(row, "super_device_id"),
                numbers.how_lost(subject, "super_device_id", row) if lost
                else f"give every device its own SDID; {how_super_device(subject, row)}",
                (Related(subject.device_path(seen, "super_device_id"), "first used here"),),
                alike=alike[cause],
            )  # fmt: skip


def _all_repeated(subject: Subject, row: int, seen: int, pod: str, *, lost: bool) -> tuple[str, str]:
    """Return message and hint for all repeated super_device_ids of one cause, of which the first is given."""
    if lost:
        return numbers.all_rounded(subject, "super_device_id", row)
    table = subject.table
    own, other = (table.servers[table.server_of_row[one]].server_id for one in (row, seen))
    message = f"super_device_ids of server {quoted(own)} are those of server {quoted(other)}"
    if own == other:
        message = f"super_device_ids of server {quoted(own)} are used twice in super pod {quoted(pod)}"
    return (
        message,
        f"give every device its own SDID; {how_super_device(subject, row)}, and so on for each device",
    )
