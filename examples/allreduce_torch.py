"""Add up one number of each rank with torch.distributed on the CPU (gloo), and say so.

    python allreduce_torch.py                                                  one process
    hccl-tools launch --rank-table TABLE --start torch --cpu allreduce_torch.py
    torchrun --nproc-per-node 4 allreduce_torch.py

It reads the variables that torchrun sets and nothing else.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist


def main() -> None:
    """Meet the other ranks, add up, check the sum."""
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
    }.items():
        os.environ.setdefault(name, value)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()

    total = torch.tensor([float(rank + 1)])
    dist.all_reduce(total)
    expected = size * (size + 1) / 2
    local = os.environ.get("LOCAL_RANK", "0")
    print(
        f"rank {rank} of {size} (local rank {local}): sum {total.item():g}, expected {expected:g}", flush=True
    )

    dist.destroy_process_group()
    if total.item() != expected:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
