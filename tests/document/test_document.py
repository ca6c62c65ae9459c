"""Positions in a document: spans, lines, columns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.document.document import Document

TABLE = b"""{
    "version": "1.0",
    "server_list": [
        {"server_id": "\xe8\x8a\x82\xe7\x82\xb9", "device": [{"rank_id": "0"}, {"rank_id": "1"}]}
    ]
}
"""
VALUES = st.recursive(
    st.none() | st.integers(-5, 5) | st.text('ab\u00e9\u8bbe\U0001f600"\\\n', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('ab\u00e9"', max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


def text_of(document: Document, path: tuple[str | int, ...]) -> str:
    (span,) = document.spans([path])
    return document.data[span.start : span.end].decode()


def test_spans_are_bytes_of_the_file() -> None:
    document = Document.parse(TABLE, "x")
    paths: list[tuple[str | int, ...]] = [("server_list", 0, "device", 1, "rank_id"), ("version",), ()]

    rank, version, whole = document.spans(paths)

    assert TABLE[rank.start : rank.end] == b'"1"'
    assert TABLE[rank.key_start : rank.key_end] == b'"rank_id"'
    assert TABLE[version.start : version.end] == b'"1.0"'
    assert (whole.start, whole.end, whole.key_start) == (0, len(TABLE) - 1, None)
    assert document.position(rank.start) == (4, 70)


def test_a_byte_order_mark_counts_as_bytes_and_not_as_a_column() -> None:
    document = Document.parse(b'\xef\xbb\xbf{"a": "b"}', "x")
    (span,) = document.spans([("a",)])

    assert document.value == {"a": "b"}
    assert document.data[span.start : span.end] == b'"b"'
    assert document.position(span.start) == (1, 7)
    assert document.position(0) == (1, 1)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_lines_end_as_the_file_ends_them(newline: bytes) -> None:
    document = Document.parse(TABLE.replace(b"\n", newline), "x")
    (span,) = document.spans([("version",)])

    assert document.position(span.start) == (2, 16)
    start, end = document.line_bounds(span.start)
    assert document.data[start:end] == b'    "version": "1.0",'


def test_a_path_that_leads_nowhere_leads_to_its_nearest_ancestor() -> None:
    document = Document.parse(b'{"a": [{"b": 1}], "c": {}}', "x")

    assert text_of(document, ("a", 0, "x", 5)) == '{"b": 1}'
    assert text_of(document, ("a", 7)) == '[{"b": 1}]'
    assert text_of(document, ("a", 0, "b", "c")) == "1"
    assert text_of(document, ("c", "d")) == "{}"
    assert text_of(document, ("x",)) == document.data.decode()
    assert document.spans([("c", "d")])[0].key_start is None


def test_of_duplicate_keys_the_last_is_the_place() -> None:
    document = Document.parse(b'{"a": {"x": 1, "y": 2}, "b": 0, "a": {"y": 3}}', "x")

    assert text_of(document, ("a", "y")) == "3"
    assert text_of(document, ("a", "x")) == '{"y": 3}'


def test_escaped_keys_are_found() -> None:
    document = Document.parse(b'{"\\u0061\\/": {"b": 12345678901234567890}}', "x")

    assert text_of(document, ("a/", "b")) == "12345678901234567890"


def test_in_a_very_deep_document_a_path_is_followed_a_hundred_keys() -> None:
    document = Document.parse(b'{"x":' * 250 + b'{"y": 1, "y": 2}' + b"}" * 250, "x")
    (duplicate,) = document.duplicates

    (span,) = document.spans([duplicate.path])

    assert document.problem is None
    assert len(duplicate.path) == 251
    assert (span.start, span.end) == (500, len(document.data) - 100)


def test_a_broken_document_has_one_place() -> None:
    document = Document.parse(b'{"a": 1,}', "x")

    assert [span.start for span in document.spans([("a",), ()])] == [7, 7]


def test_text_behind_the_value_is_noted() -> None:
    assert Document.parse(b'{"a": 1} \n', "x").trailing is None
    assert Document.parse(b'{"a": 1} \n{"b": 2}', "x").trailing == 10
    assert Document.parse('{"é": 1}x'.encode(), "x").trailing == 9
    assert Document.parse(b'{"a": 1}\xff', "x").trailing == 8


def test_positions_in_a_long_line_of_chinese_text() -> None:
    names = ["设备%05d" % number for number in range(3000)]  # noqa: UP031  (reads like what it makes)
    document = Document.parse(json.dumps(names, ensure_ascii=False).encode(), "x")
    spans = document.spans([(number,) for number in range(3000)])

    for span, name in zip(spans, names, strict=True):
        assert document.data[span.start : span.end].decode() == f'"{name}"'
    assert document.position(spans[2999].start) == (1, 2 + 2999 * 11)


def paths_of(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(path, value)] + [found for key, item in items for found in paths_of(item, (*path, key))]


@given(VALUES, st.sampled_from([None, 2]), st.booleans(), st.booleans())
def test_every_value_stands_where_its_span_says(
    value: Any, indent: int | None, ascii_only: bool, mark: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    document = Document.parse((b"\xef\xbb\xbf" if mark else b"") + text.encode(), "x")
    wanted = paths_of(value)

    for (path, expected), span in zip(wanted, document.spans([path for path, _ in wanted]), strict=True):
        assert json.loads(document.data[span.start : span.end]) == expected
        if path and isinstance(path[-1], str):
            assert json.loads(document.data[span.key_start : span.key_end]) == path[-1]
        before = document.data[3 if mark else 0 : span.start].decode()
        line_start = before.rfind("\n") + 1
        assert document.position(span.start) == (before.count("\n") + 1, len(before) - line_start + 1)
