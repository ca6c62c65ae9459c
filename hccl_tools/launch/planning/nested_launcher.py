"""Refuse the launcher of another tool in place of the program: every rank would start a whole job."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.launch.model.request import ProgramKind

#: Programs and modules that start ranks, whose options ``launch`` accepts too.
_SAME_OPTIONS = {
    "torchrun", "torch.distributed.run", "torch.distributed.launch", "msrun",
    "fleetrun", "paddle.distributed.launch", "paddle.distributed.fleet.launch",
}  # fmt: skip
#: Others: what belongs to them ends where the program begins.
_OTHERS = {
    "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "srun", "prun", "horovodrun",
    "deepspeed", "accelerate", "accelerate.commands.launch", "deepspeed.launcher.runner",
}  # fmt: skip


def refuse(kind: ProgramKind, argv: Sequence[str], call: Sequence[str]) -> None:
    """Refuse a program that is a launcher.

    Args:
        argv: The program and its arguments.
        call: The command line before the program, for the command to type. A ``--`` at its end means that
            the program is what is wanted, and nothing is refused.

    Raises:
        UsageError: The program starts the ranks of a job.
    """
    name = argv[0] if kind == "module" else os.path.basename(argv[0])
    if name not in _SAME_OPTIONS | _OTHERS or call[-1:] == ("--",):
        return
    own = [word for word in call if word not in {"-m", "--module", "--no-python"}]
    rest = argv[1:] if name in _SAME_OPTIONS else _from_script(argv[1:])
    words = [*own, *(rest or ("train.py",))]
    raise UsageError(
        f'"{name}" starts the ranks of a job itself: every rank of `launch` would start a whole job',
        hint=f"leave it out: `{shlex.join(words)}`; `--` before it starts it all the same",
    )


def _from_script(words: Sequence[str]) -> Sequence[str]:
    """Return the words from the first Python script on; () without one."""
    return next((words[at:] for at, word in enumerate(words) if word.endswith(".py")), ())
