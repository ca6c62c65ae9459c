"""Read limits, sizes, kernel settings, versions and mounts of this host or container."""

from __future__ import annotations

import os
import platform
import resource
import time
from typing import TYPE_CHECKING

from hccl_tools.document import links
from hccl_tools.host import hccn_conf, hccn_tool, npu_smi
from hccl_tools.processes import procfs
from hccl_tools.programs.environment import in_pod
from hccl_tools.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hccl_tools.host.site_defaults import Site

ROOTINFO = "/etc/hccl_rootinfo.json"
DRIVER = "/usr/local/Ascend/driver"
#: Where CANN usually is, unless ASCEND_HOME_PATH is set; new versions are in the second folder.
CANN_HOMES = ("/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann")
#: The same below the home of a user without root.
_CANN_HOMES_OF_USER = ("Ascend/ascend-toolkit/latest", "Ascend/cann")
LIBRARY_VARIABLE = "LD_LIBRARY_PATH"
#: This variable is set, but not to the folder of the driver.
ELSEWHERE = "elsewhere"
#: A part of the path of the driver's libraries.
_DRIVER_LIBRARIES = "driver/lib64"
#: The paths whose state is reported.
PATHS = (hccn_conf.USUAL_PLACE, hccn_tool.USUAL_PLACE, npu_smi.USUAL_PLACE, DRIVER, ROOTINFO)
#: The device nodes of the driver beside those of the devices.
MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc")
#: Where CANN writes its logs unless ASCEND_PROCESS_LOG_PATH is set.
LOG_VARIABLE = "ASCEND_PROCESS_LOG_PATH"
#: The ports of outgoing connections, and those of them that connections do not get.
LOCAL_PORTS = "/proc/sys/net/ipv4/ip_local_port_range"
_RESERVED_PORTS = "/proc/sys/net/ipv4/ip_local_reserved_ports"
#: How many connections may wait until a program that listens accepts them.
BACKLOG = "/proc/sys/net/core/somaxconn"
#: Their folders look writable to root, but hold no files of users.
_KERNEL_FOLDERS = ("/proc", "/sys")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "memlock": resource.RLIMIT_MEMLOCK,
    "as": resource.RLIMIT_AS,
    "fsize": resource.RLIMIT_FSIZE,
    "cpu": resource.RLIMIT_CPU,
}
#: The file with the version, in the folder of the CPU's architecture below CANN's own (hiascend, File Paths).
_CANN_VERSION = "ascend_toolkit_install.info"
_FAMILIES = (
    *("HCCL_", "ASCEND_", "RANK", "WORLD_SIZE", "MASTER_", "FLAGS_", "MIES_", "MINDSPORE_", "MS_", "GLOO_"),
    *("TP_", "CM_"),
)


def limits(site: Site) -> dict[str, int]:
    """Return the soft limits of this process, and the limit of processes of its cgroup."""
    found = {name: resource.getrlimit(number)[0] for name, number in _LIMITS.items()}
    pids = procfs.read(site.path("/sys/fs/cgroup/pids.max")).strip()
    return {**found, "pids": int(pids)} if pids.isdecimal() else found


def sizes(site: Site, folder: str) -> dict[str, int]:
    """Return sizes of /dev/shm, of the folder for temporary files, and of the log folder, as far as known.

    ``shm`` is the size; ``shm_free``, ``tmp_free`` and ``log_free`` are the free space, in bytes.
    ``log_files`` is the number of files that still fit.
    """
    found = {}
    shm = _disk(site.path("/dev/shm"))  # noqa: S108  (only looked at)  # nosec B108
    if shm is not None:
        found = {"shm": shm.f_blocks * shm.f_frsize, "shm_free": shm.f_bavail * shm.f_frsize}
    tmp = _disk(temporary(site.environ))
    if tmp is not None and tmp.f_blocks:  # a tmpfs without a limit states none
        found["tmp_free"] = tmp.f_bavail * tmp.f_frsize
    log = _disk(existing(folder))
    if log is not None and log.f_blocks:
        found["log_free"] = log.f_bavail * log.f_frsize
    if log is not None and log.f_files:
        found["log_files"] = log.f_favail
    return found


def _disk(path: str) -> os.statvfs_result | None:
    try:
        return os.statvfs(path)
    except OSError:
        return None


def temporary(environ: Mapping[str, str]) -> str:
    """Return the folder for temporary files."""
    return environ.get("TMPDIR") or "/tmp"  # noqa: S108  (only looked at)  # nosec B108


