"""Where processes cannot be started, ``launch`` says so in a sentence and exits with 125."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

LAUNCH = ("launch", "--no-table", "-n", "2", "--start", "table", "--no-python")
#: One that is still there when the next is to be started.
SLOW = ("sleep", "60")


def launch_with(limit: int) -> subprocess.CompletedProcess[str]:
    """Launch two ranks as a user without any other process (root has no such limit)."""
    own = os.geteuid() == 0
    if own and not shutil.which("setpriv"):
        pytest.skip("there is no setpriv to become another user")
    # The Python that runs the tests may lie in a directory that only root may enter.
    user = ("setpriv", "--reuid", "65533", "--clear-groups", "--inh-caps", "-all,+dac_override")
    other = (*user, "--ambient-caps", "+dac_override") if own else ()
    command = (*other, "prlimit", f"--nproc={limit}", sys.executable, "-m", "hccl_tools", *LAUNCH, *SLOW)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_keeper_cannot_be_started(own_directory: Path) -> None:
    own_directory.chmod(0o1777)
    done = launch_with(1)

    assert done.returncode == 125, done.stderr
    assert done.stderr == (
        "error: the launcher's keeper process cannot be started: no more processes can be started"
        " (`ulimit -u` is 1; a container's pids limit also applies)\n"
    )


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="this user has other processes: only root can take another's")
@pytest.mark.parametrize("limit", [2, 3, 4])
def test_ranks_cannot_be_started(own_directory: Path, limit: int) -> None:
    own_directory.chmod(0o1777)
    done = launch_with(limit)

    assert done.returncode == 125, done.stderr
    last = done.stderr.splitlines()[-1]
    assert f"no more processes can be started (`ulimit -u` is {limit};" in last
    assert "Traceback" not in done.stderr


def test_interpreter_cannot_be_started_a_second_time() -> None:
    """Its file has gone, say: the keeper is forked then, and the job runs."""
    program = (
        "import sys; sys.executable = '/nowhere/python'; from hccl_tools.cli import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, *LAUNCH, "echo", "up"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "up\n"
