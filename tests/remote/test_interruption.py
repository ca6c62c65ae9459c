"""Signals during a query: they arrive, but not between the start of a child and its entry in the list."""

from __future__ import annotations

import signal
import threading

import pytest

from hccl_tools.remote.interruption import exit_on_signals, postponed


def test_a_signal_arrives_after_the_body() -> None:
    steps = []

    def body() -> None:
        signal.raise_signal(signal.SIGINT)
        steps.append("body")

    with pytest.raises(KeyboardInterrupt), postponed():
        body()

    assert steps == ["body"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_becomes_an_exit_code(number: signal.Signals, code: int) -> None:
    with pytest.raises(SystemExit) as ended, exit_on_signals(), postponed():
        signal.raise_signal(number)

    assert ended.value.code == code
    assert signal.getsignal(number) is signal.SIG_DFL


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with exit_on_signals(), postponed():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_nothing_is_changed_in_a_thread() -> None:
    problems: list[BaseException] = []

    def body() -> None:
        try:
            with exit_on_signals(), postponed():
                assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        except BaseException as error:  # noqa: BLE001  (shown by the test)
            problems.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()

    assert problems == []
