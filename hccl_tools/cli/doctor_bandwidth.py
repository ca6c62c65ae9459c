"""``doctor --bandwidth``: measure the bandwidth of pairs of devices, one pair after another."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING

from hccl_tools.cli.doctor_run import with_product_of
from hccl_tools.doctor import bandwidth
from hccl_tools.doctor.registry import all_checks
from hccl_tools.doctor.run_checks import case_of
from hccl_tools.errors import HcclToolsError, LaunchError, UsageError
from hccl_tools.gathering import commands, engine_run
from hccl_tools.host import machine
from hccl_tools.host.observation import BandwidthObservation, Unknown
from hccl_tools.launch.planning.remote_launch import exported
from hccl_tools.launch.planning.visible_devices import LIMITS, VisibleDevices
from hccl_tools.notation.phrases import count, time_span
from hccl_tools.notation.printable import tell
from hccl_tools.programs import hccl_test, ssh
from hccl_tools.programs.lookup import ProgramMissingError
from hccl_tools.programs.mpirun import find_mpirun
from hccl_tools.remote.interruption import exit_on_signals
from hccl_tools.table.products import PRODUCTS
from hccl_tools.variables.rows import OWN_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hccl_tools.diagnostics.registry import Selection
    from hccl_tools.doctor import run_checks
    from hccl_tools.host.observation import Observation

    Seen = dict[str, Observation]
    Build = Callable[[Sequence[tuple[str, Sequence[str]]]], list[str]]

#: Seconds that a pair probably takes, most of them for the start of HCCL; not measured on NPUs.
_USUAL_TIME = 15.0
#: The time limit of a pair in seconds: HCCL itself waits 120 s for a connection.
_PAIR_LIMIT = 150.0
#: How much longer than usual all pairs together may take.
_SLACK = 3.0
#: Nothing more is tried if so many pairs failed and none was measured.
_HOPELESS = 2
_CONNECT_S = 10


def require_table(job: run_checks.Job, selection: Selection, *, via: str | None) -> None:
    """Refuse ``--bandwidth`` where it cannot measure, or nothing would be reported.

    Raises:
        UsageError: There is no table, its checks are left out, or mpirun cannot reach the hosts.
    """
    if job.table is None:
        raise UsageError(
            "--bandwidth measures pairs of devices of a table",
            hint="name a TABLE that can be read" if job.report is None else f"correct {job.report.file}",
        )
    if not any(selection.keeps(one, all_checks()[one].name) for one in bandwidth.CHECKS):
        raise UsageError(
            "--bandwidth, but --select or --ignore leaves its results out",
            hint=f"add --select {bandwidth.CHECKS[0]}, or leave --bandwidth out",
        )
    if via is not None:
        raise UsageError(
            "--bandwidth and --via exclude each other: mpirun reaches the hosts with ssh or Slurm",
            hint="leave one of them out",
        )


def measure(
    job: run_checks.Job, seen: Mapping[str, Observation], ssh_command: str | None, *, alone: bool
) -> Seen:
    """Return what was seen with the bandwidth of pairs of free devices, and why others are not measured.

    Args:
        ssh_command: The value of ``--ssh``.
        alone: Whether this host alone is asked: it needs no name that others know.
    """
    job = with_product_of(seen, job)
    cases = {host: case_of(one, job) for host, one in seen.items()}
    free = {host: case for host, case in cases.items() if not bandwidth.obstacle(case)}
    result = dict(seen)
    for host, case in cases.items():
        if host not in free:
            _note(result, host, bandwidth.obstacle(case))
    if job.table is None or job.report is None:
        return result
    wanted = bandwidth.pairs(job.table, PRODUCTS[job.report.product], free)
    if not wanted:
        for host in free:
            _note(result, host, "no two free devices of the table were found")
        return result
    try:
        program = _program()
        build = _mpirun(ssh_command, alone=alone)
    except HcclToolsError as error:
        _note(result, wanted[0].first.host, f"{error.message}; {error.hint}" if error.hint else error.message)
        return result
    usual = time_span(len(wanted) * _USUAL_TIME)
    tell(
        f"measuring the bandwidth of {count(len(wanted), 'pair')} of devices, one after another, about "
        f"{usual}; start nothing on the devices until then"
    )
    with exit_on_signals():
        _measure(wanted, result, lambda pair: build(_members(pair, seen, program, alone=alone)))
    number = sum(len(one.bandwidths) for one in result.values())
    if number < len(wanted):  # the notes may not be selected
        tell(f"measured {number} of {count(len(wanted), 'pair')}; HCD001 says why")
    return result


def _program() -> str:
    homes = (os.environ.get("ASCEND_HOME_PATH", ""), *machine.CANN_HOMES)
    program = hccl_test.find_all_reduce_test(homes)
    if program is None:
        place = next(filter(None, homes))
        make = ["make", "-C", f"{place}/tools/hccl_test", "MPI_HOME=FOLDER_OF_MPI", f"ASCEND_DIR={place}"]
        raise LaunchError(
            f"there is no {place}/{hccl_test.PLACE} here",
            hint="`source` CANN's set_env.sh; CANN ships the program as source: "
            f"`{shlex.join(make)}` on all hosts",
        )
    return program


def _mpirun(ssh_command: str | None, *, alone: bool) -> Build:
    """Return what builds the command lines of mpirun.

    Raises:
        HcclToolsError: There is no mpirun, or it cannot reach the hosts.
    """
    try:
        mpirun = find_mpirun(os.environ)
    except ProgramMissingError:
        hint = "put the MPI with which all_reduce_test was built on PATH"
        raise LaunchError("there is no mpirun on PATH", hint=hint) from None
    if not mpirun.is_open_mpi:
        if ssh_command is not None:
            raise UsageError("MPICH's mpirun does not take --ssh", hint="set HYDRA_LAUNCHER_EXEC to your ssh")
        return lambda members: commands.mpiexec(mpirun.path, members)
    agent = ["ssh"] if alone else ssh.command(ssh_command, os.environ, wait=_CONNECT_S)
    start = commands.SshStart(mpirun, agent, as_root=os.geteuid() == 0)
    return lambda members: commands.mpirun(start, members)


def _members(
    pair: bandwidth.Pair, seen: Mapping[str, Observation], program: str, *, alone: bool
) -> list[tuple[str, list[str]]]:
    """Return host and command line of the two processes; ``env`` works alike with every mpirun."""
    ends = (pair.first, pair.second)
    numbers = [VisibleDevices(seen[end.host].nodes or None).runtime_id(end.device) for end in ends]
    inside = pair.first.host == pair.second.host
    visible = [",".join(map(str, numbers))] * 2 if inside else list(map(str, numbers))
    variables = [f"{name}={value}" for name, value in exported(_environ()).items()]
    argv = hccl_test.arguments(program, 2 if inside else 1)
    return [
        ("localhost" if alone else end.host, ["/usr/bin/env", *variables, f"{LIMITS[0]}={own}", *argv])
        for end, own in zip(ends, visible, strict=True)
    ]


def _environ() -> dict[str, str]:
    """Return the variables for the processes: without this host's address, and other choices of devices."""
    dropped = (*LIMITS, hccl_test.OWN_SELECTION, OWN_ADDRESS)
    return {name: value for name, value in os.environ.items() if name not in dropped}


