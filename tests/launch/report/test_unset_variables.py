"""A program that needs the variables of another start: launch and explain say which start sets them."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.launch.planning.environment import VARIABLES

if TYPE_CHECKING:
    from pathlib import Path

_TORCH = "`--start torch` to the options of `hccl-tools launch`: it sets RANK, WORLD_SIZE, LOCAL_RANK"
_MSRUN = "`--start cluster` to the options of `hccl-tools launch`: it sets MS_ROLE, MS_WORKER_NUM"


def _launch(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hccl_tools", "launch", "--cpu", "-n", "2", "--start", "table", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _explain() -> str:
    command = [sys.executable, "-m", "hccl_tools", "explain"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    ("program", "text", "variable", "advice"),
    [
        (["train.py"], "import os; os.environ['RANK']", "RANK", _TORCH),
        (["train.py"], "import os; os.environ['LOCAL_RANK']", "LOCAL_RANK", _TORCH),
        (["train.py"], "import os; os.environ['MASTER_ADDR']", "MASTER_ADDR", _TORCH),
        (["train.py"], "import os; os.environ['MS_NODE_ID']", "MS_NODE_ID", _MSRUN),
        (["--no-python", "bash", "train.sh"], "set -u; echo $WORLD_SIZE", "WORLD_SIZE", _TORCH),
        (["--no-python", "sh", "train.sh"], "set -u; echo $MASTER_PORT", "MASTER_PORT", _TORCH),
        (["--no-python", "sh", "train.sh"], ': "${RANK:?}"', "RANK", _TORCH),
        (["--no-python", "sh", "train.sh"], "set -u; echo $MS_SCHED_HOST", "MS_SCHED_HOST", _MSRUN),
    ],
)
def test_a_variable_of_another_start(
    own_directory: Path, program: list[str], text: str, variable: str, advice: str
) -> None:
    (own_directory / program[-1]).write_text(text)

    done = _launch(*program)

    assert done.returncode != 0
    assert f"add {advice}" in done.stderr
    assert f"which is not set: {variable}. Certain: the log says so." in done.stderr
    assert done.stderr.count(f"add {advice}") == 1, "what to do is said once"
    explained = _explain()
    assert f"which is not set: {variable}" in explained
    assert f"add {advice}" in explained


def test_a_key_of_the_program_s_own_is_no_variable(own_directory: Path) -> None:
    (own_directory / "train.py").write_text("{}['RANK']")

    done = _launch("--start", "torch", "train.py")

    assert "--start torch`" not in done.stderr
    assert "the program raised an exception: KeyError: 'RANK'. The only failure in these logs." in _explain()


@pytest.mark.parametrize(
    ("family", "of_family"), [("torch", ("HCM743", "HCM744")), ("cluster", ("HCM747", "HCM748"))]
)
def test_the_messages_know_all_variables_of_the_start(family: str, of_family: tuple[str, ...]) -> None:
    for message in (messages()[identifier] for identifier in of_family):
        found = re.search(message.pattern, message.example.encode())
        assert found is not None
        for variable in VARIABLES[family]:
            line = message.example.replace(found["variable"].decode(), variable.name)
            assert re.search(message.pattern, line.encode()), variable.name


def test_ranks_with_the_same_exception_failed_by_themselves(own_directory: Path) -> None:
    # Rank 1 is terminated while it ends; rank 2 waits.
    (own_directory / "train.py").write_text(
        "import atexit, os, time\n"
        "rank = int(os.environ['RANK_ID'])\n"
        "if rank == 2: time.sleep(300)\n"
        "if rank == 1: atexit.register(time.sleep, 300)\n"
        "log = os.environ['HCCL_TOOLS_RUN_DIR'] + '/rank_1.log'\n"
        "while rank == 0 and 'ValueError' not in open(log).read():\n"
        "    time.sleep(0.02)\n"
        "raise ValueError('no samples')\n"
    )

    done = _launch("-n", "3", "train.py")

    assert "rank 0 failed first: exit code 1" in done.stderr
    assert "  failed with the same exception: rank 1\n" in done.stderr
    assert "  as a consequence: rank 2: killed by SIGTERM\n" in done.stderr


def test_a_rehearsal_without_devices_has_no_note_on_torch_npu(own_directory: Path) -> None:
    (own_directory / "train.py").write_text("raise ImportError('no torch')")
    gen = [sys.executable, "-m", "hccl_tools", "gen", "--simulate", "910a:2", "-o", "t.json"]
    subprocess.run(gen, capture_output=True, check=True)

    launch = [sys.executable, "-m", "hccl_tools", "launch", "--cpu", "--rank-table", "t.json", "train.py"]
    subprocess.run(launch, capture_output=True, check=False)

    assert "torch_npu" not in _explain()
