"""Check files of a host that are not rank tables: endpoint files and root infos."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hccl_tools.formats import Detection
from hccl_tools.formats.host_files import READERS, kind_of, kind_of_name
from hccl_tools.rules.registry import Subject, rules_for

if TYPE_CHECKING:
    from hccl_tools.formats.host_files import Kind
    from hccl_tools.rules.findings import Findings


def is_directory(file: str) -> bool:
    """Whether a directory has the name of such a file."""
    return kind_of_name(file) is not None and os.path.isdir(file)  # noqa: PTH112


def recognise(subject: Subject) -> Detection | None:
    """Set the kind of a document that is such a file, and return it as a detection; else return None."""
    found = kind_of(subject.value, subject.path)
    if found is None:
        return None
    subject.kind, reason = found
    return Detection(None, f"{_with_article(subject.kind)}: {reason}")


def check(subject: Subject, findings: Findings) -> None:
    """Collect the findings on such a file; values are checked only if the structure is right."""
    rules = rules_for(subject.kind)
    early = [one for one in rules if one.stage in ("load", "structure")]
    if not findings.run(early, subject):
        findings.run((one for one in rules if one.stage not in ("load", "structure")), subject)


def _with_article(kind: Kind) -> str:
    noun = READERS[kind][1]
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
