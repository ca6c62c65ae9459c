"""The training example in jobs over hosts, and the marks of tests that run it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "train_digits.py"
MARKS = [
    pytest.mark.bed,
    pytest.mark.mindspore,
    pytest.mark.slow,
    *(
        pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")
        for name in ("mindspore", "sklearn")
    ),
]
