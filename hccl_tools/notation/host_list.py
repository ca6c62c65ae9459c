"""Parse and write lists of hosts: ``10.0.0.[1-16]``, ``$SLURM_JOB_NODELIST``, MPI hostfiles."""

from __future__ import annotations

import re
from _socket import AF_INET6, inet_pton  # As in table.addresses: `socket` takes 2 ms and 1 MB.
from itertools import islice, product
from typing import TYPE_CHECKING

from hccl_tools.errors import InputError, UsageError
from hccl_tools.notation import bounded_file, look_alikes, number_list
from hccl_tools.notation.number_list import MOST_HOSTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Bytes.
_LARGEST_FILE = 4 << 20
_NAME = re.compile(r"[0-9A-Za-z_](?:[0-9A-Za-z_.-]*[0-9A-Za-z_])?", re.ASCII)
_BARE_RANGE = re.compile(r"((?:[0-9]{1,3}\.){3})([0-9]{1,3}-[0-9]{1,3})", re.ASCII)
_WITH_NUMBER = re.compile(r"[^:]*:[0-9]+", re.ASCII)
_TRAILING_NUMBER = re.compile(r"(|.*[^0-9\n])([0-9]+)", re.ASCII)
#: The greatest length of a DNS name.
_LONGEST = 253
_HINTS = {
    "names a user": "set the user in ~/.ssh/config, and list only the host",
    "has a colon": "use the host name of a host with an IPv6 address",
    "has a number behind a colon": "list only the host: no number of ranks and no port belongs to it",
}
_GRAMMAR = "write 10.0.0.1,10.0.0.2 or 10.0.0.[1-16] or node[01-04,07]"


def parse(text: str, *, option: str = "--hosts") -> tuple[str, ...]:
    """Return the hosts of a list, in its order.

    Names are separated by commas or blanks. Brackets expand to one name per number; a range whose first
    number has leading zeros keeps its width, as in Slurm. With several brackets, the last one changes
    fastest.

    Args:
        option: The name of the option in messages.

    Raises:
        UsageError: The list cannot be read, is empty, or repeats a host.

    >>> parse("10.0.0.[1-3]")
    ('10.0.0.1', '10.0.0.2', '10.0.0.3')
    >>> parse("node[01-02,7],login")
    ('node01', 'node02', 'node7', 'login')
    """
    expanded = (host for item in _items(text, option) for host in _expanded(item, text, option))
    hosts = tuple(islice(expanded, MOST_HOSTS + 1))
    if len(hosts) > MOST_HOSTS:
        raise _unreadable(text, option, f"it has more than {MOST_HOSTS:,} hosts")
    if not hosts:
        raise UsageError(f'{option} "{text}" has no host', hint=_GRAMMAR)
    seen: set[str] = set()
    for host in hosts:
        if host in seen:
            raise UsageError(f'{option} "{text}" has {host} twice', hint="list every host once")
        seen.add(host)
    return hosts


def read_hostfile(path: str) -> tuple[str, ...]:
    """Return the hosts of a hostfile, in its order.

    Each line begins with a host, or a list in the grammar of :func:`parse`. The number of processes after
    the host (``slots=8``, ``:8``) is ignored. ``#`` begins a comment. A repeated host, which adds slots in
    Open MPI, counts once.

    Raises:
        InputError: The file cannot be read.
        UsageError: A line cannot be read, or the file has no host.
    """
    hosts: dict[str, None] = {}
    for number, line in enumerate(_lines(path), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        name, colon, count = fields[0].rpartition(":")
        if not colon or not count.isdecimal():
            name = fields[0]
        hosts.update(dict.fromkeys(parse(name, option=f"{path}, line {number}:")))
        if len(hosts) > MOST_HOSTS:
            raise UsageError(
                f"{path}, line {number}: this is more than {MOST_HOSTS:,} hosts",
                hint="is this the hostfile of the job? " + _GRAMMAR,
            )
    if not hosts:
        raise UsageError(f"{path} has no host", hint="write one host per line, such as: 10.0.0.1 slots=8")
    return tuple(hosts)


def fold(hosts: Iterable[str]) -> str:
    """Return the list that :func:`parse` expands to these hosts, with consecutive numbers as ranges.

    >>> fold(["node08", "node09", "node10", "login"])
    'node[08-10],login'
    """
    runs: list[tuple[str, list[str]]] = []
    for host in hosts:
        match = _TRAILING_NUMBER.fullmatch(host)
        head, digits = (match[1], match[2]) if match and len(match[2]) < 10 else (host, "")
        if digits and runs and runs[-1][0] == head and _follows(runs[-1][1][-1], digits):
            runs[-1][1].append(digits)
        else:
            runs.append((head, [digits]))
    return ",".join(
        f"{head}[{numbers[0]}-{numbers[-1]}]" if len(numbers) > 1 else head + numbers[0]
        for head, numbers in runs
    )


def why_not_a_host(name: str, *, ipv6: bool = False) -> str | None:
    """Return why a text is not the name or address of a host, or ``None`` for a valid host.

    With ``ipv6``, an IPv6 address is a valid host.

    >>> why_not_a_host("10.0.0.1"), why_not_a_host("-oProxyCommand=sh")
    (None, 'is not a host name')
    """
    if "@" in name:
        return "names a user"
    if _WITH_NUMBER.fullmatch(name):
        return "has a number behind a colon"
    if ":" in name:
        return None if ipv6 and is_ipv6(name) else "has a colon"
    return None if len(name) <= _LONGEST and _NAME.fullmatch(name) else "is not a host name"


def is_ipv6(name: str) -> bool:
    """Return whether a text is an IPv6 address, without brackets or a zone."""
    try:
        inet_pton(AF_INET6, name)
    except (OSError, ValueError):
        return False
    return True


def _follows(before: str, number: str) -> bool:
    return bool(before) and number == f"{int(before) + 1:0{len(before) if before[0] == '0' else 0}d}"


def _lines(path: str) -> Sequence[str]:
    try:
        return bounded_file.read(path, _LARGEST_FILE).decode().splitlines()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"the hostfile {path} cannot be read: {reason}", hint=bounded_file.hint(error)
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"the hostfile {path} is not a text file") from None


