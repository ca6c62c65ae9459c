"""Addresses and server_ids that a replacement of text changed beyond the one that was meant. No rules are declared here.

``sed s/10.0.0.1/10.0.0.101/`` changes 10.0.0.10 to 10.0.0.1010 as well. The single values look mistyped or repeated; by
the order of the others, one replacement explains all of them.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.phrases import and_more
from hccl_tools.records import NamedTuple
from hccl_tools.rules.commands import how
from hccl_tools.rules.lost_signs import SCHEMES, lost_addresses, lost_names, of_servers, text_of
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.rules.value_order import number_at_end
from hccl_tools.table.addresses import packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hccl_tools.diagnostics.diagnostic import Path
    from hccl_tools.rules.registry import Subject

#: The fewest values that show a replacement, and the fewest others that show the order.
_LEAST, _LEAST_OTHERS = 2, 4
#: The orders of server_ids that are tried, each of which more than one of so many follows: one replacement explains the rest.
_MOST_ORDERS, _LEAST_PART = 2, 3
#: The values and places that a finding names.
_MOST_NAMED, _MOST_PLACES = 4, 64
#: The most devices of a table whose addresses are examined one by one.
_MOST_DEVICES = 4096
_READ = frozenset({"device_id", "device_ip", "server_id"})


class Replaced(NamedTuple):
    """A replacement that explains all values outside the order.

    Attributes:
        old: The text that was replaced, the beginning of all right values.
        new: The text in its place.
        right: The right value of each index.
        found: The value that is there.
        used: The values that others have as well.
        any_sign: Whether the sign after the old text was replaced with it, whatever it is.
        is_cut: Whether each value lost its last digit in place of a replacement.
    """

    old: str
    new: str
    right: dict[int, str]
    found: dict[int, str]
    used: frozenset[str]
    any_sign: bool = False
    is_cut: bool = False


def _with_any_sign(right: dict[int, str], found: Sequence[str], old: str) -> Replaced | None:
    """Return the replacement of a beginning and one sign after it, for which a dot of a pattern stands; None if it is none."""
    rests = {index: one[len(old) + 1 :] for index, one in right.items()}
    signs = {one[len(old) : len(old) + 1] for one in right.values()}
    first = next(iter(right))
    new = found[first].removesuffix(rests[first])
    if not old or not new or not any(map(str.isdigit, signs)) or "" in signs:
        return None
    if any(not rest or found[index] != new + rest for index, rest in rests.items()):
        return None
    own = {index: found[index] for index in right}
    used = {*own.values()} & {text for index, text in enumerate(found) if index not in right}
    return Replaced(old, new, right, own, frozenset(used), any_sign=True)


def replacement(expected: Sequence[str | None], found: Sequence[str]) -> Replaced | None:
    """Return the replacement of a beginning of texts that explains all differences; None if none does.

    In at least one text the replaced part must end within a number: else a whole network was replaced.
    """
    pairs = [*zip(expected, found, strict=True)]
    right = {index: one for index, (one, own) in enumerate(pairs) if one is not None and one != own}
    if len(right) < _LEAST or sum(one == own for one, own in pairs) < _LEAST_OTHERS:
        return None
    if all(_without_zeros(found[index]) == one for index, one in right.items()):
        return None  # HCC403 reports the zeros.
    old = _beginning(right.values())
    rests = {index: one[len(old) :] for index, one in right.items()}
    if any(
        one is not None and one.startswith(old) for index, one in enumerate(expected) if index not in right
    ):
        return None
    first = next(iter(right))
    if not found[first].endswith(rests[first]):
        return _with_any_sign(right, found, old)
    new = found[first][: len(found[first]) - len(rests[first])]
    own = {index: found[index] for index in right}
    if not new or any(own[index] != new + rest for index, rest in rests.items()):
        return _with_any_sign(right, found, old)
    same = len(_beginning([old[::-1], new[::-1]]))
    short, other = old[: len(old) - same], new[: len(new) - same]
    is_inside = any(one[len(short) :][:1].isdigit() for one in right.values())
    if not is_inside or not (short[-1:].isdigit() or other[-1:].isdigit()):
        return None
    used = {*own.values()} & {text for index, text in enumerate(found) if index not in right}
    return Replaced(old, new, right, own, frozenset(used))


def _without_zeros(address: str) -> str:
    return ".".join(part.lstrip("0") or "0" for part in address.split("."))


def _cut(expected: Sequence[str], found: Sequence[str]) -> Replaced | None:
    """Return the values that lost their last digit, if that explains all differences; None if it does not."""
    pairs = [*zip(expected, found, strict=True)]
    right = {index: one for index, (one, own) in enumerate(pairs) if one != own}
    if len(right) < _LEAST or len(pairs) - len(right) < _LEAST_OTHERS:
        return None
    if any(one[:-1] != found[index] for index, one in right.items()):
        return None
    used = {found[index] for index in right} & {own for one, own in pairs if one == own}
    return Replaced("", "", right, {index: found[index] for index in right}, frozenset(used), is_cut=True)


def _beginning(texts: Iterable[str]) -> str:
    """Return the common beginning of texts."""
    low, high = min(texts), max(texts)
    size = next(
        (at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low)
    )
    return low[:size]


@shared
def replaced_names(subject: Subject) -> Replaced | None:
    """Return the replacement that explains the server_ids outside the row of all others, by their places in the file."""
    if lost_names(subject):
        return None
    servers = [server.server_id for server in subject.table.servers]
    parts = [number_at_end(name) for name in servers]
    rows = Counter((part[0], part[1] - index) for index, part in enumerate(parts) if part is not None)
    for (begin, start), follow in rows.most_common(_MOST_ORDERS):
        if start < 0 or _LEAST_PART * follow <= len(servers):
            continue
        expected = [f"{begin}{start + index}" for index in range(len(servers))]
        found = replacement(expected, servers) or _cut(expected, servers)
        if found is not None:
            return found
    return None


@shared
def expected_addresses(subject: Subject) -> list[str] | None:
    """Return the device_ips by the order of most of them, where some do not follow it; None if they follow none."""
    table = subject.table
    if not subject.damaged.isdisjoint(_READ) or not _LEAST_OTHERS < len(table) <= _MOST_DEVICES:
        return None
    if None in table.device_numbers or not all(type(text) is str for text in table.device_ips):
        return None
    raw = [packed(text) for text in table.device_ips]
    values = [int.from_bytes(one, "big") if one is not None and len(one) == 4 else None for one in raw]
    expected = max((_expected(subject, values, scheme) for scheme in SCHEMES), key=lambda one: one[0])
    follow, numbers = expected
    if follow < _LEAST_OTHERS or 2 * follow <= len(values):
        return None
    return [*map(text_of, numbers)]


@shared
def replaced_addresses(subject: Subject) -> Replaced | None:
    """Return the replacement that explains the device_ips that do not follow the order of the others."""
    expected = None if lost_addresses(subject) else expected_addresses(subject)
    return None if expected is None else replacement(expected, subject.table.device_ips)


def _expected(
    subject: Subject, values: Sequence[int | None], scheme: Callable[[int], int]
) -> tuple[int, list[int]]:
    """Return how many values follow a scheme, and all values by it."""
    table = subject.table
    own = [scheme(number or 0) for number in table.device_numbers]
    bases = dict[int, int]()
    for index, server in enumerate(table.servers):
        rests = Counter(value - own[row] for row in server.rows if (value := values[row]) is not None)
        if rests and (base := rests.most_common(1)[0])[1] > 1:
            bases[index] = base[0]
    steps = Counter(
        (bases[after] - bases[before]) // (after - before)
        for before, after in pairwise(bases)
        if (bases[after] - bases[before]) % (after - before) == 0
    )
    step = steps.most_common(1)[0][0] if steps else 0
    starts = Counter(base - step * index for index, base in bases.items())
    start = starts.most_common(1)[0][0] if starts else 0
    numbers = [start + step * table.server_of_row[row] + own[row] for row in range(len(values))]
    return sum(one == value for one, value in zip(numbers, values, strict=True)), numbers


def _sentence(one: Replaced, key: str) -> tuple[str, str]:
    """Return message and hint on the values of a key."""
    if one.is_cut:
        shown = [
            f"{quoted(right)} in place of {quoted(one.found[index])}" for index, right in one.right.items()
        ]
        first, *_, last = one.right.values()
        message = (
            f"{len(one.right)} {key}s have probably lost their last digit, as in a column that is too narrow: by the order of the others "
            f"they are {quoted(first)} to {quoted(last)}"
        )
        return message, f"write {and_more(shown, _MOST_NAMED)}, if the hosts have these addresses"
    longer = next((index for index in one.right if _is_longer(one, index)), next(iter(one.right)))
    others = [index for index in one.right if _is_longer(one, index)]
    example = f"({quoted(one.right[longer])} to {quoted(one.found[longer])})"
    if one.any_sign:
        message = (
            f"{len(others)} {key}s have {quoted(one.new)} where by the order of the others {quoted(one.old)} is right: a replacement of "
            f"{quoted(one.old + '.')} by {quoted(one.new)} probably changed these, too, because a dot in a pattern stands for any "
            f"character {example}"
        )
        return message, _remedy(one, others)
    message = (
        f"{len(one.right)} {key}s have {quoted(one.new)} where by the order of the others {quoted(one.old)} is right: a replacement of "
        f"{quoted(one.old)} by {quoted(one.new)} probably changed longer ones, too {example}"
    )
    return message, _remedy(one, others)


def _remedy(one: Replaced, others: Sequence[int]) -> str:
    """Return the hint on the values that a replacement changed; ``others`` are those that were surely not meant."""
    whole = [index for index in one.right if index not in {*others}]
    shown = [f"{quoted(one.right[index])} in place of {quoted(one.found[index])}" for index in others]
    hint = f"write {and_more(shown, _MOST_NAMED)}"
    if whole:
        first, text = whole[0], one.found[whole[0]]
        where = "there" if len(whole) == 1 else "where a whole number was replaced"
        unless = (
            f", unless {quoted(one.new)} is right {where}," if packed(text) and text not in one.used else ""
        )
        rest = "" if len(whole) == 1 else " and so on"
        hint += f"; and{unless} {quoted(one.right[first])} in place of {quoted(text)}{rest}, too"
    return hint


def _is_longer(one: Replaced, index: int) -> bool:
    """Return whether the replaced text ends within a number of a right value."""
    return one.right[index][len(one.old) :][:1].isdigit()


def names_finding(subject: Subject, one: Replaced) -> Finding:
    """Return the finding on server_ids that a replacement changed, with each place that is to be corrected."""
    message, hint = _sentence(one, "server_id")
    places = [subject.server_path(index, "server_id") for index in one.right]
    of_hosts = [
        subject.server_path(index, "host_ip")
        for index in one.right
        if subject.table.servers[index].host_ip == one.found[index]
    ]
    of_pods = _in_pods(subject, one)
    paths = [*places[1:], *of_hosts, *(of_pods or ())]
    related = tuple(Related(path, "and here") for path in paths[:_MOST_PLACES])
    if not one.used:
        hint = f"{hint}, wherever the table has them"
    else:
        stay = and_more(sorted(map(quoted, one.used)), 2)
        hint = f"{hint}; change these places alone: elsewhere {stay} {'is' if len(one.used) == 1 else 'are'} right"
        if of_pods is None:
            hint += "; then write the same server_ids in super_pod_list, where each server is listed once"
    return Finding(message, places[0], hint, related)


def _in_pods(subject: Subject, one: Replaced) -> list[Path] | None:
    """Return where super_pod_list has the same wrong server_ids; None if it has them in another order than server_list."""
    places: list[Path] = [
        ("super_pod_list", number, "server_list", place, "server_id")
        for number, pod in enumerate(subject.table.super_pods or ())
        for place in range(len(pod.server_ids))
    ]
    names = [name for pod in subject.table.super_pods or () for name in pod.server_ids]
    if names == [server.server_id for server in subject.table.servers]:
        return [places[index] for index in one.right]
    found = {*one.found.values()}
    if {*names} == {
        one.right.get(index, server.server_id) for index, server in enumerate(subject.table.servers)
    }:
        return []
    if not one.used.isdisjoint(names):
        return None
    return [path for path, name in zip(places, names, strict=True) if name in found]


@shared
def renamed_in_pods(subject: Subject) -> frozenset[str]:
    """Return the server_ids that a replacement made equal, and those it should have left, as HCC503 reports."""
    replaced = replaced_names(subject)
    return (
        frozenset() if replaced is None or not replaced.used else replaced.used | {*replaced.right.values()}
    )


def addresses_finding(subject: Subject, one: Replaced) -> Finding:
    """Return the finding on device_ips that a replacement changed."""
    message, hint = _sentence(one, "device_ip")
    rows = [*one.right]
    if one.any_sign:
        rows.sort(key=lambda row: not _is_longer(one, row))
        where = of_servers(subject, [row for row in rows if _is_longer(one, row)])
        message = message.replace(" device_ips have", f" device_ips{where} have", 1)
    related = tuple(
        Related(subject.device_path(row, "device_ip"), "and here") for row in rows[1:_MOST_PLACES]
    )
    return Finding(
        message, subject.device_path(rows[0], "device_ip"), f"{hint}; {how(subject, rows[0])}", related
    )
