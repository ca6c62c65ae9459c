"""Connections to many hosts: few are open at a time, and the work grows with the number of hosts."""

from __future__ import annotations

import selectors
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from hccl_tools.remote import connection
from tests.support.growth import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.remote.connection import Connection


class Ready:
    """A selector: at each call, one connection becomes ready, or one that was ready ends."""

    def __init__(self, *, end_at_once: bool) -> None:
        self.end_at_once = end_at_once
        self.begun: list[Any] = []
        self.ready: list[Any] = []
        self.most = 0

    def made(self, number: int) -> Iterator[Connection]:
        for _ in range(number):
            self.begun.append(SimpleNamespace(is_ready=False, ended=False))
            self.most = max(self.most, len(self.begun))
            yield self.begun[-1]

    def go_on(self) -> None:
        if self.begun:
            one = self.begun.pop(0)
            one.is_ready, one.ended = True, self.end_at_once
            self.ready.append(one)
        else:
            self.ready.pop(0).ended = True

    def select(self, _seconds: float | None) -> list[tuple[Any, int]]:
        return [(SimpleNamespace(data=self.go_on), selectors.EVENT_READ)]


def serve(number: int, *, end_at_once: bool = True) -> Ready:
    ready = Ready(end_at_once=end_at_once)
    opened: list[Any] = []
    selector = cast("selectors.BaseSelector", ready)
    connection.serve(ready.made(number), opened, selector, counts=lambda one: not (one.is_ready or one.ended))
    assert len(opened) == number
    assert all(one.ended for one in opened)
    return ready


@pytest.mark.parametrize("end_at_once", [True, False])
def test_few_of_many_connections_are_opened_at_a_time(end_at_once: bool) -> None:
    assert serve(10, end_at_once=end_at_once).most == 10
    assert serve(1000, end_at_once=end_at_once).most == connection.MOST


@pytest.mark.parametrize("end_at_once", [True, False])
def test_the_work_grows_with_the_number_of_hosts(end_at_once: bool) -> None:
    def taken(number: int) -> int:
        return steps(lambda: serve(number, end_at_once=end_at_once))

    assert taken(1600) < 2.2 * taken(800)


def test_none_is_served_longer_than_until() -> None:
    opened: list[Any] = []
    ready = Ready(end_at_once=True)
    selector = cast("selectors.BaseSelector", ready)
    connection.serve(ready.made(3), opened, selector, counts=lambda one: not one.ended, until=0.0)
    assert opened == []
