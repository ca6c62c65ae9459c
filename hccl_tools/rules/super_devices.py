"""Rules on super_device_id, the id of a device within its super pod (version 1.2)."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation import phrases
from hccl_tools.notation.phrases import and_more
from hccl_tools.rules import numbers, right_texts, spelling
from hccl_tools.rules.address_order import READ
from hccl_tools.rules.commands import how_super_device, how_super_device_of
from hccl_tools.rules.copies import absent_devices, copied_rows, repeated_entries
from hccl_tools.rules.filled_columns import filled_down, filled_runs
from hccl_tools.rules.registry import Finding, Subject, rule, shared, shared_each
from hccl_tools.rules.shared_values import claim, owners_of
from hccl_tools.rules.slipped_ids import slipped_finding, slipped_ids
from hccl_tools.rules.super_pod_list import (
    is_used,
    listed_pods,
    same_named_pods,
    servers_in_two_pods,
    servers_of_another_kind,
)
from hccl_tools.rules.surplus_devices import refused_rows
from hccl_tools.rules.value_order import other_devices, super_device_numbers
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.rules.shared_values import Claim, Owners

#: The most servers that a hint names.
_MOST_NAMED = 8
_NOT_KNOWN = "4294967295, which stands for none: the query of it failed, or the device is in no super pod"
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
    if "super_device_id" not in subject.table.columns or None not in super_device_numbers(subject):
        return
    alike: dict[str, tuple[str, str]] = {}
    column = subject.table.columns["super_device_id"]
    texts = Counter(str(value) for value in column if value is not None and read_uint(value) is None)
    for row, value in enumerate(column):
        if value is not None and read_uint(value) is None:
            if not str(value).strip() and row in slipped_ids(subject):
                yield slipped_finding(subject, row)
                continue
            is_high = type(value) is str and value.isascii() and value.isdigit()
            why = f"is above {NO_SUPER_DEVICE:,}" if is_high else "is not a number"
            message, how = f'super_device_id "{value}" {why}', how_super_device(subject, row)
            if is_high:
                kind, all_of_it = why, f"super_device_ids are above {NO_SUPER_DEVICE:,}"
            elif texts[str(value)] > 1:
                kind, all_of_it = message, message
            else:
                kind, all_of_it = why, "super_device_ids are not numbers"
            finding = Finding(message, subject.device_path(row, "super_device_id"), how)
            finding = right_texts.named(finding, value, right_texts.is_number)
            said = alike.setdefault(kind, (all_of_it, f"{how}, and so on for each device on its own host"))
            yield finding._replace(alike=said) if finding.message == message else finding


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
    column, sdids = subject.table.column("super_device_id"), super_device_numbers(subject)
    if None not in sdids and NO_SUPER_DEVICE not in sdids:
        return
    misspelt, alike = spelling.misspelt(subject, "super_device_id"), dict[bool, tuple[str, str]]()
    others = {row for index in servers_of_another_kind(subject) for row in subject.table.servers[index].rows}
    for row, number in enumerate(sdids):
        if (column[row] is not None and number != NO_SUPER_DEVICE) or row in others:
            continue
        if row in misspelt:
            yield spelling.renamed(subject, row, misspelt[row], "super_device_id")
            continue
        if number is None and row in slipped_ids(subject):
            yield slipped_finding(subject, row, is_absent=True)
            continue
        how, is_absent = how_super_device(subject, row), column[row] is None
        said = alike.get(is_absent)
        if said is None:
            which = "devices have no super_device_id" if is_absent else f"super_device_ids are {_NOT_KNOWN}"
            said = alike[is_absent] = which, f"{how}, and so on for each device on its own host"
        yield Finding(
            f"{subject.rank_name(row)} has no super_device_id" if is_absent
            else f"super_device_id {quoted(str(column[row]))} of {subject.rank_name(row)} is {_NOT_KNOWN}",
            subject.device_path(row, *(() if is_absent else ("super_device_id",))),
            how,
            alike=said,
        )  # fmt: skip


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
    Hint: give every device its own SDID; `npu-smi info -t spod-info -i 0 -c 1` on 10.0.0.1 shows the SDID of device 1, and `npu-smi info -t spod-info -i 0 -c 0` on 10.0.0.1 shows the SDID of device 0
    """
    if not is_used(subject):
        return
    sdids = super_device_numbers(subject)
    if None not in sdids and len(set(sdids)) == len(sdids):
        return
    if same_named_pods(subject):
        return  # HCC523 reports the cause.
    again = _repeated(subject)
    for rows in filled_runs(subject.table.column("super_device_id")):
        if again.keys() >= {*rows[1:]}:
            yield _filled_down(subject, rows)
            again = {row: first for row, first in again.items() if row not in rows}
    yield from (lost := _all_rounded(subject, again)).values()
    again = {row: first for row, first in again.items() if row not in lost}
    texts, alike = subject.table.column("super_device_id"), dict[Any, tuple[str, str]]()
    owner, special_causes = subject.table.server_of_row, set[Any]()
    pairs = Counter((owner[row], owner[seen]) for row, (seen, _) in again.items())
    names = list(
        dict.fromkeys(
            quoted(subject.table.servers[index].server_id) for index, _ in islice(pairs, _MOST_NAMED)
        )
    )
    own_pods = f"{'each of ' if len(pairs) > 1 else ''}{and_more(names, _MOST_NAMED)} a super pod of its own"
    for row, (seen, pod) in again.items():
        kind, pair = numbers.kind_of(texts[row], texts[seen]), (owner[row], owner[seen])
        cause = kind or pair
        if cause not in alike:
            special = None if kind else _special_cause(subject, row, seen, pod)
            special_causes |= set() if special is None else {cause}
            alike[cause] = (
                numbers.all_read_wrong(subject, "super_device_id", kind, row) if kind
                else special or _all_repeated(subject, row, again[row], own_pods, pairs[pair])
            )  # fmt: skip
        found = _one_repeated(subject, row, again[row], kind, alike[cause])
        is_whole = cause == pair and pairs[pair] == len(subject.table.servers[pair[0]].rows)
        if is_whole and pair[0] != pair[1] and _claimed(subject, pair).wrong == pair[1]:
            places = (Related(found.path, "the same one here"),)  # The earlier server of the two is wrong.
            found = found._replace(path=found.related[0].path, related=places)
        yield (
            found._replace(message=alike[cause][0], hint=alike[cause][1])
            if cause in special_causes
            else found
        )


