"""Checks of limits, disks and kernel settings of a host."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hccl_tools.doctor.registry import Example, Finding, check
from hccl_tools.host import hccl_variables
from hccl_tools.host.machine import LOG_VARIABLE
from hccl_tools.notation.whole_number import whole_number
from hccl_tools.variables.rows import refused_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.doctor.check_input import Case

#: The limit of open files that HCCL's performance tester asks for, and descriptors of a process per rank.
_MOST_FILES, _FILES_PER_RANK = 65535, 8
#: Soft limit -> the least value of any job, what is limited, and how to raise the limit.
_LEAST = {
    "nofile": (1024, "open files", f"ulimit -n {_MOST_FILES}"),
    "nproc": (4096, "processes of this user", "ulimit -u 65535"),
    "pids": (4096, "processes of this cgroup", "docker run --pids-limit -1"),
    "memlock": (64 << 10, "bytes of locked memory", "ulimit -l unlimited"),
    "as": (64 << 30, "bytes of address space", "ulimit -v unlimited"),
    "fsize": (1 << 30, "bytes of a file", "ulimit -f unlimited"),
    "cpu": (24 * 3600, "seconds of CPU time", "ulimit -t unlimited"),
}
#: Docker's default for /dev/shm.
_DOCKER_SHM = 64 << 20
_LEAST_TMP = 64 << 20
#: Logs and the compiler's cache of a job need more than this.
_LEAST_DISK = 1 << 30


@check(
    "HCD304",
    "limit-too-low",
    "may-stop",
    remedy="raise the limit in the shell of the job, or in /etc/security/limits.conf",
    source="HCCL opens a connection per rank; compilers and data loaders start many processes",
    example=Example("observed", "limits", '{"memlock": 16384}'),
)
def limit_too_low(case: Case) -> Iterator[Finding]:
    """Are the limits of open files, processes, memory, files and CPU time high enough?

    A process connects to the other ranks, so a job of more than 128 ranks needs 8 open files per rank, at most
    65,535. The factor is a choice.
    """
    for name, (least, what, how) in _LEAST.items():
        limit = case.seen.limits.get(name, -1)
        needs = min(_MOST_FILES, max(least, _FILES_PER_RANK * case.ranks)) if name == "nofile" else least
        if 0 <= limit < needs:
            of_job = f" for {case.ranks:,} ranks" if needs > least else ""
            yield Finding(
                f"the limit of {what} is {limit:,}, below {needs:,}{of_job}", remedy=f"raise it: `{how}`"
            )


@check(
    "HCD315",
    "backlog-too-small",
    "may-stop",
    remedy="as root: `sysctl -w net.core.somaxconn=4096`, and write the setting to /etc/sysctl.d to keep it",
    commands=("sysctl -w net.core.somaxconn=4096",),
    source="somaxconn in the kernel's documentation of /proc/sys/net; all ranks connect to the first one at once",
)
def backlog_too_small(case: Case) -> Iterator[Finding]:
    """May as many connections wait on this host as the job has ranks?

    All ranks connect to the host of the first rank at the same time. A connection above the limit is dropped
    and tried again after a second or more.
    """
    limit = whole_number(case.seen.kernel.get("somaxconn", ""))
    if limit is not None and limit < case.ranks:
        least = max(4096, case.ranks)
        setting = f"net.core.somaxconn={least}"
        yield Finding(
            f"at most {limit:,} connections may wait on this host (somaxconn), but the job has "
            f"{case.ranks:,} ranks",
            remedy=f"as root: `sysctl -w {shlex.quote(setting)}`, and write the setting to /etc/sysctl.d to keep it",
            commands=(("sysctl", "-w", setting),),
        )


@check(
    "HCD305",
    "small-dev-shm",
    "may-stop",
    remedy="start the container with `docker run --shm-size 16g ...`, or mount an emptyDir with medium Memory",
    source="data loaders pass batches through /dev/shm; Docker's default is 64 MiB",
    example=Example("observed", "sizes", '{"shm": 67108864}'),
)
def small_dev_shm(case: Case) -> Iterator[Finding]:
    """Is /dev/shm larger than Docker's default of 64 MiB, and as much of it free?"""
    size, free = case.seen.sizes.get("shm"), case.seen.sizes.get("shm_free")
    if size is not None and size <= _DOCKER_SHM:
        message = f"/dev/shm has {size >> 20} MiB, too little for the data loaders of several ranks"  # nosec B108
        yield Finding(message)
    elif free is not None and free < _DOCKER_SHM:
        yield Finding(
            f"/dev/shm has {free >> 20} MiB of free space, too little for the data loaders of several ranks",  # nosec B108
            remedy="delete what ended programs have left there: `ls -l /dev/shm`; a restart of the host empties it",
        )


@check(
    "HCD325",
    "health-command-failed",
    "stops",
    remedy="run the command on the host; if it is the command that is wrong, correct --preflight-command",
    source="the command of `launch --preflight-command`",
    example=Example("observed", "command_code", "1"),
)
def health_command_failed(case: Case) -> Iterator[Finding]:
    """Has the command of `launch --preflight-command` ended with exit code 0?"""
    if case.seen.command_code:
        said = f": {case.seen.command_said}" if case.seen.command_said else ""
        yield Finding(f"the health command failed with exit code {case.seen.command_code}{said}")


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
    elif case.seen.sizes.get("log_files", 1) == 0:
        yield Finding(
            f"the disk of CANN's logs, {case.seen.log_folder}, has no room for another file (inodes)"
        )


@check(
    "HCD321",
    "temporary-folder-full",
    "may-stop",
    remedy="free some space: `du -sh /tmp/*`, or set TMPDIR to another folder",
    source="compilers, Python and launchers write temporary files",
    example=Example("observed", "sizes", '{"tmp_free": 1048576}'),
)
def temporary_folder_full(case: Case) -> Iterator[Finding]:
    """Has the folder for temporary files 64 MiB of free space?"""
    free = case.seen.sizes.get("tmp_free")
    if free is not None and free < _LEAST_TMP:
        yield Finding(f"the folder for temporary files (TMPDIR or /tmp) has {free >> 20} MiB of free space")


@check(
    "HCD307",
    "variable-refused",
    "stops",
    remedy="set the variable to a value that HCCL accepts, or unset it",
    source="hcomm externalinput.cc, env_config.cc, alg_env_config.cc, ascend950 env_func.cc",
    example=Example("env", "HCCL_CONNECT_TIMEOUT", "60"),
    quick=True,
    of_npus=True,
)
def variable_refused(case: Case) -> Iterator[Finding]:
    """Does HCCL accept the values of its variables on this host?"""
    for problem in refused_values(case.environ, case.device_type):
        yield Finding(problem.message, remedy=problem.hint)
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
