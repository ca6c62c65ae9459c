"""What a run leaves out on this machine and why, and about how long it takes; told before it starts."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from typing import TYPE_CHECKING

from tests.beds import browser, daemons, slurm_cluster, three_hosts
from tests.suite import dealing
from tests.support import paddle_python
from tests.support.mpiruns import MPIRUNS
from tests.support.torch_python import TORCH_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


def pytest_report_header(config: pytest.Config) -> list[str]:
    lines = [f"left out: {what}: {why}" for what, why in _left_out()]
    if config.args == config.getini("testpaths") and not (config.option.markexpr or config.option.keyword):
        lines.append(f"about {_minutes()} minutes on {dealing.CORES} cores")
    return lines


def _left_out() -> Iterator[tuple[str, str]]:
    """Yield what this machine leaves out, and why."""
    if why := daemons.missing(three_hosts.PROGRAMS):
        yield "jobs on several hosts", why
    if why := daemons.missing(slurm_cluster.PROGRAMS):
        yield "jobs in Slurm", why
    if why := browser.missing():
        yield "pages in a browser", why
    if importlib.util.find_spec("mindspore") is None:
        yield "MindSpore", f"not installed for {sys.executable}"
    if sys.executable == TORCH_PYTHON and importlib.util.find_spec("torch") is None:
        yield "torch", "HCCL_TOOLS_TORCH_PYTHON names no Python that has it"
    if paddle_python.IS_MISSING:
        yield "Paddle", "HCCL_TOOLS_PADDLE_PYTHON names no Python that has it"
    if not MPIRUNS:
        yield "jobs under mpirun", "not installed"
    if shutil.which("faketime") is None:
        yield "clocks that differ", "not installed: faketime"


def _minutes() -> int:
    """Return the length of the last run that was measured, on as many cores as there are here."""
    measured: dict[str, float] = json.loads(dealing.DURATIONS.read_text())
    return max(1, round(measured["seconds"] * measured["cores"] / dealing.CORES / 60))