def _measure(
    wanted: Sequence[bandwidth.Pair], result: Seen, command: Callable[[bandwidth.Pair], list[str]]
) -> None:
    limit = max(_PAIR_LIMIT, _SLACK * _USUAL_TIME * len(wanted))
    deadline, failures = time.monotonic() + limit, 0
    for number, pair in enumerate(wanted):
        host = pair.first.host
        left = deadline - time.monotonic()
        if left <= 0 or failures == _HOPELESS == number:
            why = (
                f"all of the first {number} pairs failed"
                if left > 0
                else f"the time limit of {limit:.0f} s for all pairs is over"
            )
            _note(result, host, why, f"the bandwidth of {count(len(wanted) - number, 'more pair')}")
            return
        ended = engine_run.run(command(pair), min(_PAIR_LIMIT, left), _environ())
        found, why = hccl_test.read_output([line for _, line in ended.output.other])
        if found is None:
            failures += 1
            late = f"no result within {min(_PAIR_LIMIT, left):.0f} s; " if ended.status is None else ""
            _note(result, host, late + why, f"the bandwidth of {pair}", (pair.first.device,))
            continue
        own = BandwidthObservation(pair.first.device, *pair.second, pair.link, *found)
        result[host] = result[host]._replace(bandwidths=(*result[host].bandwidths, own))


def _note(
    result: Seen, host: str, reason: str, topic: str = "the bandwidth", devices: tuple[int, ...] = ()
) -> None:
    more = Unknown(topic, reason, devices)
    result[host] = result[host]._replace(unknown=(*result[host].unknown, more))
