from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import UsageError
from hccl_tools.formats.schema import Violations
from hccl_tools.rules.registry import (
    FAMILIES,
    DamagedInput,
    Input,
    InputFacts,
    all_rules,
    chosen,
    rule,
    rules_for,
    shared,
    shared_each,
)
from hccl_tools.table.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Callable


def test_an_id_is_declared_once() -> None:
    all_rules()

    with pytest.raises(ValueError, match="HCC203 is both duplicate-rank-id and again"):
        rule("HCC203", "again", "refused", source="nowhere")(lambda _subject: [])


def test_each_format_loads_its_own_families() -> None:
    for table_format in ("1.0", "1.2", "2.0", "group_list"):
        assert all(table_format in found.formats for found in rules_for(table_format))


def test_no_family_is_loaded_for_nothing() -> None:
    rules = all_rules().values()
    for family, formats in FAMILIES.items():
        own = [found for found in rules if found.check.__module__.endswith(f".{family}")]
        used = {table_format for found in own for table_format in found.formats}
        assert own, family
        assert used <= set(formats), family
        assert all(found.formats for found in own) or not formats, family


@pytest.mark.parametrize(
    ("select", "ignore", "kept"),
    [
        ((), (), {"HCC202", "HCC203", "HCC303"}),
        (("HCC2",), (), {"HCC202", "HCC203"}),
        (("hcc203",), (), {"HCC203"}),
        (("duplicate-rank-id",), (), {"HCC203"}),
        ((), ("HCC20",), {"HCC303"}),
        (("HCC2",), ("HCC203",), {"HCC202"}),
    ],
)
def test_rules_are_chosen_by_id_prefix_or_name(
    select: tuple[str, ...], ignore: tuple[str, ...], kept: set[str]
) -> None:
    keep = chosen(select, ignore)
    rules = all_rules()

    assert {rule_id for rule_id in ("HCC202", "HCC203", "HCC303") if keep(rules[rule_id].facts)} == kept


def test_a_selector_that_fits_nothing_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match='no rule matches "HCC999"'):
        chosen((), ("HCC999",))


def test_an_input_needs_no_document() -> None:
    assert Input(InputFacts(PRODUCTS["a2"])).document is None


def test_shared_results_are_those_of_one_function() -> None:
    def first() -> Callable[[Input], str]:
        @shared
        def same_name(_subject: Input) -> str:
            return "first"

        return same_name

    @shared
    def same_name(_subject: Input) -> str:
        return "second"

    subject = Input(InputFacts(PRODUCTS["a2"]))

    assert (first()(subject), same_name(subject)) == ("first", "second")


def test_results_for_each_key_are_computed_once() -> None:
    times = []

    @shared_each
    def counted(_subject: Input, key: str) -> int:
        times.append(key)
        return len(times)

    subject = Input(InputFacts(PRODUCTS["a2"]))

    assert [counted(subject, key) for key in "aba"] == [1, 2, 1]
    assert counted(Input(subject.facts), "a") == 3


def test_an_input_made_from_another_has_its_results() -> None:
    times = []

    @shared
    def counted(subject: Input) -> int:
        times.append(subject)
        return len(times)

    given = Input(InputFacts(PRODUCTS["a2"]))
    counted(given)

    assert counted(DamagedInput(given, Violations({}, "1.0"))) == 1
