"""Rehearse the trainings of three guides on the CPU: PaddleOCR, PaddleDetection and MindOCR, from a checkout.

    python rehearse_guides.py paddleocr CHECKOUT --python PYTHON
    python rehearse_guides.py paddledetection CHECKOUT --python PYTHON --theirs
    python rehearse_guides.py mindocr CHECKOUT --python PYTHON

It makes a few images with labels in ``rehearsal/``, starts the checkout's own ``tools/train.py`` on two ranks
with the line of the guide and ``--cpu``, and prints the losses that rank 0 has logged. With ``--theirs`` the
same training also runs under paddle.distributed.launch, and the losses are compared. ``--show`` only prints
the commands. Options after ``--`` are for ``hccl-tools launch``: ``-- --ips A,B`` on each of two machines.

PYTHON has what the checkout needs; hccl-tools itself runs under the Python of this script. The images are
noise: the losses show that the ranks train together, not how well.
docs/en/reference/guides_rehearsed.md has the versions with which this was seen to work, and what had to be
changed in a checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from random import Random

#: How each program logs the loss of a step.
_LOSS = re.compile(r"\bloss: ?\[?([0-9]+\.[0-9]+)")
#: The line of MindOCR's configuration in whose place the label file is named.
_NO_LABELS = "    # label_files: # not required when using LMDBDataset"
_WORDS = ("rank", "table", "device", "server", "launch", "train", "batch", "epoch")


@dataclass
class Rehearsal:
    """A training of a guide.

    Attributes:
        options: The guide's options of the launcher.
        arguments: The arguments of tools/train.py.
        theirs: The framework's own launcher; on the CPU it has no option for devices.
    """

    options: list[str]
    arguments: list[str]
    theirs: list[str]


def main() -> int:
    """Make the data, run the training, print its losses; return the exit code of the training."""
    parser = argparse.ArgumentParser(description="Rehearse a guide's training on the CPU.")
    parser.add_argument("guide", choices=sorted(_GUIDES))
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--python", default=sys.executable, help="the Python of the ranks")
    parser.add_argument(
        "--folder", type=Path, default=Path("rehearsal"), help="where data and logs are written"
    )
    parser.add_argument(
        "--theirs", action="store_true", help="also run it under the framework's own launcher"
    )
    parser.add_argument("--show", action="store_true", help="print the commands and run nothing")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    args, chosen = parser.parse_args(words[:end]), words[end + 1 :]
    program = args.checkout.resolve() / "tools" / "train.py"
    if not program.is_file():
        raise SystemExit(f"error: {program} does not exist: give the folder of a checkout")
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found = _GUIDES[args.guide](args.checkout.resolve(), folder)
    ours = [sys.executable, "-m", "hccl_tools", "launch", "--cpu", "--python", args.python]
    placed = chosen or found.options
    ours += ["--log-dir", str(folder / "log"), *placed, str(program), *found.arguments]
    theirs = [args.python, "-m", *found.theirs, "--log_dir", str(folder / "theirs")]
    theirs += [str(program), *found.arguments]
    print(shlex.join(ours), flush=True)
    if args.theirs:
        print(shlex.join(theirs), flush=True)
    if args.show:
        return 0
    code = subprocess.run(ours, cwd=folder, stdout=subprocess.DEVNULL, check=False).returncode
    logs = sorted((folder / "log" / "latest").glob("rank_[0-9]*.log"))
    own = losses(logs[0]) if logs else []
    print(f"exit code {code}, losses of {logs[0].stem if logs else 'no rank'}: {' '.join(own)}")
    if args.theirs and found.theirs:
        return max(code, _compare(theirs, folder, own))
    return code


def _compare(command: list[str], folder: Path, own: list[str]) -> int:
    shutil.rmtree(folder / "theirs", ignore_errors=True)  # Their launcher appends to its logs.
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    found = losses(folder / "theirs" / "workerlog.0")
    agreement = "equal" if found == own else "different"
    print(f"exit code {done.returncode}, losses under their launcher, {agreement}: {' '.join(found)}")
    return int(found != own)


def losses(log: Path) -> list[str]:
    """Return the losses in a log, in the order of the steps."""
    return _LOSS.findall(log.read_text(errors="replace")) if log.exists() else []


def write_png(path: Path, width: int, height: int, random: Random) -> None:
    """Write an image of noise, without any library."""
    rows = b"".join(b"\0" + random.randbytes(3 * width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in parts:
            file.write(
                struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            )


def _words(folder: Path, count: int) -> Path:
    """Write images of words with their label file, as the recognition trainings read them."""
    random = Random(0)  # noqa: S311
    lines = []
    for number in range(count):
        write_png(folder / f"{number}.png", 100, 32, random)
        lines.append(f"{number}.png\t{_WORDS[number % len(_WORDS)]}\n")
    labels = folder / "labels.txt"
    labels.write_text("".join(lines))
    return labels


def _paddleocr(checkout: Path, folder: Path) -> Rehearsal:
    labels = _words(folder / "words", 48)
    options = {
        "Global.use_gpu": "False", "Global.epoch_num": "1", "Global.print_batch_step": "1",
        "Global.save_model_dir": str(folder / "output"), "Global.cal_metric_during_train": "False",
    }  # fmt: skip
    for part in ("Train", "Eval"):
        options |= {
            f"{part}.dataset.name": "SimpleDataSet", f"{part}.dataset.data_dir": str(labels.parent),
            f"{part}.dataset.label_file_list": f"['{labels}']",
            f"{part}.loader.batch_size_per_card": "8", f"{part}.loader.num_workers": "0",
        }  # fmt: skip
    config = checkout / "configs" / "rec" / "rec_mv3_none_bilstm_ctc.yml"
    arguments = ["-c", str(config), "-o", *(f"{name}={value}" for name, value in options.items())]
    theirs = ["paddle.distributed.launch", "--nproc_per_node", "2"]
    return Rehearsal(["--gpus", "0,1"], arguments, theirs)


def _coco(folder: Path, count: int) -> None:
    """Write images with one box each in the folders where the configurations look for COCO."""
    random = Random(0)  # noqa: S311
    for part in ("train2017", "val2017"):
        images, boxes = [], []
        for number in range(1, count + 1):
            name = f"{number}.png"
            write_png(folder / part / name, 64, 64, random)
            images.append({"id": number, "file_name": name, "width": 64, "height": 64})
            box = {"bbox": [8, 8, 40, 40], "area": 1600, "iscrowd": 0, "category_id": 1 + number % 2}
            boxes.append({"id": number, "image_id": number, **box})
        kinds = [{"id": number + 1, "name": name} for number, name in enumerate(("one", "two"))]
        path = folder / "annotations" / f"instances_{part}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"images": images, "annotations": boxes, "categories": kinds}))


def _paddledetection(checkout: Path, folder: Path) -> Rehearsal:
    _coco(folder / "dataset" / "coco", 16)
    options = {
        "use_gpu": "false", "epoch": "1", "worker_num": "0", "log_iter": "1", "num_classes": "2",
        "TrainReader.batch_size": "2", "EvalReader.batch_size": "2", "pretrain_weights": "null",
        "save_dir": str(folder / "output"),
    }  # fmt: skip
    config = checkout / "configs" / "picodet" / "picodet_xs_320_coco_lcnet.yml"
    arguments = ["-c", str(config), "-o", *(f"{name}={value}" for name, value in options.items())]
    arguments += ["--enable_ce", "True", "--eval"]  # a fixed seed
    theirs = ["paddle.distributed.launch", "--nproc_per_node", "2"]
    return Rehearsal(["--selected_gpu", "0,1"], arguments, theirs)


def _mindocr(checkout: Path, folder: Path) -> Rehearsal:
    labels = _words(folder / "words", 16)
    config = checkout / "configs" / "rec" / "crnn" / "crnn_vgg7.yaml"
    options = {
        "system.distribute": "True", "system.amp_level": "O0", "system.val_while_train": "False",
        "system.log_interval": "1", "scheduler.num_epochs": "1", "scheduler.warmup_epochs": "0",
        "scheduler.decay_epochs": "1", "train.ckpt_save_dir": str(folder / "output"),
        "loss.batch_size": "2", "train.loader.batch_size": "2", "train.loader.num_workers": "1",
        "model.neck.hidden_size": "32", "train.dataset.type": "RecDataset",
        "train.dataset.dataset_root": str(labels.parent), "train.dataset.data_dir": ".",
        "train.dataset.label_file": labels.name,
    }  # fmt: skip
    text = config.read_text()
    # The option --opt cannot add a key.
    own = folder / "crnn_vgg7.yaml"
    own.write_text(
        text.replace("    # label_files: # not required when using LMDBDataset", "    label_file:")
    )
    arguments = ["--config", str(own), "--opt", *(f"{name}={value}" for name, value in options.items())]
    return Rehearsal(["-n", "2", "--no-table"], arguments, [])


_GUIDES = {"paddleocr": _paddleocr, "paddledetection": _paddledetection, "mindocr": _mindocr}

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
