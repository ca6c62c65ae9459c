"""Parse ``--exclude``: hosts, or devices of a host, that a job does not use.

Grammar: hosts joined by ``@``, each with an optional ``:DEVICES``, as in DeepSpeed. A host is a name, an
address, or a list in the grammar of :mod:`hccl_tools.notation.host_list`; an IPv6 address with devices is in
brackets. The devices are a range in the grammar of :mod:`hccl_tools.notation.device_range`.
"""

from __future__ import annotations

from _socket import AF_INET6, inet_pton  # As in table.addresses: `socket` takes 2 ms and 1 MB.
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation import device_range, host_list, look_alikes, number_list
from hccl_tools.notation.phrases import and_more, did_you_mean
from hccl_tools.notation.phrases import devices as devices_phrase
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OPTION = "--exclude"
_GRAMMAR = "write node7 or 10.0.0.[3-5] for hosts, node7:0,1 for devices of a host, and @ between several"
_BETWEEN = "write @ between hosts with devices: node7:0,1@node8:2"
_IPV6 = "write an IPv6 address with devices as [fd00::3]:0,1"
_COLONS_OF_IPV6 = 6
#: Device ids are below this number on every product.
_MOST_DEVICES = 64


class Exclusion(NamedTuple):
    """A host that a job does not use, or devices of it; ``devices`` is ``None`` for the whole host."""

    host: str
    devices: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """Return it as a user would type it."""
        host = f"[{self.host}]" if ":" in self.host and self.devices is not None else self.host
        return host if self.devices is None else f"{host}:{number_list.fold(self.devices)}"


def parse(values: Sequence[str]) -> tuple[Exclusion, ...]:
    """Return the exclusions in the values of a repeatable option.

    Raises:
        UsageError: A value cannot be read; the message has the part that is wrong.

    >>> [str(one) for one in parse(["node7:0,1@node8", "10.0.0.[3-4]", "[fd00::3]:0"])]
    ['node7:0,1', 'node8', '10.0.0.3', '10.0.0.4', '[fd00::3]:0']
    """
    every = (one for value in values for item in _items(value) for one in _read(item.strip()))
    found = tuple(islice(every, number_list.MOST_HOSTS + 1))
    if len(found) > number_list.MOST_HOSTS:
        raise UsageError(f"{OPTION} names more than {number_list.MOST_HOSTS:,} hosts", hint=_GRAMMAR)
    return found


def matched(
    exclusions: Sequence[Exclusion], names: Sequence[Sequence[str | None]], *, where: str, what: str
) -> dict[int, frozenset[int] | None]:
    """Return the entries of a job that are excluded, by index, each with its devices; ``None`` means all.

    Args:
        names: For each entry the names by which it is known; a name that is an earlier kind for one entry
            is not looked up as a later kind. IPv6 addresses are compared as addresses.
        where: What has the entries, for messages: "the table".
        what: What an entry is, for messages: "server".

    Raises:
        UsageError: An exclusion names no entry.
    """
    kinds = _indices(names)
    found: dict[int, frozenset[int] | None] = {}
    for one in exclusions:
        indices = next((kind[key] for kind in kinds if (key := _key(one.host)) in kind), None)
        if indices is None:
            known = [own[0] for own in names if own and own[0]]
            hint = _other_reading(one, kinds) or did_you_mean(one.host, known)
            hint = hint or f"its {what}s are {and_more(known)}"
            raise UsageError(f'{OPTION}: {where} has no {what} "{one.host}"', hint=hint)
        for index in indices:
            before = found.get(index, frozenset())
            whole = one.devices is None or before is None
            found[index] = None if whole else frozenset({*(before or ()), *(one.devices or ())})
    return found


def refuse_absent_devices(name: str, excluded: frozenset[int], present: Sequence[int]) -> None:
    """Refuse the exclusion of devices that an entry of the job does not have.

    Raises:
        UsageError: A device is not present.
    """
    if absent := sorted(excluded.difference(present)):
        raise UsageError(
            f"{OPTION}: {name} has no {devices_phrase(absent)} in this job",
            hint=f"it has {devices_phrase(sorted(present))}",
        )


