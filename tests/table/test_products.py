"""The names by which people call a product."""

from __future__ import annotations

from pathlib import Path

import pytest

from hccl_tools import validate
from hccl_tools.errors import UsageError
from hccl_tools.notation.phrases import EXAMPLE_CHIP
from hccl_tools.table.product_names import by_chip, read_name
from hccl_tools.table.products import PRODUCTS
from tests.support.reference_pages import products
from tests.support.tables import table

PAGE = Path(__file__).parents[2] / "docs" / "en" / "reference" / "products.md"
#: HCCL's own map from SoC names to the kinds of chips (hcomm, SOC_VER_CONVERT).
SOC_NAMES = {
    "910a": ["Ascend910A", "Ascend910B", "Ascend910ProA", "Ascend910ProB", "Ascend910PremiumA"],
    "a2": ["Ascend910B1", "Ascend910B2", "Ascend910B2C", "Ascend910B3", "Ascend910B4", "Ascend910B4-1"],
    "a3": ["Ascend910_9391", "Ascend910_9381", "Ascend910_9392", "Ascend910_9372", "Ascend910_9362"],
    "300i": ["Ascend310P1", "Ascend310P3", "Ascend310P5", "Ascend310P7"],
    "a5": ["Ascend950PR_9579", "Ascend950DT_9591"],
}
NAMES = {
    "910a": ["910A", "ascend 910a", "910ProB", "Atlas 800 (Model 9000)", "Atlas 900 PoD"],
    "a2": ["910B", "910b", "Ascend 910B", "910B3", "ASCEND_910B4", "Atlas 800T A2", "800i-a2", "Atlas A2"],
    "a3": ["910C", "910_93", "910-9391", "Atlas 900 A3 SuperPoD", "atlas 800 a3", "A3"],
    "a3-server": ["a3_server", "A3 server"],
    "300i": ["310P", "310p3", "Atlas 300I Duo", "300I"],
    "a5": ["950", "Ascend950PR", "ascend 950dt", "Atlas 950 SuperPoD"],
}


@pytest.mark.parametrize(
    ("product", "name"),
    [(product, name) for names in (SOC_NAMES, NAMES) for product in names for name in names[product]],
)
def test_names_of_chips_and_machines(product: str, name: str) -> None:
    assert read_name(name).product.name == product
    assert validate(table("1.0"), product=name).product == product


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_products_own_name_needs_no_word(product: str) -> None:
    assert read_name(product) == (PRODUCTS[product], None)
    assert read_name(product.upper()) == (PRODUCTS[product], None)


def test_the_reading_is_a_sentence() -> None:
    assert read_name("910B4").note == "910B4 is an a2"
    assert read_name("310P").note == "310P is a 300i"
    assert validate(table("1.0"), product="910B4").product_reason == "as given: 910B4 is an a2"


def test_the_soc_name_without_a_digit_is_the_first_generation_and_says_so() -> None:
    note = read_name("Ascend910B").note

    assert note is not None
    assert note.startswith("Ascend910B is a 910a")
    assert "--product a2" in note


@pytest.mark.parametrize("name", ["910x", "910", "910B5", "Ascend310", "Atlas 200I A2", "", "a0", "910a3"])
def test_unknown_names_list_the_products_with_their_chips(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_name(name)

    assert caught.value.message == f'unknown product "{name}"'
    hint = str(caught.value.hint)
    assert all(f"{product} (" in hint for product in PRODUCTS)
    assert "910B3" in hint
    assert "910C" in hint


@pytest.mark.parametrize(
    ("name", "product"),
    [("910A", "910a"), ("Ascend 910B3", "a2"), ("Ascend 310P3", "300i"), ("Ascend950PR", "a5"), ("", None)],
)
def test_chips_as_npu_smi_prints_them(name: str, product: str | None) -> None:
    found = by_chip(name)

    assert (found and found.name) == product


@pytest.mark.parametrize("name", ["Ascend910B", "Ascend 910B"])
def test_a_chip_of_two_generations_tells_no_product(name: str) -> None:
    assert by_chip(name) is None


def test_the_published_page_is_that_of_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == products(), "run: python -m tests.support.reference_pages"


def test_each_format_is_assumed_for_one_product() -> None:
    formats = [name for product in PRODUCTS.values() for name in product.assumed_for]

    assert sorted(formats) == ["1.0", "1.2", "2.0", "group_list"]


def test_the_chip_of_examples_is_in_the_table() -> None:
    found = by_chip(EXAMPLE_CHIP)

    assert found is not None
    assert found.four_device_sets is None
    assert found.counts_per_server is None
