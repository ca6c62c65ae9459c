"""Records from JSON: every form of an annotation with what fits, what does not, and the boundary."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools import codec, records
from hccl_tools.codec import DecodeError, decode, decode_as, from_json
from hccl_tools.records import (
    Count,
    ExitCode,
    Index,
    LongText,
    NamedTuple,
    OsText,
    Port,
    Seconds,
    Signal,
    plain,
    to_json,
)
from tests.support.bulk import for_each
from tests.support.pythons import python

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Colour = Literal["red", "green"]
Shape = "Circle | Square"
MAXIMUM = (1 << 31) - 1


class Circle(NamedTuple):
    radius: float = 1.0


class Square(NamedTuple):
    side: float = 1.0


class Rank(NamedTuple):
    rank: Index
    exit_code: ExitCode | None = None


class Tree(NamedTuple):
    name: str
    children: tuple[Tree, ...] = ()


class Span(NamedTuple):
    first: Count
    last: Count

    def check(self) -> str:
        return "first is after last" if self.first > self.last else ""


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    label: str = ""
    ranks: list[Rank] = dataclasses.field(default_factory=list)


class Everything(NamedTuple):
    text: str
    number: int
    fraction: float
    flag: bool
    data: bytes
    ranks: tuple[Rank, ...]
    pair: tuple[str, Count]
    names: list[str]
    by_name: Mapping[str, Rank]
    by_number: dict[Index, str]
    colour: Colour
    inline: Literal["a", "b"]
    shape: Circle | Square
    point: Point
    maybe: Rank | None = None
    seconds: Seconds = 0.0
    port: Port = 0
    signal: Signal = 0
    path: OsText = ""
    log: LongText = ""
    sequence: Sequence[int] = ()


FITTING: list[tuple[str, Any, Any]] = [
    ("str", "x" * (1 << 16), "x" * (1 << 16)),
    ("str", "\u4e00\U0001f600", "\u4e00\U0001f600"),
    ("LongText", "x" * (1 << 20), "x" * (1 << 20)),
    ("OsText", "/tmp/\udcff", "/tmp/\udcff"),
    ("int", -(1 << 63), -(1 << 63)),
    ("Count", 0, 0),
    ("Count", MAXIMUM, MAXIMUM),
    ("Size", (1 << 63) - 1, (1 << 63) - 1),
    ("Index", -1, -1),
    ("ExitCode", 255, 255),
    ("Signal", 64, 64),
    ("Port", 65535, 65535),
    ("float", -2, -2.0),
    ("float", sys.float_info.max, sys.float_info.max),
    ("Seconds", 0, 0.0),
    ("bool", True, True),
    ("bytes", "\xff\0", b"\xff\0"),
    ("Rank", {"rank": 3}, Rank(3)),
    ("Rank | None", None, None),
    ("None | Rank", {"rank": 3, "exit_code": None}, Rank(3)),
    ("tuple[Rank, ...]", [{"rank": 3}], (Rank(3),)),
    ("tuple[int, ...]", [0] * codec.MOST_VALUES, (0,) * codec.MOST_VALUES),
    ("tuple[str, Count]", ["h", 1], ("h", 1)),
    ("tuple[tuple[Index, str], ...]", [[1, "a"]], ((1, "a"),)),
    ("list[str | None]", ["a", None], ["a", None]),
    ("Sequence[int]", [1], (1,)),
    ("Mapping[str, tuple[int, ...]]", {"a": [1]}, {"a": (1,)}),
    ("dict[Index, str]", {"-1": "a", "7": "b"}, {-1: "a", 7: "b"}),
    ("Colour", "red", "red"),
    ("Literal['a', 'b c']", "b c", "b c"),
    ("Circle | Square", {"type": "square", "side": 2}, Square(2.0)),
    ("Shape", {"type": "circle"}, Circle()),
    ("Circle | Square | None", None, None),
    ("Point", {"x": 1, "ranks": [{"rank": 0}]}, Point(1, ranks=[Rank(0)])),
    ("Span", {"first": 2, "last": 2}, Span(2, 2)),
]


@for_each(FITTING, name=lambda case: f"{case[0]} {str(case[1])[:40]}")
def test_what_fits(case: tuple[str, Any, Any]) -> None:
    annotation, value, expected = case
    found = decode_as(annotation, __name__, value)

    assert found == expected
    assert type(found) is type(expected)


NINES, IS_NO_PORT = "9" * 37, "is not a whole number from 0 to 65535"
MANY = dict.fromkeys(map(str, range(codec.MOST_VALUES + 1)), 0)
MISFITS: list[tuple[str, Any, str]] = [
    ("str", 1, "1 is not text"),
    ("str", None, "null is not text"),
    ("str", "x" * ((1 << 16) + 1), "the text has 65537 characters, more than 65536"),
    ("str", "a\ud800", r'"a\ud800" contains half a character'),
    ("str", "a\udcff", r'"a\udcff" contains half a character'),
    ("OsText", "a\ud800", r'"a\ud800" contains half a character'),
    ("LongText", "x" * ((1 << 20) + 1), "the text has 1048577 characters, more than 1048576"),
    ("int", True, f"true is not a whole number from {-(1 << 63)} to {(1 << 63) - 1}"),
    ("Count", -1, "-1 is not a whole number from 0 to 2147483647"),
    ("Count", 1 << 31, "2147483648 is not a whole number from 0 to 2147483647"),
    ("Count", 10**5000, "a number of more than 20 digits is not a whole number from 0 to 2147483647"),
    ("Count", 1.0, "1.0 is not a whole number from 0 to 2147483647"),
    ("Size", -1, "-1 is not a whole number from 0 to 9223372036854775807"),
    ("Index", -2, "-2 is not a whole number from -1 to 2147483647"),
    ("ExitCode", "x", '"x" is not a whole number from 0 to 255'),
    ("ExitCode", 256, "256 is not a whole number from 0 to 255"),
    ("Signal", 65, "65 is not a whole number from 0 to 64"),
    ("Port", 65536, "65536 is not a whole number from 0 to 65535"),
    ("float", False, "false is not a number"),
    ("float", float("nan"), "nan is not a number"),
    ("float", float("inf"), "inf is not a number"),
    ("float", 10**5000, "a number of more than 20 digits is not a number"),
    ("Seconds", -0.1, "-0.1 is not a number of seconds, 0 or more"),
    ("Seconds", [], "a list is not a number of seconds, 0 or more"),
    ("bool", 0, "0 is neither true nor false"),
    ("bytes", 7, "7 is not text for bytes"),
    ("bytes", "\u4e00", "a character of the text is not a byte"),
    ("Rank", [], "a list is not an object"),
    ("Rank", {}, "rank is missing"),
    ("Rank", {"rank": 0, "rnak": 1}, '"rnak" is not a known field'),
    ("Rank | None", 0, "0 is not an object"),
    ("tuple[Rank, ...]", {}, "an object is not a list"),
    ("tuple[Rank, ...]", "ab", '"ab" is not a list'),
    ("tuple[Rank, ...]", [{"rank": 0}, 7], "[1]: 7 is not an object"),
    ("list[Rank]", [{"rank": 0, "exit_code": "x"}], '[0].exit_code: "x" is not a whole number from 0 to 255'),
    ("tuple[int, ...]", [0] * (codec.MOST_VALUES + 1), "the list has 131073 values, more than 131072"),
    ("tuple[str, Count]", ["h"], "the list has 1 values, not 2"),
    ("tuple[str, Count]", ["h", "p"], '[1]: "p" is not a whole number from 0 to 2147483647'),
    ("Mapping[str, int]", [], "a list is not an object"),
    ("Mapping[str, Port]", {"a": "b"}, '["a"]: "b" is not a whole number from 0 to 65535'),
    ("Mapping[str, int]", {"\ud800": 1}, r'["\ud800"]: "\ud800" contains half a character'),
    ("Mapping[str, int]", MANY, "the object has 131073 values, more than 131072"),
    ("Mapping[Index, str]", {"01": ""}, '["01"]: "01" is not a whole number from -1 to 2147483647'),
    ("Mapping[Index, str]", {"1_0": ""}, '["1_0"]: "1_0" is not a whole number from -1 to 2147483647'),
    ("Mapping[Port, str]", {"\u0663": ""}, r'["\u0663"]: "\u0663" is not a whole number from 0 to 65535'),
    ("Mapping[Port, str]", {"9" * 5000: ""}, f'["{NINES}..."]: "{NINES}..." {IS_NO_PORT}'),
    ("Colour", "blue", '"blue" is none of red, green'),
    ("Colour", ["red"], "a list is none of red, green"),
    ("Shape", {"type": "tree"}, 'type: "tree" is not known'),
    ("Shape", {"type": ["circle"]}, "type: a list is not known"),
    ("Shape", {}, "type: null is not known"),
    ("Shape", 1, "1 is not an object"),
    ("Point", {"x": 1, "ranks": [1]}, "ranks[0]: 1 is not an object"),
    ("Point", {}, "x is missing"),
    ("Span", {"first": 3, "last": 2}, "first is after last"),
    ("tuple[Span, ...]", [{"first": 3, "last": 2}], "[0]: first is after last"),
    ("str", ["\x1b[31m"], "a list is not text"),
    ("Port", "\x1b\x7f" + "x" * 99, rf'"\u001b\u007f{"x" * 35}..." is not a whole number from 0 to 65535'),
]  # fmt: skip


@for_each(MISFITS, name=lambda case: f"{case[0]} {str(case[2])[:60]}")
def test_what_does_not_fit(case: tuple[str, Any, str]) -> None:
    annotation, value, message = case
    with pytest.raises(DecodeError) as caught:
        decode_as(annotation, __name__, value)

    assert caught.value.message == message


def test_a_lenient_decoder_reads_what_another_version_has_written() -> None:
    value = {"rank": 1, "new": {"deep": [1]}, "exit_code": 2}

    assert decode(Rank, value, strict=False) == Rank(1, 2)
    with pytest.raises(DecodeError, match="exit_code: true is not"):
        decode(Rank, {**value, "exit_code": True}, strict=False)
    nested = {"x": 1, "ranks": [value]}
    assert decode(Point, nested, strict=False) == Point(1, ranks=[Rank(1, 2)])
    with pytest.raises(DecodeError, match=r'ranks\[0\]: "new" is not a known field'):
        decode(Point, nested)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "this is empty"),
        (b"{", "this is not JSON: Expecting property name enclosed in double quotes (line 1, column 2)"),
        (b'{"rank":1}\n{}', "this is not JSON: Extra data (line 2, column 1)"),
        (b'{"rank":\xff}', "this is not UTF-8"),
        (b'{"rank":NaN}', "NaN is not a number"),
        (b'{"rank":-Infinity}', "-Infinity is not a number"),
        (b'{"rank":' + b"9" * 5000 + b"}", "a number has 5000 digits"),
        (b'{"rank":1e999}', "rank: inf is not a whole number from -1 to 2147483647"),
        (b"[" * 200_000, "this is nested too deeply"),
        (b'{"rank":' * 200_000, "this is nested too deeply"),
        (b"[]", "a list is not an object"),
        (b"null", "null is not an object"),
    ],
    ids=lambda value: str(value[:30]),
)
def test_text_that_is_no_record(text: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        from_json(Rank, text)

    assert caught.value.message == message


def test_a_text_of_many_values_is_refused_before_it_takes_memory() -> None:
    text = "[" + "[]," * (4 << 20) + "[]]"
    tracemalloc.start()
    with pytest.raises(DecodeError, match="more than 4194304 values"):
        codec.parse(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 2 * len(text)


@pytest.mark.slow
def test_a_long_string_is_one_value() -> None:
    text = json.dumps({"data": '[{"a\\": [1,2]}, ' * (1 << 20)})

    assert len(codec.parse(text)["data"]) == 16 << 20


@pytest.mark.slow
def test_a_deep_record_is_refused() -> None:
    tree: dict[str, Any] = {"name": "leaf"}
    for _ in range(100_000):
        tree = {"name": "", "children": [tree]}
    with pytest.raises(DecodeError, match="nested too deeply"):
        decode(Tree, tree)
    while tree.get("children"):  # Python itself would free it recursively
        tree = tree["children"].pop()
    assert decode(Tree, {"name": "", "children": [tree]}) == Tree("", (Tree("leaf"),))


def test_an_annotation_that_cannot_be_decoded_is_a_fault_of_the_program() -> None:
    for annotation in ("set[int]", "Unknown", "json", "pytest"):
        with pytest.raises(TypeError):
            decode_as(annotation, __name__, {})


TEXT = st.text(max_size=20)
RANK = st.builds(Rank, st.integers(-1, MAXIMUM), st.none() | st.integers(0, 255))
NUMBER = st.integers(-(1 << 63), (1 << 63) - 1)
FRACTION = st.floats(allow_nan=False, allow_infinity=False)
EVERYTHING = st.builds(
    Everything,
    TEXT,
    NUMBER,
    FRACTION,
    st.booleans(),
    st.binary(max_size=20),
    st.lists(RANK, max_size=3).map(tuple),
    st.tuples(TEXT, st.integers(0, MAXIMUM)),
    st.lists(TEXT, max_size=3),
    st.dictionaries(TEXT, RANK, max_size=3),
    st.dictionaries(st.integers(-1, MAXIMUM), TEXT, max_size=3),
    st.sampled_from(["red", "green"]),
    st.sampled_from(["a", "b"]),
    st.builds(Circle, FRACTION) | st.builds(Square, FRACTION),
    st.builds(Point, NUMBER, TEXT, st.lists(RANK, max_size=3)),
    st.none() | RANK,
    st.floats(0, 1e300),
    st.integers(0, 65535),
    st.integers(0, 64),
    st.binary(max_size=20).map(lambda data: data.decode(errors="surrogateescape")),
    TEXT,
    st.lists(NUMBER, max_size=3).map(tuple),
)


@given(EVERYTHING)
def test_a_record_is_read_as_it_was_written(record: Everything) -> None:
    assert from_json(Everything, to_json(record)) == record
    assert json.loads(to_json(record)) == plain(record)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


@given(EVERYTHING, ANY, st.sampled_from([*Everything._fields, "another"]))
def test_a_wrong_value_is_read_or_refused(record: Everything, value: Any, name: str) -> None:
    fields = {**plain(record), name: value}
    try:
        found = decode(Everything, fields)
    except DecodeError as error:
        message = error.message
    else:
        message = ""
        assert from_json(Everything, to_json(found)) == found
    assert message.isprintable()
    assert message.isascii()


def test_a_host_with_python_3_8_decodes_and_encodes() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from hccl_tools import codec, records\n"
        "from collections.abc import Mapping\n"
        "class Rank(records.NamedTuple):\n"
        "    __annotations__ = {'rank': 'Index | None', 'names': 'Mapping[Index, tuple[str, ...]]'}\n"
        'found = codec.from_json(Rank, b\'{"rank": null, "names": {"1": ["a"]}}\')\n'
        "print(found.names, records.to_json(found).decode())"
    )
    root = str(records.__file__).rpartition("/hccl_tools/")[0]
    done = subprocess.run([python("3.8"), "-S", "-c", code, root], capture_output=True, text=True, check=True)

    assert done.stdout == '{1: (\'a\',)} {"rank": null, "names": {"1": ["a"]}}\n'
