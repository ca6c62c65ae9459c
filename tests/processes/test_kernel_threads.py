"""The kernel's threads, which the search for processes with an open device leaves out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hccl_tools.processes import procfs

if TYPE_CHECKING:
    import pytest


def test_kernel_threads_run_no_program() -> None:
    found = procfs.kernel_threads()

    assert os.getpid() not in found
    assert not any(
        Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found if Path(f"/proc/{pid}").exists()
    )


def test_a_process_with_the_number_of_the_first_kernel_thread_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(procfs, "_KTHREADD", os.getppid())

    assert procfs.kernel_threads() == []


def test_without_such_a_process_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "_KTHREADD", 0)

    assert procfs.kernel_threads() == []
