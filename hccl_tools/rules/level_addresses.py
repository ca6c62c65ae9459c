"""Rules on the addresses, ports and control planes of 2.0 tables (Ascend 950)."""

from __future__ import annotations

import re
from collections import Counter, deque
from itertools import repeat
from typing import TYPE_CHECKING, Any

from hccl_tools.notation import placeholders
from hccl_tools.rules import address_texts
from hccl_tools.rules.levels import (
    LONGEST,
    Entry,
    address_types,
    all_levels,
    all_pass,
    all_ports,
    each_address,
    level_addresses,
    port_lists,
)
from hccl_tools.rules.registry import Finding, Subject, rule, shared
from hccl_tools.table.addresses import AF_INET, V2_CHECKS, inet_pton
from hccl_tools.table.hccl_numbers import byte_length, read_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.diagnostics.diagnostic import Path

#: What to write for each addr_type.
#: The characters of a text that a message shows.
_SHOWN = 80
_FORMS = {
    "EID": "write the EID of the port, 32 hexadecimal digits, as in /etc/hccl_rootinfo.json of its host",
    "IPV4": "write an IPv4 address, such as 10.0.0.1, as `hccl-tools gen` on the host of the rank prints it",
    "IPV6": "write an IPv6 address, such as fd00::1, as `hccl-tools gen` on the host of the rank prints it",
}
_MOST_PORTS = 16
#: The digits after leading zeros that two EIDs of a table have in common.
_COMPARED = 6
#: An EID without its leading zeros, and the digits of a whole one.
_SHORT_EID, _EID_DIGITS = re.compile(r"(?a)[1-9a-fA-F][0-9a-fA-F]{11,30}"), 32
_HIGHEST_LISTEN_PORT = 65536


@rule("HCC455", "addr-type", "refused", source="address_info.cc:25-37")
def addr_type(subject: Subject) -> Iterator[Finding]:
    """An addr_type is not EID, IPV4 or IPV6.

    HCCL accepts only upper case; the table in the guide writes IPv4 and IPv6, which HCCL refuses.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/addr_type = "IPv4"
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/addr_type = "IPV4"
    Hint: write "IPV4"
    """
    known = [one for one in address_types(subject) if one in V2_CHECKS]
    usual = f'write "{known[0]}", as the other addresses have' if len(known) == 1 else ""
    for path, entry in _each_typed(subject):
        if entry["addr_type"] not in V2_CHECKS:
            upper = entry["addr_type"].strip().upper()
            right = upper if upper in V2_CHECKS else None
            hint = f'write "{upper}"' if right else usual or "write EID, IPV4 or IPV6 in upper case"
            if right is None and entry["addr"] in V2_CHECKS:
                hint = "exchange the values of addr and addr_type"
            message = f'addr_type "{entry["addr_type"]}" is unknown'
            yield Finding(message, (*path, "addr_type"), hint, right=right)


def _each_typed(subject: Subject) -> Iterator[tuple[Path, Entry]]:
    """Yield the entries with an addr_type: control planes; addresses only if a type is invalid."""
    for row, plane in enumerate(subject.table.columns.get("control_plane", ())):
        if plane is not None:
            yield ("rank_list", row, "control_plane"), plane
    if not address_types(subject) <= V2_CHECKS.keys():
        yield from each_address(subject)


@rule("HCC456", "addr", "refused", code="EI0014", source="address_info.cc:43-65")
def addr(subject: Subject) -> Iterator[Finding]:
    """An addr does not match its addr_type: an EID has 32 hex digits, an IPv4 address has no leading zeros.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/addr = "10.0.0.01"
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/addr = "10.0.0.1"
    Hint: write "10.0.0.1"
    """
    alike: dict[Any, tuple[str, str]] = {}
    if address_types(subject) - {"IPV4"} or not _all_are_ipv4(level_addresses(subject)):
        for path, entry in each_address(subject):
            yield from _addr_fault(subject, path, entry, alike)
    for row, plane in enumerate(subject.table.columns.get("control_plane", ())):
        if plane is not None:
            yield from _addr_fault(subject, ("rank_list", row, "control_plane"), plane, alike)


