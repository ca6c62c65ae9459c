"""The readers of JSON: the slow one against HCCL's library, the fast ones against the slow one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hccl_tools.document import fast_parser
from hccl_tools.document.document import Document
from hccl_tools.document.fast_parser import NESTING_LIMIT
from hccl_tools.document.strict_parser import Reader
from hccl_tools.document.syntax_problem import JsonError
from tests.support.bulk import for_each

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "nlohmann_json_3.11.2.jsonl").read_text().splitlines()
]
PROBLEMS = [
    ("", "empty file", 0),
    (" \n\t ", "empty file", 0),
    ('{"a": 1', "cut off", 7),
    ('{"a": 1\n', "cut off", 7),
    ('{"a": "b', "cut off", 8),
    ('{"a": tr', "cut off", 8),
    ('{"a": ["b",', "cut off", 11),
    ('// x\n{"a": 1}', "comment", 0),
    ('{"a": 1 /* x */}', "comment", 8),
    ('{"a": 1, # x\n "b": 2}', "comment", 9),
    ('{"a": 1,}', "trailing comma", 7),
    ('{"a": [1, 2 ,\n ]}', "trailing comma", 12),
    ("{'a': 1}", "single quotes", 1),
    ("{\"a\": 'b'}", "single quotes", 6),
    ("{\u201ca\u201d: 1}", "curly quotes", 1),
    ('{"a"\uff1a 1}', "full-width punctuation", 4),
    ('{"a":\u00a01}', "invisible character", 5),
    ('{"a": NaN}', "NaN", 6),
    ('{"a": -Infinity}', "NaN", 6),
    ('{"a": True}', "python literal", 6),
    ('{"a": None}', "python literal", 6),
    ('[{"a": 1}, ...]', "ellipsis", 11),
    ('{\n<<<<<<< HEAD\n"a": 1}', "merge conflict", 2),
    ("{a: 1}", "unquoted key", 1),
    ('{"a": 192.168.1.2}', "unquoted text", 6),
    ('{"a": host-1}', "unquoted text", 6),
    ('{"a": 1\n "b": 2}', "missing comma", 7),
    ('[{"a": 1} {"b": 2}]', "missing comma", 9),
    ('{"a" 1}', "missing colon", 4),
    ('{"a" = 1}', "missing colon", 4),
    ('{"a"}', "missing value", 4),
    ('{"a": }', "missing value", 6),
    ("[1,,2]", "missing value", 3),
    ('{"a": [1}', "wrong bracket", 8),
    ('{"a": 01}', "number", 6),
    ('{"a": +1}', "number", 6),
    ('{"a": .5}', "number", 6),
    ('{"a": 1.}', "number", 6),
    ('{"a": 0x10}', "number", 6),
    ('{"a": 1e999}', "number overflow", 6),
    ('{"a": ' + "9" * 400 + "}", "number overflow", 6),
    ('{"a": "b\n"}', "unclosed text", 6),
    ('{"a": "b\tc"}', "control character", 8),
    ('{"a": "b\0c"}', "control character", 8),
    ('{"a": \0}', "NUL", 6),
    ('{"a": "b\\xc"}', "bad escape", 8),
    ('{"a": "C:\\Temp"}', "bad escape", 9),
    ('{"a": "b\\ud800"}', "lone surrogate", 8),
    ('{"a": "\\ud83d\\ude00\\udc00"}', "lone surrogate", 19),
    ("[" * 100_001, "nesting", 100_000),
    ("version: 1.0", "other", 0),
    ("apiVersion: v1\nkind: ConfigMap\n", "Kubernetes object", 0),
    ("---\nkind: ConfigMap\n", "Kubernetes object", 0),
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
#: Pieces of JSON, put together at random: mostly broken, often nearly sound.
PIECES = st.lists(
    st.sampled_from(
        ["{", "}", "[", "]", ",", ":", '"a"', '"a":', '"a":1,', '"b"', "1", "-0", "01", "1.", "1E6",
         "1e999", "true", "null", "NaN", "18446744073709551616", "-9223372036854775809",
         '"\\u0041"', '"\\ud83d\\ude00"',
         '"\\ud800"', '"\t"', "\0", " ", "\n", "'", "//", '"\u8bbe"', "\ufeff"],
    ),
    max_size=9,
).map("".join)  # fmt: skip


def typed(value: Any) -> Any:
    """Make 1, 1.0 and True differ, and -0.0 and 0.0."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, repr(value)


