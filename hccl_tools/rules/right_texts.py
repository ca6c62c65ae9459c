"""Texts that are refused because of their spelling: what is wrong with them, and the right text.

Input methods enter full-width signs; device addresses are copied with their netmask or port, or with leading
zeros. A finding on such a text says so, instead of what such a value must be in general.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hccl_tools.diagnostics.wording import quoted
from hccl_tools.notation import invisible, look_alikes, placeholders
from hccl_tools.rules import address_texts
from hccl_tools.table.addresses import is_unset, packed
from hccl_tools.table.hccl_numbers import read_uint

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.rules.registry import Finding

#: An id with a name before or after its number, and the longest one.
_NAMED_NUMBER = r"(?a)[A-Za-z/][A-Za-z/_ :#-]*([0-9]{1,6})|(?!0[xX])([0-9]{1,6})[ _-]?[A-Za-z]{2,}"
_LONGEST_ID = 40


def named(finding: Finding, text: Any, fits: Callable[[str], bool]) -> Finding:
    """Return a finding on a text; if the text has full-width signs, the finding names the first one.

    Args:
        text: The value that is refused.
        fits: Whether a text without such signs would be accepted; else the hint stays.
    """
    if not isinstance(text, str):
        return finding
    if (hidden := invisible.first(text)) is not None:
        return _without_hidden(finding, text, hidden, fits)
    if placeholders.find(text) is not None:
        return finding._replace(message=f"{finding.path[-1]} {_unfilled(text)}")
    found = look_alikes.first(text)
    if found is None:
        return finding
    right = look_alikes.plain(text)
    message = f'{finding.path[-1]} {quoted(text)} has a {found.name} "{found.char}"'
    if not fits(right):
        return finding._replace(message=message)
    return finding._replace(message=message, hint=f'write "{right}"', right=right)


def _unfilled(text: str) -> str:
    return f"{quoted(text)} is a placeholder of a template that was not filled in"


def _without_hidden(
    finding: Finding, text: str, hidden: invisible.Invisible, fits: Callable[[str], bool]
) -> Finding:
    right = look_alikes.plain(invisible.without(text))
    message = f"{finding.path[-1]} {quoted(text)} has {hidden.name} {hidden.where}, which no editor shows"
    if not fits(right):
        return finding._replace(message=message)
    return finding._replace(message=message, hint=f'delete it: write "{right}"', right=right)


def as_digits(text: str) -> str:
    """Return a text with the letters that look like digits as digits, and a comma as a dot."""
    return text.strip().translate(str.maketrans("OolI,", "0011."))


def is_number(text: str) -> bool:
    """Return whether HCCL reads a text as a number."""
    return read_uint(text) is not None


def number_in(value: Any) -> int | None:
    """Return the only number of an id that a program wrote with a name, such as ``rank3``; None for others."""
    if type(value) is not str or len(value) > _LONGEST_ID or placeholders.find(value) is not None:
        return None
    found = re.fullmatch(_NAMED_NUMBER, value)
    return None if found is None else int(found[1] or found[2])


def without_name(finding: Finding, value: Any, key: str, alike: dict[str, tuple[str, str]]) -> Finding:
    """Return a finding on an id that has a name beside its number, and the id without it.

    Args:
        alike: Message and hint for several such ids, which the first of them sets.
    """
    number = number_in(value)
    if number is None:
        return finding
    hint = f'write "{number}" in place of {quoted(value)}, and the others in the same way'
    said = alike.setdefault(key, (f"{key}s have names beside their numbers", hint))
    own = f'write "{number}"'
    if finding.hint is not None and finding.hint.startswith(own):
        own = finding.hint  # It says the same with its reason.
    return finding._replace(
        message=f"{key} {quoted(value)} has a name beside its number", hint=own, alike=said
    )


def is_address(text: str) -> bool:
    """Return whether a text is an address other than 0.0.0.0."""
    return packed(text) is not None and not is_unset(text)


def address_in(text: str) -> str | None:
    """Return the only address that a text is without what is superfluous in it."""
    plain = look_alikes.plain(text.strip())
    if packed(plain) is not None:
        return plain
    found = address_texts.corrected(plain, is_address)
    return None if found is None else found.right


def address(finding: Finding, part: str, whole: str | None = None) -> Finding:
    """Return a finding on an address that names a netmask, a port, leading zeros or full-width signs in it.

    Args:
        part: The address that is refused.
        whole: The value with all addresses, separated by commas; by default the value is the address.
    """
    value = part if whole is None else whole
    if look_alikes.first(part) is not None or invisible.first(part) is not None:
        return named(finding, value, lambda text: all(map(is_address, text.split(","))))
    if is_unset(part):
        return finding._replace(message=f'HCCL reads "{part}" as no address')
    if placeholders.find(part) is not None:
        return finding._replace(message=_unfilled(part))
    if (both := address_texts.number_after(part, is_address)) is not None:
        return finding._replace(
            message=f'{quoted(part)} has the text "{both.number}" after an address, or a blank in it',
            hint=f'write "{both.alone}" or "{both.joined}": {finding.hint}',
        )
    found = address_texts.corrected(part, is_address)
    if found is None:
        why = address_texts.why_no_address(part)
        return finding._replace(message=f"{finding.message}: {why}") if why else finding
    message = f"{quoted(part)} has {' and '.join(found.faults)}"
    right = ",".join(found.right if one == part else one for one in value.split(","))
    if address_texts.has_other_digits(found.faults):
        hint = f'write the address without the text, "{right}" only if these digits are not a part of it'
        return finding._replace(message=message, hint=f"{hint}; {finding.hint}" if finding.hint else hint)
    certain = right if address_texts.is_certain(found.faults) else None
    return finding._replace(message=message, hint=f'write "{right}"', right=certain)