def _all_rounded(subject: Subject, again: dict[int, tuple[int, str]]) -> dict[int, Finding]:
    """Return the findings on all values that a spreadsheet has rounded, if HCCL reads some of them as equal.

    Of equal ones, the first is wrong as well.
    """
    texts, sdids = subject.table.column("super_device_id"), super_device_numbers(subject)
    if not any(numbers.is_exponent(texts[row]) for row in again):
        return {}
    rows = [row for row, text in enumerate(texts) if numbers.is_exponent(text)]
    alike = numbers.all_rounded(subject, "super_device_id", rows[0])
    return {
        row: Finding(
            numbers.rounded("super_device_id", texts[row], sdids[row] or 0),
            subject.device_path(row, "super_device_id"),
            numbers.how_lost(subject, "super_device_id", row),
            alike=alike,
        )
        for row in rows
    }


def _filled_down(subject: Subject, rows: range) -> Finding:
    """Return the finding on super_device_ids that are all that of the row above."""
    known = _owners_of_sdids(subject)
    return filled_down(subject, rows, "super_device_id", {} if known is None else known.order.expected, str)


def _repeated(subject: Subject) -> dict[int, tuple[int, str]]:
    """Return the rows with the super_device_id of an earlier row of their super pod, with that row and the pod."""
    pod_of = {name: pod.super_pod_id for pod in listed_pods(subject) for name in pod.server_ids}
    sdids, left_out = super_device_numbers(subject), copied_rows(subject) | refused_rows(subject)
    first: dict[tuple[str, int], int] = {}
    found = {}
    for server in subject.table.servers:
        pod = pod_of.get(server.server_id)
        for row in server.rows:
            sdid = sdids[row]
            if pod is None or sdid is None or sdid == NO_SUPER_DEVICE or row in left_out:
                continue
            if (seen := first.setdefault((pod, sdid), row)) != row:
                found[row] = seen, pod
    return found


