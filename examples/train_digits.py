"""Train a small network on the handwritten digits of scikit-learn, data-parallel over all ranks.

    python train_digits.py                                   one process
    hccl-tools launch --rank-table TABLE train_digits.py     one process for each rank of the table

With --checkpoint FILE the training is saved after every epoch, and a new start continues from there.

Each rank works on its own share of every batch and the gradients are averaged over all ranks, so the
parameters stay equal everywhere: every rank prints their checksum at the end. The batch is divided among the
ranks and does not grow with them, so the accuracy is much the same for any number of ranks.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init, release
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def parse_args() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description="Train on handwritten digits, data-parallel over all ranks.")
    parser.add_argument(
        "--device_target",
        choices=["Ascend", "CPU"],
        default=os.environ.get("DEVICE_TARGET"),
        help="default: the variable DEVICE_TARGET, else what this MindSpore is made for",
    )
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch_size", type=int, default=128, help="images per step, all ranks together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--checkpoint", metavar="FILE.ckpt", help="save here, where all ranks can read, and resume from here"
    )
    return parser.parse_args()


def join_job() -> tuple[int, int]:
    """Meet the other ranks, if this process was started as one of several: (rank, number of ranks)."""
    if int(os.environ.get("RANK_SIZE", "1")) == 1 and "MS_ROLE" not in os.environ:
        return 0, 1
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    return get_rank(), get_group_size()


def load_images() -> list[Any]:
    """Real 8x8 images as rows of 64 brightnesses from 0 to 1: 1437 to train with and 360 held out."""
    images, labels = load_digits(return_X_y=True)
    images, labels = (images / 16).astype(np.float32), labels.astype(np.int32)
    split: list[Any] = train_test_split(images, labels, test_size=360, stratify=labels, random_state=0)
    return split


def batches(
    images: Any, labels: Any, batch_size: int, shard: slice, seed: list[int]
) -> Iterator[tuple[Any, Any]]:
    """One epoch of this rank's share: all ranks shuffle alike and each takes its ``shard`` of every batch."""
    order = np.random.default_rng(seed).permutation(len(labels))
    for start in range(0, len(order) - batch_size + 1, batch_size):
        mine = order[start : start + batch_size][shard]
        yield ms.Tensor(images[mine]), ms.Tensor(labels[mine])


def make_step(network: Any, optimizer: Any, ranks: int) -> Callable[[Any, Any], Any]:
    """Compile one training step: forward, backward, average over the ranks, update."""
    loss_function = nn.CrossEntropyLoss()
    average = nn.DistributedGradReducer(optimizer.parameters) if ranks > 1 else nn.Identity()

    def loss_of(images: Any, labels: Any) -> Any:
        return loss_function(network(images), labels)

    loss_and_gradients = ms.value_and_grad(loss_of, None, optimizer.parameters)

    def step(images: Any, labels: Any) -> Any:
        loss, gradients = loss_and_gradients(images, labels)
        optimizer(average(gradients))
        return loss

    return ms.jit(step)  # type: ignore[no-any-return]


def save(path: str, optimizer: Any, step: int) -> None:
    """Replace the checkpoint as a whole: an interrupted save leaves the earlier one."""
    state = [each for each in optimizer.get_parameters() if each.name != "learning_rate"]  # follows --epochs
    ms.save_checkpoint(state, f"{path}.new.ckpt", append_dict={"step": step})
    Path(f"{path}.new.ckpt").replace(path)


def resume(path: str, optimizer: Any) -> int:
    """Load parameters and optimizer; return the number of steps done, 0 if there is no checkpoint."""
    if not Path(path).exists():
        return 0
    saved = ms.load_checkpoint(path)
    done = int(saved.pop("step").asnumpy())
    ms.load_param_into_net(optimizer, saved, strict_load=True)
    print(f"resumed from step {done}", flush=True)
    return done


def main() -> None:
    """Train, then let rank 0 say how well the network reads digits it has not seen."""
    args = parse_args()
    if args.device_target:
        ms.set_device(args.device_target)
    rank, ranks = join_job()
    if args.batch_size % ranks:
        raise SystemExit(f"--batch_size {args.batch_size} cannot be divided among {ranks} ranks")

    images, held_out_images, labels, held_out_labels = load_images()
    ms.set_seed(args.seed)  # the same first parameters on every rank
    network = nn.SequentialCell(nn.Dense(64, 128, activation="relu"), nn.Dropout(p=0.1), nn.Dense(128, 10))
    ms.set_seed(args.seed + rank)  # but not the same dropout

    steps = len(labels) // args.batch_size
    peak = 0.3 if args.optimizer == "sgd" else 0.01
    rate = nn.cosine_decay_lr(0.0, peak, args.epochs * steps, steps, args.epochs)
    if args.optimizer == "sgd":
        optimizer = nn.SGD(network.trainable_params(), rate, momentum=0.9)
    else:
        optimizer = nn.Adam(network.trainable_params(), rate)
    done = resume(args.checkpoint, optimizer) if args.checkpoint else 0
    step = make_step(network, optimizer, ranks)

    started = time.perf_counter()
    network.set_train()
    for epoch in range(done // steps, args.epochs):
        for batch in batches(images, labels, args.batch_size, slice(rank, None, ranks), [args.seed, epoch]):
            loss = step(*batch)
        if rank == 0:
            seconds = time.perf_counter() - started
            print(f"epoch {epoch + 1:2d}/{args.epochs}: loss {float(loss):.3f}, {seconds:.1f} s", flush=True)
        if rank == 0 and args.checkpoint:
            save(args.checkpoint, optimizer, (epoch + 1) * steps)

    network.set_train(False)
    checksum = 0
    for parameter in network.get_parameters():
        checksum = zlib.crc32(parameter.asnumpy().tobytes(), checksum)
    print(f"rank {rank} of {ranks}: checksum of the parameters {checksum:08x}", flush=True)
    if rank == 0:
        answers = network(ms.Tensor(held_out_images)).asnumpy().argmax(axis=1)
        accuracy = (answers == held_out_labels).mean()
        print(f"held-out accuracy: {accuracy:.4f} ({len(answers)} images; ranks: {ranks})", flush=True)
    if ranks > 1:
        release()


if __name__ == "__main__":
    main()
