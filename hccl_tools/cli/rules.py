"""``hccl-tools rules``: the list, one rule, or what stands behind an HCCL error code."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Rule


@click.command("rules")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the rules, or explain one rule or HCCL error code.

    \b
    hccl-tools rules                     all rules
    hccl-tools rules HCC203              one rule: why, example, source
    hccl-tools rules duplicate-rank-id   the same by name
    hccl-tools rules EI0014              the rules behind HCCL's error code
    hccl-tools rules HCC2                the rules of a family
    """  # noqa: D301  (click's own mark: keep the lines)
    from hccl_tools.rules.pages import page  # noqa: PLC0415  (a command's own imports wait for the command)
    from hccl_tools.rules.registry import all_rules  # noqa: PLC0415

    rules = list(all_rules().values())
    found = rules if name is None else _matching(rules, name)
    if len(found) == 1 and name is not None and not name.upper().startswith("EI"):
        click.echo(page(found[0]).rstrip())
    else:
        _print_list(found)


def _matching(rules: list[Rule], name: str) -> list[Rule]:
    wanted = name.strip().upper()
    found = [
        rule
        for rule in rules
        if wanted in (rule.facts.name.upper(), rule.facts.hccl_code) or rule.facts.id.startswith(wanted)
    ]
    if not found:
        known = [rule.facts.id for rule in rules] + [rule.facts.name for rule in rules]
        known += sorted({rule.facts.hccl_code for rule in rules if rule.facts.hccl_code})
        close = get_close_matches(name.lower(), known, n=1) or get_close_matches(wanted, known, n=1)
        meant = f'did you mean "{close[0]}"? ' if close else ""
        raise UsageError(
            f'no rule and no HCCL code is called "{name}"', hint=f"{meant}`hccl-tools rules` lists them"
        )
    return found


def _print_list(rules: list[Rule]) -> None:
    width = max(len(rule.facts.name) for rule in rules)
    for rule in rules:
        facts = rule.facts
        code = facts.hccl_code or "-"
        click.echo(f"{facts.id}  {facts.name:<{width}}  {facts.consequence:<11}  {code:<6}  {rule.title}")
    click.echo(f"\n{len(rules)} rules; `hccl-tools rules {rules[0].facts.id}` explains one")
