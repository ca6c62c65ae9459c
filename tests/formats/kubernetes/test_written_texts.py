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


@pytest.mark.parametrize(
    "text",
    [
        "1e-5",
        "1e3",
        "y",
        "N",
        "0o17",
        "-.5",
        "+.5",
        "1.e3",
        "-0o7",
        "on",
        "~",
        "1_000",
        "0x1F",
        ".inf",
        "12:30",
    ],
)
def test_a_text_that_a_reader_of_yaml_takes_for_another_type_is_quoted(text: str) -> None:
    """PyYAML leaves some of these without quotes, and kubectl reads them as numbers or booleans."""
    assert writing.text([{"args": [text]}]) == f"args:\n  - '{text}'\n"


def test_names_are_written_without_quotes() -> None:
    assert (
        writing.text([{"apiVersion": "batch.volcano.sh/v1alpha1"}])
        == "apiVersion: batch.volcano.sh/v1alpha1\n"
    )


def test_a_comment_has_one_line() -> None:
    written = writing.text([{"kind": "Job"}], ["from a\x85evil: true", "from b\u2028evil: true"])

    assert yaml.safe_load(written) == {"kind": "Job"}