def _all_are_ipv4(addresses: list[Entry]) -> bool:
    """Whether all addresses are valid IPv4, the usual case."""
    texts = [entry["addr"] for entry in addresses]
    try:
        deque(map(inet_pton, repeat(AF_INET), texts), maxlen=0)
    except (OSError, UnicodeEncodeError, ValueError):
        return False
    return True


def _is_addr(kind: str, text: str) -> bool:
    return kind not in V2_CHECKS or (0 < byte_length(text) <= LONGEST["addr"] and V2_CHECKS[kind](text))


def _addr_fault(
    subject: Subject, path: Path, entry: Entry, alike: dict[Any, tuple[str, str]]
) -> Iterator[Finding]:
    """Yield the finding on an addr that does not match its addr_type.

    Args:
        alike: Message and hint for several of one kind, which the first of them sets.
    """
    kind, text = entry["addr_type"], entry["addr"]
    if not _is_addr(kind, text):
        finding = _without_zeros(subject, kind, text, (*path, "addr")) or _of_text(
            kind, text, (*path, "addr")
        )
        other = next((one for one in V2_CHECKS if one != kind and text and V2_CHECKS[one](text)), None)
        if other is not None and (same := _types_of_layers(subject)[_layer(subject, path), kind]) > 1:
            which = f"the other {same} {kind} addresses of its layer are sound"
            finding = finding._replace(
                message=f"{finding.message}, and {which}",
                hint=f"{_FORMS[kind]}: the ranks of a layer have addresses of the same types",
            )
        if finding.alike is None and (said := _said(finding, text)) is not None:
            finding = finding._replace(alike=alike.setdefault(said[0], said))
        yield finding


def _without_zeros(subject: Subject, kind: str, text: str, path: Path) -> Finding | None:
    """Return the finding on an EID that lacks the zeros with which others begin; None for other texts."""
    if (
        kind != "EID"
        or not re.fullmatch(_SHORT_EID, text)
        or _beginning(text.zfill(_EID_DIGITS)) not in _beginnings(subject)
    ):
        return None
    right = text.zfill(_EID_DIGITS)
    return Finding(
        f'"{text}" has lost its leading zeros, as in a spreadsheet: other EIDs of the table begin with '
        f'"{right[: _EID_DIGITS - len(text) + _COMPARED]}"',
        path,
        f'write "{right}"',
        right=right,
    )


def _beginning(eid: str) -> tuple[int, str]:
    """Return how many zeros an EID begins with, and the digits after them."""
    digits = eid.lstrip("0").lower()
    return len(eid) - len(digits), digits[:_COMPARED]


@shared
def _beginnings(subject: Subject) -> frozenset[tuple[int, str]]:
    """Return the beginnings of the EIDs of a table."""
    return frozenset(
        _beginning(entry["addr"])
        for level in all_levels(subject)
        for entry in level["rank_addr_list"]
        if entry["addr_type"] == "EID" and _is_addr("EID", entry["addr"])
    )


def _said(finding: Finding, text: str) -> tuple[str, str] | None:
    """Return message and hint for several addresses with the fault of one; None if its message is its own."""
    begin = f'"{text}" has '
    if finding.message.startswith(begin):
        return (
            f"addrs have {finding.message.removeprefix(begin).replace(' its ', ' their ')}",
            f'{finding.hint} in place of "{text[:80]}", and the others in the same way',
        )
    begin = f'"{text}" is not '
    if re.fullmatch(_SHORT_EID, text) and finding.message.startswith(f"{begin}an EID address: it has "):
        hint = f'write "{text.zfill(_EID_DIGITS)}" in place of "{text}", and the others in the same way'
        return (
            "addrs have less than 32 digits: a program probably wrote them as numbers, without their leading zeros",
            f"{hint}: `hccl-tools gen` on the host prints them",
        )
    if finding.message.startswith(f"{begin}an EID address: it has "):
        said = finding.message.removeprefix(f"{begin}an EID address: it has ")
        return f"addrs are not EID addresses: they have {said}", str(finding.hint)
    if finding.message.startswith(begin) and ", but an " in finding.message:
        said = re.sub(r"\ban (EID|IPV4|IPV6) address\b", r"\1 addresses", finding.message.removeprefix(begin))
        return f"addrs are not {said}", str(finding.hint)
    return None


def _layer(subject: Subject, path: Path) -> int | None:
    """Return the layer of an address; None for that of a control plane."""
    if path[2] != "level_list":
        return None
    level: Entry = subject.table.column("level_list")[int(path[1])][int(path[3])]
    return read_integer(level["net_layer"])


