"""Train a small network with torch, data-parallel over all ranks: the twin of train_paddle.py.

    python train_torch.py                                        one process
    hccl-tools launch --devices 0,1 --start torch train_torch.py one process for each device (torch_npu)
    hccl-tools launch --cpu train_torch.py                       a rehearsal without NPUs, two processes
    torchrun --nproc-per-node 2 train_torch.py                   the same by torch's own launcher

The lines that a script for a single card does not have are marked with ``# distributed``. The data is made
here: images of 28x28 values, whose label is the brightest of ten stripes. Every rank prints the checksum of
its parameters, which is equal on all ranks.
"""

from __future__ import annotations

import argparse
import os
import zlib
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

try:
    import torch_npu  # noqa: F401  (it registers the device "npu")

    DEVICE, BACKEND = f"npu:{os.environ.get('LOCAL_RANK', '0')}", "hccl"
except ImportError:
    DEVICE, BACKEND = "cpu", "gloo"


def images(count: int) -> TensorDataset:
    """Return synthetic images with labels."""
    values = torch.rand((count, 1, 28, 28), generator=torch.Generator().manual_seed(0))
    labels = values[:, 0, :20].reshape(count, 10, -1).mean(dim=2).argmax(dim=1)
    return TensorDataset(values, labels)


def train(epochs: int, data: TensorDataset) -> Any:
    """Train on this rank's share of the data."""
    torch.manual_seed(1)
    model: Any = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)).to(DEVICE)
    sampler = None
    if dist.is_initialized():
        model = nn.parallel.DistributedDataParallel(model)  # distributed
        sampler = DistributedSampler(data)  # distributed
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)  # distributed
        for batch, labels in DataLoader(data, batch_size=32, sampler=sampler, shuffle=sampler is None):
            loss = loss_of(model(batch.to(DEVICE)), labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"epoch {epoch + 1}/{epochs}: loss {loss.item():.3f}", flush=True)
    return model


def main() -> None:
    """Train, and print the checksum of the parameters."""
    parser = argparse.ArgumentParser(description="Train a small network with torch on all ranks.")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group(BACKEND)  # distributed
    model = train(args.epochs, images(640))
    checksum = 0
    for parameter in model.parameters():
        checksum = zlib.crc32(parameter.detach().cpu().numpy().tobytes(), checksum)
    rank, ranks = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
    print(f"rank {rank} of {ranks}: checksum of the parameters {checksum:08x}", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()
        # Threads of torch may abort a process at its end, although all is done ("terminate called without an
        # active exception", with and without hccl-tools): end without the clean-up of Python.
        os._exit(0)


if __name__ == "__main__":
    main()
