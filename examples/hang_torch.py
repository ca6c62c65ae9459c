"""A small training of torch ranks on the CPU that hangs on purpose: ``hang_torch.py KIND``.

One rank (``--rank``, by default the last one) misbehaves in step 5. With ``launch --hang-timeout
--flight-recorder`` the job is ended, and ``explain`` says what happened:

    missing    the rank loads data for ever, and does not come to the all_reduce
    loop       the same, and it computes: 100 % of its CPU
    file       the rank opens a named pipe that nobody writes, as a file of a server that does not answer
    operation  the rank calls broadcast where the others call all_reduce
    size       the rank has more elements than the others
    order      the rank uses two groups in another order than the others
    skipped    the rank leaves out one step, and waits in the barrier at the end
    lost       all ranks come to the all_reduce, and the network loses the data of one
    slow       the rank needs half a second for each step; nothing hangs
    dead       the rank is killed
    stopped    the rank is stopped, as a debugger or Ctrl-Z does
    fails      the rank raises an exception
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import socket
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

KINDS = (
    *("missing", "loop", "file", "operation", "size", "order", "skipped"),
    *("lost", "slow", "dead", "stopped", "fails"),
)
STEPS, HANGS_IN = 12, 5


def load_data(kind: str) -> None:
    """Wait for data that never come; with ``loop`` compute meanwhile."""
    while True:
        if kind != "loop":
            time.sleep(1000)


def read_batch() -> bytes:
    """Read a batch from a file that never has data."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = Path(folder, "batch")
        os.mkfifo(pipe)
        return pipe.read_bytes()


#: Sockets that must not be closed.
KEPT: list[socket.socket] = []


def lose_data() -> None:
    """Let the connections of this process receive nothing any more, as a network that drops packets."""
    files = {int(entry.name): entry for entry in Path("/proc/self/fd").iterdir()}
    kinds = {number: str(entry.readlink()) for number, entry in files.items() if entry.is_symlink()}
    waiting = [
        select.epoll.fromfd(os.dup(number)) for number, kind in kinds.items() if kind.endswith("[eventpoll]")
    ]
    for number in [number for number, kind in kinds.items() if kind.startswith("socket:") and is_tcp(number)]:
        for one in waiting:
            with contextlib.suppress(OSError):
                one.unregister(number)
        os.dup(number)  # It stays open: the other side sees no end.
        silent, other = socket.socketpair()
        silent.setblocking(False)
        os.dup2(silent.fileno(), number)
        KEPT.extend((silent, other))


def is_tcp(number: int) -> bool:
    """Return whether a socket is a connection of TCP."""
    with socket.socket(fileno=os.dup(number)) as one:
        return one.family in {socket.AF_INET, socket.AF_INET6}


def step(kind: str, tensor: torch.Tensor, groups: list[dist.ProcessGroup]) -> None:
    """Train one step; ``kind`` is what this rank does wrong in it, "" for nothing."""
    if kind in {"missing", "loop"}:
        load_data(kind)
    elif kind == "file":
        read_batch()
    elif kind == "dead":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(1000)  # `launch` continues it for its stack; the job still hangs then.
    elif kind == "fails":
        raise ValueError("batch 5 is empty")
    elif kind == "slow":
        time.sleep(0.5)
    elif kind == "lost":
        lose_data()
    if kind == "operation":
        dist.broadcast(tensor, 0)
    elif kind == "size":
        dist.all_reduce(torch.ones(4 * tensor.numel()))
    elif kind != "skipped":
        dist.all_reduce(tensor)
    for group in reversed(groups) if kind == "order" else groups:
        dist.all_reduce(tensor, group=group)


def main() -> None:
    """Train, and hang."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--rank", type=int, default=-1)
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group(list(range(size)), group_desc=name) for name in ("tp0", "dp0")]
    is_odd = rank == arguments.rank % size
    steps = 100 * STEPS if arguments.kind == "slow" else STEPS
    for number in range(steps):
        is_wrong = is_odd and (number == HANGS_IN or arguments.kind == "slow")
        print(f"step {number}", flush=True)
        step(arguments.kind if is_wrong else "", torch.ones(16), groups)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
