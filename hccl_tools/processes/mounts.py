"""Which file systems answer: another user can serve one that never does, and a look at its files has no end.

A mount namespace of a user can have FUSE file systems, and an overlay over one, which asks it with the rights
of that user. What is read here are the kernel's own lists of mounts; no file system is asked.

A mount keeps its number as long as a descriptor leads to it, and another one can get the number afterwards.
So a list says what a descriptor leads to only if the descriptor was held (O_PATH) before the list was read.
"""

from __future__ import annotations

import errno
import os
import re

from hccl_tools.processes import procfs
from hccl_tools.records import NamedTuple

#: File systems of a machine itself that a user's own mount namespace cannot have on top of another one.
_LOCAL = frozenset({"devtmpfs", "tmpfs", "ramfs", "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs"})
#: The same, if the administrator has mounted it: in a container, the root.
_LOCAL_HERE = _LOCAL | {"overlay"}
#: The most bytes of a list: 4 MiB are 40,000 usual mounts, or 260 with the longest names. Each user can add
#: 1,000 mounts to the list of this process (fusermount), which takes 16 MB.
MOST_BYTES, _MOST_OF_OWN = 1 << 22, 1 << 26
#: Times that ``OwnMounts`` reads the list: users can mount at any time.
_MOST_READS = 16
#: A line of the list. The kernel escapes blanks, tabs and line feeds in names, and nothing else that ends a
#: line elsewhere: a carriage return in a name must not begin a line here.
_LINE = re.compile(
    rb"([0-9]+) [0-9]+ [0-9]+:[0-9]+ [^ \n]+ /[^ \n]* [^ \n]+(?: [a-z_]+(?::[0-9]+)?)*"
    rb" - ([^ \n]+) [^ \n]* ([^\n]+)"
)


class UnusableListError(Exception):
    """A list of mounts is too long, or has a line that is not the kernel's: nothing in it is certain."""


class Mount(NamedTuple):
    """A mounted file system: the type of the file system, and its options."""

    kind: str
    options: str = ""

    @property
    def is_local_of_user(self) -> bool:
        """Whether it is of this machine, also in a mount namespace of a user."""
        return self.kind in _LOCAL

    @property
    def is_local(self) -> bool:
        """Whether it is of this machine, in the mount namespace of this process."""
        return self.kind in _LOCAL_HERE

    @property
    def answers(self) -> bool:
        """Whether root or this user serves it; /proc leads to the mounts of other processes."""
        if self.kind.startswith("fuse"):
            options = self.options.split(",")
            return "user_id=0" in options or f"user_id={os.geteuid()}" in options
        return self.kind != "proc"


class Descriptor(NamedTuple):
    """What the kernel says of an open descriptor: its flags, its mount, and its inode ("" before 5.14)."""

    flags: int = 0
    mount: str = ""
    inode: str = ""

    def is_same_file(self, other: Descriptor) -> bool:
        """Return whether another descriptor, which is held, leads to the same file."""
        return (self.mount, self.inode) == (other.mount, other.inode)


def of_process(pid: int | str = "self") -> dict[str, Mount]:
    """Return the mounts that a process sees, by number, which ``fdinfo`` has.

    Raises:
        UnusableListError: The list is too long, or malformed.
        OSError: It cannot be read: the process may have ended.
    """
    return parsed(read(pid, _MOST_OF_OWN if pid == "self" else MOST_BYTES))


def read(pid: int | str, most: int) -> bytes:
    """Return the list of the mounts that a process sees.

    Raises:
        UnusableListError: It has more than ``most`` bytes.
        OSError: It cannot be read.
    """
    descriptor = os.open(f"/proc/{pid}/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    data = bytearray()
    try:
        while part := os.read(descriptor, 1 << 16):  # Here, Ctrl-C ends it between two parts.
            data += part
            if len(data) > most:
                raise UnusableListError(f"more than {most:,} bytes")
    finally:
        os.close(descriptor)
    return bytes(data)


def parsed(data: bytes) -> dict[str, Mount]:
    """Return the mounts of a list, by number; the first line of a number counts.

    Raises:
        UnusableListError: A line does not have the form.
    """
    found: dict[str, Mount] = {}
    *lines, rest = data.split(b"\n")
    for line in lines:
        form = _LINE.fullmatch(line)
        if form is None:
            raise UnusableListError("a malformed line")
        number, kind, options = (os.fsdecode(field) for field in form.groups())
        found.setdefault(number, Mount(kind, options))
    if rest:
        raise UnusableListError("an incomplete line")
    return found


def descriptor(pid: int | str, name: str | int) -> Descriptor:
    """Return what the kernel says of a descriptor of a process; nothing if it cannot be read."""
    about: dict[str, str] = {}
    for line in procfs.read(f"/proc/{pid}/fdinfo/{name}").split("\n"):
        found = re.fullmatch(r"(flags|mnt_id|ino):[ \t]*([0-9]+)", line)
        if found:
            about.setdefault(found[1], found[2])
    if not {"flags", "mnt_id"} <= about.keys():
        return Descriptor()
    return Descriptor(int(about["flags"], 8), about["mnt_id"], about.get("ino", ""))


class OwnMounts:
    """Which file systems that this process sees answer: ``check`` says it of a held descriptor.

    Attributes:
        is_incomplete: Whether a descriptor was refused because the list is not usable.
    """

    def __init__(self) -> None:
        self._answers: dict[str, bool] = {}
        self._holds: list[int] = []
        self._reads, self.is_incomplete = 0, False

    def check(self, held: int) -> None:
        """Refuse a descriptor (O_PATH) into a file system that another user serves, or an unknown one.

        Raises:
            OSError: Its file system may not answer.
        """
        number = descriptor("self", held).mount
        if number not in self._answers:
            self._look_up(number, held)
        if not self._answers[number]:
            raise OSError(errno.EXDEV, "another user may serve its file system")

    def _look_up(self, number: str, held: int) -> None:
        self._answers[number] = False
        if self._reads >= _MOST_READS:
            self.is_incomplete = True
            return
        self._reads += 1
        try:
            mount = of_process().get(number)
        except (OSError, UnusableListError):
            self._reads, self.is_incomplete = _MOST_READS, True  # Another attempt takes as long.
            return
        if mount is not None and mount.answers:
            self._holds.append(os.dup(held))  # No other mount gets the number.
            self._answers[number] = True

    def close(self) -> None:
        """Close the descriptors that keep the numbers, and forget the list."""
        for held in self._holds:
            os.close(held)
        self._holds.clear()
        self._answers.clear()
        self._reads, self.is_incomplete = 0, False