@shared
def _types_of_layers(subject: Subject) -> Counter[tuple[int | None, str]]:
    """Return how many valid addresses of each type each layer has."""
    return Counter(
        (read_integer(level["net_layer"]), entry["addr_type"])
        for level in all_levels(subject)
        for entry in level["rank_addr_list"]
        if _is_addr(entry["addr_type"], entry["addr"])
    )


def _of_text(kind: str, text: str, path: Path) -> Finding:
    """Return the finding on a text that is not an address of its addr_type, with the right text if it is known."""
    if not text:
        return Finding("addr is empty", path, "write the address in the form of its addr_type")
    if placeholders.find(text) is not None:
        message = f'"{text}" is a placeholder of a template that was not filled in'
        return Finding(message, path, _FORMS[kind])
    is_eid = kind == "EID"
    finding = Finding(f'"{text}" is not an {kind} address', path, _FORMS[kind])
    parts = address_texts.parts(text)
    if len(parts) > 1 and all(_is_addr(kind, part) for part in parts):
        return finding._replace(
            message=f'"{text[:_SHOWN]}" has {len(parts)} addresses: an addr is one',
            hint="keep one, and write an entry of rank_addr_list for each of the others, with its own ports, if the others of the table have "
            "as many: `hccl-tools gen` on the host prints the entries",
        )
    find = address_texts.corrected_eid if is_eid else address_texts.corrected
    found = find(text, lambda one: _is_addr(kind, one))
    if found is not None:
        message = f'"{text}" has {" and ".join(found.faults)}'
        return finding._replace(message=message, hint=f'write "{found.right}"', right=found.right)
    other = next((one for one in V2_CHECKS if one != kind and V2_CHECKS[one](text)), None)
    if other is not None:
        hint = f'write "addr_type": "{other}", or {_FORMS[kind].removeprefix("write ")}'
        return finding._replace(message=f"{finding.message}, but an {other} address", hint=hint)
    if is_eid and (whole := address_texts.padded_eid(text)) is not None:
        return finding._replace(
            message=f'"{text}" has "0x" before it, and has lost its leading zeros: an EID has 32 digits',
            hint=f'write "{whole}"',
            right=whole,
            alike=(
                'EIDs have "0x" before them, and have lost their leading zeros: an EID has 32 digits',
                'write each without "0x", and with zeros before it, so that it has 32 digits',
            ),
        )
    why = address_texts.why_no_eid(text) if is_eid else address_texts.why_no_address(text)
    return finding._replace(message=f"{finding.message}: {why}") if why else finding


@rule("HCC457", "backup-addr", "refused", source="address_info.cc:95-159")
def backup_addr(subject: Subject) -> Iterator[Finding]:
    """A backup_addr does not match the addr_type of its entry, or the addr_type is EID.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/backup_addr = ["10.0.0"]
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/backup_addr = ["10.0.0.9"]
    Hint: write an address of the same addr_type, or omit backup_addr
    """
    if not any("backup_addr" in entry for entry in level_addresses(subject)):
        return
    for path, entry in each_address(subject):
        kind = entry["addr_type"]
        for index, text in enumerate(entry.get("backup_addr", ())):
            if kind == "EID" or not _is_addr(kind, text):
                message = (
                    f'"{text}" is not an {kind} address'
                    if kind != "EID"
                    else "an EID cannot have a backup_addr"
                )
                yield Finding(
                    message,
                    (*path, "backup_addr", index),
                    "write an address of the same addr_type, or omit backup_addr",
                )


@rule("HCC458", "ports", "refused", source="address_info.cc:77-92")
def ports(subject: Subject) -> Iterator[Finding]:
    """An address has more than 16 different ports, or a port that is empty or longer than 32 bytes.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/ports = [""]
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/ports = ["0/4"]
    Hint: write die and port with a slash between them: `hccl-tools gen` on the host prints this entry
    """
    most = LONGEST["port"]
    if all(
        len(names) <= _MOST_PORTS and all(0 < byte_length(name) <= most for name in names)
        for names in port_lists(subject)
    ):
        return
    for path, entry in each_address(subject):
        names = entry["ports"]
        if len(names) > _MOST_PORTS and len(set(names)) > _MOST_PORTS:
            yield Finding(
                f"{len(set(names))} different ports; HCCL accepts at most {_MOST_PORTS}",
                (*path, "ports"),
                "list at most 16 ports",
            )
        for index, name in enumerate(names):
            if not 0 < len(name) <= most or not 0 < byte_length(name) <= most:
                yield Finding(
                    f"a port is not 1 to {most} bytes long",
                    (*path, "ports", index),
                    "write die and port with a slash between them: `hccl-tools gen` on the host prints this entry",
                )


