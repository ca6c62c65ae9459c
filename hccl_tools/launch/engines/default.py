"""The engine of a job on several hosts for which none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError
from hccl_tools.programs import mpirun, slurm
from hccl_tools.programs.lookup import ProgramMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def for_several_hosts(
    environ: Mapping[str, str],
    why_unfit: Callable[[mpirun.Mpirun], str] = lambda _: "",
    *,
    with_slurm: bool = True,
) -> tuple[str, str]:
    """Return the name of the default engine for several hosts, and why it is used.

    Args:
        why_unfit: Returns why an mpirun cannot be used, and "" if it can.
        with_slurm: Whether it may be Slurm.
    """
    if with_slurm and slurm.in_allocation(environ):
        return "slurm", "inside a Slurm allocation"
    try:
        found = mpirun.find_mpirun(environ)
    except ProgramMissingError:
        return "ssh", "no mpirun on PATH"
    except LaunchError as error:
        return "ssh", error.message
    why = why_unfit(found)
    return ("ssh", why) if why else ("mpirun", f"{found.path} is on PATH")
