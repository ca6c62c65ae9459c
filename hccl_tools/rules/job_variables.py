"""The environment variables that change HCCL's verdict on a table. This module declares no rules.

It parses them as HCCL does. Ascend 950 has a different reader; these variables do not affect tables there.

Source: hcomm externalinput.cc, ParseIntraLinkType, ParseOpExpansion, ParseRetryEnable.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROCE, PCIE = "HCCL_INTRA_ROCE_ENABLE", "HCCL_INTRA_PCIE_ENABLE"
EXPANSION, RETRY = "HCCL_OP_EXPANSION_MODE", "HCCL_OP_RETRY_ENABLE"
NAMES = (ROCE, PCIE, EXPANSION, RETRY)

#: At most 10 bytes: digits after an optional minus; ``01`` is 1.
_LONGEST_NUMBER = 10
_NUMBER = re.compile(r"0*([01])|-0+")
_MODES = ("AI_CPU", "AICPU_CacheDisable", "AIV", "HOST", "HOST_TS")
#: The only mode without AI CPU expansion on an A3, where it is on by default.
_WITHOUT_AI_CPU = "HOST"
_RETRY_LEVEL = re.compile(r"(L[012]):([01])")


class Problem(NamedTuple):
    """A setting that makes HCCL refuse every job."""

    message: str
    hint: str


def uses_roce(env: Mapping[str, str]) -> bool:
    """Return whether the devices of one server communicate over RoCE, so that all devices need addresses."""
    return _number(env.get(ROCE, "0")) == 1


def reads_backup_addresses(env: Mapping[str, str]) -> bool:
    """Return whether HCCL reads backup addresses: with AI CPU expansion and retries between super pods."""
    levels = _retry_levels(env.get(RETRY, "")) or {}
    return env.get(EXPANSION) != _WITHOUT_AI_CPU and levels.get("L2") == "1"


def problems(env: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the settings that HCCL refuses before it reads a table."""
    yield from _link_problems(env.get(ROCE), env.get(PCIE))
    mode = env.get(EXPANSION)
    if mode is not None and mode not in _MODES:
        yield Problem(
            f'{EXPANSION}="{mode}" is not a mode', f"set it to one of {', '.join(_MODES)}, or unset it"
        )
    retry = env.get(RETRY, "")
    if _retry_levels(retry) is None:
        hint = 'list each level once, separated by commas: "L1:0,L2:1"'
        yield Problem(f'{RETRY}="{retry}" is not a list of levels', hint)


def _link_problems(roce: str | None, pcie: str | None) -> Iterator[Problem]:
    bad = [
        (name, text)
        for name, text in ((PCIE, pcie), (ROCE, roce))
        if text is not None and _number(text) is None
    ]
    for name, text in bad:
        yield Problem(f'{name}="{text}" is neither 0 nor 1', "set it to 0 or 1, or unset it")
    if bad:
        return
    numbers = {name: _number(text) for name, text in ((PCIE, pcie), (ROCE, roce)) if text is not None}
    if list(numbers.values()) == [0]:
        name, other = (ROCE, PCIE) if ROCE in numbers else (PCIE, ROCE)
        yield Problem(f"{name} is 0 and {other} is not set", f"set {other}=1, or unset {name}")
    elif list(numbers.values()) == [1, 1]:
        yield Problem(f"{ROCE} and {PCIE} are both 1", f"unset one of them, or set {PCIE}=0")


def _number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
    return None if found is None else int(found[1] or 0)


def _retry_levels(text: str) -> dict[str, str] | None:
    """Return the setting of each level, or ``None`` if HCCL refuses the text."""
    text = text.replace(" ", "")
    found = [_RETRY_LEVEL.fullmatch(part) for part in text.split(",")] if text else []
    levels = {match[1]: match[2] for match in found if match is not None}
    return levels if len(levels) == len(found) else None
