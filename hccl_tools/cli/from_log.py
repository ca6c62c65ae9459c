"""``gen --from-log`` and ``show --from-log``: the table of a job from its run logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hccl_tools.cli import options, table_output
from hccl_tools.errors import TableError, UsageError
from hccl_tools.explain import ranks_from_logs, sources
from hccl_tools.explain.ranks_from_logs import gaps
from hccl_tools.host.facts import DeviceFacts, HostFacts
from hccl_tools.notation import host_list
from hccl_tools.notation.phrases import aligned, count
from hccl_tools.notation.printable import tell
from hccl_tools.transform import generation
from hccl_tools.transform.generation import file_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.explain.ranks_from_logs import Communicator
    from hccl_tools.table.model import RankTable

#: The options of ``gen`` that apply to a table from logs.
_TOGETHER = {"from_log", "product", "table_format", "ignore", "mode", "force", "output"}
#: The characters of a server that an error quotes.
_LONGEST_NAME = 80
_LOGS_HINT = "name the folder with the run logs of all ranks: run/plog below ~/ascend/log of each host"


def generate(settings: Mapping[str, Any], given: Sequence[str]) -> None:
    """Write the table that the logs of a job hold.

    Args:
        settings: The options of ``gen``.
        given: The names of the options that the user typed.

    Raises:
        UsageError: An option does not apply to logs.
        TableError: The logs are incomplete or contradict each other.
    """
    others = [name for name in given if name not in _TOGETHER]
    if others:
        raise UsageError(
            f"--from-log and --{others[0].replace('_', '-')} exclude each other",
            hint="the logs say which devices the job had",
        )
    if settings["table_format"] not in {None, "1.0"}:
        raise UsageError(
            f"the logs do not hold what a {settings['table_format']} table needs",
            hint="leave out --format for a 1.0 table",
        )
    job = _complete(settings["from_log"], settings["table_format"])
    _require_hosts(job)
    made = _table(job)
    origins = [f"{ranks[0].at}" for ranks in job.hosts().values()]
    if not made.column("device_ip")[0]:
        tell("note: the logs hold no addresses of devices, so the table has none")
    table_output.report_servers(made, origins, in_order_given=False)
    table_output.deliver(
        made, name=file_name(made), origins=origins,
        **{name: settings[name] for name in ("output", "force", "mode", "product", "ignore")},
    )  # fmt: skip


def show(paths: Sequence[str], output: str) -> None:
    """Print what the logs know about the communicators of a job and its ranks."""
    found = _communicators(paths)
    if output == "json":
        options.write([json.dumps({"communicators": list(map(_record, found))}, indent=2), "\n"])
        return
    options.write(f"{line}\n" for line in _lines(found))


def _communicators(paths: Sequence[str]) -> list[Communicator]:
    logs, notes = sources.collect(paths)
    found, more = ranks_from_logs.communicators(logs)
    for note in [*notes, *more]:
        tell(f"note: {note}")
    if not found:
        raise TableError(f"the logs do not say which ranks the job had: {' '.join(paths)}", hint=_LOGS_HINT)
    return found


def _complete(paths: Sequence[str], table_format: str | None) -> Communicator:
    job = _communicators(paths)[0]
    if job.contradictions:
        raise TableError(
            "the logs contradict each other",
            lines=[f"  {line}" for line in job.contradictions[:20]],
            hint="name the logs of one job only, without older ones",
        )
    if gap := gaps(job):
        hint = _LOGS_HINT if job.missing else "query the hosts: `hccl-tools gen --hosts LIST`"
        raise TableError(gap, hint=hint)
    if table_format is None and any(member.super_pod for member in job.members.values()):
        raise TableError(
            "the job used super pods, and its logs do not hold the super_device_id that a 1.2 table needs",
            hint="query the hosts: `hccl-tools gen --hosts LIST`; --format 1.0 leaves the super pods out",
        )
    return job


def _require_hosts(job: Communicator) -> None:
    """Refuse a server that is neither an address nor the name of a host: the logs may be of another user.

    Raises:
        TableError: There is such a server.
    """
    for host, ranks in job.hosts().items():
        if (why := host_list.why_not_a_host(host, ipv6=True)) is not None:
            raise TableError(
                f'{ranks[0].at}: the server "{host[:_LONGEST_NAME]}" {why}',
                hint="name the logs of the job itself, or query its hosts: `hccl-tools gen --hosts LIST`",
            )


def _table(job: Communicator) -> RankTable:
    hosts = [
        HostFacts(
            host, "the run logs", "", "", tuple(
                DeviceFacts(one.device, (one.address,) if one.address else (), one.at) for one in ranks
            ),
        )
        for host, ranks in job.hosts().items()
    ]  # fmt: skip
    made = generation.table(hosts)
    # The ranks of the job, which need not be numbered host by host.
    made.columns["rank_id"] = [str(one.rank) for ranks in job.hosts().values() for one in ranks]
    return made


def _lines(found: Sequence[Communicator]) -> Iterator[str]:
    job = found[0]
    yield f"{count(job.size, 'rank')} on {count(len(job.hosts()), 'host')}, communicator {job.identifier}"
    rows = [("rank", "host", "device", "address", "log")]
    rows += [
        (str(one.rank), one.host, str(one.device), one.address or "-", one.at)
        for _, one in sorted(job.members.items())
    ]
    yield from aligned(rows, right=[0, 2])
    if problem := gaps(job):
        yield f"no table can be made: {problem}"
    yield from (f"contradiction: {line}" for line in job.contradictions)
    if len(found) > 1:
        sizes = ", ".join(str(one.size) for one in found[1:9])
        yield f"{count(len(found) - 1, 'more communicator')} of {sizes} ranks"


def _record(one: Communicator) -> dict[str, Any]:
    return {
        "identifier": one.identifier,
        "size": one.size,
        "ranks": [
            {"rank": rank, "host": member.host, "device": member.device, "address": member.address or None,
             "at": member.at}
            for rank, member in sorted(one.members.items())
        ],
        "missing": one.missing,
        "contradictions": one.contradictions,
    }  # fmt: skip
