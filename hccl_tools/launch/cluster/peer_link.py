"""The line between the launchers of a job whose command was typed on every host.

Rank 0's host has a wire to each of the others, since they met, and passes on what one of them says. A wire
that closes without a word means that its launcher was killed, or its host is down or cut off.
"""

from __future__ import annotations

import json
import select
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import membership
from hccl_tools.launch.cluster.membership import Attendance
from hccl_tools.launch.model.outcome import LAUNCHER_FAILED, Cause
from hccl_tools.launch.processes.signal_names import signal_name
from hccl_tools.launch.processes.signals import ENDING
from hccl_tools.launch.runs import directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hccl_tools.launch.cluster.membership import Met
    from hccl_tools.launch.processes.signals import Signals

#: Seconds that all hosts may take to end their ranks before a restart, and until it is said that we wait.
_WAIT, _PATIENCE = 600.0, 3.0


class Line:
    """This host's wires.

    Attributes:
        own: This host's server.
        master: That of rank 0's host.
        hosts: How the servers are called, by index.
        wires: By server; those that have closed stay here as closed ones.
        run_dirs: Where the parts of the run lie, by server.
        lost: Tells in a sentence that a server's launcher ended without a word.
        leads: Whether this is rank 0's host, which passes on.
    """

    def __init__(
        self,
        own: int,
        master: int,
        hosts: Sequence[str],
        met: Met,
        lost: Callable[[int], str],
    ) -> None:
        self.own, self.master, self.hosts, self.lost = own, master, hosts, lost
        self.wires, self.run_dirs = met.wires, met.run_dirs
        self.leads = own == master
        #: What has been said and not been heard yet; what hosts have that are ready to start again, by the
        #: number of the restart and server.
        self._said: deque[tuple[int, dict[str, Any]]] = deque()
        self._ready: dict[tuple[int, int], dict[str, str]] = {}

    @property
    def others(self) -> list[int]:
        """The servers whose launchers can be spoken to."""
        return [server for server, wire in self.wires.items() if not wire.closed]

    def say(self, word: str, restart: int, *to: int, **more: Any) -> None:
        """Say something about a start of the job to some hosts, to all others if none is named."""
        for server in to or self.others:
            self.wires[server].send({"word": word, "restart": restart, **more})

    def hear(self, restart: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield what has been said about this start of the job, with the server that said it."""
        self._said += [(server, word) for server, wire in self.wires.items() for word in wire.words()]
        for _ in range(len(self._said)):
            server, word = self._said.popleft()
            number, has = word.get("restart"), word.get("has")
            if not isinstance(number, int):
                continue
            if isinstance(has, dict):
                self._ready[number, server] = has
            elif number == restart:
                yield server, word
            elif number > restart:
                self._said.append((server, word))  # Some are further than this host.

    def keep_run_dirs(self, run_dir: str) -> None:
        """Write down where the other hosts have their parts of the run: that is where logs are looked for."""
        found = {self.hosts[server]: path for server, path in self.run_dirs.items()}
        with suppress(LaunchError):  # The disk is full, which the ranks' logs will show.
            directory.write(run_dir, directory.ELSEWHERE, json.dumps(found).encode())

    def refuse(self, why: str | Cause, restart: int = 0) -> None:
        """Say that this host, or another one that has said so, does not start its part, and hang up."""
        own = self.hosts[self.own]
        cause = why if isinstance(why, Cause) else Cause(own, "refused", LAUNCHER_FAILED, why)
        self.say("end" if self.leads else "ending", restart, cause=cause.as_dict(), server=self.own)
        self.close()

    def close(self) -> None:
        """Hang up."""
        for wire in self.wires.values():
            wire.close()

    def agree(
        self, restart: int, has: dict[str, str], *, signals: Signals, tell: Callable[[str], None]
    ) -> None:
        """Return when all hosts are ready to start again, with the same.

        Raises:
            LaunchError: One of them is not, or somebody does not want to wait for that.
        """
        if not self.leads:
            self.say("ready", restart, has=has)
        poller = select.poll()
        poller.register(signals.fileno(), select.POLLIN)
        for server in self.others:
            poller.register(self.wires[server].fileno(), select.POLLIN)
        deadline, say_at = time.monotonic() + _WAIT, time.monotonic() + _PATIENCE
        while not self._agreed(restart, has):
            if number := next(iter(ENDING & set(signals.read())), 0):
                self._give_up(restart, f"the launcher here received {signal_name(number)}")
            if time.monotonic() > deadline:
                self._give_up(restart, f"not all hosts have ended their ranks within {_WAIT:g} s")
            if time.monotonic() > say_at:
                tell("waiting for the other hosts to end their ranks")
                say_at = float("inf")
            poller.poll(1000)

    def _agreed(self, restart: int, has: dict[str, str]) -> bool:
        for server, word in self.hear(restart):
            if word.get("word") == "start":
                return True
            if word.get("word") in {"end", "ending"}:
                self._give_up(restart, Cause.parse(word.get("cause"), self.hosts[server]))
        gone = [self.hosts[server] for server, wire in self.wires.items() if wire.closed]
        if gone:
            self._give_up(restart, f"the launcher on {membership.some(gone)} has gone")
        if not self.leads or any((restart, server) not in self._ready for server in self.wires):
            return False
        own = Attendance(self.own, self.hosts[self.own], has)
        for server in self.wires:
            theirs = Attendance(server, self.hosts[server], self._ready[restart, server])
            if why := membership.difference(own, theirs):
                self._give_up(restart, why)
        self.say("start", restart)
        return True

    def _give_up(self, restart: int, why: str | Cause) -> None:
        self.refuse(why, restart)
        raise LaunchError(why if isinstance(why, str) else why.message)
