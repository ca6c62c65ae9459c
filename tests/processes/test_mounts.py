"""A file system that another user serves is known before it is asked."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from hccl_tools.document import links
from hccl_tools.processes import mounts
from hccl_tools.processes.foreign_descriptors import ForeignDescriptors
from hccl_tools.processes.mounts import Mount, OwnMounts, UnusableListError
from hccl_tools.runs import index

if TYPE_CHECKING:
    from pathlib import Path

LINE = b"371 370 0:51 / /p rw,relatime shared:116 master:115 - %s t rw,user_id=1000\n"


@pytest.mark.parametrize(
    ("kind", "options", "is_right"),
    [
        ("ext4", "rw", True),
        ("nfs4", "rw", True),
        ("fuse.sshfs", "rw,user_id=0,group_id=0,allow_other", True),
        ("fuse.sshfs", f"rw,user_id={os.geteuid()},group_id=0", True),
        ("fuse.sshfs", "rw,user_id=1000001,group_id=1000001,allow_other", False),
        ("fuse", "rw", False),
        ("proc", "rw", False),
    ],
)
def test_a_mount_of_another_user_does_not_answer(kind: str, options: str, is_right: bool) -> None:
    assert Mount(kind, options).answers is is_right


@pytest.mark.parametrize("end", ["\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_name_begins_no_line(end: str) -> None:
    """The kernel escapes line feeds only: another character that ends a line would forge a mount."""
    forged = f"373 372 0:51 /x{end}371 /p rw shared:116 master:115 - tmpfs t rw\n".encode()

    found = mounts.parsed(LINE % b"fuse" + forged)

    assert found == {"371": Mount("fuse", "rw,user_id=1000"), "373": Mount("tmpfs", "rw")}


def test_the_first_line_of_a_number_counts() -> None:
    assert mounts.parsed(LINE % b"fuse" + LINE % b"tmpfs")["371"].kind == "fuse"


@pytest.mark.parametrize(
    "line",
    [
        b"371 370 /p rw,relatime shared:116 master:115 - tmpfs t rw\n",
        b"371 370 0:51 / /p rw tmpfs t rw\n",
        b"371 370 0:51 / p rw - tmpfs t rw\n",
        b"x 370 0:51 / /p rw - tmpfs t rw\n",
        b"371 370 0:51 / /p rw - tmpfs t rw",
        b"\n",
    ],
)
def test_a_list_with_another_line_is_not_used(line: bytes) -> None:
    with pytest.raises(UnusableListError):
        mounts.parsed(LINE % b"ext4" + line)


def test_a_list_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnusableListError):
        mounts.read("self", 100)

    monkeypatch.setattr(mounts, "_MOST_OF_OWN", 100)
    with pytest.raises(UnusableListError):
        mounts.of_process()


def test_the_mounts_of_this_process_are_read(tmp_path: Path) -> None:
    own = mounts.of_process()

    with (tmp_path / "file").open("w") as file:
        assert own[mounts.descriptor("self", file.fileno()).mount].answers
    assert "proc" in {one.kind for one in own.values()}


def walked(path: str) -> None:
    with closing(OwnMounts()) as own, links.Entry(path, admit=own.check):
        pass


def test_each_part_of_a_path_is_checked_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(f"/proc/{os.getpid()}")
    walked(f"{tmp_path}/run/x")
    with pytest.raises(OSError, match="another user may serve"):
        walked(f"/proc/{os.getpid()}/root{tmp_path}")
    with pytest.raises(OSError, match="another user may serve"):
        walked(f"{tmp_path}/link/root")

    monkeypatch.setattr(mounts, "of_process", dict)
    with pytest.raises(OSError, match="another user may serve"):
        walked(f"{tmp_path}/run/x")


@pytest.mark.parametrize("why", [OSError, partial(UnusableListError, "a malformed line")])
def test_without_a_list_nothing_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: type[Exception]
) -> None:
    def refuse() -> None:
        raise why()

    monkeypatch.setattr(mounts, "of_process", refuse)
    with pytest.raises(OSError, match="another user may serve"):
        walked(f"{tmp_path}/run")


def test_a_list_is_read_a_number_of_times_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[int]()

    def listed() -> dict[str, Mount]:
        reads.append(1)
        return {}

    monkeypatch.setattr(mounts, "of_process", listed)
    numbers = iter(range(1000))
    monkeypatch.setattr(mounts, "descriptor", lambda *_: mounts.Descriptor(0, str(next(numbers))))
    with closing(OwnMounts()) as own:
        for _ in range(100):
            with pytest.raises(OSError, match="another user may serve"):
                own.check(0)

        assert own.is_incomplete

    assert len(reads) == mounts._MOST_READS


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_an_overlay_of_another_mount_namespace_is_not_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a namespace of a user it can be over a file system that this user serves.

    What counts is the mount of what is held, not what the process has said of its descriptor before.
    """
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    (tmp_path / "lower" / "davinci0").touch()
    own = "lowerdir=lower,upperdir=upper/u,workdir=upper/w"
    mount = f"mount -t tmpfs tmpfs upper && mkdir upper/u upper/w && mount -t overlay overlay -o {own} merged"
    keep = "exec 3<merged/davinci0; exec 4<upper/u; echo up; read x"
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", f"{mount} && {keep}"],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        if other.stdout.readline() != "up\n":
            pytest.skip("no overlay can be mounted here")
        with ForeignDescriptors([(other.pid, "3"), (other.pid, "4")]) as looked_at:
            found = looked_at.status(other.pid, "3"), looked_at.status(other.pid, "4")
        said, real = mounts.descriptor(other.pid, "4"), mounts.descriptor
        monkeypatch.setattr(mounts, "descriptor", lambda pid, name: said if name == "3" else real(pid, name))
        with ForeignDescriptors([(other.pid, "3"), (other.pid, "4")]) as looked_at:
            exchanged = looked_at.status(other.pid, "3")
        other.communicate("\n")

    assert found[0] is exchanged is None
    assert found[1] is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="root sees the processes of other users")
def test_a_list_of_runs_says_that_the_mounts_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mounts, "_MOST_OF_OWN", 100)
    with subprocess.Popen(["sleep", "100"], user=65533, env={"HCCL_TOOLS_RUN_DIR": str(tmp_path)}) as other:
        found = index.find(str(tmp_path))
        other.kill()

    assert str(tmp_path) not in {one.path for one in found}
    assert "the list of mounts (/proc/self/mountinfo) is too long" in capsys.readouterr().err
