"""Collect what the ranks of a running job do: on this host, and on the others over ssh or srun."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from hccl_tools import codec
from hccl_tools.errors import InputError, UsageError
from hccl_tools.notation import screen
from hccl_tools.notation.number_list import rank_list
from hccl_tools.notation.phrases import and_more
from hccl_tools.notation.printable import escaped
from hccl_tools.processes import wait_state
from hccl_tools.processes.stack_dump import Stack, StackDump, Target
from hccl_tools.records import NamedTuple
from hccl_tools.runs import directory, files, hosts, index, remote, run_processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.records import Count, Index, OsText
    from hccl_tools.runs.index import Run
    from hccl_tools.runs.remote import Answer
    from hccl_tools.runs.saved import SavedProcess

#: Seconds between two checks.
_PAUSE = 0.02
#: Seconds for another host to answer.
_HOST_SECONDS = 40.0
#: What is known of a rank without a process while the job runs.
_ENDED = "ended with exit code 0 (a rank that fails ends the job)"

#: The maximum number of hosts in a heading.
_MOST_HOSTS = 4


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
        for host, answer in remote.read(connections, _HOST_SECONDS).items():
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
    ranks = run_processes.find(path, owner=directory.owner_of_processes(path))
    planned = [process for process in files.plan(path).processes if process.rank in ranks]
    return _here(index.read(path), planned)


def _here(run: Run, planned: list[SavedProcess]) -> list[RankStack]:
    owner = directory.owner_of_processes(run.path)
    pids = run_processes.find(run.path, owner=owner) if planned else {}
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


def as_json(run_dir: str, stacks: Sequence[RankStack]) -> str:
    """Return the stacks as JSON, a line per rank."""
    lines = ",\n".join(f"    {json.dumps(one._asdict())}" for one in stacks)
    return f'{{\n  "run_dir": {json.dumps(run_dir)},\n  "ranks": [\n{lines}\n  ]\n}}\n'


def as_text(stacks: Sequence[RankStack]) -> str:
    """Return the stacks as text; ranks with equal stacks are shown together, as ``dshbak -c`` does.

    Each line is escaped: text of a host cannot begin a line of its own.
    """
    groups: dict[tuple[object, ...], list[RankStack]] = {}
    for one in stacks:
        key = one.stack or (one.doing, one.problem)
        groups.setdefault(key, []).append(one)
    reasons: dict[str, list[list[RankStack]]] = {}
    for group in groups.values():
        if group[0].problem and group[0].pid and not group[0].ended:
            reasons.setdefault(group[0].problem, []).append(group)
    shared = {problem for problem, found in reasons.items() if len(found) > 1}
    blocks = [_group(group, shared) for group in groups.values()]
    for problem in sorted(shared):
        ranks = rank_list(one.rank for group in reasons[problem] for one in group)
        blocks.append(_wrapped([f"no Python stack of {ranks}: {problem}"]))
    return "\n".join(blocks)


def _group(group: list[RankStack], shared: set[str]) -> str:
    first = group[0]
    hosts = and_more(list(dict.fromkeys(one.host for one in group)), _MOST_HOSTS)
    doing: dict[str, list[int]] = {}
    for one in group:
        doing.setdefault(one.doing, []).append(one.rank)
    what = "; ".join(
        text if len(doing) == 1 else f"{rank_list(ranks)} {text}" for text, ranks in doing.items() if text
    )
    pid = f", pid {first.pid}" if len(group) == 1 and first.pid else ""
    head = f"{rank_list(one.rank for one in group)} ({hosts}{pid}):"
    if first.ended:
        what = first.problem
    lines = [f"{head} {what}" if what else head]
    lines += [f"  {line}" for line in first.stack]
    if first.problem and not first.ended and first.problem not in shared:
        lines.append(f"  no Python stack: {first.problem}" if first.pid else f"  {first.problem}")
    # The lines of a stack are data: they are not broken.
    return _wrapped(lines, whole=first.stack)


def _wrapped(lines: Sequence[str], whole: Sequence[str] = ()) -> str:
    columns = screen.width()
    return "".join(
        f"{part}\n"
        for line in lines
        for part in ([escaped(line)] if line[2:] in whole else screen.wrapped(escaped(line), columns))
    )


class RankStack(NamedTuple):
    """What one rank does.

    Attributes:
        pid: Its process id on its host, 0 if it has no process there.
        doing: Its state: ``sleeping in recvfrom() on a socket``, ``stopped``; "" without a process.
        stack: The lines of its Python stack, the innermost frame first.
        source: Where the stack comes from: ``faulthandler``, ``py-spy``, or "" without a stack.
        problem: Why there is no stack, "" with one.
        ended: Whether it has no process while its launcher still runs the job: it has done its work.
    """

    rank: Index
    host: str
    pid: Count = 0
    doing: OsText = ""
    stack: tuple[OsText, ...] = ()
    source: str = ""
    problem: OsText = ""
    ended: bool = False
