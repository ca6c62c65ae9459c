"""Which file systems answer: another user can serve one that never does, and a look at its files has no end.

A mount namespace of a user can have FUSE file systems, and an overlay over one, which asks it with the rights
of that user. What is read here is the kernel's own list of mounts; no file system is asked.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque

from hccl_tools.processes import procfs
from hccl_tools.records import NamedTuple

#: File systems of a machine itself that a user's own mount namespace cannot have on top of another one.
_LOCAL = frozenset({"devtmpfs", "tmpfs", "ramfs", "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs"})
#: The same, if the administrator has mounted it: in a container, the root.
_LOCAL_HERE = _LOCAL | {"overlay"}
#: The most bytes of a list of mounts that are read, and the most links that a path may have.
_MOST_BYTES, _MOST_LINKS = 1 << 22, 40
#: The places of fields in a line of mountinfo: that of the path, and, after the dash, that of the options.
_POINT, _OPTIONS = 4, 2


class Mount(NamedTuple):
    """A mounted file system.

    Attributes:
        number: Its number, which ``fdinfo`` has.
        point: The path at which it is mounted.
        kind: The type of the file system.
        options: The options of the file system.
    """

    number: str
    point: str
    kind: str
    options: str


def of_process(pid: int | str = "self") -> list[Mount]:
    """Return the mounts that a process sees; none if they cannot be read."""
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(_MOST_BYTES).splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        fields, _, own = line.partition(" - ")
        before, after = fields.split(" "), own.split(" ")
        if len(before) > _POINT and len(after) > _OPTIONS:
            found.append(Mount(before[0], _unescaped(before[_POINT]), after[0], after[_OPTIONS]))
    return found


def local_numbers(pid: int) -> frozenset[str]:
    """Return the numbers of the mounts that a process sees and that are file systems of this machine."""
    own = {mount.number: mount.kind in _LOCAL_HERE for mount in of_process()}
    others = {mount.number: mount.kind in _LOCAL for mount in of_process(pid)}
    return frozenset(number for number, is_local in {**others, **own}.items() if is_local)


def descriptor(pid: int, name: str) -> tuple[int, str]:
    """Return the flags of a descriptor and the number of its mount; (0, "") if they cannot be read."""
    found = re.findall(r"(?m)^(flags|mnt_id):\s*([0-9]+)$", procfs.read(f"/proc/{pid}/fdinfo/{name}"))
    about = dict(found)
    return (int(about["flags"], 8), about["mnt_id"]) if len(about) == 2 else (0, "")


def answers(path: str, mounts: list[Mount]) -> bool:
    """Return whether no part of an absolute path is in a file system that another user serves.

    ``mounts`` are those of this process. The file system of each part is known before that part is looked up,
    and links are followed here. /proc leads to the mounts of other processes.
    """
    here, links, parts = "/", 0, deque(path.split("/"))
    while parts:
        part = parts.popleft()
        if part in {"", "."}:
            continue
        here = os.path.dirname(here) if part == ".." else os.path.join(here, part)
        if not _is_of_administrator(here, mounts):
            return False
        try:
            if not stat.S_ISLNK(os.lstat(here).st_mode):
                continue
            target, links = os.readlink(here), links + 1
        except OSError:
            return True  # It does not exist, or is closed: nothing behind it is asked.
        if links > _MOST_LINKS:
            return False
        here = "/" if target.startswith("/") else os.path.dirname(here)
        parts.extendleft(reversed(target.split("/")))
    return True


def _is_of_administrator(path: str, mounts: list[Mount]) -> bool:
    """Return whether the mount of a path without links is one that root has mounted, and not /proc."""
    above = [one for one in mounts if path == one.point or path.startswith(f"{one.point.rstrip('/')}/")]
    if not above:
        return False
    longest = max(len(one.point) for one in above)
    mount = [one for one in above if len(one.point) == longest][-1]  # The last one is on top of the others.
    if mount.kind.startswith("fuse"):
        return "user_id=0" in mount.options.split(",")
    return mount.kind != "proc"


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
