"""A version that is not that of the content."""

from __future__ import annotations

import pytest

from hccl_tools import validate
from tests.support.tables import table


@pytest.mark.parametrize(
    ("written", "content", "product"),
    [
        ("1.2", "2.0", "a5"), ("1.0", "2.0", "a5"), ("2.0", "1.0", "a2"), ("2.0", "1.2", "a3"),
        ("2.0", "1.0", "910a"), ("1.2", "2.0", None), ("2.0", "1.0", "a5"), ("2.0", "1.2", None),
    ],
)  # fmt: skip
def test_the_version_of_the_content_is_the_remedy(written: str, content: str, product: str | None) -> None:
    value = {**table(content, 2, 8), "version": written}

    report = validate(value, product=product)

    assert report.verdict == "refused"
    assert f'write "version": "{content}"' in (report.errors[0].hint or "")


def test_a_whole_table_of_another_product_keeps_its_version() -> None:
    hint = validate(table("2.0", 1, 8), product="a2").errors[0].hint or ""
    assert "write" not in hint
    assert "--product a5" in hint


def test_version_1_2_without_super_pods_is_advised_against() -> None:
    value = {**table("1.0", 2, 8), "version": "1.2"}
    report = validate(value, product="a2")
    (one,) = report.findings
    assert (report.verdict, one.rule.id) == ("accepted", "HCC638")
    assert 'write "version": "1.0"' in (one.hint or "")
    assert not validate(table("1.0", 2, 8), product="a2").findings
