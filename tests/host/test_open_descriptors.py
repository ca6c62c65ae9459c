"""The open descriptors of another user cost a bounded time, and do not hide those of other users."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.host import device_holders, open_descriptors
from hccl_tools.host.open_descriptors import OpenDescriptors
from hccl_tools.host.site_defaults import Site
from hccl_tools.launch import preflight
from hccl_tools.processes import mounts
from tests.launch.test_preflight import HOST, plan

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root sees the descriptors of other users")
#: PR_SET_DUMPABLE is 4: /proc shows a process that is not dumpable as root's.
_MANY = """\
import ctypes, os, sys
user, hides, *paths = sys.argv[1:]
for _ in range(300):
    os.dup(0)
files = [open(path) for path in paths]
os.setuid(int(user))
ctypes.CDLL(None).prctl(4, hides == "show", 0, 0, 0)
print("up", flush=True)
sys.stdin.read()
"""
#: Users without a name, who have no other process on this machine: each worker of pytest has its own.
_USER, _OTHER = 100_000 + os.getpid(), 9_000_000 + os.getpid()


@contextmanager
def holding(user: int, *paths: Path, hides: bool = False) -> Iterator[int]:
    """Run a process of a user that holds 300 descriptors, and then some files."""
    with subprocess.Popen(
        [sys.executable, "-c", _MANY, str(user), "hide" if hides else "show", *map(str, paths)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        other.stdout.readline()
        yield other.pid
        other.communicate()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "dev").mkdir()
    path = tmp_path / "dev" / "davinci0"
    path.touch()
    monkeypatch.setattr(open_descriptors, "_MOST_OF_A_USER", 200)
    return path


def site_of(node: Path) -> Site:
    return Site({"HCCL_TOOLS_ROOT": str(node.parent.parent)})


@pytest.mark.parametrize("hides", [False, True])
def test_a_user_with_many_descriptors_is_read_up_to_a_limit(node: Path, hides: bool) -> None:
    read: Counter[int] = Counter()
    with holding(_USER, hides=hides) as first, holding(_USER, hides=hides) as second:
        opened = OpenDescriptors()
        for pid, descriptors in opened.each():
            read[pid] = len(list(descriptors))

    assert sorted((read[first], read[second])) == [64, 200]
    assert f"user {_USER} (2)" in opened.left_out()


def test_the_descriptors_of_a_user_hide_no_process_of_another(node: Path) -> None:
    with holding(_USER), holding(_USER), holding(0, node) as own:
        found, left_out = device_holders.holders([0], site_of(node))
        warned = preflight.check(plan(0), site_of(node).environ, HOST).warnings

    assert [(one.pid, one.device) for one in found] == [(own, 0)]
    assert f"user {_USER} (2)" in left_out
    assert any(one.startswith("not looked at: all processes on the devices: too many") for one in warned)


def test_all_other_users_have_a_limit(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_descriptors, "_MOST_OF_OTHERS", 250)
    with holding(_USER), holding(_OTHER):
        opened = OpenDescriptors()
        for _ in opened.each():
            pass

    assert f"user {_USER} (1)" in opened.left_out()
    assert f"user {_OTHER} (1)" in opened.left_out()


def test_a_file_with_the_name_of_a_device_is_none(tmp_path: Path, node: Path) -> None:
    """In a mount namespace of its own, a process can give any file the name of the device."""
    node.rename(tmp_path / "other")
    with (tmp_path / "other").open() as kept, holding(0, Path(f"/proc/{os.getpid()}/fd/{kept.fileno()}")):
        (tmp_path / "other").rename(node)
        assert len(device_holders.holders([0], site_of(node))[0]) == 1
        node.unlink()
        node.touch()
        assert device_holders.holders([0], site_of(node))[0] == []


def test_a_descriptor_that_only_refers_to_a_device_does_not_use_it(node: Path) -> None:
    """O_PATH needs no right on the device: any user could keep root from each start."""
    site = site_of(node)
    refers = os.open(node, os.O_PATH)
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[refers]
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        found, _ = device_holders.holders([0], site)
        other.communicate()
    os.close(refers)

    assert other.pid not in {one.pid for one in found}


def test_a_file_of_a_file_system_that_others_serve_is_not_asked(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may never answer, and a start would wait for it."""
    with holding(0, node) as pid:
        found, _ = device_holders.holders([0], site_of(node))
        monkeypatch.setattr(mounts, "_LOCAL_HERE", frozenset({"devtmpfs"}))
        others, _ = device_holders.holders([0], site_of(node))

    assert (pid in {one.pid for one in found}, pid in {one.pid for one in others}) == (True, False)
