"""How each launcher starts a Python program on N ranks, and whom it blames when a rank fails."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Launcher:
    """``command`` takes the number of ranks, the script, a folder for logs and the grace time in seconds.

    ``ours`` says that it is hccl-tools, with a keeper and a watcher beside the ranks.
    """

    name: str
    program: str
    command: Callable[[int, str, Path, float], list[str]]
    blames: Callable[[Path], int | None]
    ours: bool = False

    def is_here(self) -> bool:
        """Whether it is installed."""
        return installed(self.program) is not None


def installed(program: str) -> str | None:
    """Where a launcher is: on PATH, or beside the Python that HCCL_TOOLS_TORCH_PYTHON names."""
    python = os.environ.get("HCCL_TOOLS_TORCH_PYTHON")
    return shutil.which(program) or (shutil.which(Path(python).with_name(program)) if python else None)


def _ours(ranks: int, script: str, folder: Path, grace: float) -> list[str]:
    options = ["--no-table", "--log-dir", str(folder / "log"), "--grace", str(grace), "--no-python"]
    launch = [sys.executable, "-m", "hccl_tools", "launch", "-n", str(ranks)]
    return [*launch, *options, sys.executable, "-I", "-S", script]


def _ours_by_mpirun(ranks: int, script: str, folder: Path, grace: float) -> list[str]:
    options = ["--engine", "mpirun", "--log-dir", str(folder / "log"), "--grace", str(grace), "--no-python"]
    launch = [sys.executable, "-m", "hccl_tools", "launch", "-n", str(ranks), "--cpu", "--start", "mpi"]
    return [*launch, *options, sys.executable, "-I", "-S", script]


def _blamed_by_us(folder: Path) -> int | None:
    for report in folder.glob("log/*/report.json"):
        first = json.loads(report.read_text())["first_failure"]
        return first["rank"] if first else None
    return _found(folder, r"rank (\d+) failed first")


def _mpirun(ranks: int, script: str, folder: Path, grace: float) -> list[str]:  # noqa: ARG001
    options = ["-n", str(ranks)]
    if _is_open_mpi():
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        options += [*root, "--oversubscribe", "--bind-to", "none"]
    return ["mpirun", *options, sys.executable, "-I", "-S", script]


@cache
def _is_open_mpi() -> bool:
    """Whether mpirun is Open MPI's; MPICH's takes other options."""
    told = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False)
    return "Open MPI" in told.stdout


def _blamed_by_mpirun(folder: Path) -> int | None:
    pattern = r"Process name: \[[^\]]*?,\s*(\d+)\]|noticed that process rank (\d+)"
    return _found(folder, pattern)


def _torchrun(ranks: int, script: str, folder: Path, grace: float) -> list[str]:
    options = [f"--nproc-per-node={ranks}", f"--log-dir={folder / 'log'}", "--redirects=3", "--no-python"]
    # Heeded when it is signalled; when a rank fails it is 30 s all the same.
    patience = ["env", f"TORCH_ELASTIC_SHUTDOWN_TIMEOUT={grace:g}"]
    return [*patience, installed("torchrun") or "torchrun", *options, sys.executable, "-I", "-S", script]


def _blamed_by_torchrun(folder: Path) -> int | None:
    return _found(folder, r"Root Cause.*?rank\s*:\s*(\d+)")


def _msrun(ranks: int, script: str, folder: Path, grace: float) -> list[str]:  # noqa: ARG001
    options = [f"--worker_num={ranks}", f"--local_worker_num={ranks}", "--join=True"]
    return ["msrun", *options, f"--log_dir={folder / 'log'}", script]


def _blamed_by_msrun(folder: Path) -> int | None:
    """It names a process id; whose that was is not said."""
    return _found(folder, r"rank[ :=]+(\d+)")


def _found(folder: Path, pattern: str) -> int | None:
    text = (folder / "output").read_text(errors="replace")
    match = re.search(pattern, text, re.DOTALL)
    return next((int(group) for group in match.groups() if group), None) if match else None


LAUNCHERS = (
    Launcher("hccl-tools", sys.executable, _ours, _blamed_by_us, ours=True),
    Launcher("  by mpirun", "mpirun", _ours_by_mpirun, _blamed_by_us, ours=True),
    Launcher("mpirun", "mpirun", _mpirun, _blamed_by_mpirun),
    Launcher("torchrun", "torchrun", _torchrun, _blamed_by_torchrun),
    Launcher("msrun", "msrun", _msrun, _blamed_by_msrun),
)
