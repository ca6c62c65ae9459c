"""The grammar of device ranges: the ids of each form, and the message for each mistake."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.errors import UsageError
from hccl_tools.notation.device_range import parse


def ids(text: str, limit: int = 8) -> tuple[int, ...]:
    parsed = parse(text, device_limit=limit, product="910a")
    assert parsed.warnings == ()
    return parsed.ids


def refusal(text: str, limit: int = 8) -> str:
    with pytest.raises(UsageError) as caught:
        parse(text, device_limit=limit, product="910a")
    assert caught.value.hint
    assert caught.value.exit_code == 2
    return f"{caught.value.message} | {caught.value.hint}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[4,8)", (4, 5, 6, 7)),
        ("[0,1)", (0,)),
        ("0-7", tuple(range(8))),
        ("4,5,6,7", (4, 5, 6, 7)),
        ("7,6,5,4", (7, 6, 5, 4)),
        ("0-3,6", (0, 1, 2, 3, 6)),
        ("6,[0,2)", (6, 0, 1)),
        ("[0,2),[4,6)", (0, 1, 4, 5)),
        ("3", (3,)),
        ("3-3", (3,)),
        ("  [ 0 , 4 )  ", (0, 1, 2, 3)),
        ("[0, 4)", (0, 1, 2, 3)),
        (" 0 - 3 , 4 ", (0, 1, 2, 3, 4)),
        ("\t0\n", (0,)),
        ("007", (7,)),
    ],
)
def test_forms(text: str, expected: tuple[int, ...]) -> None:
    assert ids(text) == expected


def test_ids_above_nine() -> None:
    assert ids("[8,16)", 16) == tuple(range(8, 16))
    assert ids("[0,16)", 16) == tuple(range(16))
    assert ids("9-11,8", 16) == (9, 10, 11, 8)


def test_closed_bracket_is_half_open_where_nothing_else_is_possible() -> None:
    parsed = parse("[0,8]", device_limit=8, product="910a")

    assert parsed.ids == tuple(range(8))
    assert parsed.warnings == ('"[0,8]" read as "[0,8)", devices 0 to 7: 910a has no device 8',)


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("[0,8]", 16, ("is 8 included?", 'type "0-8" for devices 0 to 8, or "0-7" for devices 0 to 7')),
        ("[0,7]", 8, ('"[0,7]" is ambiguous', 'type "0-7" for devices 0 to 7, or "0-6" for devices 0 to 6')),
        ("[0,1]", 8, ("1 included?", 'type "0-1" for devices 0 to 1, or "0" for device 0')),
        ("[3,3]", 8, ("3 included?", 'type "3" for device 3')),
        ("[0,9]", 8, ("device 9", "0 to 7")),
        ("[8,8]", 8, ("device 8", "0 to 7")),
        ("[5,2]", 8, ('"[5,2]"', "descending")),
    ],
)
def test_closed_bracket_is_refused_elsewhere(text: str, limit: int, parts: tuple[str, ...]) -> None:
    message = refusal(text, limit)
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("empty",)),
        ("   ", ("empty",)),
        ("[4,4)", ('"[4,4)"', "empty", '"[4,5)"')),
        ("[8,4)", ('"[8,4)"', "descending")),
        ("7-4", ('"7-4"', "descending")),
        ("0-3,2", ("device 2", "twice", '"0-3"', '"2"')),
        ("1,1", ("device 1", "twice")),
        ("0,,1", ("missing", "between two commas")),
        (",0", ("missing", "between two commas")),
        ("0,1,", ("missing", "at the end")),
        ("0-", ('"0-"',)),
        ("-3", ('"-3"',)),
        ("0--3", ('"0--3"',)),
        ("0-3-5", ('"0-3-5"',)),
        ("a", ('"a"',)),
        ("0,b,2", ('"b"', 'in "0,b,2"')),
        ("0 1", ('"0 1"',)),
        ("[0,4", ('"[0,4"',)),
        ("(0,4)", ('"(0,4)"',)),
        ("(0,4]", ('"(0,4]"',)),
        ("0,4)", ('cannot read "0,4)"', 'did you mean "[0,4)"?')),
        ("range(0, 8)", ('cannot read "range(0, 8)"', 'did you mean "[0,8)"?')),
        ("range(8)", ('cannot read "range(8)"', 'did you mean "[0,8)"?')),
        ("0:8", ('did you mean "[0,8)"?',)),
        ("[0-8)", ('cannot read "[0-8)"', 'did you mean "[0,8)"?')),
        ("[0-7]", ('did you mean "0-7"?',)),
        ("0..7", ('did you mean "0-7"?',)),
        ("0 ~ 7", ('did you mean "0-7"?',)),
        ("0\uff5e7", ('did you mean "0-7"?',)),
        ("0 to 7", ('did you mean "0-7"?',)),
        ("[0,1,2,3]", ('did you mean "0,1,2,3"?',)),
        ("{0, 1, 2, 3}", ('did you mean "0,1,2,3"?',)),
        ("0 1 2 3", ('did you mean "0,1,2,3"?',)),
        ("ALL", ("leave the option out",)),
        ("[0,1,2)", ('"[0,1,2)"',)),
        ("[0;4)", ('"[0;4)"',)),
        ("[0,4)5", ('"[0,4)5"',)),
        ("[0\uff0c8)", ('full-width comma "\uff0c" in "[0\uff0c8)"', 'type "[0,8)"')),
        ("[0,8\uff09", ('full-width bracket "\uff09"', 'type "[0,8)"')),
        ("0\uff0c1", ("full-width comma", 'type "0,1"')),
        ("\u30100,8)", ('full-width bracket "\u3010"', 'type "[0,8)"')),
        ("\uff10-\uff17", ("full-width digit", 'type "0-7"')),
        ("0\u20137", ("typographic dash", 'type "0-7"')),
        ("\u0663", ('"\u0663"',)),
        ("1e3", ('"1e3"',)),
        ("[0,16)", ('"[0,16)"', "device 15", "0 to 7", "--product")),
        ("8", ('"8"', "device 8", 'for 8 devices type "[0,8)"', "--product 910B4")),
        ("9", ('"9"', "device 9", "0 to 7", "--product 910B4")),
        ("0-99999999999", ('"0-99999999999"', "99999999999")),
        ("[0,99999999)", ("0 to 7",)),
        ("9" * 5000, ("no product has",)),
    ],
)
def test_mistakes_name_the_token(text: str, parts: tuple[str, ...]) -> None:
    message = refusal(text)
    assert [part for part in parts if part not in message] == []
    assert len(message) < 400


@given(st.lists(st.integers(0, 63), unique=True, min_size=1), st.sampled_from(["", " ", "  "]))
def test_a_list_comes_back_as_it_was_typed(listed: list[int], blank: str) -> None:
    assert ids(f"{blank},{blank}".join(map(str, listed)), 64) == tuple(listed)


@given(st.text(alphabet="0123456789[](),- x", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parsed = parse(text, device_limit=16, product="a2")
    except UsageError as error:
        assert error.hint  # noqa: PT017
    else:
        assert len(set(parsed.ids)) == len(parsed.ids) > 0
        assert max(parsed.ids) < 16