@rule("HCC459", "plane-id", "refused", source="address_info.cc:70")
def plane_id(subject: Subject) -> Iterator[Finding]:
    """A plane_id is longer than 1024 bytes.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/plane_id = repeat "p" 1025
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/plane_id = "plane0"
    Hint: give the plane a shorter id
    """
    most = LONGEST["plane_id"]
    if all_pass(level_addresses(subject), "plane_id", lambda name: byte_length(name) <= most):
        return
    for path, entry in each_address(subject):
        if byte_length(entry.get("plane_id", "")) > most:
            yield Finding(
                f"plane_id is longer than {most} bytes", (*path, "plane_id"), "give the plane a shorter id"
            )


@rule("HCC460", "listen-port", "refused", source="control_plane.cc")
def listen_port(subject: Subject) -> Iterator[Finding]:
    """The listen_port of a control_plane is not between 1 and 65536.

    Example: /rank_list/0/control_plane = {"addr_type": "IPV4", "addr": "10.0.0.1", "listen_port": 0}
    Instead: /rank_list/0/control_plane = {"addr_type": "IPV4", "addr": "10.0.0.1", "listen_port": 50000}
    Hint: choose a port
    """
    for row, plane in enumerate(subject.table.columns.get("control_plane", ())):
        number = None if plane is None else read_integer(plane["listen_port"])
        if plane is not None and (number is None or not 1 <= number <= _HIGHEST_LISTEN_PORT):
            path = ("rank_list", row, "control_plane", "listen_port")
            yield Finding(
                f"listen_port {plane['listen_port']} is not between 1 and 65536", path, "choose a port"
            )


@rule("HCC461", "detour", "refused", source="rank_table_info.cc:153")
def detour(subject: Subject) -> Iterator[Finding]:
    """The value of detour is neither "true" nor "false".

    Example: /detour = "yes"
    Instead: /detour = "true"
    Hint: write "true" or "false"
    """
    value = subject.table.fields.get("detour", "")
    if value not in ("true", "false", ""):
        yield Finding(f'detour "{value}" is unknown', ("detour",), 'write "true" or "false"')


#: A port such as 1/5 that a spreadsheet took for a date: 05.Jan, 5-Jan, 2026-01-05.
_DATE = re.compile(
    r"(?:[0-9]{1,4}[ .-]{0,2})?(?:jan|feb|m[a\u00e4]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-z]{0,7}\.?(?:[ .-]{0,2}[0-9]{1,4})?"
    r"|[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}.{0,20}|[0-9]{1,2}\u6708[0-9]{1,2}\u65e5",
    re.IGNORECASE,
)


@rule(
    "HCC620",
    "port-as-date",
    "advice",
    source="a port is the die and the port of it, as in 0/4 (rank_table_config_a5.md)",
)
def port_as_date(subject: Subject) -> Iterator[Finding]:
    """A port is a date: a spreadsheet takes ports such as 1/5 for dates.

    Example: /rank_list/0/level_list/0/rank_addr_list/0/ports = ["05.Jan"]
    Instead: /rank_list/0/level_list/0/rank_addr_list/0/ports = ["1/5"]
    Hint: write die and port, as in "0/4"; `hccl-tools gen` reads them from the root info
    """
    dates = {port for port in all_ports(subject) if len(port) <= LONGEST["port"] and _DATE.fullmatch(port)}
    for path, entry in each_address(subject) if dates else ():
        for index, port in enumerate(entry["ports"]):
            if port in dates:
                hint = 'write die and port, as in "0/4"; `hccl-tools gen` reads them from the root info'
                yield Finding(
                    f'port "{port}" is a date: a spreadsheet took the port for one', (*path, "ports", index), hint,
                    alike=("ports are dates: a spreadsheet took them for dates", hint),
                )  # fmt: skip
