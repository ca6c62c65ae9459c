"""The rule on files that the framework of ``validate --target`` does not read.

Source: xLLM 87e8d6ed, MindIE-LLM 8b4871ad, Ascend/pytorch 9e73e708 and MindSpore 2.10 read rank tables only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.formats.file_kinds import SERVICE_TABLE
from hccl_tools.notation.phrases import with_article
from hccl_tools.rules.registry import Finding, Input, rule

if TYPE_CHECKING:
    from collections.abc import Iterator


@rule("HCC895", "no-rank-table-for-target", "refused", source="RANK_TABLE_FILE of each framework")
def no_rank_table(subject: Input) -> Iterator[Finding]:
    """The file has another reader than the framework of --target, which reads rank tables.

    A service table of MindIE-Motor is a file of MindIE: it gets no such finding with --target mindie.

    Base: endpoints
    Example: table
    Instead: base 1.0 2x2; file table.json
    Hint: omit --target: hixl reads this file
    """
    hint = f"omit --target: {subject.kind.reader} reads this file"
    if subject.kind is SERVICE_TABLE:
        hint = "name the table of an instance: `hccl-tools convert FILE --instance N --to 1.0` writes it"
    yield Finding(f"{with_article(subject.kind.noun)} is not a rank table", hint=hint)