def proxies(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables with an HTTP proxy, which may have a password."""
    return tuple(sorted(name for name in environ if name.lower() in _PROXIES and environ[name]))


def log_folder(environ: Mapping[str, str]) -> str:
    """Return the folder in which CANN writes its logs."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return environ.get(LOG_VARIABLE) or os.path.join(home, "ascend", "log")


def is_writable(folder: str) -> bool:
    """Return whether this user can make files at a path."""
    parent = links.real_path(existing(folder))
    is_of_kernel = any(parent == one or parent.startswith(f"{one}/") for one in _KERNEL_FOLDERS)
    return not is_of_kernel and os.access(parent, os.W_OK | os.X_OK)


def existing(folder: str) -> str:
    """Return the nearest parent of a path that exists."""
    path = os.path.abspath(folder)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def kernel(site: Site) -> dict[str, str]:
    """Return huge pages, the CPU governor, the ports of connections and their backlog, as far as known."""
    pages = procfs.read(site.path("/sys/kernel/mm/transparent_hugepage/enabled"))
    governor = procfs.read(site.path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    found = {
        "thp": pages.partition("[")[2].partition("]")[0],
        "governor": governor.strip(),
        "local_ports": "-".join(procfs.read(site.path(LOCAL_PORTS)).split()),
        "reserved_ports": procfs.read(site.path(_RESERVED_PORTS)).strip(),
        "somaxconn": procfs.read(site.path(BACKLOG)).strip(),
    }
    return {name: value for name, value in found.items() if value}


def versions(site: Site) -> dict[str, str]:
    """Return the versions of Python, hccl-tools, driver and CANN, as far as known."""
    found = {
        "python": platform.python_version(),
        "hccl-tools": __version__,
        "driver": _version_in(site.path(f"{DRIVER}/version.info")),
        "CANN": cann_version(site),
    }
    return {name: version for name, version in found.items() if version}


def cann_version(site: Site) -> str:
    """Return the version of CANN in its folder (ASCEND_HOME_PATH, else a usual one), or ``""``."""
    own = site.environ.get("HOME")
    homes = [
        *filter(None, map(site.environ.get, ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"))),
        *CANN_HOMES,
        *(f"{own}/{folder}" for folder in (_CANN_HOMES_OF_USER if own else ())),
    ]
    found = (
        _version_in(f"{folder}/{_CANN_VERSION}") for home in homes for folder in _cann_folders(home, site)
    )
    return next(filter(None, found), "")


def _cann_folders(home: str, site: Site) -> list[str]:
    """Return the folders of the architectures, that of this host first, and CANN's folder itself."""
    place = site.path(home)
    first = f"{os.uname().machine}-linux"
    try:
        names = sorted(name for name in os.listdir(place) if name.endswith("-linux"))
    except OSError:
        names = []
    return [f"{place}/{name}" for name in sorted(names, key=lambda name: name != first)] + [place]


def _version_in(path: str) -> str:
    """Return the value of the first line ``version=...`` of a file, or ``""``."""
    for line in procfs.read(path).splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip().lower() == "version":
            return value.strip()
    return ""


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that HCCL, CANN and frameworks read."""
    return {name: value for name, value in sorted(environ.items()) if name.startswith(_FAMILIES)}


def libraries(site: Site) -> str:
    """Return how programs find the driver's libraries: ``LD_LIBRARY_PATH`` or ``ld.so.conf``.

    If they do not, it is ``elsewhere`` if LD_LIBRARY_PATH has other folders, and ``""`` if it is not set.
    """
    folders = site.environ.get(LIBRARY_VARIABLE, "")
    if _DRIVER_LIBRARIES in folders:
        return LIBRARY_VARIABLE
    folder = site.path("/etc/ld.so.conf.d")
    try:
        files = [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        files = []
    texts = map(procfs.read, (site.path("/etc/ld.so.conf"), *files))
    if any(_DRIVER_LIBRARIES in text for text in texts):
        return "ld.so.conf"
    return ELSEWHERE if folders else ""


def time_zone() -> tuple[str, int]:
    """Return the name of the time zone, and its seconds east of UTC."""
    now = time.localtime()
    return now.tm_zone or "", now.tm_gmtoff or 0


def in_container(site: Site) -> bool:
    """Return whether this is a container of Docker, Podman or Kubernetes."""
    if in_pod(site.environ):
        return True
    return any(os.path.exists(site.path(path)) for path in ("/.dockerenv", "/run/.containerenv"))


def files(site: Site) -> dict[str, str]:
    """Return the state of the driver's paths: ``file``, ``directory`` or ``absent``."""
    return {path: state(site.path(path)) for path in PATHS}


def state(path: str) -> str:
    """Return the state of a path: ``file``, ``directory`` or ``absent``."""
    if os.path.isdir(path):
        return "directory"
    return "file" if os.path.exists(path) else "absent"


def managers(site: Site) -> tuple[str, ...]:
    """Return the device nodes of the driver that exist, beside those of the devices."""
    return tuple(name for name in MANAGERS if os.path.exists(site.path(f"/dev/{name}")))
