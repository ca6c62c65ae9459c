"""Checks of ports, limits, disks and kernel settings of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import Consequence, Example, Finding, check
from hccl_tools.inspection import hccl_variables, host_ports
from hccl_tools.inspection.machine import LOG_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.case import Case

#: Soft limit -> the least value, what is limited, and how to raise the limit.
_LEAST = {
    "nofile": (1024, "open files", "ulimit -n 65535"),
    "nproc": (4096, "processes of this user", "ulimit -u 65535"),
    "pids": (4096, "processes of this cgroup", "docker run --pids-limit -1"),
    "memlock": (64 << 10, "bytes of locked memory", "ulimit -l unlimited"),
}
#: Docker's default for /dev/shm.
_DOCKER_SHM = 64 << 20
#: Logs and the compiler's cache of a job need more than this.
_LEAST_DISK = 1 << 30


@check(
    "HCD301",
    "hccl-port-in-use",
    "stops",
    remedy="end the other job on this host, or set HCCL_IF_BASE_PORT",
    source="HCCL_IF_BASE_PORT; EJ0003",
    example=Example("observed", "busy_ports", str(list(host_ports.HCCL_PORTS))),
    quick=True,
)
def hccl_port_in_use(case: Case) -> Iterator[Finding]:
    """Are HCCL's host ports free (60000 to 60015, or HCCL_IF_BASE_PORT and on)?"""
    used = case.devices or case.seen.nodes
    ports = host_ports.candidates(used, case.environ)
    taken = [port for port in ports if port in case.seen.busy_ports]
    if not taken or not used:
        return
    listed = ", ".join(map(str, taken))
    if host_ports.BASE_PORT in case.environ:
        yield Finding(f"HCCL's port HCCL_IF_BASE_PORT + device is in use (EJ0003): {listed}")
    elif (free := len(ports) - len(taken)) < len(used):
        yield Finding(
            f"HCCL needs a port per rank, {len(used)} in total, but only {free} of {ports[0]}-{ports[-1]} are "
            "free (EJ0003): end the other job on this host, or set HCCL_IF_BASE_PORT"
        )
    else:
        yield Finding(
            f"HCCL's port {listed} is in use by another program; {free} others are free",
            consequence="may-stop",
        )


@check(
    "HCD302",
    "device-port-in-use",
    "may-stop",
    remedy="end the other program, or set HCCL_NPU_SOCKET_PORT_RANGE",
    source="HCCL listens on port 16666 of each device",
    example=Example("observed", "busy_ports", f"[{host_ports.DEVICE_PORT}]"),
)
def device_port_in_use(case: Case) -> Iterator[Finding]:
    """Is port 16666, on which HCCL listens for the other devices, free on the host?"""
    if host_ports.DEVICE_PORT in case.seen.busy_ports and "HCCL_NPU_SOCKET_PORT_RANGE" not in case.environ:
        yield Finding(f"port {host_ports.DEVICE_PORT}, on which HCCL listens for other devices, is in use")


@check(
    "HCD303",
    "start-port-in-use",
    "stops",
    remedy="end the program that listens there, or choose another port with --start-port",
    source="the rendezvous port of the ranks, and one port per rank for paddle",
)
def start_port_in_use(case: Case) -> Iterator[Finding]:
    """Are the start port and the next ports, one for each rank of the host, free?"""
    if case.start_port is None:
        return
    count = max(1, len(case.devices or case.seen.nodes))
    taken = [port for port in range(case.start_port, case.start_port + count) if port in case.seen.busy_ports]
    if taken:
        lower: Consequence | None = None if taken[0] == case.start_port else "may-stop"
        yield Finding(
            f"port {', '.join(map(str, taken))} of the ports from --start-port {case.start_port} is in use",
            consequence=lower,
        )


@check(
    "HCD304",
    "limit-too-low",
    "may-stop",
    remedy="raise the limit in the shell of the job, or in /etc/security/limits.conf",
    source="HCCL opens a connection per rank; compilers and data loaders start many processes",
    example=Example("observed", "limits", '{"memlock": 16384}'),
)
def limit_too_low(case: Case) -> Iterator[Finding]:
    """Are the limits of open files, processes and locked memory high enough?"""
    for name, (least, what, how) in _LEAST.items():
        limit = case.seen.limits.get(name, -1)
        if 0 <= limit < least:
            yield Finding(f"the limit of {what} is {limit:,}, below {least:,}", remedy=f"raise it: `{how}`")


@check(
    "HCD305",
    "small-dev-shm",
    "may-stop",
    remedy="start the container with `docker run --shm-size 16g ...`, or mount an emptyDir with medium Memory",
    source="data loaders pass batches through /dev/shm; Docker's default is 64 MiB",
    example=Example("observed", "sizes", '{"shm": 67108864}'),
)
def small_dev_shm(case: Case) -> Iterator[Finding]:
    """Is /dev/shm larger than Docker's default of 64 MiB?"""
    size = case.seen.sizes.get("shm")
    if size is not None and size <= _DOCKER_SHM:
        message = f"/dev/shm has {size >> 20} MiB, too little for the data loaders of several ranks"  # nosec B108
        yield Finding(message)


@check(
    "HCD306",
    "log-folder-full",
    "may-stop",
    remedy=f"free some space, or name another folder with {LOG_VARIABLE}",
    source="CANN writes its logs there; without them no failure can be explained",
    example=Example("observed", "sizes", '{"log_free": 1048576}'),
)
def log_folder_full(case: Case) -> Iterator[Finding]:
    """Can CANN write its logs, with 1 GiB of free space?"""
    free = case.seen.sizes.get("log_free")
    if not case.seen.log_writable:
        yield Finding(f"the folder of CANN's logs, {case.seen.log_folder}, cannot be written by this user")
    elif free is not None and free < _LEAST_DISK:
        yield Finding(
            f"the folder of CANN's logs, {case.seen.log_folder}, has {free >> 20} MiB of free space"
        )


@check(
    "HCD307",
    "variable-refused",
    "stops",
    remedy="set the variable to a value that HCCL accepts, or unset it",
    source="hcomm externalinput.cc",
    example=Example("env", "HCCL_CONNECT_TIMEOUT", "60"),
    quick=True,
)
def variable_refused(case: Case) -> Iterator[Finding]:
    """Does HCCL accept the values of its variables on this host?"""
    for message in hccl_variables.problems(
        case.environ, is_local=case.seen.local_addresses.__contains__, interfaces=case.seen.interfaces
    ):
        yield Finding(message)


@check(
    "HCD309",
    "no-transparent-huge-pages",
    "note",
    remedy="as root: `echo always > /sys/kernel/mm/transparent_hugepage/enabled`",
    commands=("echo always > /sys/kernel/mm/transparent_hugepage/enabled",),
    source="recommended for training hosts; large host buffers are copied faster",
    example=Example("file", "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
)
def no_transparent_huge_pages(case: Case) -> Iterator[Finding]:
    """Are transparent huge pages on?"""
    if case.seen.kernel.get("thp") == "never":
        yield Finding("transparent huge pages are off")


@check(
    "HCD310",
    "cpu-governor",
    "note",
    remedy="as root: `cpupower frequency-set -g performance`",
    commands=("cpupower frequency-set -g performance",),
    source="the host starts operators more slowly at a low CPU frequency",
    example=Example("file", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
)
def cpu_governor(case: Case) -> Iterator[Finding]:
    """Does the CPU run at full frequency (governor performance)?"""
    governor = case.seen.kernel.get("governor", "performance")
    if governor != "performance":
        yield Finding(f"the CPU frequency governor is {governor}, not performance")