def nothing_left(where: str) -> UsageError:
    """Return the error for exclusions that leave nothing of the hosts of a job."""
    return UsageError(f"{OPTION} leaves nothing of {where}", hint="exclude fewer hosts or devices")


def _indices(names: Sequence[Sequence[str | None]]) -> list[dict[str | bytes, list[int]]]:
    kinds: list[dict[str | bytes, list[int]]] = []
    for index, own in enumerate(names):
        kinds += ({} for _ in range(len(own) - len(kinds)))
        for kind, name in zip(kinds, own, strict=False):
            if name:
                kind.setdefault(_key(name), []).append(index)
    return kinds


def _other_reading(one: Exclusion, kinds: Sequence[dict[str | bytes, list[int]]]) -> str:
    """Return the exclusion of a device if an IPv6 address and a device were read as a longer address."""
    host, _, device = one.host.rpartition(":")
    is_known = ":" in host and any(_key(host) in kind for kind in kinds)
    return f'did you mean "[{host}]:{device}"?' if is_known else ""


def _key(name: str) -> str | bytes:
    """Return an IPv6 address in network order, and any other name unchanged."""
    if ":" not in name or not host_list.is_ipv6(name):
        return name
    return inet_pton(AF_INET6, name)


def _items(value: str) -> Iterator[str]:
    if typed := look_alikes.mistyped(value):
        raise UsageError(f"{OPTION}: {typed[0]}", hint=typed[1])
    if not value.strip():
        raise UsageError(f'{OPTION} "{value}" names no host', hint=_GRAMMAR)
    items = value.split("@")
    if not all(item.strip() for item in items):
        raise UsageError(f'{OPTION} "{_shown(value)}": a host is missing next to "@"', hint=_GRAMMAR)
    return iter(items)


def _read(item: str) -> Iterator[Exclusion]:
    if host_list.is_ipv6(item):
        yield Exclusion(item)
        return
    if item.startswith("["):
        yield _ipv6_with_devices(item)
        return
    head, colon, devices = item.partition(":")
    if not colon:
        yield from (Exclusion(host) for host in host_list.parse(item, option=OPTION))
        return
    if ":" in devices:
        first, _, _ = item.partition(",")
        hint = _IPV6 if "::" in first or first.count(":") > _COLONS_OF_IPV6 else _BETWEEN
        raise UsageError(f'{OPTION} "{_shown(item)}" has more than one ":"', hint=hint)
    if not head.strip():
        raise UsageError(f'{OPTION} "{_shown(item)}": the host is missing before ":"', hint=_GRAMMAR)
    hosts = host_list.parse(head, option=OPTION)
    if len(hosts) > 1 and "[" not in head:
        hint = f"write {hosts[0]}@{hosts[-1]}:{devices}, or the option once for each host"
        raise UsageError(f'{OPTION} "{_shown(item)}": which host do the devices belong to?', hint=hint)
    ids = _device_ids(item, devices)
    yield from (Exclusion(host, ids) for host in hosts)


def _ipv6_with_devices(item: str) -> Exclusion:
    address, bracket, rest = item[1:].partition("]")
    if not bracket or not host_list.is_ipv6(address) or (rest and not rest.startswith(":")):
        raise UsageError(f'{OPTION}: cannot read "{_shown(item)}" as an IPv6 address', hint=_IPV6)
    return Exclusion(address, _device_ids(item, rest[1:]) if rest else None)


def _device_ids(item: str, text: str) -> tuple[int, ...]:
    if not text.strip():
        raise UsageError(f'{OPTION} "{_shown(item)}": the devices are missing after ":"', hint=_GRAMMAR)
    try:
        return device_range.parse(text, device_limit=_MOST_DEVICES, product="HCCL", beyond=_GRAMMAR).ids
    except UsageError as error:
        hint = f"{error.hint}; {_GRAMMAR}" if any(map(str.isalpha, text)) else error.hint
        raise UsageError(f'{OPTION} "{_shown(item)}": {error.message}', hint=hint) from None


def _shown(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
