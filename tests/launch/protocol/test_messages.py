"""The messages between controller and agents as JSON."""

from __future__ import annotations

import json
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.launch.model.hang import HungRank
from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.rank_exit import RankExit
from hccl_tools.launch.protocol import messages
from hccl_tools.launch.protocol.messages import (
    End,
    Ended,
    EndedByEngine,
    Ending,
    Heard,
    Join,
    Kill,
    Leave,
    Ready,
    Refused,
    Release,
    Start,
    Table,
    Waiting,
    from_json,
    to_json,
)

TEXT = st.text(max_size=40)
NUMBER = st.integers(-1, (1 << 31) - 1)
INDEX = st.integers(0, (1 << 31) - 1)
REASON = st.sampled_from(["host", "daemon", "signal", "refused", "hang"])
SECONDS = st.floats(0, 1e9)
HUNG = st.builds(
    HungRank, INDEX, TEXT, TEXT, INDEX, st.booleans(), SECONDS, st.none() | SECONDS, TEXT, TEXT, TEXT,
    st.lists(TEXT, max_size=3), st.booleans(),
)  # fmt: skip
ALL_HUNG = st.lists(HUNG, max_size=3).map(tuple)
CAUSE = st.builds(
    Cause, TEXT, REASON, st.integers(0, 255), TEXT, st.integers(0, 64), st.none(),
    ALL_HUNG,
)  # fmt: skip
EXIT = RankExit(3, 1234, 9, 1.5, was_terminated=False, log="rank_3.log")
MESSAGES = st.one_of(
    st.builds(Table.of, st.binary(max_size=200)),
    st.builds(Join, NUMBER, INDEX, st.tuples(TEXT, INDEX), TEXT, TEXT),
    st.builds(Ready, INDEX, st.dictionaries(TEXT, TEXT)),
    st.builds(Waiting, st.lists(TEXT).map(tuple), INDEX),
    st.builds(Refused, TEXT, INDEX),
    st.builds(Start, INDEX, st.dictionaries(INDEX, TEXT)),
    st.builds(Ending, CAUSE, INDEX),
    st.just(EndedByEngine()),
    st.builds(Ended, st.lists(st.just(EXIT), max_size=3).map(tuple), st.none() | CAUSE, ALL_HUNG, INDEX),
    st.builds(End, CAUSE, NUMBER, INDEX),
    *(st.builds(kind, INDEX) for kind in (Kill, Heard, Release)),
    st.builds(Leave, TEXT),
)


@given(MESSAGES)
def test_every_message_is_read_as_it_was_written(message: messages.Message) -> None:
    assert from_json(to_json(message)) == message


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


@given(MESSAGES, st.data())
def test_a_message_with_a_wrong_value_is_read_or_refused(
    message: messages.Message, data: st.DataObject
) -> None:
    fields = json.loads(to_json(message))
    name = data.draw(st.sampled_from([*fields, "another"]))
    fields[name] = data.draw(_ANY)
    try:
        read = from_json(json.dumps(fields).encode())
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError, AttributeError):
        return
    assert from_json(to_json(read)) == read


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b'{"type":"kill","restart":true}',
        b'{"type":"kill","restart":-2}',
        b'{"type":"kill","restart":99999999999}',
        b'{"type":"kill","restart":0,"more":1}',
        b'{"type":["kill"]}',
        b'{"type":"unknown"}',
        b'{"type":"waiting","hosts":"abc"}',
        b'{"type":"join","number":0,"pid":1,"parent":["h"]}',
        b'{"type":"table","packed":"?"}',
    ],
)
def test_content_that_is_no_message_is_refused(content: bytes) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        from_json(content)


def test_a_table_that_unpacks_to_more_than_the_limit_takes_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(messages, "LARGEST_FROM_CONTROLLER", 1 << 20)
    bomb = Table(zlib.compress(bytes(64 << 20)))
    tracemalloc.start()
    with pytest.raises(ValueError, match="too large"):
        bomb.data()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 8 << 20


@pytest.mark.parametrize("packed", [b"", b"no table", zlib.compress(b"{}" * 99)[:-4]])
def test_a_damaged_table_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a packed table|cut off"):
        Table(packed).data()
