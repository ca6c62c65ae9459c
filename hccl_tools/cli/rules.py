"""``hccl-tools rules``: list the rules and messages, or explain one of them or an error code."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

from hccl_tools.cli import language
from hccl_tools.doctor import pages as check_pages
from hccl_tools.doctor.registry import all_checks
from hccl_tools.errors import UsageError
from hccl_tools.explain.knowledge import registry
from hccl_tools.explain.knowledge.pages import page as message_page
from hccl_tools.explain.knowledge.pages import row
from hccl_tools.notation import screen
from hccl_tools.notation.phrases import count, did_you_mean
from hccl_tools.rules import pages
from hccl_tools.rules.registry import all_rules
from hccl_tools.zh.lines import has_all

if TYPE_CHECKING:
    from hccl_tools.explain.knowledge.message import Message
    from hccl_tools.rules.registry import Rule

#: The rules of a code that are listed one by one on a terminal: the answer stands above them.
_MOST_ON_SCREEN = 6
#: The form of HCCL's error codes.
_CODE = re.compile(r"E[A-Z]\d{4}|\d{1,6}", re.IGNORECASE)


@click.command("rules")
@click.argument("words", nargs=-1, metavar="[NAME | WORD...]")
@language.lang
def command(words: tuple[str, ...], chinese: language.Chinese) -> None:
    """List the rules and the messages of logs, or explain one of them or an error code.

    \b
    hccl-tools rules                     all rules and messages
    hccl-tools rules HCC203              one rule: why, example, source
    hccl-tools rules duplicate-rank-id   the same by name
    hccl-tools rules EI0014              an error code of HCCL, and the rules for it
    hccl-tools rules 11                  a number of HcclResult ("error code is 11"), or 507048
    hccl-tools rules HCM207              a message of a log, as `explain` finds it
    hccl-tools rules HCD202              a check of `doctor`
    hccl-tools rules HCC2                the rules of a family
    """  # noqa: D301  (click's mark: keep the lines)
    if words and words != ("list",):
        print_page(" ".join(words), chinese)
        return
    rules = list(all_rules().values())
    _print_rules(rules, chinese)
    click.echo("")
    _print_messages(list(registry.messages().values()), chinese)
    click.echo(
        f"\n{len(rules)} rules and {len(registry.messages())} messages;"
        f" `hccl-tools rules {rules[0].facts.id}` explains one"
    )


def print_page(name: str, chinese: language.Chinese) -> None:
    """Print the page of a rule, a message or a code, or the list of those that the name or its words fit.

    Raises:
        UsageError: There is no such rule, message or code.
    """
    rules = list(all_rules().values())
    wanted = name.strip().upper()
    found = [rule for rule in rules if wanted == rule.facts.name.upper() or rule.facts.id.startswith(wanted)]
    known = registry.find(name)
    if len(found) == 1 and not known:
        _print_fitted(pages.page(found[0], _line(found[0].facts.id, chinese)).rstrip())
    elif len(known) == 1 and not found:
        _print_fitted(message_page(known[0], _line(known[0].id, chinese)))
        _print_rules_of(known[0], rules, chinese)
    elif found:
        _print_rules(found, chinese)
        click.echo(f"\n{len(found)} rules; `hccl-tools rules {found[0].facts.id}` explains one rule")
    elif known:
        _print_messages(known, chinese)
        click.echo(f"\n{len(known)} messages; `hccl-tools rules {known[0].id}` explains one message")
    else:
        _print_check(name, rules, chinese)


def _print_check(name: str, rules: list[Rule], chinese: language.Chinese) -> None:
    wanted = name.strip()
    checks = all_checks().values()
    check = next((one for one in checks if wanted.upper() == one.id or wanted.lower() == one.name), None)
    if check is not None:
        _print_fitted(check_pages.page(check, _line(check.id, chinese)))
    elif not print_found(wanted, chinese):
        raise UsageError(f'no rule, message or error code "{name}"', hint=_advice(rules, name))


def print_found(words: str, chinese: language.Chinese) -> bool:
    """Print the rules and messages that have all words; return whether there are any."""
    wanted = words.lower().split()
    if _CODE.fullmatch(words.strip()):
        return False  # The code is not known, and texts with similar digits do not answer that.
    rules = [
        rule for rule in all_rules().values() if all(word in pages.page(rule).lower() for word in wanted)
    ]
    found = registry.search(words)
    if chinese and not words.isascii():
        rules = rules or [rule for rule in all_rules().values() if has_all(rule.facts.id, wanted)]
        found = found or [message for message in registry.messages().values() if has_all(message.id, wanted)]
    _print_rules(rules, chinese)
    if found:
        _print_messages(found, chinese)
    ids = [*(message.id for message in found), *(rule.facts.id for rule in rules)]
    if ids:
        many = f"{count(len(rules), 'rule')} and {count(len(found), 'message')}"
        click.echo(f"\n{many} with these words; `hccl-tools rules {ids[0]}` explains one")
    return bool(ids)


def _print_rules_of(message: Message, rules: list[Rule], chinese: language.Chinese) -> None:
    """Print the rules of ``validate`` that find the fault of a message in a table."""
    codes = {code.code for code in message.codes}
    behind = [rule for rule in rules if rule.facts.id in message.rules or rule.facts.hccl_code in codes]
    if behind:
        if len(behind) > _MOST_ON_SCREEN and sys.stdout.isatty() and not chinese:
            listed = ", ".join(rule.facts.id for rule in behind)
            more = f"`hccl-tools rules {behind[0].facts.id}` explains one"
            text = f"Rules of `validate` with this code: {listed}; {more}"
            click.echo("\n" + screen.fitted(text, screen.width()))
            return
        click.echo("\nRules with this code:")
        _print_rules(behind, chinese)
    elif any(not code.isdigit() for code in codes):
        click.echo("\nNo rule of `validate` has this code.")


def with_number(digits: str) -> list[str]:
    """Return the ids of the rule, the message and the check that have a number: ``112`` is that of HCC112."""
    known = {*all_rules(), *registry.messages(), *all_checks()}
    return [one for kind in ("HCC", "HCM", "HCD") if (one := f"{kind}{digits}") in known]


def _advice(rules: list[Rule], name: str) -> str:
    """Return the hint for an unknown name; codes differ in one digit, so similar ones are not suggested."""
    if _CODE.fullmatch(name.strip()):
        code = name.strip().upper()
        if ids := with_number(code):
            return f"with this number: {', '.join(ids)}; type `hccl-tools rules {ids[0]}`"
        alike = [one for one in registry.codes() if one[:2] == code[:2] and len(one) == len(code)]
        return f"known codes: {', '.join(alike)}" if alike else "`hccl-tools rules` lists all codes"
    known = [rule.facts.id for rule in rules] + [rule.facts.name for rule in rules]
    known += [one for message in registry.messages().values() for one in (message.id, message.name)]
    return f"{did_you_mean(name, known)} `hccl-tools rules` lists all rules and messages".lstrip()


def _print_fitted(page: str) -> None:
    click.echo(screen.page_fitted(page, screen.width()))


def _line(identifier: str, chinese: language.Chinese) -> str:
    return chinese(identifier) if chinese else ""


def _print_rules(rules: list[Rule], chinese: language.Chinese) -> None:
    width = max((len(rule.facts.name) for rule in rules), default=0)
    rows = []
    for rule in rules:
        facts = rule.facts
        code = facts.hccl_code or "-"
        line = f"{facts.id}  {facts.name:<{width}}  {facts.consequence:<11}  {code:<6}"
        rows.append((facts.id, line, facts.title))
    _print_rows(rows, chinese)


def _print_messages(messages: list[Message], chinese: language.Chinese) -> None:
    width = max(len(message.name) for message in messages)
    _print_rows([(message.id, *row(message, width)) for message in messages], chinese)


def _print_rows(rows: list[tuple[str, str, str]], chinese: language.Chinese) -> None:
    """Print rows of an id, facts and a text; on a narrow screen the texts have lines of their own."""
    columns = screen.width()
    fits = columns is None or all(screen.cells(f"{facts}  {text}") <= columns for _, facts, text in rows)
    for identifier, facts, text in rows:
        lines = [f"{facts}  {text}"]
        if not fits:
            # Codes are a list without blanks, which would be one word.
            codes = " ".join(facts.split()).replace(",", ", ")
            lines = [*screen.wrapped(codes, columns, "    "), *screen.wrapped(f"    {text}", columns, "    ")]
        click.echo(language.with_lines("\n".join(lines), identifier, chinese))
