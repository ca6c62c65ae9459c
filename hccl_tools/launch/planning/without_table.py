"""Determine the hosts and devices of a job without a rank table, and the index of this host."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.host.local_addresses import is_local, is_this_host
from hccl_tools.launch import engines
from hccl_tools.launch.planning import program_check, tables_here
from hccl_tools.launch.planning.job import LOOPBACK, Job
from hccl_tools.launch.planning.placement import place_ranks_without_table
from hccl_tools.launch.planning.visible_devices import cuda_note, of_rehearsal
from hccl_tools.notation.phrases import and_more
from hccl_tools.notation.phrases import count as number_of
from hccl_tools.table.addresses import is_loopback, packed

if TYPE_CHECKING:
    from hccl_tools.launch.model.request import Devices, Hosts, LaunchRequest
    from hccl_tools.launch.planning.visible_devices import Surroundings, VisibleDevices


#: More than any machine has devices or memory for; a larger number is a typing slip.
_MOST_PER_MACHINE = 4096
#: Options for the number of ranks that other launchers have, too.
_NUMBER_OPTIONS = ("-n", "-np")
_NO_NPU = "no NPU on this host: the device numbers are placeholders; --cpu rehearses on the CPU"
_MORE_THAN_DEVICES = (
    "more ranks than devices and no table: the device numbers are placeholders and are not checked"
)


def job_of(request: LaunchRequest, around: Surroundings, notes: list[str]) -> Job:
    """Return the job of a request without a table; append notes for the user to ``notes``.

    Raises:
        UsageError: A required option is missing, or options exclude each other.
        LaunchError: There are too few devices, or this host is not one of the job's.
    """
    start, no_table = request.start, request.table.no_table
    if not (around.nodes or start.cpu or no_table):
        notes.append(_NO_NPU)
    names = _host_names(request.hosts)
    if len(names) > 1 and engines.get(start.engine).starts_all_hosts:
        raise UsageError(
            f"--engine {start.engine} needs a rank table or --hostfile to start ranks on other machines",
            hint="add one of them, or leave --engine out and type the command on each machine",
        )
    here = _this_host(names, request.hosts)
    notes += _unused_server(request.hosts)
    try:
        if start.cpu and _has_no_number(request.devices):
            devices = _rehearsed(request, around, notes)
        else:
            devices = choose_devices(
                request.devices, around.visible, len(names), cpu=start.cpu, no_table=no_table
            )
    except UsageError as error:  # The missing option may be among the arguments of the program.
        _refuse_late_number(request)
        error.hint = _with_table(request) or "; ".join(filter(None, (*request.remarks, error.hint)))
        raise
    if len(names) > 1 and start.method == "table":
        raise UsageError(
            "--start table needs a rank table for several machines", hint="add --rank-table FILE"
        )
    if around.uses_npus and request.devices.listed is None and request.devices.physical is None:
        note = cuda_note(around.environ, devices, "--devices {}")
        notes += [note] if note else []
    if request.devices.listed is not None and len(devices) == 1 and devices[0] > 1:
        notes.append(f"1 rank, on device {devices[0]} alone; `-n {devices[0]}` starts {devices[0]} ranks")
    placeholders = no_table and bool(around.visible.outside(devices))
    notes += [_MORE_THAN_DEVICES] if placeholders else []
    return Job(
        place_ranks_without_table(devices, names),
        here if len(names) > 1 else None,
        len(names),
        _master_address(names, request.hosts),
        devices_are_placeholders=placeholders,
    )


def _with_table(request: LaunchRequest) -> str:
    """Return what to type if a rank table is among the arguments of the program alone; "" if none is."""
    program, *arguments = request.program.argv
    if not _has_no_number(request.devices) or len(arguments) != 1 or not program_check.is_table(arguments[0]):
        return ""
    call = ["hccl-tools", "launch", *request.typed_options, "--rank-table", arguments[0], program]
    return f"a rank table has its option: `{shlex.join(call)}`"


def _refuse_late_number(request: LaunchRequest) -> None:
    """Refuse a number of ranks that follows the program.

    Raises:
        UsageError: ``-n 4`` is an argument of the program, and no number precedes it.
    """
    if late := _late_number(request):
        raise UsageError(f"the number of ranks is missing: {late[0]}", hint=late[1])


def _late_number(request: LaunchRequest) -> tuple[str, str] | None:
    """Return that a number of ranks follows the program, and what to type.

    A short option may also be the program's own.
    """
    program, *rest = request.program.argv
    at = next((place for place, word in enumerate(rest) if word in _NUMBER_OPTIONS), None)
    if at is None or not _has_no_number(request.devices) or not rest[at + 1 :][:1]:
        return None
    number = rest[at : at + 2]
    if not number[1].isdecimal():
        return None
    call = ["hccl-tools", "launch", *request.typed_options, *number, program, *rest[:at], *rest[at + 2 :]]
    typed = request.reordered_call or shlex.join(call)
    return (
        f"{' '.join(number)} is passed to the program",
        f"options of launch must precede the program: `{typed}`",
    )


def _has_no_number(devices: Devices) -> bool:
    given = (devices.ranks, devices.per_node, devices.listed, devices.physical)
    return all(one is None for one in given) and not devices.all_visible


def _rehearsed(request: LaunchRequest, around: Surroundings, notes: list[str]) -> list[int]:
    chosen, note = of_rehearsal(around.visible, around.environ)
    if len(chosen) > request.devices.max_ranks:
        raise LaunchError(
            f"{note}: more than --max-ranks {request.devices.max_ranks} allows on one machine",
            hint="specify a number of ranks: -n 4",
        )
    notes.append(note)
    # --progress and such in the arguments are named with the same call already.
    if (late := _late_number(request)) and not any(late[1] in remark for remark in request.remarks):
        notes.append("; ".join(late))
    return chosen


def _host_names(hosts: Hosts) -> tuple[str, ...]:
    if hosts.ips:
        if hosts.node_count not in (None, len(hosts.ips)):
            raise UsageError(f"--nnodes {hosts.node_count}, but --ips has {len(hosts.ips)} machines")
        if len(set(hosts.ips)) < len(hosts.ips):
            raise UsageError(f"--ips contains a machine twice: {','.join(hosts.ips)}")
        return hosts.ips
    count = hosts.node_count or 1
    return ("localhost",) if count == 1 else tuple(f"node{index}" for index in range(count))


def _unused_server(hosts: Hosts) -> list[str]:
    """Return a note on the name of this host if no list of hosts has it, and it is that of another one."""
    if hosts.server is None or hosts.ips or is_this_host(hosts.server):
        return []
    option = f"--server {hosts.server} (or --host, --node-ip)"
    return [f"{option} selects nothing: the job has no rank table and no --ips"]


def _this_host(names: tuple[str, ...], hosts: Hosts) -> int | None:
    """Return the index of this host; ``None`` for a plan that is shown on a host without a part in it."""
    if hosts.node_rank is not None:
        if hosts.node_rank >= len(names):
            raise UsageError(
                f"--node-rank {hosts.node_rank} (or --rank): the job has {number_of(len(names), 'machine')}, "
                "and the index of the first is 0",
                hint="state the machines with `--nnodes N` or `--ips A,B`; `--tail "
                f"{hosts.node_rank}` shows the output of a rank",
            )
        return hosts.node_rank
    if hosts.server is not None and hosts.ips:
        if hosts.server not in names:
            raise UsageError(
                f"--server {hosts.server} is not one of the machines of --ips",
                hint=f"they are {and_more(names)}",
            )
        return names.index(hosts.server)
    if len(names) == 1:
        return 0
    if not hosts.ips:
        raise UsageError(
            f"--node-rank is missing: the job has {len(names)} machines",
            hint="add --node-rank 0 on the first machine, --node-rank 1 on the second",
        )
    found = [index for index, name in enumerate(names) if is_local(name) and not is_loopback(name)]
    if len(found) == 1:
        return found[0]
    if not (found or hosts.include_this_host):
        return None
    which = "none" if not found else "more than one"
    raise LaunchError(
        f"{which} of the addresses {', '.join(names)} belongs to this host",
        hint="give the index of this machine with --node-rank I",
    )


def _master_address(names: tuple[str, ...], hosts: Hosts) -> str:
    if hosts.master_address:
        return hosts.master_address
    if len(names) == 1:
        return LOOPBACK
    if packed(names[0]) is None:
        raise UsageError(
            "--master-addr is missing: the machines have no address",
            hint="add --master-addr ADDRESS with the address of the first machine",
        )
    if is_loopback(names[0]):
        raise UsageError(
            f"{names[0]} is not reachable from the other machines",
            hint="give an address of the first machine that the others can reach",
        )
    return names[0]


def _what_is_missing() -> str:
    options = "specify a table (--rank-table FILE), devices (--devices 4-7) or a number of ranks (-n 4)"
    return "; ".join(filter(None, [options, tables_here.hint()]))


def choose_devices(
    devices: Devices, visible: VisibleDevices, host_count: int, *, cpu: bool, no_table: bool
) -> list[int]:
    """Return the physical devices that the job uses on each host, in rank order; they are equal on all hosts.

    Raises:
        UsageError: The number of ranks is missing, or two options contradict each other.
        LaunchError: The job has more ranks than visible devices.
    """
    available = visible.chosen
    if devices.ranks is not None and devices.ranks % host_count:
        raise UsageError(f"{devices.ranks} ranks cannot be divided evenly among {host_count} machines")
    count = devices.per_node if devices.ranks is None else devices.ranks // host_count
    if devices.physical is not None:
        return list(devices.physical)
    if devices.listed is not None:
        ids = visible.named_by(devices.listed)
        if count not in (None, len(ids)):
            raise UsageError(
                f"{number_of(count, 'rank')} per machine, but --devices names {len(ids)}",
                hint="leave one of the options out",
            )
        return ids
    if count is None:
        if available and (devices.all_visible or not cpu):
            return list(available)
        if devices.all_visible:
            raise UsageError(
                "--nproc-per-node auto starts a rank on each visible device, but no NPU is visible",
                hint="use a number of ranks, or --cpu --nproc-per-node cpu for a rank on each core",
            )
        raise UsageError("the number of ranks is missing", hint=_what_is_missing())
    if available and count <= len(available):
        return list(available[:count])
    if count > _MOST_PER_MACHINE:
        raise UsageError(
            f"more than {_MOST_PER_MACHINE:,} ranks on one machine",
            hint="-n N is the number of ranks of the job, --nnodes N the number of machines",
        )
    if available and not (cpu or no_table or devices.ignore_visible):
        are = "is" if len(available) == 1 else "are"
        raise LaunchError(
            f"{count} ranks need {count} devices, but {len(available)} {are} visible ({visible.source})",
            hint="use fewer ranks, add --cpu to rehearse on the CPU, or --no-table if no device is needed",
        )
    return list(range(count))
