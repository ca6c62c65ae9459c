"""Timeouts that the tests of this package shorten.

Each protocol keeps its times in one record, in seconds. Tests of real processes set HCCL_TOOLS_TIMING to
the changed times, such as ``agent.answer=3,engine.end=0.5``; launchers on other hosts get the variable.
"""

from __future__ import annotations

import os

from hccl_tools.errors import UsageError

TYPE_CHECKING = False  # A shim does not import typing; see hccl_tools.records.
if TYPE_CHECKING:
    from typing import TypeVar

    from hccl_tools.records import NamedTuple

    _Timing = TypeVar("_Timing", bound=NamedTuple)

TIMING_VARIABLE = "HCCL_TOOLS_TIMING"


def from_environment(protocol: str, defaults: _Timing) -> _Timing:
    """Return the timeouts and intervals of a protocol: the defaults with the changes in HCCL_TOOLS_TIMING.

    Raises:
        UsageError: A value is not a number.
    """
    changed = {}
    for setting in filter(None, os.environ.get(TIMING_VARIABLE, "").split(",")):
        name, _, value = setting.partition("=")
        owner, _, field = name.strip().partition(".")
        if owner == protocol and field in defaults._fields:
            try:
                changed[field] = type(getattr(defaults, field))(value)
            except ValueError as error:
                raise UsageError(f"{TIMING_VARIABLE}: {setting!r} is not a number of seconds") from error
    return defaults._replace(**changed)