@for_each(ROWS, name=lambda row: repr(row["text"])[:40])
def test_verdict_and_value_are_those_of_hccls_library(row: dict[str, Any]) -> None:
    data = row["text"].encode("latin-1")

    document = Document.parse(data, "x")

    assert (document.problem is None) == row["accepted"]
    if row["accepted"]:
        assert typed(document.value) == typed(json.loads(row["value"]))
        nul_behind = document.trailing is not None and data[document.trailing] == 0
        assert row["strict"] == (document.trailing is None or nul_behind)


@pytest.mark.parametrize(
    ("text", "kind", "offset"), PROBLEMS, ids=lambda part: repr(part[:30]) if isinstance(part, str) else None
)
def test_a_problem_is_called_what_it_is(text: str, kind: str, offset: int) -> None:
    problem = Document.parse(text.encode(), "x").problem

    assert problem is not None
    assert (problem.kind, problem.offset) == (kind, len(text[:offset].encode()))
    assert problem.message[0].islower() or problem.message[0] in '"-+.}]{0129NTIh'
    assert not problem.message.endswith(".") or problem.kind == "number"
    assert problem.hint


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        ('{"a": "é"}'.encode("latin-1"), "bad utf-8", "0xE9"),
        ('{"a": "设备"}'.encode("gb18030"), "bad utf-8", "not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "utf-16", "UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "utf-16", "UTF-16"),
        ('{"a": 1}'.encode("utf-16-be"), "utf-16", "UTF-16"),
        ('{"a": 1}'.encode("utf-32"), "utf-16", "UTF-32"),
        (b"\0" * 10_000_000, "binary", "zero bytes"),
        (b"\x7fELF\x02\x01\x01", "binary", "a program"),
        (b"\x1f\x8b\x08\x00", "binary", "gzip"),
        (bytes(range(256)) * 4, "utf-16", "UTF-16"),
        (b"\xef\xbb\xbf", "empty file", "empty"),
        (b"\xef\xbb", "bad utf-8", "0xEF"),
    ],
    ids=lambda part: repr(part[:20]),
)
def test_a_file_that_is_no_utf8_text_is_called_what_it_is(data: bytes, kind: str, words: str) -> None:
    problem = Document.parse(data, "x").problem

    assert problem is not None
    assert problem.kind == kind
    assert words in problem.message


def test_chinese_windows_text_gets_the_command_that_converts_it() -> None:
    problem = Document.parse('{"a": "设备"}'.encode("gb18030"), "x").problem

    assert problem is not None
    assert "iconv -f GB18030" in problem.hint


@pytest.mark.parametrize("opener", ["[", '{"a":'])
@pytest.mark.parametrize("levels", [100, NESTING_LIMIT, NESTING_LIMIT + 1, 500, 5_000])
def test_deep_nesting_is_read_but_not_kept(opener: str, levels: int) -> None:
    closer = "]" if opener == "[" else "}"
    text = opener * levels + "1" + closer * levels

    document = Document.parse(text.encode(), "x")

    assert document.problem is None
    assert document.depth == (levels if levels > NESTING_LIMIT else 0)
    kept, value = 0, document.value
    while value:
        kept, value = kept + 1, (value[0] if opener == "[" else value["a"]) if value != 1 else None
    assert kept == (levels + 1 if levels <= NESTING_LIMIT else NESTING_LIMIT)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [NESTING_LIMIT + 1, 2_000, 90_000])
def test_what_is_wrong_below_deep_nesting_is_found_there(levels: int) -> None:
    text = '{"x": [' + "[" * levels + '"}{\\"", 1,' + "]" * levels + "]}"
    problem = Document.parse(text.encode(), "x").problem

    assert problem is not None
    assert (problem.kind, problem.offset) == ("trailing comma", text.index(",]"))


def test_places_behind_deep_nesting_are_found() -> None:
    levels = 50_000
    text = '{"x": ' + '[{"[": "}{\\"",' + '"y":' + "[" * levels + "]" * levels + '}], "a": 7}'
    document = Document.parse(text.encode(), "x")

    assert document.value["a"] == 7
    (span,) = document.spans([("a",)])
    assert text[span.start : span.end] == "7"


