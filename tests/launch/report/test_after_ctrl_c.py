"""After Ctrl-C, nothing is explained: the user has ended the job."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_ctrl_c_is_not_explained(own_directory: Path) -> None:
    (own_directory / "train.py").write_text("import time; print('step 1', flush=True); time.sleep(300)")
    command = [sys.executable, "-m", "hccl_tools", "launch", "--cpu", "-n", "2", "train.py"]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with job:
        assert job.stdout is not None
        assert job.stdout.readline() == "step 1\n"
        job.send_signal(signal.SIGINT)
        _out, said = job.communicate(timeout=60)

    assert job.returncode == 130
    assert "Ctrl-C: ending the job" in said
    assert "explain" not in said
    assert said.splitlines()[-1] == "hccl-tools: exit code 130: the launcher received SIGINT"
