"""A Python that has Paddle, where there is one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])

#: The one that this variable names (the Makefile makes it), or this one. Asked here: the tests clear HCCL_*.
PADDLE_PYTHON = shutil.which(os.environ.get("HCCL_TOOLS_PADDLE_PYTHON", "")) or sys.executable
IS_MISSING = sys.executable == PADDLE_PYTHON and importlib.util.find_spec("paddle") is None
#: Paddle's own launcher.
PADDLE_LAUNCH = (PADDLE_PYTHON, "-W", "ignore", "-m", "paddle.distributed.launch")


_WITH_PADDLE = pytest.mark.skipif(
    IS_MISSING, reason="Paddle is not installed here; HCCL_TOOLS_PADDLE_PYTHON names a Python that has it"
)


def needs_paddle(test: Test) -> Test:
    """Mark a test: it takes seconds, and is left out without Paddle, which CI does not allow."""
    for mark in (_WITH_PADDLE, pytest.mark.slow, pytest.mark.paddle):
        test = mark(test)
    return test
