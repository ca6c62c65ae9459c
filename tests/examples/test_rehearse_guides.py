"""The script for the guides' own trainings: what it would start, and the data that it makes."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "rehearse_guides.py"
#: The line of the guide's launcher, and a part of each program's arguments.
GUIDES = {
    "paddleocr": ("--gpus 0,1", "rec_mv3_none_bilstm_ctc.yml"),
    "paddledetection": ("--selected_gpu 0,1", "--eval"),
    "mindocr": ("-n 2", "system.distribute=True"),
}


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *args], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("tools/train.py", "configs/rec/crnn/crnn_vgg7.yaml"):
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True)
        path.write_text("    # label_files: # not required when using LMDBDataset\n")
    return tmp_path / "checkout"


@pytest.mark.parametrize("guide", GUIDES)
def test_it_shows_the_line_of_the_guide(guide: str, checkout: Path, tmp_path: Path) -> None:
    options, argument = GUIDES[guide]

    done = run(guide, str(checkout), "--folder", str(tmp_path / "made"), "--show")

    assert done.returncode == 0, done.stderr
    before, _, after = done.stdout.splitlines()[0].partition(f"{checkout}/tools/train.py")
    assert "hccl_tools launch --cpu" in before
    assert options in before
    assert argument in after
    placed = run(guide, str(checkout), "--folder", str(tmp_path / "made"), "--show", "--", "--ips", "a,b")
    assert "--ips a,b" in placed.stdout
    assert options not in placed.stdout.partition("tools/train.py")[0]


def test_the_images_are_images(checkout: Path, tmp_path: Path) -> None:
    run("paddleocr", str(checkout), "--folder", str(tmp_path / "made"), "--show")

    words = tmp_path / "made" / "words"
    names = [line.partition("\t")[0] for line in (words / "labels.txt").read_text().splitlines()]
    assert len(names) == 48
    data = (words / names[-1]).read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    start = data.index(b"IDAT") + 4
    assert len(zlib.decompressobj().decompress(data[start:])) == 32 * (1 + 3 * 100)


def test_a_folder_that_is_not_a_checkout_is_refused(tmp_path: Path) -> None:
    done = run("paddleocr", str(tmp_path))

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path}/tools/train.py does not exist")
