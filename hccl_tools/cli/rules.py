"""``hccl-tools rules``: list the rules, or explain one rule or HCCL error code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import did_you_mean

if TYPE_CHECKING:
    from hccl_tools.rules.registry import Rule

#: The form of HCCL's error codes.
_CODE = re.compile(r"E[A-Z]\d{4}", re.IGNORECASE)


@click.command("rules")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the rules, or explain one rule or HCCL error code.

    \b
    hccl-tools rules                     all rules
    hccl-tools rules HCC203              one rule: why, example, source
    hccl-tools rules duplicate-rank-id   the same by name
    hccl-tools rules EI0014              an error code of HCCL, and the rules for it
    hccl-tools rules HCC2                the rules of a family
    """  # noqa: D301  (click's mark: keep the lines)
    from hccl_tools.diagnostics.hccl_codes import CODES  # noqa: PLC0415  (`--help` does not need it)
    from hccl_tools.rules.pages import code_page, page  # noqa: PLC0415
    from hccl_tools.rules.registry import all_rules  # noqa: PLC0415

    rules = list(all_rules().values())
    code = (name or "").strip().upper()
    if code in CODES:
        behind = [rule for rule in rules if rule.facts.hccl_code == code]
        click.echo(code_page(code, tables=bool(behind)))
        _print_list(behind)
        return
    found = rules if name is None else _matching(rules, name)
    if len(found) == 1 and name is not None:
        click.echo(page(found[0]).rstrip())
        return
    _print_list(found)
    click.echo(f"\n{len(found)} rules; `hccl-tools rules {found[0].facts.id}` explains one rule")


def _matching(rules: list[Rule], name: str) -> list[Rule]:
    wanted = name.strip().upper()
    found = [rule for rule in rules if wanted == rule.facts.name.upper() or rule.facts.id.startswith(wanted)]
    if not found:
        raise UsageError(f'no rule or HCCL error code "{name}"', hint=_advice(rules, name))
    return found


def _advice(rules: list[Rule], name: str) -> str:
    """Return the hint for an unknown name; codes differ in one digit, so similar ones are not suggested."""
    from hccl_tools.diagnostics.hccl_codes import CODES  # noqa: PLC0415

    if _CODE.fullmatch(name.strip()):
        return f"known codes: {', '.join(CODES)}"
    known = [rule.facts.id for rule in rules] + [rule.facts.name for rule in rules]
    return f"{did_you_mean(name, known)} `hccl-tools rules` lists all rules".lstrip()


def _print_list(rules: list[Rule]) -> None:
    width = max((len(rule.facts.name) for rule in rules), default=0)
    for rule in rules:
        facts = rule.facts
        code = facts.hccl_code or "-"
        click.echo(f"{facts.id}  {facts.name:<{width}}  {facts.consequence:<11}  {code:<6}  {facts.title}")
