"""The server_ids of a table that no host has: what is wrong with each, and the right one. No rules are declared here."""

from __future__ import annotations

import re
from collections import Counter

from hccl_tools.diagnostics.diagnostic import Related
from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation import look_alikes, placeholders
from hccl_tools.rules import address_texts, right_texts
from hccl_tools.rules.address_order import likely_name, one_of, right_name
from hccl_tools.rules.commands import host_of
from hccl_tools.rules.lost_signs import lost_names
from hccl_tools.rules.nics import reported_blanks
from hccl_tools.rules.registry import SERVER_LIST, Finding, Subject, shared
from hccl_tools.rules.replaced_text import names_finding, replaced_names
from hccl_tools.rules.value_order import number_at_end
from hccl_tools.table.addresses import joined_ipv4, packed

#: Signs that no address and no host name has; two dots in a row have no name between them.
_NO_NAME = re.compile(r"[\s\[\]()<>={}\"',;|\\/@#$!*?&~+^`:]|\.\.|^\.")
#: Numbers with dots, which are an address or nothing.
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)+\.?", re.ASCII)
#: The name of a host with the user or the port of a program that connects to it.
_NAME_WITH = re.compile(
    r"(?:(?P<user>[A-Za-z_][A-Za-z0-9_.-]{0,31}@)|(?=[^:]{1,64}:[0-9]))(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,62})(?P<port>:[0-9]{1,5})?",
    re.ASCII,
)
#: The address or name of a host with a port.
_HOST_AND_PORT = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9_.-]{0,62})(?P<port>:[0-9]{1,5})", re.ASCII)
#: The numbers of an address of which one is damaged.
_MOST_NUMBERS = 3
#: Numbers with dots and a letter that looks like a digit.
_WITH_LETTERS = re.compile(r"(?=[^0-9]*[0-9])[0-9OolI]{1,3}(?:\.[0-9OolI]{1,3}){3}", re.ASCII)


@shared
def wrong_names(subject: Subject) -> dict[int, Finding]:
    """Return the findings on server_ids that are neither an address nor the name of a host, by server."""
    if joined_ipv4(server.server_id for server in subject.table.servers) is not None:
        return {}
    replaced = replaced_names(subject)
    if replaced is not None and len(set(_server_ids(subject))) == len(_server_ids(subject)):
        return {next(iter(replaced.found)): names_finding(subject, replaced)}
    left_out = () if replaced is None else replaced.found  # HCC503 reports them.
    found = (
        (index, _wrong_name(subject, index))
        for index in range(len(subject.table.servers))
        if index not in left_out
    )
    return {index: one for index, one in found if one is not None}


def _wrong_name(subject: Subject, index: int) -> Finding | None:
    text, path = subject.table.servers[index].server_id, subject.server_path(index, "server_id")
    if placeholders.find(text) is not None:
        return Finding(
            f"server_id {quoted(text)} is a placeholder of a template that was not filled in",
            path,
            "write the address or name of the host in its place, or make the file again with the program that "
            "fills in the template",
        )
    if text in reported_blanks(subject):
        return None  # HCC410 reports it.
    if (said := one_of(subject, index)) is not None:
        return Finding(said[0], path, said[1])
    name = text.strip()
    if name in _repeated_texts(subject):
        return None  # HCC503 reports it, with the right one.
    if packed(name) is not None:
        return None
    if subject.table.format == "group_list":
        return _of_instance(subject, index)
    if (found := _corrected(subject, index, name)) is not None:
        return found
    if _NUMBERS.fullmatch(name) or index in lost_names(subject) or _is_nearly_address(name):
        return _no_address(subject, index, name)
    sign = _NO_NAME.search(name)
    return None if sign is None else _with_other_signs(subject, index, sign[0])


def _is_nearly_address(name: str) -> bool:
    """Return whether three of four short parts of a name are numbers, so that a letter stands in place of a digit."""
    parts = name.split(".")
    return sum(part.isdigit() for part in parts) == _MOST_NUMBERS and bool(
        re.fullmatch(address_texts.FOUR_PARTS, name)
    )


@shared
def _server_ids(subject: Subject) -> list[str]:
    return [one.server_id for one in subject.table.servers]


