"""The state table of a conversation: as documented, and enforced without a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.launch.model.outcome import Cause
from hccl_tools.launch.model.rank_messages import Ended, EndedByEngine, Join
from hccl_tools.launch.protocol import session, states
from hccl_tools.launch.protocol.messages import (
    End,
    Ending,
    EvidenceTaken,
    Heard,
    Hung,
    Kill,
    Leave,
    Look,
    Message,
    Quiet,
    Ready,
    Refused,
    Release,
    Start,
    Table,
    Waiting,
    Written,
)
from hccl_tools.launch.protocol.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

CAUSE = Cause.lost("host-b", "host", "its launcher was killed")
EXAMPLES: dict[type, Message] = {
    type(each): each
    for each in (
        Table(b"{}"), Join(1, 2, ("", 0)), Ready(), Waiting(("host-b",)), Refused("no device"), Start(),
        Ending(CAUSE), EndedByEngine(), Ended(), End(CAUSE), Kill(), Heard(), Release(), Leave(),
        Quiet(2.5), Look(), Hung(), EvidenceTaken(), Written(b"a"),
    )
}  # fmt: skip
SENDERS = {"Agent": states.AGENT, "Controller": states.CONTROLLER}
PAGE = (Path(__file__).parents[3] / "docs" / "en" / "explanation" / "how_hosts_communicate.md").read_text(
    encoding="utf-8"
)


def rows(heading: str) -> list[tuple[str, ...]]:
    """Return the rows of the first table below a heading of the page."""
    section = PAGE.split(f"# {heading}\n", 1)[1].split("\n#", 1)[0]
    found = [
        tuple(cell.strip() for cell in row.strip("|").split("|"))
        for row in re.findall(r"^\|.*$", section, re.MULTILINE)
    ]
    return found[2:]


@pytest.mark.parametrize("sender", SENDERS)
def test_the_page_has_the_state_table(sender: str) -> None:
    table = SENDERS[sender]

    assert rows(sender) == [
        (state, kind.__name__, following) for state, row in table.items() for kind, following in row.items()
    ]


def test_the_page_has_every_message_with_its_sender() -> None:
    said = {name: sender for name, sender, _ in rows("Messages")}
    sent = {
        sender: {kind.__name__ for row in table.values() for kind in row} for sender, table in SENDERS.items()
    }

    assert said.keys() == {kind.__name__ for kind in EXAMPLES} == sent["Agent"] | sent["Controller"]
    for name, sender in said.items():
        both = name in sent["Agent"] and name in sent["Controller"]
        assert sender == ("either" if both else "agent" if name in sent["Agent"] else "controller")


@pytest.mark.parametrize("table", SENDERS.values(), ids=SENDERS)
def test_every_state_is_reached(table: Mapping[str, Mapping[type, str]]) -> None:
    reached, new = {states.FIRST}, {states.FIRST}
    while new:
        new = {following for state in new for following in table[state].values()} - reached
        reached |= new

    assert reached == table.keys()


@pytest.mark.parametrize("listens", [True, False])
@given(sent=st.lists(st.sampled_from([*EXAMPLES.values()]), max_size=12))
def test_the_first_message_out_of_order_ends_the_session(listens: bool, sent: list[Message]) -> None:
    table, state, allowed = SENDERS["Agent" if listens else "Controller"], states.FIRST, 0
    while allowed < len(sent) and type(sent[allowed]) in table[state]:
        state = table[state][type(sent[allowed])]
        allowed += 1
    side, other = Session(None, listens=listens), Session(None, listens=not listens)
    for message in sent:
        other.send(message)

    assert side.receive(bytes(other.outgoing)) == sent[:allowed]
    assert side.problem == (None if allowed == len(sent) else session.Problem("protocol"))
