"""Every rule fires on its own bad example and is silent on its good one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from hccl_tools.formats.file_kinds import LOCAL, NOT_FOR_TARGETS, TARGETS
from hccl_tools.rules.registry import Rule, all_rules
from hccl_tools.validation.checker import validate
from tests.support.bulk import for_each
from tests.support.rule_examples import example

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.diagnostics.diagnostic import Report

RULES = all_rules()


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """The reports on the bad examples, by rule."""
    folder = tmp_path_factory.mktemp("bad")
    return {rule_id: report_of(rule, "Example", folder) for rule_id, rule in RULES.items()}


def report_of(rule: Rule, which: str, above: Path) -> Report:
    folder = above / rule.facts.id
    folder.mkdir()
    shown = example(rule, which)
    host = shown.host if rule.kind is LOCAL or shown.is_local else None
    target = rule.formats[0] if rule.formats and rule.formats[0] in TARGETS else None
    if rule.kind is NOT_FOR_TARGETS:
        target = "xllm"
    return validate(shown.write(folder), product=shown.product, env=shown.env, host=host, target=target)


@for_each(RULES.values(), name=lambda rule: rule.facts.id)
def test_bad_example_fires_the_rule(rule: Rule, bad: dict[str, Report]) -> None:
    assert rule.facts.id in [finding.rule.id for finding in bad[rule.facts.id].findings]


@pytest.mark.slow
@for_each(RULES.values(), name=lambda rule: rule.facts.id)
def test_hint_of_the_page_is_the_finding_s(rule: Rule, bad: dict[str, Report]) -> None:
    hints = [one.hint for one in bad[rule.facts.id].findings if one.rule.id == rule.facts.id]
    documented = re.search(r"^ *Hint: (.*)$", rule.check.__doc__ or "", re.MULTILINE)

    assert documented
    assert hints[0] == documented[1]


@pytest.mark.slow
@for_each(RULES.values(), name=lambda rule: rule.facts.id)
def test_good_example_does_not(rule: Rule, tmp_path: Path) -> None:
    findings = report_of(rule, "Instead", tmp_path).findings

    assert rule.facts.id not in [finding.rule.id for finding in findings]


@for_each(RULES.values(), name=lambda rule: rule.facts.id)
def test_rule_is_documented(rule: Rule) -> None:
    facts = rule.facts

    assert re.fullmatch(r"HCC[1-8]\d\d", facts.id)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", facts.name)
    assert facts.source
    assert 10 <= len(rule.facts.title) <= 120
    assert facts.hccl_code is None or re.fullmatch(r"EI\d{4}", facts.hccl_code)
    assert (facts.consequence == "advice") == facts.id.startswith("HCC6")


def test_names_are_unique() -> None:
    names = [rule.facts.name for rule in RULES.values()]

    assert len(set(names)) == len(names)


@for_each(RULES.values(), name=lambda rule: rule.facts.id)
def test_messages_read_well(rule: Rule, bad: dict[str, Report]) -> None:
    for finding in bad[rule.facts.id].findings:
        assert not finding.message.endswith(".")
        assert (
            not finding.message[0].isupper()
            or finding.message.split()[0].isupper()
            or "Ascend" in finding.message
        )
        assert "\n" not in finding.message
