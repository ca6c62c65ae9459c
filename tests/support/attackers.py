"""Start strangers against a job, find where the job listens, and compare how long jobs take."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.attacks import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_ROOT = Path(__file__).parent.parent.parent
_LISTENING = "0A"


class Attackers:
    """A process that attacks in some kinds; it holds its connections until it is closed."""

    def __init__(self, *kinds: str, within: Callable[[Sequence[str]], Sequence[str]] = list) -> None:
        """Start the process; ``within`` returns the command that runs another one in a host of a bed."""
        command = [sys.executable, "-m", "tests.support.attacks", *(kinds or KINDS)]
        path = f"{_ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        self._process = subprocess.Popen(
            within(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip

    def attack(self, address: tuple[str, int] | str, source: str = "", recorded: bytes = b"") -> None:
        """Attack an address without waiting."""
        assert self._process.stdin is not None
        target = {"address": address, "source": source, "recorded": recorded.hex()}
        self._process.stdin.write(json.dumps(target) + "\n")
        self._process.stdin.flush()

    def are_in_place(self) -> None:
        """Wait until the next attack has been made."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "in place\n"

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        self._process.kill()
        self._process.wait()


def ports(pids: Iterable[int]) -> set[int]:
    """Return the TCP ports on which processes listen."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            own = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()}
            for family in ("tcp", "tcp6"):
                for row in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
                    words = row.split()
                    if words[3] == _LISTENING and f"socket:[{words[9]}]" in own:
                        found.add(int(words[1].rpartition(":")[2], 16))
    return found


def tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def peak_mib(pid: int) -> float:
    """Return the greatest memory of a process so far."""
    (row,) = [row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in row]
    return int(row.split()[1]) / 1024


def command_lines() -> list[str]:
    """Return the command lines of all processes."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                found.append((folder / "cmdline").read_bytes().decode(errors="replace"))
    return found


def files_with(folder: Path, text: str) -> list[Path]:
    """Return the files under a folder that have a text."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


class Recorder:
    """Stands between an agent and its listener at another address, and keeps what the agent sends."""

    def __init__(self, here: tuple[str, int], there: tuple[str, int], *, repeat: int = -1) -> None:
        """Begin; ``repeat`` is the frame of the first agent that is passed on twice."""
        self._server, self._there, self._repeat = socket.create_server(here), there, repeat
        self._open = [self._server]
        #: What each agent has sent.
        self.sent: list[bytearray] = []
        self._threads = list[threading.Thread]()
        self._run(self._accept)

    def _run(self, act: Callable[..., None], *args: object) -> None:
        self._threads.append(threading.Thread(target=act, args=args))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.socket()
                self._open += [near, far]
                far.connect(self._there)
                self.sent.append(bytearray())
                self._run(self._pass_on, near, far, self.sent[-1], self._repeat)
                self._run(self._pass_on, far, near, bytearray(), -1)
                self._repeat = -1

    def _pass_on(self, one: socket.socket, other: socket.socket, kept: bytearray, repeat: int) -> None:
        done = 0
        with suppress(OSError):
            while data := one.recv(1 << 16):
                kept += data
                if repeat < 0:
                    other.sendall(data)
                    continue
                complete = frames(bytes(kept))
                for number in range(done, len(complete)):
                    frame = len(complete[number]).to_bytes(4, "big") + complete[number]
                    other.sendall(frame * (2 if number == repeat else 1))
                done = len(complete)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for connection in self._open:
            connection.close()


def frames(data: bytes) -> list[bytes]:
    """Return the contents of the complete frames in what an agent has sent."""
    found = []
    while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
        found.append(data[4:end])
        data = data[end:]
    return found
