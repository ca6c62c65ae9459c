"""Say which rank this is, where it runs and on which device: a first try of a rank table.

    hccl-tools launch --rank-table TABLE --tail all --cpu hello_rank.py

It reads the variables that every start of ``hccl-tools launch`` sets.
"""

from __future__ import annotations

import os
import socket


def main() -> None:
    """Print one line."""
    rank, size = os.environ.get("RANK_ID", "0"), os.environ.get("RANK_SIZE", "1")
    device = os.environ.get("DEVICE_ID", "0")
    print(f"rank {rank} of {size} on {socket.gethostname()}, device {device}, pid {os.getpid()}")


if __name__ == "__main__":
    main()