def _items(text: str, option: str) -> Iterator[str]:
    """Yield the items of a list, separated by commas and blanks outside brackets."""
    item, inside = "", False
    for sign in text:
        if (sign == "[" and inside) or (sign == "]" and not inside):
            raise _unreadable(text, option, f'unexpected "{sign}"')
        if sign in "[]":
            inside = sign == "["
        if not inside and (sign == "," or sign.isspace()):
            yield item
            item = ""
        elif not sign.isspace():
            item += sign
    if inside:
        raise _unreadable(text, option, 'a "]" is missing')
    yield item


def _expanded(item: str, text: str, option: str) -> Iterator[str]:
    if not item:
        return
    pieces = re.split(r"\[([^\]]*)\]", item)
    choices = [_numbers(piece, text, option) if place % 2 else [piece] for place, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_HOSTS:
        raise _unreadable(text, option, f'"{item[:80]}" expands to {count:,} hosts, more than {MOST_HOSTS:,}')
    for parts in product(*choices):
        yield _checked("".join(parts), text, option)


def _numbers(inside: str, text: str, option: str) -> list[str]:
    """Return the numbers of a bracket as strings: ``01-03,7`` -> 01, 02, 03, 7."""
    numbers: list[str] = []
    for part in inside.split(","):
        span = number_list.span(part)
        if span is None:
            raise _unreadable(text, option, f'"{part}" in brackets is not a number or a range')
        first, last = span
        if last < first:
            raise _unreadable(text, option, f'"{part}" is in descending order')
        if last - first + len(numbers) >= MOST_HOSTS:
            raise _unreadable(text, option, f'"{part}" expands to more than {MOST_HOSTS:,} hosts')
        width = len(part.partition("-")[0]) if part.startswith("0") else 0
        numbers += [f"{number:0{width}d}" for number in range(first, last + 1)]
    return numbers


def _checked(name: str, text: str, option: str) -> str:
    if match := _BARE_RANGE.fullmatch(name):
        hint = f"for a range write {match[1]}[{match[2]}]"
        raise UsageError(f'{option.rstrip(":")}: "{name}" is not a host', hint=hint)
    why = why_not_a_host(name)
    if why and not text.isascii():
        raise _unreadable(text, option, f'"{name}" {why}')
    if why in _HINTS:
        raise UsageError(f'{option.rstrip(":")}: "{name}" {why}', hint=_HINTS[why])
    if why:
        raise _unreadable(text, option, f'"{name}" {why}')
    return name


def _is_list(text: str) -> bool:
    try:
        parse(text)
    except UsageError:
        return False
    return True


def _unreadable(text: str, option: str, why: str) -> UsageError:
    if typed := look_alikes.mistyped(text):
        hint = typed[1] if _is_list(look_alikes.plain(text)) else _GRAMMAR
        return UsageError(f"{option.rstrip(':')}: {typed[0]}", hint=hint)
    shown = text if len(text) <= 80 else text[:77] + "..."
    return UsageError(f'cannot read {option} "{shown}": {why}', hint=_GRAMMAR)
