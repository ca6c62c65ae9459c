"""Outputs do not follow the links of other users: those choose the file that is replaced."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from hccl_tools.doctor.report import remedies
from hccl_tools.document import links
from hccl_tools.document.writing import write_atomically, write_together
from hccl_tools.errors import WriteError
from hccl_tools.runs import parents

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.support.strangers import Stranger

#: The user who writes.
VICTIM = 65533
TABLE = """{"status": "completed", "version": "1.0", "server_count": "1", "server_list": [{
 "server_id": "10.0.0.1", "device": [{"device_id": "0", "device_ip": "10.1.0.1", "rank_id": "0"}],
 "host_nic_ip": "reserve"}]}"""


def as_victim(stranger: Stranger, *args: str) -> subprocess.CompletedProcess[str]:
    return stranger.as_user(VICTIM).tools(*args)


@pytest.fixture
def home(stranger: Stranger) -> Path:
    """A folder of the victim with a file and a table, in a shared folder like /tmp."""
    home = stranger.folder / "home"
    home.mkdir()
    (home / "precious").write_text("precious")
    (home / "hccl.json").write_text(TABLE)
    for path in (home, *home.iterdir()):
        os.chown(path, VICTIM, VICTIM)
    stranger.folder.chmod(0o1777)
    return home


WRITERS = [
    ("show", "{home}/hccl.json", "-o", "out.svg"),
    ("show", "{home}/hccl.json", "-o", "out.html"),
    ("convert", "{home}/hccl.json", "--to", "1.0", "-o", "out.json", "--force"),
    ("convert", "{home}/hccl.json", "--to-configmap", "x", "-o", "out.yaml", "--force"),
    ("gen", "--simulate", "910a", "--device_num", "[0,1)", "-o", "out.json", "--force"),
    ("subset", "{home}/hccl.json", "--devices", "0", "-o", "out.json"),
    ("scaling", "run", "--nproc-per-node", "1,2", "-o", "out.json", "--",
     "--no-table", "--start", "table", "--log-dir", "{home}/log", "--no-python", "true"),
    ("explain", "{home}/hccl.json", "--bundle", "out.tgz"),
]  # fmt: skip


@pytest.mark.bed
@pytest.mark.parametrize("words", WRITERS, ids=lambda words: f"{words[0]} {words[-1]}"[:24])
@pytest.mark.parametrize("target", ["precious", "new"])
def test_no_command_writes_through_a_link_of_another_user(
    stranger: Stranger, home: Path, words: tuple[str, ...], target: str
) -> None:
    name = next(word for word in words if word.startswith("out."))
    stranger.python(f"import os; os.symlink({str(home / target)!r}, {name!r})")

    done = as_victim(stranger, *(word.format(home=home) for word in words))

    assert done.returncode != 0, done.stdout
    assert (home / "precious").read_text() == "precious"
    assert not (home / "new").exists()
    assert (stranger.folder / name).readlink() == home / target
    assert name in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.bed
def test_a_folder_behind_a_link_of_another_user_is_not_written_to(stranger: Stranger, home: Path) -> None:
    stranger.python(f"import os; os.symlink({str(home)!r}, 'folder')")

    done = as_victim(stranger, "show", f"{home}/hccl.json", "-o", "folder/precious.svg")

    assert done.returncode != 0
    assert "folder is a symbolic link of nobody" in done.stderr
    assert not (home / "precious.svg").exists()


@pytest.mark.bed
@pytest.mark.parametrize("mode", [0o1777, 0o1775, 0o3775], ids=oct)
def test_root_does_not_give_its_output_to_another_user(stranger: Stranger, mode: int) -> None:
    stranger.python("open('hccl.json', 'w').close()")
    os.chown(stranger.folder, 0, stranger.user)
    stranger.folder.chmod(mode)

    write_atomically(stranger.folder / "hccl.json", ["new"])

    assert (stranger.folder / "hccl.json").stat().st_uid == 0


@pytest.mark.bed
@pytest.mark.parametrize("mode", [0o6777, 0o4755, 0o2775, 0o666, 0o600])
def test_root_does_not_take_the_bits_of_another_user_s_file(stranger: Stranger, mode: int) -> None:
    """A setuid file of root that the stranger may write to would run the stranger's program as root."""
    stranger.folder.chmod(0o1777)
    stranger.python(f"import os; open('t.svg', 'w').close(); os.chmod('t.svg', {mode})")

    write_atomically(stranger.folder / "t.svg", ["new"])
    about = (stranger.folder / "t.svg").stat()

    assert about.st_uid == 0
    assert about.st_mode & 0o7022 == 0
    assert about.st_mode & 0o700 == mode & 0o700


@pytest.mark.bed
def test_files_that_are_written_together(stranger: Stranger, home: Path) -> None:
    stranger.python(f"import os; os.symlink({str(home / 'precious')!r}, 'b')")

    with pytest.raises(WriteError, match="b is a symbolic link of nobody"):
        write_together({str(stranger.folder / "a"): "new", str(stranger.folder / "b"): "new"})

    assert (home / "precious").read_text() == "precious"
    assert not (stranger.folder / "a").exists()