def _no_address(subject: Subject, index: int, name: str) -> Finding:
    """Return the finding on a server_id of numbers that are not an address."""
    servers, said = subject.table.servers, "server_ids are not IP addresses, and no host has such names"
    why = address_texts.why_no_address(name)
    message, hint = (
        f"server_id {quoted(name)} is not an IP address{f' ({why})' if why else ''}, and no host has such a name",
        right_name(subject, index),
    )
    if rows := address_texts.counted_past(_server_ids(subject), index):
        first, last = (quoted(servers[at].server_id) for at in (rows[0], rows[-1]))
        counted = f"{first} to {last} are counted on, as a spreadsheet fills a column"
        said, message = f"{said}: {counted}", f"{message}: {counted}"
        hint = "write the address that each of these hosts has, also of those below 256: `hostname -I` on the host prints its addresses"
    if (lost := lost_names(subject).get(index)) is not None:
        right, where = (
            f"if {quoted(lost.right)} is the address of the host (`hostname -I` on it)",
            "wherever the table has",
        )
        several = (
            f"{right}, write that in place of {quoted(name)}, and the others in the same way, {where} them"
        )
        return Finding(
            f"server_id {quoted(name)} is not an IP address: {lost.what}",
            subject.server_path(index, "server_id"),
            f"{right}, write that, {where} this server_id",
            alike=_alike(subject).setdefault(
                f"lost {lost.what}", (f"server_ids are not IP addresses: {lost.what} in each", several)
            ),
        )
    alike = _alike(subject).setdefault("no names", (said, hint))
    return Finding(message, subject.server_path(index, "server_id"), hint, alike=alike)


@shared
def _alike(_subject: Subject) -> dict[str, tuple[str, str]]:
    """Return message and hint on several server_ids with one fault, as the first of them sets both, by the fault."""
    return {}


def _corrected(subject: Subject, index: int, name: str) -> Finding | None:
    """Return the finding on a server_id that is an address with something beside it or in it; None for others."""
    if (sign := look_alikes.first(name)) is not None:
        right = look_alikes.plain(name)
        if not right_texts.is_address(right):
            return None
        plain = address_texts.Corrected([f'a {sign.name} "{sign.char}"'], right)
        return _with_right(subject, index, plain)
    if not (_NO_NAME.search(name) or _NUMBERS.fullmatch(name) or _WITH_LETTERS.fullmatch(name)):
        return None  # A name may have an address in it, as those of some name services.
    if (both := address_texts.number_after(name, right_texts.is_address)) is not None:
        return _with_number(subject, index, both)
    found = address_texts.corrected(name, right_texts.is_address)
    if (dotted := address_texts.with_dots(name, right_texts.is_address)) is not None and "," not in dotted[1]:
        found = address_texts.Corrected([dotted[0]], dotted[1])
    return None if found is None else _with_right(subject, index, found)


@shared
def _repeated_texts(subject: Subject) -> frozenset[str]:
    """Return the server_ids that several servers have and that are an address with something beside it."""
    if subject.table.format not in SERVER_LIST:
        return frozenset()
    times = Counter(_server_ids(subject))
    return frozenset(text for text, number in times.items() if number > 1 and host_of(text) != text)


@shared
def _with_ports(subject: Subject) -> int:
    """Return how many server_ids have a port after the host."""
    return sum(_HOST_AND_PORT.fullmatch(text) is not None for text in _server_ids(subject))


def _of_instance(subject: Subject, index: int) -> Finding | None:
    """Return the finding on a port after the server_id of an instance, if most others have none.

    The program that writes a group_list chooses the ids, so that a sign in all of them means nothing.
    """
    found = _HOST_AND_PORT.fullmatch(subject.table.servers[index].server_id)
    if found is None or 2 * _with_ports(subject) >= len(_server_ids(subject)):
        return None
    return Finding(
        f'server_id {quoted(found[0])} has the text "{found["port"]}" after the host, as a port, and most others have none: '
        "HCCL compares the whole texts",
        subject.server_path(index, "server_id"),
        f'write "{found["host"]}": all instances of a host have the same server_id',
    )


