"""A host whose engine process is still exiting when the host's part of the job has ended already."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from hccl_tools.launch.cluster.agent import AgentLink
from hccl_tools.launch.model.outcome import Cause, Outcome
from hccl_tools.launch.model.rank_messages import Ended

if TYPE_CHECKING:
    from hccl_tools.launch.protocol.messages import Message

PARENT = 4711
ENGINE_ENDED = Cause.lost("node-1", "daemon", "mpirun exited before its ranks: exit code 0")


def reported(*, exits: bool, cause: Cause = ENGINE_ENDED, senders: dict[int, int] | None = None) -> Ended:
    """Return what a host reports that was told to end; its parent has not ended by then."""
    sent: list[Message] = []
    link = AgentLink.__new__(AgentLink)
    link._host, link._end_requested, link._daemon_lost = "node-2", True, None
    link._connection = cast("Any", SimpleNamespace(send=sent.append))
    link._parent = cast("Any", SimpleNamespace(pid=PARENT, name="prted", exits_within=lambda _: exits))
    link._attempt = cast(
        "Any",
        SimpleNamespace(
            state=SimpleNamespace(remote_cause=cause), signals=SimpleNamespace(senders=senders or {})
        ),
    )
    link.report_end(Outcome("daemon", [], 1.0, remote_cause=cause))
    (message,) = sent
    assert isinstance(message, Ended)
    return message


def test_its_exit_is_the_cause() -> None:
    cause = reported(exits=True).cause

    assert cause is not None
    assert (cause.host, cause.reason) == ("node-2", "daemon")
    assert cause.detail == f"prted (pid {PARENT}) was killed, or exited before its ranks"


@pytest.mark.parametrize(
    "options",
    [
        {"exits": False},
        {"exits": True, "cause": Cause("node-1", "signal", 130, signal=signal.SIGINT)},
        {"exits": True, "senders": {signal.SIGTERM: PARENT}},
    ],
    ids=["it goes on", "another cause", "it ended its ranks"],
)
def test_otherwise_the_host_reports_no_cause(options: dict[str, Any]) -> None:
    assert reported(**options).cause is None
