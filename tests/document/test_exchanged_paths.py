"""A user who exchanges a part of a path, at any moment, does not choose which file is written or read.

Each operation is done once for each of its system calls: just before that call, the stranger puts a link to a
private folder or file of the victim in the place of a part of the path.
"""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import formats
from hccl_tools.doctor.report import remedies
from hccl_tools.document import writing
from hccl_tools.document.document import Document
from hccl_tools.document.writing import change_mode, open_new, write_atomically, write_together
from hccl_tools.errors import HcclToolsError, UsageError
from hccl_tools.explain import sources, table_fault
from hccl_tools.files import outputs
from hccl_tools.gathering import table_copy
from hccl_tools.processes import run_files
from hccl_tools.runs import index, secret_file
from hccl_tools.runs.files import MalformedRunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hccl_tools.document.links import Entry
    from tests.support.strangers import Stranger

pytestmark = pytest.mark.bed
NOBODY, VICTIM = 65534, 65533
PRECIOUS, NEW = '{"server_list": "precious"}', '{"server_list": "new"}'
CALLS = ("open", "stat", "lstat", "fstat", "readlink", "scandir", "listdir", "mkdir", "chmod", "fchmod",
         "replace", "rename", "link", "unlink", "access")  # fmt: skip


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder like /tmp, with a private folder of the victim."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a link of another user")
    (tmp_path / "home").mkdir(mode=0o700)
    tmp_path.chmod(0o1777)
    yield tmp_path
    run_files.release_logs()


