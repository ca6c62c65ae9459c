"""``launch --emit xllm|mindie``: the commands of a serving job, grouped by host.

Sources: xLLM docs/en/getting_started/multi_machine.md (a process per device; ``--node_rank`` is its rank);
MindIE-LLM, rank_table_file_configuration.md (a service per host; the table gives it devices and size).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, TableError
from hccl_tools.files.export_targets import TARGETS, require_no_error
from hccl_tools.notation.number_list import fold
from hccl_tools.notation.printable import escaped
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.validation.checker import validate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.launch.model.plan import Plan, RankProcess

#: The first service port of a host's processes, unless the command names one.
_FIRST_PORT = 18000
#: The rendezvous port of the job, unless ``--start-port`` names one.
_MASTER_PORT = "18118"


def text(plan: Plan, target: str, environment: Mapping[str, str]) -> str:
    """Return the commands for a plan, each with the variables of ``environment``.

    Raises:
        LaunchError: The job has no table, or the service would refuse it or its file.
    """
    if not plan.table:
        raise LaunchError(f"--emit {target} needs a table", hint="name it with --rank-table FILE")
    try:
        require_no_error(TARGETS[target], validate(plan.table, target=target).findings)
    except TableError as error:
        raise LaunchError(error.head, hint=error.hint, lines=error.lines) from error
    before = "".join(f"{name}={shlex.quote(value)} " for name, value in environment.items())
    blocks = []
    for processes in _by_host(plan):
        ranks = fold(process.rank for process in processes)
        lines = _xllm(plan, processes, before) if target == "xllm" else _mindie(plan, processes, before)
        blocks.append("\n".join([title(processes[0].host, ranks), *lines]) + "\n")
    return "\n".join(blocks)


def title(host: str, ranks: str) -> str:
    """Return the comment above the commands of a host, whose name may have any characters."""
    return f"# {escaped(host, ascii_only=True)}: ranks {ranks}"


def _by_host(plan: Plan) -> list[list[RankProcess]]:
    found: dict[str, list[RankProcess]] = {}
    for process in plan.ranks:
        found.setdefault(process.host, []).append(process)
    return list(found.values())


def _xllm(plan: Plan, processes: Sequence[RankProcess], before: str) -> Iterator[str]:
    first = plan.ranks[0]
    port = first.environment.get("MASTER_PORT") or first.environment.get("MS_SCHED_PORT") or _MASTER_PORT
    for place, process in enumerate(processes):
        argv, own_port = _without_port(process.argv)
        options = [
            f"--host={process.host}",
            f"--port={own_port + place}",
            f"--devices=npu:{process.device_id}",
            f"--master_node_addr={first.host}:{port}",
            f"--nnodes={plan.world_size}",
            f"--node_rank={process.rank}",
            "--communication_backend=hccl",
            f"--rank_tablefile={plan.table}",
        ]
        yield f"{before}{shlex.join([*argv, *options])} &"


def _without_port(argv: Sequence[str]) -> tuple[list[str], int]:
    """Return a command without its ``--port``, which is that of a host's first process, and the port."""
    kept, port, words = list[str](), _FIRST_PORT, iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name != "--port":
            kept.append(word)
            continue
        value = value if equals else next(words, "")
        number = whole_number(value)
        if number is None:
            raise LaunchError(f"--port {value} of the command is not a number")
        port = number
    return kept, port


def _mindie(plan: Plan, processes: Sequence[RankProcess], before: str) -> Iterator[str]:
    server = shlex.quote(processes[0].host)
    table = shlex.quote(plan.table or "")
    yield f'eval "$(hccl-tools env {table} --target mindie --server {server})" &&'
    yield f"  {before}{shlex.join(processes[0].argv)}"
