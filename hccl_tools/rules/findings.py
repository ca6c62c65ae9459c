"""Run rules, count all findings, and keep the first findings of each rule.

A table with a fault in every entry has hundreds of thousands of findings. Counting a finding takes a fraction
of the time for making a diagnostic, and the memory for the kept diagnostics does not grow with the table.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from hccl_tools.diagnostics.diagnostic import Diagnostic
from hccl_tools.notation.hint import with_places
from hccl_tools.notation.phrases import LONGEST_TEXT, shortened
from hccl_tools.rules.registry import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from hccl_tools.diagnostics.diagnostic import RuleFacts
    from hccl_tools.rules.registry import Finding, Found, Input, Rule

#: The number of findings of each rule that are kept at least until all rules have run.
_COMPARED = 64
#: The maximum number of path levels; a deeper path is cut to this depth. Rank tables have at most 8 levels.
DEEPEST_PATH = 100


class Findings:
    """Runs rules and collects their findings.

    Attributes:
        limit: The number of findings kept for each rule after ``trim``; ``None`` keeps all.
        chosen: Returns whether to keep the findings of a rule.
        kept: The diagnostics, in the order of discovery.
        counts: The number of findings by rule.
        asked: The chosen rules that were run.
    """

    def __init__(self, limit: int | None, chosen: Callable[[RuleFacts], bool]) -> None:
        self.limit = limit
        # With a low limit too, findings are compared with others before they are left out.
        self._wanted = max(limit, _COMPARED) if limit else limit
        self.chosen = chosen
        self.kept: list[Diagnostic] = []
        self.counts: Counter[RuleFacts] = Counter()
        self._asked: dict[RuleFacts, None] = {}
        self._silent: Callable[[], Iterable[Rule]] = tuple

    def find_nothing(self, rules: Callable[[], Iterable[Rule]]) -> None:
        """Note rules that find nothing; they are loaded only if somebody asks which these are."""
        self._silent = rules

    def asked(self) -> tuple[RuleFacts, ...]:
        """Return the chosen rules that were applied."""
        return (*self._asked, *(rule.facts for rule in self._silent() if self.chosen(rule.facts)))

    def run(self, rules: Iterable[Rule], subject: Input) -> int:
        """Run the given rules, except those that need a damaged key; return the number of their findings."""
        total = 0
        damaged: frozenset[str] = subject.damaged if isinstance(subject, Subject) else frozenset()
        for rule in rules:
            if not damaged.isdisjoint(rule.needs):
                continue
            found = iter(rule.check(subject))
            is_chosen = self.chosen(rule.facts)
            wanted = self._wanted if is_chosen else 0
            if is_chosen:
                self._asked[rule.facts] = None
            first = [_diagnostic(rule.facts, made(one)) for one in islice(found, wanted)]
            self.kept += first
            if number := len(first) + sum(1 for _ in found):
                self.counts[rule.facts] += number
                total += number
        return total

    def drop_told_by_errors(self, rule_id: str) -> None:
        """Remove the findings of a rule whose value an error corrects in the same way: one fault is one finding."""
        told = {
            (one.path, one.right)
            for one in self.kept
            if one.rule.severity == "error" and one.right is not None
        }
        self._drop([one for one in self.kept if one.rule.id == rule_id and (one.path, one.right) in told])

    def drop_at_errors(self, rule_id: str, keys: Container[str | int]) -> None:
        """Remove the findings of a rule at values of some keys on which an error says the same, with the right remedy."""
        errors = (one for one in self.kept if one.rule.severity == "error")
        told = {one.path for one in errors if one.path and one.path[-1] in keys}
        self._drop([one for one in self.kept if one.rule.id == rule_id and one.path in told])

    def trim(self) -> None:
        """Keep only as many findings of each rule as the limit allows."""
        seen: Counter[RuleFacts] = Counter()
        kept = []
        for one in self.kept:
            seen[one.rule] += 1
            if self.limit is None or seen[one.rule] <= self.limit:
                kept.append(one)
        self.kept = kept

    def _drop(self, again: list[Diagnostic]) -> None:
        if not again:
            return
        for one in again:
            self.kept.remove(one)
            self.counts[one.rule] -= 1
        self.counts = +self.counts

    @property
    def omitted(self) -> dict[RuleFacts, int]:
        """The number of omitted findings of each chosen rule."""
        kept = Counter(one.rule for one in self.kept)
        return {
            rule: number - kept[rule]
            for rule, number in self.counts.items()
            if number > kept[rule] and self.chosen(rule)
        }


def made(found: Found) -> Finding:
    """Return a finding that a rule has made, or makes now."""
    return found() if callable(found) else found


def _hint(text: str) -> str:
    """Return a hint of limited length; without its middle, a quote of a command would end elsewhere."""
    hint = with_places(text)
    if len(hint) <= LONGEST_TEXT:
        return hint
    return f"{hint[:LONGEST_TEXT]} ..." if "'" in hint else shortened(hint)


def _diagnostic(rule: RuleFacts, found: Finding) -> Diagnostic:
    kept = found._replace(
        message=shortened(found.message),
        path=found.path[:DEEPEST_PATH],
        hint=None if found.hint is None else _hint(found.hint),
        alike=None if found.alike is None else (shortened(found.alike[0]), _hint(found.alike[1])),
    )
    return Diagnostic(rule, *kept)
