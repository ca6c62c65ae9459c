"""How a host comes to the meeting of a job's hosts: at rank 0's, again and again until there is a verdict."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.launch.cluster import transport
from hccl_tools.launch.cluster.membership import HINT, KIND, Met, absent

if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.launch.cluster.membership import Attendance
    from hccl_tools.launch.cluster.transport import Wire

#: Seconds between two tries, of a try, for an answer, and until it is said who is waited for.
_PAUSE, _TRY, _ANSWER, _PATIENCE = 0.2, 2.0, 10.0, 2.0
#: Seconds until it asks at the port for questions, and between two times.
_ASK_AFTER, _ASK_AGAIN = 1.0, 2.0


class Guest:
    """Any other host: it tells rank 0's what it has, and waits for the verdict."""

    def __init__(
        self,
        own: Attendance,
        master: tuple[int, str],
        address: tuple[str, int],
        *,
        ask: int,
        tell: Callable[[str], None],
    ) -> None:
        self.own, self.address, self.tell = own, address, tell
        self.server, self.master = master
        self.ask = (address[0], ask)
        self.say_at = time.monotonic() + _PATIENCE
        self.ask_at = time.monotonic() + _ASK_AFTER
        self.run_dirs: dict[int, str] = {}

    def attend(self, deadline: float, wait: float) -> Met:
        """Come, again and again until there is a verdict."""
        where = f"{self.master} (port {self.address[1]})"
        while time.monotonic() < deadline:
            if line := self.try_at(self.address, deadline):
                return Met({self.server: line}, self.run_dirs)
            if time.monotonic() > self.say_at:
                self.say(f"waiting for {where} to start its part")
            if time.monotonic() > self.ask_at:
                self.try_at(self.ask, min(deadline, time.monotonic() + _TRY))
                self.ask_at = time.monotonic() + _ASK_AGAIN
            time.sleep(_PAUSE)
        raise absent(where, wait)

    def say(self, text: str) -> None:
        """Tell once who is waited for."""
        self.say_at = float("inf")
        self.tell(text)

    def try_at(self, address: tuple[str, int], deadline: float) -> Wire | None:
        """Come to a port; return the wire if the job may begin, ``None`` if nobody has a verdict there."""
        line = transport.connect(address, _TRY)
        if line is None:
            return None
        line.send({"kind": KIND, **self.own._asdict()})
        try:
            going = self.is_let_go(line, deadline)
        except BaseException:
            line.close()
            raise
        if not going:
            line.close()
        return line if going else None

    def is_let_go(self, line: Wire, deadline: float) -> bool:
        """Wait for the verdict; false if the other side goes, or is none of ours."""
        poller = select.poll()
        poller.register(line.fileno(), select.POLLIN)
        silent = time.monotonic() + _ANSWER
        missing = ""
        while not line.closed and time.monotonic() < min(deadline, silent):
            poller.poll(_PAUSE * 1000)
            for word in line.words():
                said = word.get("word") if word.get("kind") == KIND else None
                if said == "refused":
                    raise LaunchError(str(word.get("why")), hint=HINT)
                if said == "go":
                    self.run_dirs = {int(server): path for server, path in word["run_dirs"].items()}
                    return True
                if said != "welcome":
                    return False  # Another job's meeting, or no launcher at all.
                silent, missing = float("inf"), str(word.get("missing", ""))
            if missing and time.monotonic() > self.say_at:
                self.say(f"{self.master} waits for {missing} to start its part (port {self.address[1]})")
        return False
