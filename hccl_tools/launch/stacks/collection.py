"""Collect what the ranks of a running job do: on this host, and on the others over ssh or srun."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hccl_tools import codec
from hccl_tools.errors import InputError, UsageError
from hccl_tools.launch.stacks.rank_stack import RankStack
from hccl_tools.processes import wait_state
from hccl_tools.processes.stack_dump import Stack, StackDump, Target
from hccl_tools.runs import answers, directory, files, hosts, index, rank_processes, remote

if TYPE_CHECKING:
    from hccl_tools.runs.answers import Answer
    from hccl_tools.runs.index import Run
    from hccl_tools.runs.saved import SavedProcess

#: Seconds between two checks.
_PAUSE = 0.02
#: Seconds for another host to answer.
_HOST_SECONDS = 40.0
#: What is known of a rank without a process while the job runs.
_ENDED = "ended with exit code 0 (a rank that fails ends the job)"


def collect(run: Run, typed_ssh: str | None = None) -> list[RankStack]:
    """Return what each rank of a run does, in rank order; the ranks of a host that fails have the problem.

    Raises:
        UsageError: The run has ended, or ssh is missing.
    """
    if index.is_over(run):
        raise UsageError(
            f"{run.name} has ended: only a running job has stacks",
            hint="`hccl-tools logs` prints its logs, and `hccl-tools explain` what they say",
        )
    own: list[SavedProcess] = []
    others: dict[str, list[int]] = {}
    for process in files.plan(run.path).ranks:
        if hosts.is_on_this_host(run, process):
            own.append(process)
        else:
            others.setdefault(process.host, []).append(process.rank)
    command = ["stacks", remote.SERVE]
    connections = {host: remote.run_there(run, host, command, typed_ssh) for host in others}
    try:
        found = _here(run, own)
        for host, answer in answers.read(connections, _HOST_SECONDS).items():
            found += _of_host(host, answer, others[host])
    finally:
        for connection in connections.values():
            connection.close()
    return sorted(found, key=lambda one: one.rank)


def serve(path: str) -> list[RankStack]:
    """Return what the ranks of a run on this host do, for the reader on another host.

    Raises:
        InputError: The run does not exist on this host.
    """
    if not files.is_run(path):
        raise InputError(f"there is no run in {path} on this host")
    ranks = rank_processes.find(path, owner=directory.owner_of_processes(path))
    planned = [process for process in files.plan(path).processes if process.rank in ranks]
    return _here(index.read(path), planned)


def _here(run: Run, planned: list[SavedProcess]) -> list[RankStack]:
    owner = directory.owner_of_processes(run.path)
    pids = rank_processes.find(run.path, owner=owner) if planned else {}
    # A rank of another user may start a setuid program, so that root would act on a process of a third user.
    asked = None if directory.is_own(run.path) else owner
    states = {pid: wait_state.of(pid, asked) for pid in pids.values()}
    # The link stays valid if the log is in another mount namespace (a container).
    looked_at = {pid: state.pid if state else pid for pid, state in states.items()}
    targets = {pid: Target(at, f"/proc/{at}/fd/2") for pid, at in looked_at.items()}
    dump = StackDump(list(targets.values()), owner=asked)
    try:
        deadline = time.monotonic() + dump.seconds
        while not dump.is_complete and time.monotonic() < deadline:
            time.sleep(_PAUSE)
    finally:
        stacks = dump.finish()
    found = []
    for process in planned:
        rank, host = process.rank, process.host
        pid = pids.get(rank, 0)
        state = states.get(pid)
        if state is None:
            found.append(RankStack(rank, host, problem=_ENDED, ended=True))
            continue
        stack: Stack = stacks[targets[pid]]
        found.append(
            RankStack(rank, host, state.pid, state.description, stack.lines, stack.source, stack.problem)
        )
    return found


def _of_host(host: str, answer: Answer, ranks: list[int]) -> list[RankStack]:
    problem, ended = answer.problem, False
    found: dict[int, RankStack] = {}
    try:
        if not problem:
            sent = codec.decode_as("tuple[RankStack, ...]", __name__, codec.parse(answer.data))
            found = {one.rank: one._replace(host=host) for one in sent}
            problem, ended = _ENDED, True
    except codec.DecodeError as error:
        problem = f"the answer of {host} cannot be read: {error.message}"
    return [found.get(rank, RankStack(rank, host, problem=problem, ended=ended)) for rank in ranks]