def test_a_million_digits_are_no_trouble() -> None:
    digits = b"9" * 1_000_000

    overflow = Document.parse(b'{"a": ' + digits + b"}", "x")
    fraction = Document.parse(b'{"a": 0.' + digits + b"}", "x")
    text = Document.parse(b'{"a": "' + digits + b'"}', "x")

    assert overflow.problem is not None
    assert "1,000,000 characters" in overflow.problem.message
    assert fraction.value == {"a": 1.0}
    assert len(text.value["a"]) == 1_000_000


def test_of_duplicate_keys_the_last_counts_and_both_places_are_known() -> None:
    text = b'{"a": {"b": 1, "c": 2, "b": 3, "\\u0062": 4}, "d": [{"e": 1, "e": 2}]}'

    document = Document.parse(text, "x")

    assert document.value == {"a": {"b": 4, "c": 2}, "d": [{"e": 2}]}
    assert [(one.path, one.first, one.last) for one in document.duplicates] == [
        (("a", "b"), text.index(b'"b"'), text.index(b'"\\u0062"')),
        (("d", 0, "e"), text.index(b'"e"'), text.rindex(b'"e"')),
    ]


def test_a_dropped_key_is_seen_although_the_rest_grew_when_written_again() -> None:
    document = Document.parse(b'{"a":1,"a":1E6}', "x")

    assert [one.path for one in document.duplicates] == [("a",)]


def read(text: str) -> Any:
    try:
        reader = Reader(text)
        return typed(reader.read()), reader.duplicates, text[reader.end :].strip(" \t\n\r")
    except JsonError:
        return None


@given(
    st.one_of(PIECES, VALUES.map(json.dumps), VALUES.map(lambda value: json.dumps(value, ensure_ascii=False)))
)
@example('{"a":1,"a":1E6}')
@example("\0")
def test_a_fast_parser_says_clean_only_where_the_slow_reader_agrees(text: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    expected = read(text)

    for parse in (fast_parser.parse_clean, fast_parser._parse_with_stdlib):
        value = parse(data)
        if value is not fast_parser.UNCLEAN:
            assert expected == (typed(value), [], "")


@given(VALUES)
def test_the_fast_parsers_do_take_ordinary_documents(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    if text.isascii() and "\\" not in text and not any(abs(number) >= 1 << 63 for number in integers(value)):
        assert fast_parser.parse_clean(text.encode()) is not fast_parser.UNCLEAN
        assert fast_parser._parse_with_stdlib(text.encode()) is not fast_parser.UNCLEAN


def test_small_files_are_read_with_orjson_after_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of thousands of files is small, and all together are not."""
    by_stdlib: list[bytes] = []
    monkeypatch.setattr(fast_parser, "_parsed", 0)
    monkeypatch.setattr(fast_parser, "_parse_with_stdlib", by_stdlib.append)
    data = json.dumps({"key": "a" * 1000}).encode()

    for _ in range(1000):
        fast_parser.parse_clean(data)

    assert 0 < len(by_stdlib) < 100


def integers(value: Any) -> list[int]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in integers(item)]
    if isinstance(value, list):
        return [number for item in value for number in integers(item)]
    return [value] if type(value) is int else []


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('{"a": 1\uff0c "b": 2}', "full-width comma \uff0c", "use ','"),
        ('{"a"\uff1a 1}', "full-width colon \uff1a", "use ':'"),
        ('{"a": "1" "b": 2}', "missing comma after this value", "write a comma"),
        ('{"a": 1,}', "trailing comma before }", "remove the comma"),
        ('{"status": True}', "True is not JSON", 'write "completed"'),
        ('{"status" : None}', "None is not JSON", 'write "completed"'),
        (
            '{"IsMindIEEPJob": True}',
            "True is not JSON",
            "write true, or a string in double quotes if HCCL reads the value",
        ),
        ("hosts", 'not valid JSON: the text begins with "hosts"', "specify the rank table, a JSON file"),
        ('{"a": @}', 'unexpected "@" instead of a value', "remove it, or put the value in double quotes"),
    ],
)
def test_sentences(text: str, message: str, hint: str) -> None:
    problem = Document.parse(text.encode(), "x").problem

    assert problem is not None
    assert (problem.message, problem.hint) == (message, hint)
