"""Texts of a command or a table are in written YAML exactly as they were given."""

from __future__ import annotations

import pytest
import yaml

from hccl_tools.formats.kubernetes import writing


@pytest.mark.parametrize(
    "text", ["\x85x", "a\u2028b", "a\u2029\nb", "a\nb\x85", "a\r\nb", " a", "yes", "a: b", "\ufeffa", "# a"]
)
def test_a_text_is_read_as_it_was_given(text: str) -> None:
    assert yaml.safe_load(writing.text([{"args": [text]}])) == {"args": [text]}


def test_a_comment_has_one_line() -> None:
    written = writing.text([{"kind": "Job"}], ["from a\x85evil: true", "from b\u2028evil: true"])

    assert yaml.safe_load(written) == {"kind": "Job"}
