"""Addresses of which a replacement or a cut of text took dots or the last digit. This module declares no rules.

The digits that are left can stand for several addresses. The devices of a server, and the servers of a table, have
addresses that follow each other: often only one first address leads to all texts that are there.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation.number_list import fold
from hccl_tools.records import NamedTuple
from hccl_tools.rules.address_columns import packed_addresses
from hccl_tools.rules.commands import how
from hccl_tools.rules.registry import Finding, shared
from hccl_tools.table.addresses import is_private, packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hccl_tools.rules.registry import Subject

_READ = frozenset({"device_id", "device_ip", "server_id"})
#: The most devices of a table whose addresses are examined one by one.
_MOST_DEVICES = 4096
#: An address with fewer than three dots, or whose last number is lost.
_FEW_DOTS, _NO_END = r"(?a)[0-9]+(?:\.[0-9]+){0,2}", r"(?a)(?:[0-9]{1,3}\.){3}[0-9]{0,2}"
_LAST_DIGIT = "the last digit is missing"
_DOTS, _OCTETS, _HIGHEST, _MOST_DIGITS = 3, 4, 255, 12
#: The numbers of devices in the usual schemes of addresses: one network, and four networks of two devices.
SCHEMES: tuple[Callable[[int], int], ...] = (
    lambda device: device,
    lambda device: device % 4 * 256 + device // 4,
    lambda device: device % 4 * 256 - device // 4,
    lambda device: device % 4 * 65536 + device // 4,
)


class Lost(NamedTuple):
    """An address that lost something.

    Attributes:
        right: The whole address.
        what: What is missing, as a phrase.
    """

    right: str
    what: str


class _Kind(NamedTuple):
    """What texts can lose: how the first address may have been, and whether a text is what is left of an address."""

    candidates: Callable[[str], list[int]]
    is_left_of: Callable[[str, str], bool]


def text_of(number: int) -> str:
    """Return the IPv4 address of a number."""
    return ".".join(map(str, (number % (1 << 32)).to_bytes(_OCTETS, "big")))


def _number_of(text: str) -> int | None:
    value = packed(text)
    return int.from_bytes(value, "big") if value is not None and len(value) == _OCTETS else None


def _with_dots(text: str) -> list[int]:
    """Return the addresses that a text with fewer dots can stand for."""
    digits = text.replace(".", "")
    if not re.fullmatch(_FEW_DOTS, text) or not _OCTETS <= len(digits) <= _MOST_DIGITS:
        return []
    given = {at - text[:at].count(".") for at, sign in enumerate(text) if sign == "."}
    found = list[int]()
    for cuts in combinations(range(1, len(digits)), _DOTS):
        parts = [digits[start:end] for start, end in zip((0, *cuts), (*cuts, len(digits)), strict=True)]
        if given.issubset(cuts) and all(int(one) <= _HIGHEST and str(int(one)) == one for one in parts):
            found.append(int.from_bytes(bytes(map(int, parts)), "big"))
    return found


def _lacks_dots(right: str, text: str) -> bool:
    return right == text or (text.count(".") < _DOTS and right.replace(".", "") == text.replace(".", ""))


def _with_digit(text: str) -> list[int]:
    """Return the addresses that a text without its last digit can stand for."""
    if not re.fullmatch(_NO_END, text):
        return []
    return [number for digit in range(10) if (number := _number_of(f"{text}{digit}")) is not None]


_KINDS = (_Kind(_with_dots, _lacks_dots), _Kind(_with_digit, lambda right, text: right[:-1] == text))


def _what(text: str) -> str:
    """Return what a text lacks of an address, as a phrase."""
    dots = _DOTS - text.count(".")
    if not dots:
        return _LAST_DIGIT
    if dots == _DOTS:
        return "the dots are missing"
    return "a dot is missing" if dots == 1 else f"{dots} dots are missing"


@shared
def lost_addresses(subject: Subject) -> dict[int, Lost]:
    """Return the rows whose device_ip has lost its dots or its last digit, with what it was by the others of its server."""
    table, known = subject.table, packed_addresses(subject)
    if not subject.damaged.isdisjoint(_READ) or len(table) > _MOST_DEVICES:
        return {}
    ips, found = table.device_ips, dict[int, Lost]()
    if not all(type(text) is str for text in ips) or None in table.device_numbers:
        return {}
    suspects = [
        server.rows
        for server in table.servers
        if any(
            known[ips[row]] is None and (re.fullmatch(_FEW_DOTS, ips[row]) or re.fullmatch(_NO_END, ips[row]))
            for row in server.rows
        )
    ]
    if not suspects:
        return {}
    valid, schemes = _valid(ips), _schemes(subject)
    for rows in suspects:
        texts, ids = [ips[row] for row in rows], [table.device_numbers[row] or 0 for row in rows]
        for scheme in schemes:
            if (right := _run(texts, [*map(scheme, ids)], valid)) is not None:
                found |= {
                    row: Lost(one, _what(text))
                    for row, one, text in zip(rows, right, texts, strict=True)
                    if one != text
                }
                break
    taken = {text for row, text in enumerate(ips) if row not in found}
    wrong = {table.server_of_row[row] for row, one in found.items() if one.right in taken}
    return {row: one for row, one in found.items() if table.server_of_row[row] not in wrong}


def _valid(texts: Sequence[str]) -> list[int]:
    """Return the valid addresses as numbers, in their order."""
    return sorted(number for text in {*texts} if (number := _number_of(text)) is not None)


def _distance(number: int, valid: Sequence[int]) -> int:
    """Return how far an address is from the next one of others."""
    at = bisect_left(valid, number)
    return min(abs(number - one) for one in valid[max(0, at - 1) : at + 1])


def _likeliest(numbers: Sequence[int], valid: Sequence[int]) -> int | None:
    """Return the address that is nearest to those of others, or else the only private one; None if several may be it."""
    if len(numbers) > 1 and valid:
        far = [_distance(one, valid) for one in numbers]
        numbers = [one for one, other in zip(numbers, far, strict=True) if other == min(far)]
    if len(numbers) > 1:
        numbers = [one for one in numbers if is_private(one.to_bytes(_OCTETS, "big"))]
    return numbers[0] if len(numbers) == 1 else None


def _schemes(subject: Subject) -> tuple[Callable[[int], int], ...]:
    """Return the usual schemes; first that of most servers with valid addresses, if there are some."""
    table, shapes = subject.table, Counter[tuple[tuple[int, int], ...]]()
    for server in table.servers:
        values = [_number_of(table.device_ips[row]) for row in server.rows]
        if len({*values} - {None}) == len(values) > 1:
            ids = [table.device_numbers[row] or 0 for row in server.rows]
            shapes[
                tuple((own, (value or 0) - (values[0] or 0)) for own, value in zip(ids, values, strict=True))
            ] += 1
    if not shapes:
        return SCHEMES
    usual = dict(shapes.most_common(1)[0][0])
    return (lambda device: usual.get(device, device), *SCHEMES)


def _run(texts: Sequence[str], offsets: Sequence[int], valid: Sequence[int]) -> list[str] | None:
    """Return the addresses that texts are left of, if one first address leads to all of them; None if not one alone."""
    at = next(place for place, text in enumerate(texts) if packed(text) is None)
    for kind in _KINDS:
        if kind is _KINDS[1] and len(texts) == 1:
            continue  # Each last digit would fit.
        firsts = [
            one
            for one in kind.candidates(texts[at])
            if all(
                kind.is_left_of(text_of(one - offsets[at] + offset), text)
                for text, offset in zip(texts, offsets, strict=True)
            )
        ]
        # The first and the last address of a usual network are of no device.
        usual = [
            one
            for one in firsts
            if all((one - offsets[at] + offset) & 255 not in (0, 255) for offset in offsets)
        ]
        if (likely := _likeliest(usual, valid)) is not None:
            return [text_of(likely - offsets[at] + offset) for offset in offsets]
    return None


@shared
def moved_column(subject: Subject) -> int | None:
    """Return by how many rows the device_ips have to go down again, 1 or -1, so that they follow a usual scheme; None for others.

    The address of the last device is missing then, or that of the first.
    """
    table = subject.table
    if not subject.damaged.isdisjoint(_READ) or not 1 < len(table.servers) < len(table) <= _MOST_DEVICES:
        return None
    values = [_number_of(text) if isinstance(text, str) else None for text in table.device_ips]
    absent = [row for row, value in enumerate(values) if value is None]
    if absent not in ([0], [len(values) - 1]):
        return None
    step = 1 if absent[0] else -1
    moved = [None, *values[:-1]] if step > 0 else [*values[1:], None]
    return step if _follow_a_scheme(subject, moved) and not _follow_a_scheme(subject, values) else None


def _follow_a_scheme(subject: Subject, values: Sequence[int | None]) -> bool:
    """Return whether the addresses that are known follow a usual scheme on each server."""
    table = subject.table
    rows = [[row for row in server.rows if values[row] is not None] for server in table.servers]
    return any(
        all(
            len({(values[row] or 0) - scheme(table.device_numbers[row] or 0) for row in own}) == 1
            for own in rows
            if own
        )
        for scheme in SCHEMES
    )


@shared
def lost_names(subject: Subject) -> dict[int, Lost]:
    """Return the servers whose server_id is an address that has lost dots, with what it was by the order of the others."""
    if "server_id" in subject.damaged:
        return {}
    texts = [server.server_id for server in subject.table.servers]
    damaged = [at for at, text in enumerate(texts) if packed(text) is None and _with_dots(text)]
    if not damaged or len(texts) > _MOST_DEVICES:
        return {}
    valid = _valid(texts)
    right = _run(texts, range(len(texts)), valid)
    if (
        len({*map(len, texts)}) == 1 or right is None
    ):  # A name may be a number: only 10009 and 100010 are none.
        damaged = [at for at in damaged if "." in texts[at]]
    found = dict[int, Lost]()
    for at in damaged:
        own = right or _run([texts[at]], (0,), valid)
        if own is not None:
            one = own[at] if right else own[0]
            found[at] = Lost(one, _what(texts[at]))
    names = [found[at].right if at in found else text for at, text in enumerate(texts)]
    return found if len({*names}) == len(names) else {}


def of_servers(subject: Subject, rows: Sequence[int]) -> str:
    """Return the servers of rows, for the beginning of a message; "" if they are all servers."""
    indexes = sorted({subject.table.server_of_row[row] for row in rows})
    if len(indexes) == len(subject.table.servers):
        return ""
    return f" of {'server' if len(indexes) == 1 else 'servers'} {fold(index + 1 for index in indexes)}"


def lost_findings(subject: Subject, left_out: set[int]) -> Iterator[Finding]:
    """Yield the findings on device_ips that have lost dots or digits."""
    lost, ips = lost_addresses(subject), subject.table.device_ips
    of_kind: dict[str, list[int]] = {}
    for row, one in lost.items():
        if row not in left_out:
            of_kind.setdefault(one.what, []).append(row)
    for what, rows in of_kind.items():
        first = rows[0]
        if what == _LAST_DIGIT:
            said = f"device_ips{of_servers(subject, rows)} have lost their last digit: the texts were probably cut"
        else:
            said = f"device_ips{of_servers(subject, rows)} are not IP addresses: {what} in each"
        several = (
            f'{how(subject, first)}: if it is "{lost[first].right}", write that in place of {quoted(ips[first])}, and the others in the '
            "same way"
        )
        for row in rows:
            text, right = quoted(ips[row]), lost[row].right
            yield Finding(
                f"{text} is not an IP address: {what}"
                if what != _LAST_DIGIT
                else f"{text} has lost its last digit",
                subject.device_path(row, "device_ip"),
                f'{how(subject, row)}: if it is "{right}", write that',
                alike=(said, several),
            )