def _one_repeated(
    subject: Subject, row: int, first: tuple[int, str], kind: str, alike: tuple[str, str]
) -> Finding:
    """Return the finding on a super_device_id that occurs again; ``kind`` is how it is wrongly written."""
    seen, pod = first
    if row in repeated_entries(subject):
        return _in_a_copy(subject, row, seen)
    text, sdid = subject.table.column("super_device_id")[row], super_device_numbers(subject)[row]
    read = f'"{sdid}"' if text == str(sdid) else f'{quoted(text)}, read as "{sdid}",'
    return Finding(
        f"super_device_id {read} is used twice in super pod {quoted(pod)}",
        subject.device_path(row, "super_device_id"),
        alike[1] if kind
        else f"give every device its own SDID; {_ask_both(subject, row, seen)}",
        (Related(subject.device_path(seen, "super_device_id"), "first used here"),),
        alike=alike,
    )  # fmt: skip


def _in_a_copy(subject: Subject, row: int, seen: int) -> Finding:
    """Return the finding on a super_device_id in an entry that is a copy of another one but for its rank."""
    absent = absent_devices(subject, subject.table.servers[subject.table.server_of_row[row]].rows)
    number = absent[0] if len(absent) == 1 else None
    return Finding(
        f"super_device_id {quoted(subject.table.column('super_device_id')[row])} is used twice: the whole entry is a copy of the first "
        "one (HCC404)",
        subject.device_path(row, "super_device_id"),
        f"write the SDID of {'the device that is missing' if number is None else f'device {number}'} in the entry that gets its "
        f"device_id: {how_super_device_of(subject, row, number)}",
        (Related(subject.device_path(seen, "super_device_id"), "first used here"),),
    )


def _ask_both(subject: Subject, row: int, seen: int) -> str:
    """Return the commands for two devices with the same SDID, and which one should have another by the order of the others."""
    own, other = (how_super_device(subject, one) for one in (row, seen))
    asked = own if own == other else f"{own}, and {other}"
    known = _owners_of_sdids(subject)
    expected = {} if known is None else known.order.expected
    outside = [one for one in (row, seen) if one in expected]
    if len(outside) != 1:
        return asked
    (wrong,), table = outside, subject.table
    server = quoted(table.servers[table.server_of_row[wrong]].server_id)
    return f'{asked}; by the order of the others, that of device {table.device_ids[wrong]} of server {server} is "{expected[wrong]}"'


def _special_cause(subject: Subject, row: int, seen: int, pod: str) -> tuple[str, str] | None:
    """Return message and hint on repeated super_device_ids that follow from another fault; None if from none."""
    table = subject.table
    indexes = [table.server_of_row[one] for one in (row, seen)]
    names = [table.servers[one].server_id for one in indexes]
    twice = servers_in_two_pods(subject)
    name = next((one for one in names if one in twice), None)
    if name is not None:
        other = names[1] if name == names[0] else names[0]
        return (
            (
                f"server {quoted(name)} is in super pods {' and '.join(map(quoted, twice[name]))}, and in {quoted(pod)} its super_device_ids "
                f"are those of server {quoted(other)}"
            ),
            f"remove it from super pod {quoted(pod)}: a super pod has each super_device_id once, so it is in another one",
        )
    return _of_other_devices(subject, indexes[0]) if indexes[0] == indexes[1] else None


