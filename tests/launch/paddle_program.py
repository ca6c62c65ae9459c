"""A program of Paddle's ranks: what each communicates is compared with what is known beforehand.

``--fail`` ends rank 1 with exit code 7 afterwards. It does not know hccl-tools.
"""

from __future__ import annotations

import os
import sys

import paddle
import paddle.distributed as dist
from paddle.distributed import fleet


def main() -> None:
    """Check rank, gradients and sums of this rank."""
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    assert (rank, size) == (int(os.environ["RANK_ID"]), int(os.environ["RANK_SIZE"]))
    fleet.init(is_collective=True)
    assert fleet.worker_num() == size, fleet.worker_num()
    layer = paddle.nn.Linear(4, 1, weight_attr=paddle.nn.initializer.Constant(1.0))
    parallel = paddle.DataParallel(layer)
    # The gradient of rank r is 2 (r + 1); all get the mean of the ranks.
    parallel(paddle.ones([2, 4]) * (rank + 1)).sum().backward()
    gradients = parallel.parameters()[0].grad.numpy().ravel()
    assert (gradients == 2 * sum(range(1, size + 1)) / size).all(), gradients
    total = paddle.to_tensor([float(rank + 1)])
    dist.all_reduce(total)
    assert total.item() == size * (size + 1) / 2
    print(f"rank {rank} of {size} agrees with the others", flush=True)
    if "--fail" in sys.argv and rank == 1:
        sys.exit(7)


if __name__ == "__main__":
    main()
