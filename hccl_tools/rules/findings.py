"""The findings of a run of rules: every one counted, the first of each rule kept.

A table in which everything is wrong has hundreds of thousands of findings. Counting one costs a fraction of
what a diagnostic costs, and what is kept does not grow with the table.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hccl_tools.diagnostics.diagnostic import RuleFacts
    from hccl_tools.rules.registry import Finding, Rule, Subject

#: Characters of a message or hint that are kept: a value of the table may have megabytes.
LONGEST_TEXT = 1000
#: Levels of a path that are kept; a deeper one leads to its ancestor there. No rank table is deeper than 8.
DEEPEST_PATH = 100


class Findings:
    """Runs rules and collects what they find.

    Attributes:
        limit: Findings of one rule that are kept; ``None`` keeps all.
        chosen: Whether the findings of a rule are kept at all.
        kept: The diagnostics kept, in the order in which they were found.
        counts: All rules that found something, with the number of their findings.
    """

    def __init__(self, limit: int | None, chosen: Callable[[RuleFacts], bool]) -> None:
        """Prepare a run.

        Args:
            limit: Findings of one rule that are kept; ``None`` keeps all.
            chosen: Whether the findings of a rule are kept at all; they are counted in any case.
        """
        self.limit = limit
        self.chosen = chosen
        self.kept: list[Diagnostic] = []
        self.counts: Counter[RuleFacts] = Counter()

    def run(self, rules: Iterable[Rule], subject: Subject) -> int:
        """Collect what some rules find; return how much that is."""
        total = 0
        for rule in rules:
            found = iter(rule.check(subject))
            wanted = self.limit if self.chosen(rule.facts) else 0
            first = [_diagnostic(rule.facts, one) for one in islice(found, wanted)]
            self.kept += first
            if number := len(first) + sum(1 for _ in found):
                self.counts[rule.facts] += number
                total += number
        return total

    @property
    def omitted(self) -> dict[RuleFacts, int]:
        """The chosen rules that have more findings than were kept, and how many more."""
        kept = Counter(one.rule for one in self.kept)
        return {
            rule: number - kept[rule]
            for rule, number in self.counts.items()
            if number > kept[rule] and self.chosen(rule)
        }


def _diagnostic(rule: RuleFacts, found: Finding) -> Diagnostic:
    hint = None if found.hint is None else _shortened(found.hint)
    return Diagnostic(
        rule,
        _shortened(found.message),
        found.path[:DEEPEST_PATH],
        hint,
        found.related,
        found.offset,
        found.at_key,
    )


def _shortened(text: str) -> str:
    """Return a text, without its middle where it is longer than ``LONGEST_TEXT``."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]} ... {text[-half:]}"
