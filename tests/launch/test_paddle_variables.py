"""The variables of a rank beside those that Paddle's own launcher sets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from hccl_tools.launch.planning import ports
from tests.support.paddle_python import PADDLE_LAUNCH, PADDLE_PYTHON, needs_paddle

PROGRAM = """
import json, os, sys
name = f"{sys.argv[1]}-{os.environ['PADDLE_TRAINER_ID']}.json"
with open(name, "w") as file:
    json.dump(dict(os.environ), file)
"""
#: What only Paddle's launcher sets, and why a rank of ours has it not.
ONLY_PADDLES = {
    "POD_NAME": "a random name, which its launcher gives to itself",
    "PADDLE_AUTO_CLUSTER": "the option --auto_cluster_config; its default, 0, is also that of the ranks",
    "PADDLE_BACKUP_ENV_PATH": "needed only if PADDLE_TRAINER_ENDPOINTS is too long for a variable",
}
#: The folder of the logs differs: a run has one of its own.
OTHER_VALUES = {"PADDLE_LOG_DIR"}
LAUNCH = (sys.executable, "-m", "hccl_tools", "launch", "--cpu", "--python", PADDLE_PYTHON)


def variables(name: str, *command: str, **environ: str) -> list[dict[str, str]]:
    """Return what the two ranks of a command have got besides the caller's environment."""
    before = {**os.environ, **environ}
    done = subprocess.run(
        [*command, "program.py", name], env=before, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(Path(f"{name}-{rank}.json").read_text()) for rank in range(2)]
    return [{key: text for key, text in rank.items() if before.get(key) != text} for rank in found]


def of_paddle(found: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in found.items() if name.startswith(("PADDLE_", "FLAGS_", "POD_"))}


@needs_paddle
def test_a_rank_has_the_variables_of_paddles_own_launcher() -> None:
    Path("program.py").write_text(PROGRAM)
    options = ("--ips", "127.0.0.1", "--start_port", str(ports.free_port()), "--nproc_per_node", "2")

    theirs = variables("theirs", *PADDLE_LAUNCH, *options)
    ours = variables("ours", *LAUNCH, *options)

    for rank in range(2):
        expected, found = of_paddle(theirs[rank]), of_paddle(ours[rank])
        assert expected.keys() - found.keys() == ONLY_PADDLES.keys()
        both = expected.keys() - ONLY_PADDLES.keys() - OTHER_VALUES
        assert {name: found[name] for name in both} == {name: expected[name] for name in both}
        assert found["PADDLE_LOG_DIR"] == str(Path.cwd() / "log" / Path(found["PADDLE_LOG_DIR"]).name)
