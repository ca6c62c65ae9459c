"""Folders in folders, more levels than a function of Python may call itself."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEVELS = 1200


@contextmanager
def deep_folders(top: Path) -> Iterator[Path]:
    """Make the folders ``top``/d/d/..., and remove them at the end: shutil.rmtree calls itself, too."""
    path = top
    for _ in range(LEVELS):
        path.mkdir()
        path /= "d"
    yield top
    subprocess.run(["rm", "-rf", str(top)], check=True)
