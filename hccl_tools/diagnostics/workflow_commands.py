"""The annotations of GitHub Actions: ten for a step, the worst first, and plain lines for the rest.

Source: docs.github.com, "Workflow commands for GitHub Actions". GitHub silently drops all but ten annotations
of a kind in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.notation.phrases import count
from hccl_tools.notation.printable import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The number of annotations that GitHub shows for one step.
LIMIT = 10


def annotation(level: str, rule_id: str, properties: Mapping[str, str], lines: Iterable[str]) -> str:
    """Return one annotation as a line.

    Args:
        level: ``error``, ``warning`` or ``notice``.
        properties: The place: ``file``, ``line``, ``col``, ``endColumn``.
        lines: The lines of the message.
    """
    all_properties = {"title": f"hccl-tools ({rule_id})", **properties}
    joined = ",".join(f"{key}={_property(value)}" for key, value in all_properties.items())
    return f"::{level} {joined}::{'%0A'.join(_data(line) for line in lines)}\n"


def beyond(number: int) -> str:
    """Return the line that precedes the findings without an annotation."""
    return f"{count(number, 'more finding')} beyond the {LIMIT} annotations that GitHub shows for a step\n"


def _data(text: str) -> str:
    return escaped(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
