"""The launcher's wires to the supervisors that mpirun or srun has started for it on all hosts.

A host whose wire closes without a word is lost: Slurm would notice that after 5 minutes, Open MPI after a
quarter of an hour if output was on its way. When one host's part ends before its time, all others are told at
once, and their ranks have the grace time that was asked for, not the engine's.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from hccl_tools.launch import host_ends, rank_ends, wire
from hccl_tools.launch.other_hosts import LAUNCHER_VARIABLE
from hccl_tools.launch.signal_names import signal_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.launch.attempt import Attempt
    from hccl_tools.launch.outcome import Outcome
    from hccl_tools.launch.plan import Plan
    from hccl_tools.launch.wire import Wire

#: Seconds for the last words, once the engine has ended.
_LAST_WORDS = 2.0
#: Seconds beyond the grace time for supervisors to say that they are done, and for the engine to follow them.
_SLACK, _ENGINE = 5.0, 3.0
#: Any address: asking the kernel for the way there sends nothing. (Reserved for documentation.)
_FAR_AWAY = "192.0.2.1"
#: Hosts to which the way is asked for: all are on few networks.
_ASKED = 32


class _Guest:
    """Who has come: a supervisor once it has said of which server (index in the table) it is."""

    def __init__(self, connection: Wire) -> None:
        self.wire, self.descriptor = connection, connection.fileno()
        self.server: int | None = None
        self.done = False


class EngineDoor:
    """Where the supervisors of a job come to; open for all its restarts."""

    def __init__(self, plan: Plan, token: str) -> None:
        """Open it.

        Args:
            plan: The job.
            token: By which its supervisors make themselves known.

        Raises:
            OSError: There is no port to be had.
        """
        self._plan = plan
        self._addresses = _own_addresses(plan.hosts)
        any_6 = next((address for address in self._addresses if ":" in address), "")
        self._listener = wire.door(any_6, 0)
        self._word = token
        self._guests: list[_Guest] = []
        #: The servers that have said how their part ends.
        self._spoken: set[int] = set()
        #: Those whose wire has closed.
        self._gone: set[int] = set()
        self._hosts = {process.server_index for process in plan.ranks}
        self._attempt: Attempt | None = None

    @property
    def environment(self) -> dict[str, str]:
        """By what supervisors find it."""
        port = self._listener.getsockname()[1]
        return {LAUNCHER_VARIABLE: f"{self._word}@{port}@{','.join(self._addresses)}"}

    def watch(self, attempt: Attempt) -> None:
        """Let supervisors come, and end this start of the job when one of them is lost."""
        self._forget()
        self._attempt = attempt
        attempt.on_readable(self._listener.fileno(), self._come)
        attempt.on_kill.append(lambda: self._say("kill"))
        attempt.ask = self._ask
        if self._plan.engine_flavour.startswith("mpich"):
            from hccl_tools.launch import unreached  # noqa: PLC0415  (MPICH only)

            unreached.watch(attempt, self._came, self._plan.run_dir, self._word)

    def explain(self, outcome: Outcome) -> None:
        """Put what the supervisors have said in the place of the engine in how this start ended."""
        self._hear_last_words()
        rank_ends.explain(self._plan, outcome, self._word)

    def _hear_last_words(self) -> None:
        deadline = time.monotonic() + _LAST_WORDS
        while self._guests and (left := deadline - time.monotonic()) > 0:
            poller = select.poll()
            for guest in self._guests:
                poller.register(guest.descriptor, select.POLLIN)
            poller.poll(left * 1000)
            for guest in list(self._guests):
                self._hear(guest)
        self._forget()

    def close(self) -> None:
        """Close it; supervisors that are left end their ranks."""
        self._forget()
        self._listener.close()

    def _forget(self) -> None:
        for guest in self._guests:
            guest.wire.close()
        self._guests.clear()
        self._spoken.clear()
        self._gone.clear()
        self._attempt = None

    def _came(self) -> tuple[list[str], int]:
        """Return the hosts that no supervisor has come from, and how many have come and gone."""
        missing = self._hosts - {guest.server for guest in self._guests} - self._gone
        return [host_ends.name(self._plan, server) for server in sorted(missing)], len(self._gone)

    def _come(self) -> None:
        while (connection := wire.accept(self._listener)) is not None:
            guest = _Guest(connection)
            self._guests.append(guest)
            if self._attempt is not None:
                self._attempt.on_readable(guest.descriptor, partial(self._hear, guest))

    def _hear(self, guest: _Guest) -> None:
        for word in guest.wire.words():
            if guest.server is not None and word.get("hccl_tools") == host_ends.DONE:
                guest.done = True
                self._let_go()
            elif guest.server is not None:
                self._note(guest.server, word)
            elif word.get("hello") == self._word and isinstance(word.get("server"), int):
                guest.server = word["server"]
                guest.wire.send({"word": "welcome"})
            else:
                guest.wire.closed = True
                break
        if guest.wire.closed:
            self._lose(guest)

    def _note(self, server: int, facts: dict[str, Any]) -> None:
        """Keep what a supervisor has said where what engines hand on is looked for, too."""
        with suppress(OSError), open(os.path.join(self._plan.run_dir, host_ends.ENDS_FILE), "ab") as file:
            file.write((json.dumps(facts, ensure_ascii=False) + "\n").encode())
        if facts.get("hccl_tools") in host_ends.LAST_WORDS:
            self._spoken.add(server)
        if facts.get("hccl_tools") == host_ends.ENDING:
            self._say("end", why=f"the job ends on {host_ends.name(self._plan, server)}")

    def _lose(self, guest: _Guest) -> None:
        self._guests.remove(guest)
        if guest.server is not None:
            self._gone.add(guest.server)
        if self._attempt is not None:
            self._attempt.on_readable(guest.descriptor, None)
            if guest.server is not None and guest.server not in self._spoken:
                self._attempt.end("host", host_ends.lost(self._plan, "supervisor", guest.server))
        guest.wire.close()
        self._let_go()

    def _ask(self, number: int) -> None:
        """Have supervisors ask the ranks to end: srun kills at once, mpirun of Open MPI 4 after 2 s."""
        attempt = self._attempt
        if attempt is None:
            return
        if not self._guests or {*self._hosts} - {guest.server for guest in self._guests} - self._gone:
            attempt.keeper.signal(number)  # Some were not reached.
            return
        attempt.slack = _SLACK
        self._say("end", why=f"the launcher ends the job ({signal_name(number)})", signal=number)
        self._let_go()

    def _let_go(self) -> None:
        """Once no host has ranks any more, let all supervisors go, and the engine."""
        if not all(guest.done for guest in self._guests):
            return
        for guest in self._guests:
            guest.wire.send({"word": "go"})
        if self._attempt is not None and self._attempt.reason != "ended":
            # One that has lost a host would wait for it.
            self._attempt.at("engine", _ENGINE, partial(self._attempt.keeper.signal, signal.SIGTERM))
            self._attempt.at("kill", 2 * _ENGINE, self._attempt.kill)

    def _say(self, word: str, **more: str | int) -> None:
        for guest in self._guests:
            if guest.server is not None and guest.server not in self._spoken:
                guest.wire.send({"word": word, **more})


def opened(plan: Plan, token: str) -> tuple[EngineDoor | None, dict[str, str]]:
    """Open it, and return by which variable supervisors find it; without a port they mark what they print."""
    try:
        door = EngineDoor(plan, token)
    except OSError as error:
        sys.stderr.write(f"hccl-tools: no port for the other hosts to come to: {error.strerror}\n")
        return None, {LAUNCHER_VARIABLE: token}
    return door, door.environment


def _own_addresses(hosts: Iterable[str]) -> list[str]:
    """Return the addresses by which others reach this host, those on the way to the job's hosts first."""
    found: dict[str, None] = {}
    for host in (*islice(hosts, _ASKED), _FAR_AWAY):
        with suppress(OSError, UnicodeError):
            family, kind, _, _, there = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as probe:
                probe.connect(there)
                found[str(probe.getsockname()[0])] = None
    return [address for address in found if not address.startswith("127.") and address != "::1"]
