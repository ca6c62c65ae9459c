"""An environment for jobs that hang."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def without_py_spy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the folders that have py-spy out of PATH."""
    folders = os.environ["PATH"].split(os.pathsep)
    kept = [folder for folder in folders if not shutil.which("py-spy", path=folder)]
    monkeypatch.setenv("PATH", os.pathsep.join(kept))
