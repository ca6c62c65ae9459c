"""What the rules on endpoint files and root infos share: directories in place of files, and structure.

This module declares no rules.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

from hccl_tools.formats.schema import Violations, keys_of
from hccl_tools.rules.registry import COUNTED, Finding, Input
from hccl_tools.rules.violations import message_of, near_key, rename

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.formats.shapes import Violation

#: The number of violations for which messages are made.
_MOST = 1000


def directory(subject: Input) -> Iterator[Finding]:
    """Yield a finding if the file is a directory."""
    if subject.is_directory:
        yield Finding(
            "this is a directory, not a file",
            hint="remove the directory, create the file, and start the container again",
        )


def faults(subject: Input, value: Any, schema_name: str) -> Iterator[Finding]:
    """Yield the violations of a schema; the version has a rule of its own.

    Args:
        value: The document, or the part of it to which the paths of the findings lead.
    """
    if subject.is_directory:
        return
    found = Violations(value, schema_name, _MOST)
    kept = [one for one in found.kept if not _is_version(one)]
    for violation in kept:
        near = near_key(value, violation, keys_of(schema_name))
        hint = violation.hint if near is None else rename(near, violation.key)
        yield Finding(message_of(value, violation), violation.path, hint)
    yield from repeat(COUNTED, sum(found.counts.values()) - len(found.kept))


def _is_version(violation: Violation) -> bool:
    return violation.path == ("version",) and violation.keyword == "const"
