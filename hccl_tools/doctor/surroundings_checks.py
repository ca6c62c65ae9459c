"""Checks that compare what the programs of a job find on the hosts: names, time zones, libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.cross_host_checks import differences
from hccl_tools.doctor.registry import Consequence, Finding, check
from hccl_tools.host.machine import ELSEWHERE
from hccl_tools.notation.host_list import fold
from hccl_tools.table.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hccl_tools.doctor.check_input import Case

    Cases = Mapping[str, Case]


@check(
    "HCD514",
    "time-zone-differs",
    "note",
    remedy="set one time zone on all hosts, also in containers (TZ): `timedatectl set-timezone ZONE`",
    source="CANN writes local times into its logs, which `explain` orders by time",
    between=True,
)
def time_zone_differs(cases: Cases) -> Iterator[Finding]:
    """Do all hosts have the same time zone?"""
    known = {host: case.seen for host, case in cases.items() if case.seen.utc_offset is not None}
    yield from differences(
        {host: _zone(seen.utc_offset or 0) for host, seen in known.items()},
        "the time zone differs, so the times in the logs of these hosts cannot be compared",
    )


def _zone(offset: int) -> str:
    hours, minutes = divmod(abs(offset) // 60, 60)
    return f"UTC{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}"


@check(
    "HCD515",
    "host-name-without-address",
    "may-stop",
    remedy="give the host's name its address on the network of the job in /etc/hosts, or set GLOO_SOCKET_IFNAME to the "
    "interface of that network",
    source="torch's gloo listens on the address of the host's own name unless GLOO_SOCKET_IFNAME is set; Debian writes "
    "127.0.1.1 into /etc/hosts",
    between=True,
)
def host_name_without_address(cases: Cases) -> Iterator[Finding]:
    """Has the name of each host an address that other hosts reach?

    If no host's name has one, this is a note: HCCL itself does not use the name.
    """
    wrong: dict[str, list[str]] = {}
    for host, case in cases.items() if len(cases) > 1 else ():
        known = case.seen.own_addresses
        if known is None or case.environ.get("GLOO_SOCKET_IFNAME"):
            continue
        if not known:
            wrong.setdefault("the name of the host has no address there", []).append(host)
        elif all(map(is_loopback, known)):
            text = f"the name of the host is {known[0]} there, which no other host reaches"
            wrong.setdefault(text, []).append(host)
    is_usual = sum(map(len, wrong.values())) == len(cases)
    consequence: Consequence | None = "note" if is_usual else None
    for message, hosts in wrong.items():
        yield Finding(message, hosts=tuple(hosts), consequence=consequence)


@check(
    "HCD516",
    "driver-libraries-not-found",
    "may-stop",
    remedy="source CANN's `set_env.sh` in the profile of this host's shell too, or add /usr/local/Ascend/driver/lib64/driver "
    "and .../common to LD_LIBRARY_PATH",
    source="CANN loads libascend_hal.so of the driver",
    between=True,
    of_npus=True,
)
def driver_libraries_not_found(cases: Cases) -> Iterator[Finding]:
    """Do programs find the driver's libraries on all hosts, if they do on most?

    LD_LIBRARY_PATH and /etc/ld.so.conf.d are read. A shell that ssh starts often has fewer variables than a
    login shell. So a host is named if most hosts have the libraries there; of three hosts or more also if its
    LD_LIBRARY_PATH is set to other folders, and no more hosts have this fault than have the libraries.
    """
    having = [host for host, case in cases.items() if case.seen.libraries not in {"", ELSEWHERE}]
    without = tuple(host for host in cases if host not in having)
    elsewhere = tuple(host for host in without if cases[host].seen.libraries == ELSEWHERE)
    named = without if len(having) > len(without) else elsewhere
    if named and len(having) >= len(named) and len(cases) > 2:
        yield Finding(
            "neither LD_LIBRARY_PATH nor ld.so.conf has the folder of the driver's libraries, which they have on "
            f"{fold(having)}",
            hosts=named,
        )


@check(
    "HCD521",
    "host-names-equal",
    "may-stop",
    remedy="give each host a name of its own: `hostnamectl set-hostname NAME`",
    source="Open MPI and Slurm tell hosts apart by their names; so do logs",
    between=True,
)
def host_names_equal(cases: Cases) -> Iterator[Finding]:
    """Has each host a name of its own?

    If all hosts have one name, this is a note.
    """
    hosts_of: dict[tuple[str, ...], list[str]] = {}
    for host, case in cases.items():
        if case.seen.names:
            hosts_of.setdefault(case.seen.names, []).append(host)
    consequence: Consequence | None = "note" if len(hosts_of) == 1 else None
    for names, hosts in hosts_of.items():
        if len(hosts) > 1:
            message = f"{len(hosts)} hosts have the name {names[0]}"
            yield Finding(message, hosts=tuple(hosts), consequence=consequence)


@check(
    "HCD522",
    "proxies-differ",
    "note",
    remedy="unset the proxies in the shell of the job, or list all hosts in NO_PROXY",
    source="MindIE and Ray would send what is meant for other hosts to the proxy",
    between=True,
)
def proxies_differ(cases: Cases) -> Iterator[Finding]:
    """Have all hosts the same variables with an HTTP proxy?"""
    found = {host: ", ".join(case.seen.proxies) or "none" for host, case in cases.items()}
    yield from differences(found, "the variables with an HTTP proxy differ")


@check(
    "HCD523",
    "cpus-differ",
    "slows",
    remedy="let the job use all CPUs: look at `nproc`, `taskset -p $$`, the container's cpuset and the CPUs that Slurm gives",
    source="sched_getaffinity; data loaders and the start of operators need CPU time",
    between=True,
)
def cpus_differ(cases: Cases) -> Iterator[Finding]:
    """May programs use as many CPUs on each host as on the others?

    A host with half of the usual number or less is named.
    """
    known = {host: case.seen.cpus for host, case in cases.items() if case.seen.cpus}
    usual = sorted(known.values())[len(known) // 2] if known else 0
    for host, number in known.items():
        if 2 * number <= usual:
            yield Finding(f"programs may use {number} of the CPUs, but {usual} on other hosts", hosts=(host,))