def _with_number(subject: Subject, index: int, both: address_texts.NumberAfter) -> Finding:
    """Return the finding on a server_id with a number after an address: a port, or a blank in the last number."""
    name = subject.table.servers[index].server_id.strip()
    right = _by_the_others(subject, index, both)
    if right is None:
        return Finding(
            f'server_id {quoted(name)} has the text "{both.number}" after the address, as a port, or a blank in it',
            subject.server_path(index, "server_id"),
            f'write "{both.alone}" or, if only the blank is too much, "{both.joined}", wherever the table has this server_id: '
            "`hostname -I` on the host prints its addresses",
        )
    fault = f'the text "{both.number}" after the address' if right == both.alone else "a blank in it"
    return _with_right(subject, index, address_texts.Corrected([fault], right))


def _by_the_others(subject: Subject, index: int, both: address_texts.NumberAfter) -> str | None:
    """Return which of two addresses a server has by the other server_ids; None if they do not say it."""
    others = [text for place, text in enumerate(_server_ids(subject)) if place != index]
    if address_texts.after_address(others, right_texts.is_address)[both.number]:
        return both.alone  # The text that several have after it is not a part of an address.
    if (likely := likely_name(subject, index)) in (both.alone, both.joined):
        return likely
    parts = [number_at_end(text) for text in others]
    (begin, alone), (_, joined) = (number_at_end(one) or ("", 0) for one in (both.alone, both.joined))
    numbers = [part[1] for part in parts if part is not None and part[0] == begin]
    if not numbers:
        return None
    is_near = [min(numbers) - 1 <= one <= max(numbers) + 1 for one in (alone, joined)]
    if is_near[0] == is_near[1]:
        return None
    return both.alone if is_near[0] else both.joined


def _with_right(subject: Subject, index: int, found: address_texts.Corrected) -> Finding:
    text, path = subject.table.servers[index].server_id, subject.server_path(index, "server_id")
    faults, where = " and ".join(found.faults), "wherever the table has"
    message, right = f"server_id {quoted(text)} has {faults}", found.right
    if right in (ids := _server_ids(subject)):
        return Finding(
            message, path,
            f'write the address of its own host: without this it is "{right}", which is that of server {ids.index(right) + 1}; '
            f"if both are one server, list its devices once",
        )  # fmt: skip
    hint = f'write "{right}" in place of {quoted(text)}, and the others in the same way, {where} them'
    return Finding(
        message, path, f'write "{right}", {where} this server_id', _same_text(subject, index),
        alike=_alike(subject).setdefault(faults, (f"server_ids have {faults}", hint)),
    )  # fmt: skip


def _same_text(subject: Subject, index: int) -> tuple[Related, ...]:
    """Return where an entry has the text of its server_id again, which the same program damaged."""
    server = subject.table.servers[index]
    pairs = (("host_ip", server.host_ip), ("container_ip", server.fields.get("container_ip")))
    return tuple(
        Related(subject.server_path(index, key), f"{key} has the same text")
        for key, text in pairs
        if text == server.server_id
    )


def _with_other_signs(subject: Subject, index: int, sign: str) -> Finding:
    """Return the finding on a server_id with a sign that no name has."""
    text, path = subject.table.servers[index].server_id, subject.server_path(index, "server_id")
    shown = "a blank" if sign.isspace() else f'"{sign}"'
    hint = right_name(subject, index).replace("host, ", "host alone, ", 1)
    if (part := _NAME_WITH.fullmatch(text.strip())) is not None:
        what, name = "the user" if part["user"] else "the port", part["name"]
        extra = part["user"] or part["port"]
        return Finding(
            f"server_id {quoted(text)} has {what} {quoted(extra)} beside the name of the host",
            path,
            f'write "{name}" alone, wherever the table has this server_id',
            alike=(
                f"server_ids have {what} beside the name of the host",
                "write the name of each host alone, wherever the table has them",
            ),
        )
    return Finding(
        f"server_id {quoted(text)} is not an address or the name of a host: it has {shown} in it",
        path,
        hint,
        alike=(
            f"server_ids are not addresses or names of hosts: they have {shown} in them",
            "write the address or name of the host alone, wherever the table has this server_id",
        ),
    )
