"""The lists of mounts of other users cost a bounded amount, and what is not looked at is counted."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hccl_tools.processes import foreign_descriptors, mounts, procfs
from hccl_tools.processes.foreign_descriptors import ForeignDescriptors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_USER, _OTHER = 100_000 + os.getpid(), 9_000_000 + os.getpid()
#: In a mount namespace: the arguments are a folder, and users, each of whom gets a process.
_HOLDS = """\
import os, subprocess, sys
folder, *users = sys.argv[1:]
if subprocess.run(["mount", "-t", "tmpfs", "t", folder]).returncode:
    sys.exit()
held = os.open(f"{folder}/davinci0", os.O_RDWR | os.O_CREAT)
for user in users:
    if not os.fork():
        os.setuid(int(user))
        break
    os.wait3(os.WNOHANG)
print(os.getpid(), held, flush=True)
sys.stdin.read()
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root sees the descriptors of other users")


@contextmanager
def holding(folder: Path, *users: int) -> Iterator[list[tuple[int, str]]]:
    """Processes in one mount namespace, each with a descriptor of a file of a file system there."""
    with subprocess.Popen(
        ["unshare", "--mount", sys.executable, "-c", _HOLDS, str(folder), *map(str, users)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as started:  # fmt: skip
        assert started.stdout is not None
        lines = [started.stdout.readline().split() for _ in range(len(users) + 1)]
        if [] in lines:
            pytest.skip("nothing can be mounted here")
        try:
            yield [(int(pid), name) for pid, name in lines if int(pid) != started.pid]
        finally:
            started.communicate()


def test_the_list_of_a_namespace_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, reads = mounts.read, list[object]()

    def counted(pid: int | str, most: int) -> bytes:
        reads.append(pid)
        return read(pid, most)

    monkeypatch.setattr(mounts, "read", counted)
    with holding(tmp_path, *[_USER] * 5) as wanted, ForeignDescriptors(wanted) as looked_at:
        found = [looked_at.status(*one) for one in wanted]

    assert None not in found
    assert len([pid for pid in reads if pid != "self"]) == 1
    assert len(reads) == 3
    assert not looked_at.incomplete


@pytest.mark.parametrize(
    ("where", "limit", "value"),
    [
        (foreign_descriptors, "_BYTES_OF_A_USER", 100),
        (foreign_descriptors, "_BYTES_OF_OTHERS", 100),
        (foreign_descriptors, "_SECONDS_OF_OTHERS", 0.0),
        (foreign_descriptors, "_MOST_OF_A_USER", 0),
        (foreign_descriptors, "_MOST_OF_OTHERS", 0),
        (mounts, "MOST_BYTES", 100),
        (mounts, "_MOST_OF_OWN", 100),
    ],
)
def test_what_is_over_a_limit_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, limit: str, value: float
) -> None:
    monkeypatch.setattr(where, limit, value)
    with holding(tmp_path, _USER, _USER, _OTHER) as wanted, ForeignDescriptors(wanted) as looked_at:
        found = [looked_at.status(*one) for one in wanted]

    assert found == [None] * 3
    left_out = {user: len(pids) for user, pids in looked_at.incomplete.items()}
    assert left_out.get(_USER, 0) + left_out.get(_OTHER, 0) > 0


@pytest.mark.parametrize("field", ["Uid:\t0 0 0 0", "SigCgt:\tff"])
def test_the_name_of_a_process_forges_no_field(field: str) -> None:
    """Its user chooses the name: the kernel escapes only line feeds in it."""
    code = "import sys; open('/proc/self/comm', 'w').write(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        ["/usr/bin/python3", "-I", "-c", code, f"\r{field}"], user=_USER,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        other.stdout.readline()
        found = procfs.user(other.pid), procfs.status_field(other.pid, "SigCgt")
        is_of_one = procfs.is_of_one_user(other.pid)
        other.communicate()

    assert found[0] == _USER
    assert len(found[1]) == 16
    assert is_of_one
