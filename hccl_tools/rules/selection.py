"""Select rules by ids, prefixes and names (``--select``, ``--ignore``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import did_you_mean
from hccl_tools.rules.registry import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hccl_tools.diagnostics.diagnostic import RuleFacts


def chosen(select: Iterable[str], ignore: Iterable[str]) -> Callable[[RuleFacts], bool]:
    """Return a function that checks whether ids, prefixes (``HCC2``) or names select a rule.

    Raises:
        UsageError: A selector matches no rule.
    """
    select, ignore = tuple(select), tuple(ignore)
    if not select and not ignore:
        return lambda _facts: True
    everything = [found.facts for found in all_rules().values()]
    for selector in (*select, *ignore):
        if not any(_fits(facts, selector) for facts in everything):
            known = (name for facts in everything for name in (facts.name, facts.id))
            hint = f"{did_you_mean(selector, known)} `hccl-tools rules` lists all rules".lstrip()
            raise UsageError(f'no rule matches "{selector}"', hint=hint)

    def keep(facts: RuleFacts) -> bool:
        wanted = not select or any(_fits(facts, selector) for selector in select)
        return wanted and not any(_fits(facts, selector) for selector in ignore)

    return keep


def _fits(facts: RuleFacts, selector: str) -> bool:
    return facts.name == selector or facts.id.startswith(selector.upper())
