"""Train a small network with Paddle, data-parallel over all ranks, in both of Paddle's API levels.

    python train_paddle.py                            one process
    hccl-tools launch --gpus 0,1 train_paddle.py      one process for each device
    hccl-tools launch --cpu train_paddle.py           a rehearsal without NPUs, two processes

The lines that a script for a single card does not have are marked with ``# distributed``. The data is made
here: images of 28x28 values, whose label is the brightest of ten stripes. Every rank prints the checksum of
its parameters, which is equal on all ranks.
"""

from __future__ import annotations

import argparse
import zlib
from typing import Any

import numpy as np
import paddle
import paddle.distributed as dist


class Images(paddle.io.Dataset):  # type: ignore[misc]
    """Synthetic images with labels."""

    def __init__(self, count: int) -> None:
        generator = np.random.default_rng(0)
        self.images = generator.random((count, 1, 28, 28), dtype=np.float32)
        self.labels = self.images[:, 0, :20].reshape(count, 10, -1).mean(axis=2).argmax(axis=1)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return an image and its label."""
        return self.images[index], self.labels[index : index + 1]

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.labels)


def network() -> Any:
    """Return the network; all ranks begin with the same parameters."""
    paddle.seed(1)
    return paddle.nn.Sequential(
        paddle.nn.Flatten(), paddle.nn.Linear(784, 64), paddle.nn.ReLU(), paddle.nn.Linear(64, 10)
    )


def train_base(epochs: int, images: Images) -> Any:
    """Train with the base API."""
    dist.init_parallel_env()  # distributed
    model = network()
    parallel = paddle.DataParallel(model)  # distributed
    optimizer = paddle.optimizer.Adam(0.01, parameters=parallel.parameters())
    sampler = paddle.io.DistributedBatchSampler(images, batch_size=32, shuffle=True)  # distributed
    loss_of = paddle.nn.CrossEntropyLoss()
    for epoch in range(epochs):
        sampler.set_epoch(epoch)  # distributed
        for batch, labels in paddle.io.DataLoader(images, batch_sampler=sampler):
            loss = loss_of(parallel(batch), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}/{epochs}: loss {loss.item():.3f}", flush=True)
    return model


def train_high(epochs: int, images: Images) -> Any:
    """Train with the high-level API, which shares the data and averages the gradients itself."""
    dist.init_parallel_env()  # distributed
    layers = network()
    model = paddle.Model(layers)
    model.prepare(paddle.optimizer.Adam(0.01, parameters=model.parameters()), paddle.nn.CrossEntropyLoss())
    model.fit(images, epochs=epochs, batch_size=32, verbose=2 if dist.get_rank() == 0 else 0)
    return layers


def main() -> None:
    """Train, and print the checksum of the parameters."""
    parser = argparse.ArgumentParser(description="Train a small network with Paddle on all ranks.")
    parser.add_argument("--api", choices=["base", "high"], default="base")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    train = train_base if args.api == "base" else train_high
    layers = train(args.epochs, Images(640))
    checksum = 0
    for parameter in layers.parameters():
        checksum = zlib.crc32(parameter.numpy().tobytes(), checksum)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {ranks}: checksum of the parameters {checksum:08x}", flush=True)


if __name__ == "__main__":
    main()
