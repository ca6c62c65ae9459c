"""A Python that has torch, where there is one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

#: The one that this variable names (the Makefile makes it), or this one. Asked here: the tests clear HCCL_*.
TORCH_PYTHON = shutil.which(os.environ.get("HCCL_TOOLS_TORCH_PYTHON", "")) or sys.executable
TORCHRUN = shutil.which(Path(TORCH_PYTHON).with_name("torchrun"))

needs_torch = pytest.mark.skipif(
    sys.executable == TORCH_PYTHON and importlib.util.find_spec("torch") is None,
    reason="torch is not installed here; HCCL_TOOLS_TORCH_PYTHON names a Python that has it",
)
