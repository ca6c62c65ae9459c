from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hccl_tools.host import local_addresses
from hccl_tools.programs import resolving

if TYPE_CHECKING:
    import pytest

_Answers = list[tuple[int, int, int, str, tuple[str, int]]]


def test_names_are_looked_up_at_the_same_time_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    both = threading.Barrier(8)

    def look_up(name: str, *_: object) -> _Answers:
        both.wait(10)
        asked.append(name)
        if name == "host-7":
            raise OSError("no such name")
        return [(2, 1, 6, "", ("10.0.0.1", 0)), (2, 2, 17, "", ("10.0.0.1", 0))]

    monkeypatch.setattr("_socket.getaddrinfo", look_up)
    names = [f"host-{number % 8}" for number in range(16)]

    found = resolving.looked_up(names)

    assert found == {**dict.fromkeys(names, ("10.0.0.1",)), "host-7": ()}
    assert sorted(asked) == sorted(set(names))


def test_a_name_server_that_does_not_answer_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    end = threading.Event()

    def look_up(name: str, *_: object) -> _Answers:
        if name == "10.0.0.7":
            return [(2, 1, 6, "", (name, 0))]
        asked.append(name)
        end.wait(30)
        raise OSError("no answer")

    monkeypatch.setattr("_socket.getaddrinfo", look_up)
    began = time.monotonic()

    found = resolving.looked_up(["10.0.0.7", *(f"host-{number}" for number in range(1000))], 0.2)

    assert found == {"10.0.0.7": ("10.0.0.7",)}
    assert time.monotonic() - began < 10
    end.set()
    time.sleep(0.1)
    assert len(asked) < 300  # The threads do not go on with the others.


def test_the_names_and_addresses_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: type("Names", (), {"nodename": "this-host"}))
    names = ["this-host", "127.0.0.1", "::1", "198.51.100.1", "no such name"]

    assert local_addresses.those_of_this_host(names) >= {"this-host", "127.0.0.1"}
    assert local_addresses.those_of_this_host(names).isdisjoint({"198.51.100.1", "no such name"})