def _all_repeated(
    subject: Subject, row: int, first: tuple[int, str], own_pods: str, number: int
) -> tuple[str, str]:
    """Return message and hint for all repeated super_device_ids of two servers.

    Args:
        first: The row that has the super_device_id first, and the super pod.
        own_pods: The servers whose super_device_ids repeat, and their own super pods, as the end of a phrase.
        number: How many repeat on this one.
    """
    (seen, pod), table = first, subject.table
    index, other = (table.server_of_row[one] for one in (row, seen))
    own, others = (quoted(table.servers[one].server_id) for one in (index, other))
    size = len(table.servers[index].rows)
    if own == others:
        hint = f"give every device its own SDID; {how_super_device(subject, row)}, and so on for each device"
        return f"super_device_ids of server {own} are used twice in super pod {quoted(pod)}", hint
    if number != size:
        return (
            f"{number} of the {size} super_device_ids of server {own} are those of server {others}",
            (
                f"one of the two servers has SDIDs of the other: {how_super_device(subject, row)}, and {how_super_device(subject, seen)}, "
                "and so on for each device"
            ),
        )
    found = _claimed(subject, (index, other))
    own, others = (quoted(table.servers[one].server_id) for one in (found.wrong, found.owner))
    asked = (how_super_device(subject, table.servers[one].rows[0]) for one in (found.wrong, found.owner))
    return (
        f"super_device_ids of server {own} are those of server {others}",
        (
            f"{found.order}{', and '.join(asked)}: correct all SDIDs of the server whose host shows other ones; only if both hosts show "
            f"these SDIDs, the servers are in different super pods: give {own_pods} in super_pod_list, with a new super_pod_id"
            f"{_moved_behind(subject, found.wrong, pod)}{found.rest}"
        ),
    )


def _moved_behind(subject: Subject, index: int, pod: str) -> str:
    """Return that a server with a super pod of its own has to leave the middle of its former one: HCC529 refuses a pod in two parts."""
    names = {name for one in listed_pods(subject) if one.super_pod_id == pod for name in one.server_ids}
    places = [place for place, one in enumerate(subject.table.servers) if one.server_id in names]
    if index not in places[1:-1]:
        return ""
    last = subject.table.servers[places[-1]].server_id
    return (
        f", and move its entry of server_list behind that of {quoted(last)}, the last of its former super pod; then number the ranks in the "
        "order of server_list"
    )


@shared_each
def _claimed(subject: Subject, servers: tuple[int, int]) -> Claim:
    """Return which of two servers with the same super_device_ids is probably wrong."""
    return claim(subject, servers, _owners_of_sdids(subject), str, "super_device_id")


@shared
def _owners_of_sdids(subject: Subject) -> Owners | None:
    """Return the order of the super_device_ids of a table with one super pod, of which some occur twice."""
    known = super_device_numbers(subject)
    if len(listed_pods(subject)) != 1 or None in known or not subject.damaged.isdisjoint(READ):
        return None
    return owners_of(subject, [number or 0 for number in known])


@shared
def _of_wrong_devices(subject: Subject) -> dict[int, None]:
    return other_devices(subject, super_device_numbers(subject))


def _of_other_devices(subject: Subject, index: int) -> tuple[str, str] | None:
    """Return message and hint on a server whose super_device_ids belong to other devices than theirs by the low bits."""
    wrong, table = _of_wrong_devices(subject), subject.table
    rows = [row for row in table.servers[index].rows if row in wrong]
    if not rows or len(rows) < len(wrong):
        return None
    shown = phrases.devices(sorted(table.device_numbers[row] or 0 for row in rows))
    return (
        (
            f"the super_device_ids of {shown} of server {quoted(table.servers[index].server_id)} are those of other devices: on all others "
            "the low 16 bits are the device_id"
        ),
        f"write those of all these devices as the host shows them: {how_super_device(subject, rows[0])}, and so on for each of them",
    )
