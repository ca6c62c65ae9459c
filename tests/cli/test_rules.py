"""``hccl-tools rules``: the list, one rule, and what HCCL's error codes mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain.knowledge.registry import codes, hccl_codes
from hccl_tools.launch.report import hints
from hccl_tools.rules.registry import all_rules

if TYPE_CHECKING:
    from tests.support.commands import CommandLine


@pytest.mark.parametrize("code", hccl_codes())
def test_every_code_that_a_failed_job_explains_is_explained(command_line: CommandLine, code: str) -> None:
    done = command_line("rules", code)

    meaning, remedy = hints.for_codes([code])[0].removeprefix(f"{code}: ").split(": ", 1)
    assert done.code == 0
    assert f"{meaning[0].upper()}{meaning[1:]}." in done.out
    assert f"What to do: {remedy}." in done.out


def test_a_code_of_a_time_out(command_line: CommandLine) -> None:
    done = command_line("rules", "ei0006")

    assert done.out.splitlines()[:3] == [
        "# EI0006 Communication_Error_Get_Socket",
        "",
        "A rank waited longer than HCCL_CONNECT_TIMEOUT (120 s) to connect to another rank.",
    ]
    assert done.out.splitlines()[-1] == "No rule of `validate` has this code."


def test_a_code_of_a_table_lists_its_rules(command_line: CommandLine) -> None:
    done = command_line("rules", "EI0017")

    behind = [rule for rule in all_rules().values() if rule.facts.hccl_code == "EI0017"]
    assert "Rules with this code:" in done.out
    assert [line[:6] for line in done.out.splitlines() if line.startswith("HCC")] == [
        rule.facts.id for rule in behind
    ]


def test_a_code_that_is_not_known_is_not_taken_for_its_neighbour(command_line: CommandLine) -> None:
    done = command_line("rules", "EI0099")

    assert done.code == 2
    assert done.err.splitlines() == [
        'error: no rule, message or error code "EI0099"',
        f"  help: known codes: {', '.join(code for code in codes() if code.startswith('EI'))}",
    ]


def test_the_codes_of_all_rules_are_known() -> None:
    assert {rule.facts.hccl_code for rule in all_rules().values()} - {None} <= codes().keys()


@pytest.mark.parametrize(
    ("name", "first_line"),
    [("HCC203", "# HCC203 duplicate-rank-id"), ("duplicate-rank-id", "# HCC203 duplicate-rank-id")],
)
def test_one_rule(command_line: CommandLine, name: str, first_line: str) -> None:
    done = command_line("rules", name)

    assert (done.code, done.out.splitlines()[0]) == (0, first_line)


def test_a_family(command_line: CommandLine) -> None:
    done = command_line("rules", "HCC2")

    assert {line[:4] for line in done.out.splitlines() if line.startswith("HCC")} == {"HCC2"}
    assert "rules; `hccl-tools rules HCC2" in done.out.splitlines()[-1]
