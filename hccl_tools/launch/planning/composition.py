"""The environment of every rank, composed in one way for the launcher and for ranks under a user's mpirun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.errors import UsageError
from hccl_tools.launch.planning import environment
from hccl_tools.launch.runs.directory import RUN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.launch.planning.environment import JobFacts
    from hccl_tools.launch.planning.placement import RankPlacement


def common(environ: Mapping[str, str], facts: JobFacts, *, run_dir: str, buffered: bool) -> dict[str, str]:
    """Return what is set for every process of a job."""
    shared = environment.common_environment(environ, buffered=buffered, endpoints=facts.endpoints)
    return {**shared, RUN_VARIABLE: run_dir}


def variables(
    seats: Sequence[RankPlacement], facts: JobFacts, assigned: Mapping[str, str]
) -> Iterator[tuple[RankPlacement, dict[str, str]]]:
    """Yield each seat with what is set for its rank alone; ``assigned`` is the user's (``--env``) and wins.

    ``facts.devices`` is filled in here: for each rank those of its server.
    """
    devices: dict[int, list[int]] = {}
    for seat in seats:
        devices.setdefault(seat.server_index, []).append(seat.device)
    on = {server: facts._replace(devices=tuple(found)) for server, found in devices.items()}
    for seat in seats:
        yield seat, {**environment.rank_environment(seat, on[seat.server_index]), **assigned}


def check_assigned(assigned: Mapping[str, str], seats: Sequence[RankPlacement], facts: JobFacts) -> list[str]:
    """Refuse variables of the user that the ranks cannot share; return notes on those that replace ours.

    Args:
        assigned: What every rank is to get (``--env``, ``--env-file``).
        seats: The seats of the job.
        facts: What the ranks share.

    Raises:
        UsageError: A variable differs from rank to rank, or names the table or the run directory.
    """
    notes: list[str] = []
    if RUN_VARIABLE in assigned:
        raise UsageError(f"{RUN_VARIABLE} is set by hccl-tools for itself", hint="leave it out of --env")
    for name in sorted(assigned.keys() & {variable.name for variable in environment.VARIABLES}):
        ours = [found[name] for _, found in variables(seats, facts, {}) if name in found]
        if name == "RANK_TABLE_FILE" and facts.table:
            raise UsageError(
                f"{name}={assigned[name]} is not the table of this job, of which every rank gets a copy",
                hint=f"name the table by --rank-table {assigned[name]}, not by --env",
            )
        if len(set(ours)) > 1:
            raise UsageError(
                f"{name}={assigned[name]} sets it for all ranks, but {name} differs between them",
                hint=f"leave {name} out of --env: each rank gets its own",
            )
        if ours and ours[0] != assigned[name]:
            notes.append(f"{name}={assigned[name]} (--env) replaces {ours[0]}")
    return notes


def wants_scheduler(facts: JobFacts, frameworks: Mapping[str, str]) -> bool:
    """Return whether MindSpore's scheduler has to run: its MPI start needs one on the CPU."""
    if facts.start == "mpi":
        return facts.cpu and "mindspore" in frameworks
    return facts.start == "cluster"


def ranks_meet(start: str, *, cpu: bool) -> bool:
    """Return whether the ranks of a start meet at a port of rank 0's host."""
    return start in {"cluster", "torch"} or (start == "mpi" and cpu)