def test_links_of_ones_own_are_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "folder" / "out").symlink_to("new")

    assert write_atomically(tmp_path / "link" / "out", ["text"]).endswith("folder/new")

    assert (tmp_path / "folder" / "new").read_text() == "text"


@pytest.mark.bed
@pytest.mark.parametrize(
    ("mode", "is_followed"), [(0o755, True), (0o775, False), (0o777, False), (0o1777, False)]
)
def test_the_owner_of_a_folder_may_link_in_it(stranger: Stranger, mode: int, is_followed: bool) -> None:
    stranger.python(f"import os; os.mkdir('own'); os.symlink('target', 'own/link'); os.chmod('own', {mode})")

    refusal = pytest.raises(links.ForeignLinkError, match="own/link is a symbolic link of nobody")
    with nullcontext() if is_followed else refusal:
        links.Entry(f"{stranger.folder}/own/link").close()


#: Links in a folder of the stranger, who has ``theirs`` as well; ``home`` belongs to who follows them.
LINKS = [
    ("../theirs/file", "", True),
    ("../theirs/new", "", True),
    ("../theirs", "", True),
    ("../theirs", "new", True),
    ("../theirs", "../theirs/file", True),
    ("../theirs/again", "new", True),
    ("../theirs/../home/back", "", True),
    ("../theirs/over", "", True),
    ("../home/file", "", False),
    ("../home/new", "", False),
    ("../home", "file", False),
    ("../home", "new", False),
    ("../theirs/../home", "new", False),
    ("../theirs/home", "new", False),
    ("../theirs/home/new", "", False),
    ("..", "home/file", False),
    ("/", "etc", False),
]


@pytest.mark.bed
@pytest.mark.parametrize(("target", "rest", "is_followed"), LINKS)
def test_the_links_of_another_user_lead_to_what_is_that_user_s(
    stranger: Stranger, target: str, rest: str, is_followed: bool
) -> None:
    """Else that user chooses which file of the writer is replaced or made."""
    home = stranger.folder / "home"
    home.mkdir()
    (home / "file").touch()
    (home / "back").symlink_to("../theirs/file")
    stranger.python(
        "import os, sys\n"
        "for name in ('own', 'theirs', 'theirs/inner'):\n"
        "    os.mkdir(name, 0o755)\n"
        "open('theirs/file', 'w').close()\n"
        "made = {'theirs/again': 'inner', 'theirs/home': '../home', 'theirs/over': '../home/back'}\n"
        "for name, target in [*made.items(), ('own/link', sys.argv[1])]:\n"
        "    os.symlink(target, name)\n",
        target,
    )
    stranger.folder.chmod(0o755)

    refusal = pytest.raises(
        links.ForeignLinkError, match=r"/(own/link|theirs/home) is a symbolic link of nobody"
    )
    with nullcontext() if is_followed else refusal:
        links.Entry(f"{stranger.folder}/own/link{'/' if rest else ''}{rest}").close()


@pytest.mark.bed
@pytest.mark.parametrize("uid", [VICTIM, 0], ids=["user", "root"])
def test_nothing_is_written_through_a_link_in_the_folder_of_another_user(
    stranger: Stranger, uid: int
) -> None:
    home = stranger.folder / "home"
    home.mkdir()
    (home / "hccl.json").write_text(TABLE)
    (home / "precious").write_text("precious")
    for path in (home, *home.iterdir()):
        os.chown(path, uid, uid)
    stranger.python(
        "import os, sys; os.mkdir('own', 0o755)\n"
        "for name in ('precious', 'new'): os.symlink(sys.argv[1] + name, 'own/' + name + '.json')\n",
        f"{home}/",
    )

    for name in ("precious", "new"):
        done = stranger.as_user(uid).tools(
            "convert", f"{home}/hccl.json", "--to", "1.0", "--force", "-o", f"own/{name}.json"
        )

        assert done.returncode != 0
        assert f"own/{name}.json is a symbolic link of nobody" in done.stderr
        assert "type the path without the link" in done.stderr
    assert (home / "precious").read_text() == "precious"
    assert not (home / "new").exists()


@pytest.mark.bed
@pytest.mark.parametrize("mode", [0o755, 0o777, 0o1777, 0o3775])
@pytest.mark.parametrize("owner", [0, 65534])
def test_scripts_belong_to_the_user_who_writes_them(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch, mode: int, owner: int
) -> None:
    """Most commands of the scripts need root: their owner could put commands into them."""
    monkeypatch.delenv(parents.TRUSTED_VARIABLE)
    folder = stranger.folder / "scripts"
    folder.mkdir()
    folder.chmod(0o777)
    old = folder / remedies.file_name(os.uname().nodename)
    stranger.python(f"import os; open({str(old)!r}, 'w').close(); os.chmod({str(old)!r}, 0o777)")
    folder.chmod(mode)
    os.chown(folder, owner, owner)

    done = stranger.as_user(0).tools("doctor", "--emit-remedies", str(folder))

    assert "wrote 1 script" in done.stderr, done.stderr
    about = old.stat()
    assert (about.st_uid, about.st_mode & 0o7777) == (0, 0o755)
    assert "can replace the scripts, because" in done.stderr
