"""Compose the environment of every rank, for ``launch``, ``spawn`` and ranks under a user's mpirun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch.planning import environment, inherited
from hccl_tools.launch.planning.visible_devices import LIMITS
from hccl_tools.processes.procfs import RUN_VARIABLE
from hccl_tools.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.launch.model.inheritance import Inheritance
    from hccl_tools.launch.planning.environment import JobFacts
    from hccl_tools.launch.planning.inherited import KeptMpi
    from hccl_tools.launch.planning.placement import RankPlacement


class JobEnvironment(NamedTuple):
    """The parts of the environments of a job's processes; ``inheritance.composed`` puts them together.

    ``inheritance`` lists the variables that a rank does not inherit, ``passed_on`` the variables that the
    process started by the launcher (a rank or mpirun) does not inherit. ``common`` is set for every process;
    ``ranks`` contains the variables of single ranks.
    """

    inheritance: Inheritance
    passed_on: Inheritance
    common: dict[str, str]
    ranks: dict[int, dict[str, str]]


def compose(placements: Sequence[RankPlacement], facts: JobFacts) -> JobEnvironment:
    """Return the environment of the ranks; ``placements`` contains all ranks of each server in it."""
    devices: dict[int, list[int]] = {}
    for one in placements:
        devices.setdefault(one.server_index, []).append(one.device)
    on = {server: facts._replace(devices=tuple(found)) for server, found in devices.items()}
    also = LIMITS if facts.ignore_visible else ()
    as_mpi, keep = facts.start == "mpi", facts.keep_mpi
    kept: KeptMpi = "all" if keep or (as_mpi and facts.under_mpirun) else "settings" if as_mpi else "none"
    removed = inherited.inheritance(facts.start, keep_mpi=kept, also=also)
    passed_on = removed
    if facts.under_mpirun:  # mpirun needs the user's settings, but not the variables of an outer mpirun.
        passed_on = inherited.inheritance("mpi", keep_mpi="all" if keep else "settings", also=also)
    return JobEnvironment(
        removed,
        passed_on,
        environment.rank_environment(placements[0], facts, shared=True),
        {one.rank: environment.rank_environment(one, on[one.server_index]) for one in placements},
    )


def check_assigned(
    assigned: Mapping[str, str], ranks: Mapping[int, Mapping[str, str]], facts: JobFacts
) -> list[str]:
    """Refuse ``--env`` variables that the ranks cannot share; return a note for each that replaces a default.

    Raises:
        UsageError: A variable differs between ranks, or specifies the table or the run directory.
    """
    notes: list[str] = []
    if RUN_VARIABLE in assigned:
        raise UsageError(f"{RUN_VARIABLE} is reserved for hccl-tools", hint="leave it out of --env")
    for name in sorted(assigned.keys() & environment.names(environment.VARIABLES)):
        ours = [found[name] for found in ranks.values() if name in found]
        if name == "RANK_TABLE_FILE" and facts.table:
            raise UsageError(
                f"{name}={assigned[name]} is not the rank table of this job",
                hint=f"specify the table with --rank-table {assigned[name]}, not with --env",
            )
        if len(set(ours)) > 1:
            raise UsageError(
                f"{name}={assigned[name]} assigns one value to all ranks, but {name} differs between ranks",
                hint=f"leave {name} out of --env: hccl-tools sets it for each rank",
            )
        if ours and ours[0] != assigned[name]:
            notes.append(f"{name}={assigned[name]} (--env) replaces {ours[0]}")
    return notes


def wants_scheduler(facts: JobFacts, frameworks: Mapping[str, str]) -> bool:
    """Return whether MindSpore's scheduler has to run; an ``mpi`` start needs it only on the CPU."""
    if facts.start == "mpi":
        return facts.cpu and "mindspore" in frameworks
    return facts.start == "cluster"


def ranks_meet(start: str, frameworks: Mapping[str, str], *, cpu: bool) -> bool:
    """Return whether the ranks of a start need a rendezvous port on rank 0's host.

    ``frameworks`` are those of the ranks' Python: Paddle's ranks always meet at a port.
    """
    if start == "table":
        return "paddle" in frameworks
    return start in {"cluster", "torch"} or (start == "mpi" and cpu)


def scheduler_environment(job: JobFacts) -> dict[str, str]:
    """Return the variables of MindSpore's scheduler."""
    return {
        "MS_ROLE": "MS_SCHED",
        "MS_WORKER_NUM": str(job.world_size),
        "MS_SCHED_HOST": job.master,
        "MS_SCHED_PORT": str(job.port),
        "MS_NODE_ID": "sched",
        "RANK_ID": "0",
        "RANK_SIZE": str(job.world_size),
        "DEVICE_ID": "0",
    }
