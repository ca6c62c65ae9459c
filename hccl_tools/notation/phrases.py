"""Phrases that messages share: numbers with their nouns, and commands to type."""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A hint for a device id that the assumed product does not have.
NAME_THE_CHIP = "name the machine's chip, as in --product 910B4"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 error``, ``65,516 errors``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def devices(ids: Iterable[int]) -> str:
    """Return device ids with their noun: ``device 4``, ``devices 4,5``."""
    listed = list(ids)
    return f"device{'' if len(listed) == 1 else 's'} {','.join(map(str, listed))}"


def as_root(command: str) -> str:
    """Return how to run a command of hccl-tools as root; sudo's PATH has no virtual environment."""
    return f"sudo {quote(sys.executable)} -m hccl_tools {command}"
