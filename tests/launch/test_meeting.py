"""Hosts that were started by hand compare what they have, over real connections."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch import meeting, ports
from hccl_tools.launch.meeting import Attendance

if TYPE_CHECKING:
    from collections.abc import Sequence

HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
SAME = {"fingerprint of the rank table": "1f2e", "--start": "torch"}


def meet(attendances: Sequence[Attendance], *, wait: float = 30.0) -> dict[str, str]:
    """Let hosts meet, each in a thread of its own; return what each was refused with."""
    address = ("127.0.0.1", ports.free_port())
    refused: dict[str, str] = {}

    def come(own: Attendance) -> None:
        try:
            meeting.meet(own, HOSTS, master=0, address=address, tell=lambda _: None, wait=wait)
        except LaunchError as error:
            refused[own.host] = error.message

    threads = [threading.Thread(target=come, args=(own,)) for own in attendances]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ports.is_free(address[1])
    return refused


def everybody() -> list[Attendance]:
    return [Attendance(server, host, dict(SAME)) for server, host in enumerate(HOSTS)]


def test_hosts_that_have_the_same_go_on() -> None:
    assert meet(everybody()) == {}


def test_a_difference_names_both_hosts_on_both() -> None:
    own, other = everybody()[:2]
    other.has["fingerprint of the rank table"] = "9a9a"

    refused = meet([own, other])

    said = "fingerprint of the rank table: 10.0.0.1 has 1f2e, 10.0.0.2 has 9a9a"
    assert refused == {"10.0.0.1": said, "10.0.0.2": said}


def test_a_host_that_does_not_come_is_named() -> None:
    refused = meet(everybody()[:1], wait=0.5)

    assert refused["10.0.0.1"].startswith("10.0.0.2, 10.0.0.3 has not come")


def test_without_the_host_of_rank_0_nobody_waits_for_ever() -> None:
    refused = meet(everybody()[1:2], wait=0.5)

    assert refused["10.0.0.2"].startswith("10.0.0.1 (port ")


def test_two_hosts_that_take_themselves_for_one_server() -> None:
    assert "take themselves for server 10.0.0.1" in meeting.difference(everybody()[0], everybody()[0])


def test_what_only_one_has_is_a_difference() -> None:
    one, other = everybody()[:2]
    other.has["HCCL_BUFFSIZE"] = "200"

    assert meeting.difference(one, other) == "HCCL_BUFFSIZE: 10.0.0.1 has none, 10.0.0.2 has 200"
