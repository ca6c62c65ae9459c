"""A file system that another user serves is known before it is asked."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from hccl_tools.processes import mounts
from hccl_tools.processes.mounts import Mount

if TYPE_CHECKING:
    from pathlib import Path

ROOT = Mount("1", "/", "ext4", "rw")


def at(point: Path, kind: str, options: str = "rw") -> list[Mount]:
    return [ROOT, Mount("2", str(point), kind, options)]


@pytest.mark.parametrize(
    ("kind", "options", "is_right"),
    [
        ("ext4", "rw", True),
        ("nfs4", "rw", True),
        ("fuse.sshfs", "rw,user_id=0,group_id=0,allow_other", True),
        ("fuse.sshfs", "rw,user_id=1000,group_id=1000,allow_other", False),
        ("fuse", "rw", False),
        ("proc", "rw", False),
    ],
)
def test_the_mount_of_a_path_decides(tmp_path: Path, kind: str, options: str, is_right: bool) -> None:
    assert mounts.answers(f"{tmp_path}/mounted/run", at(tmp_path / "mounted", kind, options)) is is_right
    assert mounts.answers(f"{tmp_path}/beside", at(tmp_path / "mounted", kind, options))
    assert mounts.answers(f"{tmp_path}/mounted2", at(tmp_path / "mounted", kind, options))


@pytest.mark.parametrize("target", ["{}/mounted/x", "mounted/x", "../{name}/mounted", "mounted", "./again"])
def test_links_are_followed_to_their_mount(tmp_path: Path, target: str) -> None:
    (tmp_path / "again").symlink_to("mounted")
    (tmp_path / "link").symlink_to(target.format(tmp_path, name=tmp_path.name))

    assert not mounts.answers(f"{tmp_path}/link/run", at(tmp_path / "mounted", "fuse"))
    assert mounts.answers(f"{tmp_path}/link/run", [ROOT])


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")

    assert not mounts.answers(f"{tmp_path}/link", [ROOT])


def test_the_mounts_of_this_process_are_read(tmp_path: Path) -> None:
    own = mounts.of_process()

    assert any(one.point == "/proc" and one.kind == "proc" for one in own)
    assert mounts.answers(str(tmp_path), own)
    assert not mounts.answers(f"/proc/{os.getpid()}/root{tmp_path}", own)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_an_overlay_of_another_mount_namespace_is_not_of_this_machine(tmp_path: Path) -> None:
    """In a namespace of a user it can be over a file system that this user serves."""
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    (tmp_path / "lower" / "davinci0").touch()
    own = "lowerdir=lower,upperdir=upper/u,workdir=upper/w"
    mount = f"mount -t tmpfs tmpfs upper && mkdir upper/u upper/w && mount -t overlay overlay -o {own} merged"
    keep = "exec 3<merged/davinci0; echo up; read x"
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", f"{mount} && {keep}"],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        if other.stdout.readline() != "up\n":
            pytest.skip("no overlay can be mounted here")
        flags, number = mounts.descriptor(other.pid, "3")
        is_local = number in mounts.local_numbers(other.pid)
        other.communicate("\n")

    assert number
    assert not flags & os.O_PATH
    assert not is_local