def begin(shared: Path) -> None:
    """Let the path be harmless: a folder of the stranger with a file."""
    for path in (shared / "home" / "out.json", shared / "folder" / "out.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(PRECIOUS if path.parent.name == "home" else "{}")
        path.chmod(0o600)
    (shared / "folder" / "a.log").touch()
    for folder in ("home", "folder"):
        (shared / folder / "run").mkdir(exist_ok=True)
        (shared / folder / "run" / "plan.json").write_text("{}")
    # The owner of a folder may make links in it if no other user may write there.
    (shared / "folder").chmod(0o1777)
    for path in (shared / "folder", *(shared / "folder").rglob("*")):
        os.chown(path, NOBODY, NOBODY)


def exchange(shared: Path, part: str) -> None:
    """Put a link of the stranger into the place of a part of the path."""
    path = shared / part
    with suppress(FileNotFoundError):
        path.rename(shared / "moved")
    path.symlink_to(shared / "home" / path.name.replace("folder", ""))
    os.lchown(path, NOBODY, NOBODY)


def end(shared: Path) -> None:
    for path in sorted(shared.rglob("*"), reverse=True):
        if path != shared / "home":
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def bundle(path: Path) -> None:
    entry, descriptor = open_new(str(path), 0o600)
    os.write(descriptor, NEW.encode())
    os.close(descriptor)
    entry.close()


def copied(path: Path) -> None:
    data = NEW.encode()
    request = table_copy.CopyRequest(str(path), hashlib.sha256(data).hexdigest(), table_copy.pack(data))
    answer = table_copy.handle(request._replace(write=True, force=True, mode=0o644))
    assert PRECIOUS.encode() not in table_copy.unpack(answer.content or table_copy.pack(b""))


def text_of(descriptor: int) -> str:
    with os.fdopen(descriptor) as file:
        return file.read()


def log_of(path: Path) -> None:
    found, _ = sources.collect([str(path)])
    for one in found:
        assert "precious" not in text_of(run_files.open_read(one.path))


def table_beside(path: Path) -> None:
    found = table_fault._beside([sources.source(str(path.with_name("a.log")))])
    if found is not None:
        opened = table_fault.opened(found, is_typed=False)
        assert "precious" not in text_of(os.open(opened, os.O_RDONLY))


def run_of(path: Path) -> None:
    """Open a run of the stranger; it is refused, or its path means a folder of the stranger."""
    shared, refused = path.parents[1], False
    try:
        index.resolve(str(path.parent / "run"), str(path.parent))
    except MalformedRunError:  # It was opened.
        pass
    except UsageError:
        refused = True
    runs = [str(shared / folder / "run") for folder in ("home", "folder")]
    held = [found[0].owner for run in runs if (found := run_files.find(f"{run}/plan.json"))]
    for run in runs:
        run_files.release(run)
    assert refused or held == [NOBODY]


OPERATIONS: dict[str, Callable[[Path], Any]] = {
    "write": lambda path: write_atomically(path, [NEW]),
    "create": lambda path: write_atomically(path.with_name("new.json"), [NEW], create=True),
    "link in a link": lambda path: write_atomically(path, [NEW], follow_link=False),
    "together": lambda path: write_together({str(path.with_name("a.json")): NEW, str(path): NEW}),
    "bundle": lambda path: bundle(path.with_name("new.json")),
    "mode": lambda path: change_mode(str(path), 0o644, b"{}"),
    "key": lambda path: secret_file.write(str(path), NEW.encode(), replace=True),
    "new key": lambda path: secret_file.write(str(path.parent / "new" / "key"), b"", replace=False),
    "remedies": lambda path: remedies.write(str(path.parent / "new"), {"host": NEW}),
    "copy": copied,
    "log": log_of,
    "logs": lambda path: log_of(path.parent),
    "table": table_beside,
    "run": run_of,
}


def attack(
    shared: Path,
    operation: Callable[[Path], Any],
    part: str,
    moment: int,
    act: Callable[[Path, str], None] = exchange,
) -> bool:
    """Do an operation, with an exchange before one of its system calls; return whether it has so many."""
    count, real = 0, {name: getattr(os, name) for name in CALLS}

    def hooked(name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == moment:
                for each, function in real.items():
                    setattr(os, each, function)
                act(shared, part)
            return real[name](*args, **options)

        return call

    for name in CALLS:
        setattr(os, name, hooked(name))
    try:
        with suppress(HcclToolsError, OSError):
            operation(shared / "folder" / "out.json")
    finally:
        for name, function in real.items():
            setattr(os, name, function)
    return count >= moment


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("part", ["folder", "folder/out.json", "folder/new.json"])
def test_nothing_is_done_where_a_link_of_another_user_leads(shared: Path, name: str, part: str) -> None:
    home, moment = shared / "home", 1
    begin(shared)
    while attack(shared, OPERATIONS[name], part, moment):
        assert sorted(path.name for path in home.rglob("*")) == ["out.json", "plan.json", "run"]
        assert (home / "out.json").read_text() == PRECIOUS
        assert (home / "out.json").stat().st_mode & 0o777 == 0o600
        assert home.stat().st_mode & 0o777 == 0o700
        moment += 1
        run_files.release_logs()
        end(shared)
        begin(shared)

    assert moment > 5


TABLE = (
    '{"version": "1.0", "server_count": "1", "status": "completed", "server_list": [{"server_id": '
    '"10.0.0.1", "device": [{"device_id": "0", "device_ip": "10.1.0.1", "rank_id": "0"}]}]}'
)


def copied_again(path: Path) -> None:
    data = TABLE.encode()
    request = table_copy.CopyRequest(str(path), hashlib.sha256(data).hexdigest(), table_copy.pack(data))
    table_copy.handle(request._replace(write=True, mode=0o644))


def together(path: Path) -> None:
    """Write two files, of which the second cannot be replaced: the first gets its old content back."""
    rename = writing._rename

    def refuse(entry: Entry, temporary: str) -> None:
        if entry.name == "second.json":
            raise OSError(errno.EBUSY, "a mount point")
        rename(entry, temporary)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_rename", refuse)
        write_together({str(path): NEW, str(path.with_name("second.json")): NEW})


#: What changes the mode of a file, or makes a copy with its mode, after looking at it.
LOOKING: dict[str, Callable[[Path], Any]] = {
    "table": lambda path: outputs.save(
        formats.read(Document.parse(TABLE.encode(), "x").value), str(path), mode=0o644
    ),
    "ConfigMap": lambda path: outputs.save_config_map(TABLE, str(path), mode=0o644),
    "copy": copied_again,
    "together": together,
}


def begin_with_a_private_file(shared: Path, victim: int) -> None:
    """Let the path be a table of the stranger, beside a private file of the victim."""
    folder = shared / "folder"
    folder.mkdir()
    folder.chmod(0o777)
    for name in ("out.json", "second.json"):
        (folder / name).write_text(TABLE)
        (folder / name).chmod(0o666)
        os.chown(folder / name, NOBODY, NOBODY)
    os.chown(folder, NOBODY, NOBODY)
    (folder / "private").write_text(PRECIOUS)
    (folder / "private").chmod(0o600)
    os.chown(folder / "private", victim, victim)


def exchange_for_the_private_file(shared: Path, part: str) -> None:
    """Give the private file the name of the table, as the stranger."""
    victim = os.geteuid()
    os.seteuid(0)
    os.seteuid(NOBODY)
    with suppress(FileNotFoundError):
        (shared / "folder" / "private").rename(shared / part)
    os.seteuid(0)
    os.seteuid(victim)


def as_user(user: int, operation: Callable[[Path], Any]) -> Callable[[Path], Any]:
    def act(path: Path) -> None:
        os.seteuid(user)
        try:
            operation(path)
        finally:
            os.seteuid(0)

    return act


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("victim", [0, VICTIM], ids=["root", "user"])
def test_a_private_file_in_the_folder_of_another_user_stays_private(
    stranger: Stranger, name: str, victim: int
) -> None:
    shared, moment = stranger.folder, 1
    begin_with_a_private_file(shared, victim)
    operation = as_user(victim, LOOKING[name])
    while attack(shared, operation, "folder/out.json", moment, exchange_for_the_private_file):
        files = [path for path in (shared / "folder").iterdir() if path.is_file()]
        found = [path.stat().st_mode & 0o777 for path in files if path.read_text() == PRECIOUS]
        assert set(found) <= {0o600}, moment
        moment += 1
        end(shared)
        begin_with_a_private_file(shared, victim)

    assert moment > 5
