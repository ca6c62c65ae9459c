"""A rank of a small job with a collective of its own over local sockets, which hangs in step 5.

``hanging_rank.py KIND [--beats]``: rank 1 hangs as KIND says, the others wait for it in the collective.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import hccl_tools

KIND, BEATS = sys.argv[1], "--beats" in sys.argv
RUN_DIR = Path(os.environ["HCCL_TOOLS_RUN_DIR"])
HERE = hccl_tools.current_rank()


def connect() -> list[socket.socket]:
    """Connect rank 0 with every other rank."""
    address = f"\0{RUN_DIR.name}"
    if HERE.rank == 0:
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen(HERE.world_size)
        return [server.accept()[0] for _ in range(HERE.world_size - 1)]
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(address)
        except OSError:
            time.sleep(0.01)
        else:
            return [connection]


def all_reduce(connections: list[socket.socket]) -> None:
    """Wait for all ranks."""
    if HERE.rank:
        connections[0].sendall(b"x")
        connections[0].recv(1)
        return
    for connection in connections:
        connection.recv(1)
    for connection in connections:
        connection.sendall(b"x")


def endless_loop() -> None:
    """Compute without an end."""
    while True:
        pass


def endless_read() -> None:
    """Read from a pipe into which nobody writes."""
    os.read(os.pipe()[0], 1)


def deadlock(connections: list[socket.socket]) -> None:
    """Receive while the other side receives, too."""
    connections[0].recv(1)


def hang(connections: list[socket.socket]) -> None:
    """Hang as the command line says."""
    if KIND == "loop":
        endless_loop()
    elif KIND == "read":
        endless_read()
    elif KIND == "deadlock":
        deadlock(connections)
    elif KIND == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
        signal.pause()  # If it is continued for its stack, it must not end before the job is ended.


def main() -> None:
    """Run 8 steps."""
    connections = connect()
    has_hung = RUN_DIR / "has_hung"
    for step in range(8):
        if BEATS:
            HERE.heartbeat()
        print(f"step {step}", flush=True)
        if step == 5 and HERE.rank == 1 and not has_hung.exists():
            has_hung.touch()
            hang(connections)
        all_reduce(connections)
        time.sleep(0.01)
    print("done", flush=True)


main()
