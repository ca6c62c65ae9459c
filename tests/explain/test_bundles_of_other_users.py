"""A bundle has nothing that the run of another user names elsewhere, and everything of a run of one's own."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.explain import bundle, explaining, sources
from hccl_tools.runs import own_runs

if TYPE_CHECKING:
    from tests.support.strangers import Stranger

#: The user who explains; the run belongs to the stranger.
VICTIM = 65533
TABLE = """{"status": "completed", "version": "1.0", "server_count": "1", "server_list": [{
 "server_id": "10.9.9.9", "device": [{"device_id": "0", "device_ip": "10.1.0.1", "rank_id": "0"}],
 "host_nic_ip": "reserve"}]}"""
#: Makes a run that names files of another user: argv has the run directory and the secret folder.
RUN = """\
import json, os, sys
run, secret = sys.argv[1:]
os.mkdir(run, 0o755)
def process(rank, log):
    return {"rank": rank, "host": "h", "here": True, "log": log, "argv": ["true"]}
logs = ["rank_0.log", f"{secret}/notes", "link.log", "../outside.log", "fifo.log", "folder/rank_5.log"]
plan = {"processes": [process(rank, log) for rank, log in enumerate(logs)], "hosts": ["h"]}
ends = [{"rank": 0, "plog": secret}, {"rank": 1, "plog": "../" + os.path.basename(secret)}]
first = {"rank": 0, "name": "rank 0", "how": "exited with 1"}
report = {"exit_code": 1, "reason": "rank", "ranks": ends, "first_failure": first}
def write(name, text):
    with open(os.path.join(run, name), "w") as file:
        file.write(text)
write("plan.json", json.dumps(plan))
write("report.json", json.dumps(report))
write("launcher", "1\\nh\\n1.0\\nlaunch\\n1\\n")
write("rank_0.log", "a line of rank 0\\n")
write(b"bad\\xff\\nname\\x1b[31m.log".decode(errors="surrogateescape"), "a strange name\\n")
os.symlink(f"{secret}/notes", os.path.join(run, "link.log"))
os.symlink(f"{secret}/notes", os.path.join(run, "rank_table.json"))
os.symlink(secret, os.path.join(run, "folder"))
os.mkfifo(os.path.join(run, "fifo.log"))
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def members(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        return {
            member.name: file.read().decode() for member in archive if (file := archive.extractfile(member))
        }


def as_user(stranger: Stranger, uid: int, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as an ordinary user."""
    return subprocess.run(
        [stranger.interpreter, "-m", "hccl_tools", *args], cwd=stranger.folder, user=uid, group=uid,
        extra_groups=[], text=True, timeout=120, check=False, capture_output=True, env=stranger.environ(),
    )  # fmt: skip


@pytest.fixture
def trap(stranger: Stranger) -> tuple[Path, Path]:
    """The run of the stranger, and a folder that only the victim can read."""
    secret = stranger.folder / "secret"
    secret.mkdir()
    for name in ("notes", "rank_5.log"):
        (secret / name).write_text("precious\n")
        os.chown(secret / name, VICTIM, VICTIM)
    os.chown(secret, VICTIM, VICTIM)
    secret.chmod(0o700)
    (stranger.folder / "outside.log").write_text("precious\n")
    run = stranger.folder / "20261121-101530-abc"
    stranger.python(RUN, str(run), str(secret))
    return run, secret


@pytest.mark.bed
@pytest.mark.parametrize("uid", [VICTIM, 0], ids=["user", "root"])
def test_a_bundle_of_another_users_run_has_only_its_files(
    stranger: Stranger, trap: tuple[Path, Path], uid: int
) -> None:
    run, secret = trap
    bundle = stranger.folder / "bug.tar.gz"

    done = as_user(stranger, uid, "explain", str(run), "--bundle", str(bundle))

    files = members(bundle)
    assert done.returncode in {0, 1}, done.stderr
    assert "precious" not in done.stdout + done.stderr + "".join(files.values())
    assert files["explain/logs/rank_0.log"] == "a line of rank 0\n"
    assert "explain/rank_table.json" not in files
    assert "a strange name\n" in files.values()
    assert not [name for name in files if not name.isprintable()]
    owner = "nobody"
    for part in (
        f"the log of rank 1, {secret}/notes, was not read: it is outside of the run directory, which belongs to {owner}",
        "rank_table.json was not read: it is a symbolic link",
        f"the folder of CANN's logs, {secret}, was not read",
    ):
        assert part in done.stdout
    assert f"{run}/rank_table.json: it is a symbolic link" in done.stderr
    assert "explain/logs/rank_0.log" in done.stderr


@pytest.mark.bed
def test_a_folder_that_is_exchanged_or_has_links_brings_nothing(
    stranger: Stranger, trap: tuple[Path, Path]
) -> None:
    run, _ = trap
    bundle = stranger.folder / "bug.tar.gz"
    (run / "plan.json").unlink()  # now it is a folder with logs, and no run

    done = as_user(stranger, VICTIM, "explain", str(run), "--bundle", str(bundle))

    assert "precious" not in done.stdout + done.stderr + "".join(members(bundle).values())
    assert "explain/logs/rank_0.log" in members(bundle)


@pytest.mark.bed
def test_second_names_are_not_packed(stranger: Stranger) -> None:
    """The kernel may allow another user to make a hard link to any file (fs.protected_hardlinks=0)."""
    run, secret = stranger.folder / "run", stranger.folder / "mine"
    secret.write_text("precious\n")
    secret.chmod(0o600)
    stranger.python(
        "import os, sys; os.mkdir(sys.argv[1]); open(sys.argv[1] + '/a.log', 'w').write('x')", str(run)
    )
    os.link(secret, run / "b.log")
    bundle = stranger.folder / "bug.tar.gz"

    done = as_user(stranger, 0, "explain", str(run), "--bundle", str(bundle))

    assert "precious" not in "".join(members(bundle).values())
    assert f"{run}/b.log: it belongs to another user" in done.stderr


LAUNCH = (
    sys.executable,
    "-m",
    "hccl_tools.launch",
    "--no-table",
    "-n",
    "1",
    "--start",
    "table",
    "--no-python",
)


def explained(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hccl_tools", "explain", *args], text=True, check=False, capture_output=True
    )


def test_a_bundle_of_ones_own_run_has_what_is_in_its_directory() -> None:
    Path("plogs").mkdir()
    Path("plogs/plog-1_2.log").write_text("[ERROR] HCCL a line of CANN\n")
    environ = {**os.environ, "ASCEND_PROCESS_LOG_PATH": str(Path("plogs").resolve())}
    subprocess.run([*LAUNCH, "sh", "-c", "echo out; exit 3"], env=environ, check=False, capture_output=True)
    run = Path("log/latest").resolve()

    done = explained("--bundle", "bug.tar.gz")

    files = members(Path("bug.tar.gz"))
    for name in ("plan.json", "report.json"):
        assert files[f"explain/{name}"] == (run / name).read_text()
        assert isinstance(json.loads(files[f"explain/{name}"]), dict)
    logs = {name: text for name, text in files.items() if name.endswith(".log")}
    assert list(logs.values()) == ["out\n"]
    _, *packed = done.stderr.partition("left out:")[0].splitlines()
    listed = {line.split()[1]: int(line.split()[0].replace(",", "")) for line in packed}
    assert listed == {name: len(text.encode()) for name, text in files.items()}
    plog = Path("plogs/plog-1_2.log").resolve()
    assert (
        f"  outside of the run directory, and packed if you type the run and these paths: {plog}\n"
        in done.stderr
    )

    explained(str(run), str(plog), "--bundle", "both.tar.gz")

    assert "[ERROR] HCCL a line of CANN\n" in members(Path("both.tar.gz")).values()


@pytest.mark.slow
def test_what_is_too_large_is_cut_with_a_sentence() -> None:
    Path("logs").mkdir()
    line = b"a line of a log that says nothing\n"
    Path("logs/rank_0.log").write_bytes(line * (12 * 1024 * 1024 // len(line)) + b"the end\n")
    Path("logs/rank_1.log.gz").write_bytes(
        gzip.compress(line * (12 * 1024 * 1024 // len(line)) + b"the end\n")
    )
    Path("logs/rank_2.log").write_text("small\n")

    done = explained("logs", "--bundle", "bug.tar.gz")

    files = members(Path("bug.tar.gz"))
    for name in ("rank_0.log", "rank_1.log"):
        text = files[f"explain/logs/{name}"]
        assert len(text) < 10 * 1024 * 1024
        assert text.startswith("a line of a log")
        assert text.endswith("the end\n")
        assert "bytes are left out here]" in text
    assert files["explain/logs/rank_2.log"] == "small\n"
    assert done.stderr.count("only its beginning and its end are packed, without") == 2


def test_a_key_in_a_log_goes_whole() -> None:
    body = [f"QUFBQW5vbmUAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW{n:04}" for n in range(500)]
    lines = ["-----BEGIN OPENSSH PRIVATE KEY-----", *body, "-----END OPENSSH PRIVATE KEY-----"]
    Path("logs").mkdir()
    Path("logs/rank_0.log").write_text("before\n" + "".join(f"[rank 0] {one}\n" for one in lines) + "after\n")

    explained("logs", "--bundle", "bug.tar.gz")

    text = members(Path("bug.tar.gz"))["explain/logs/rank_0.log"]
    assert text == "before\n[rank 0] ***\nafter\n"


def test_a_folder_exchanged_between_look_and_read_is_refused(tmp_path: Path) -> None:
    top, secret = tmp_path / "logs", tmp_path / "secret"
    for folder, text in ((top / "sub", "a line\n"), (secret, "precious\n")):
        folder.mkdir(parents=True)
        (folder / "rank_0.log").write_text(text)
    (top / "rank_1.log").write_text("of rank 1\n")
    logs, _ = sources.collect([str(top)])
    answer = explaining.explain(logs)
    (top / "sub").rename(tmp_path / "moved")
    (top / "sub").symlink_to(secret)
    (top / "rank_1.log").unlink()
    (top / "rank_1.log").symlink_to(secret / "rank_0.log")

    packed = bundle.write("bug.tar.gz", answer, folders=[str(top)])

    assert "precious" not in "".join(members(Path("bug.tar.gz")).values())
    assert [name for name, _ in packed.files if "logs/" in name] == []
    assert f"{top}/rank_1.log: it is a symbolic link" in packed.left_out
    assert [line for line in packed.left_out if line.startswith(f"{top}/sub/rank_0.log: ")]


@pytest.mark.parametrize("typed", ["logs", "logs/", "./logs", "logs/rank_0.log"])
def test_a_log_that_becomes_a_link_after_the_look_is_not_read(tmp_path: Path, typed: str) -> None:
    Path("precious").write_text("RuntimeError: precious\n")
    Path("logs").mkdir()
    Path("logs/rank_0.log").write_text("RuntimeError: shown\n")
    logs, notes = sources.collect([typed])
    Path("logs/rank_0.log").unlink()
    Path("logs/rank_0.log").symlink_to(Path("precious").resolve())

    answer = explaining.explain(logs, notes=notes)
    packed = bundle.write("bug.tar.gz", answer)

    assert [note for note in answer.notes if note.endswith("cannot be read: it is a symbolic link")]
    assert "precious" not in "".join(members(Path("bug.tar.gz")).values())
    assert [line for line in packed.left_out if line.endswith("it is a symbolic link")]


def test_a_folder_that_is_exchanged_after_the_look_is_the_one_that_was_seen(tmp_path: Path) -> None:
    for name in ("logs", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rank_0.log").write_text(f"RuntimeError: {name}\n")
    logs, _ = sources.collect(["logs"])
    Path("logs").rename("moved")
    Path("logs").symlink_to("other")

    assert [one.event.text for one in explaining.explain(logs).cluster.seen] == ["RuntimeError: logs"]


def test_links_of_ones_own_are_read() -> None:
    Path("a.log").write_text("RuntimeError: of a\n")
    Path("folder").mkdir()
    Path("folder/b.log").write_text("RuntimeError: of b\n")
    Path("rank_0.log").symlink_to("a.log")
    Path("link").symlink_to("folder")

    logs, notes = sources.collect(["rank_0.log", "link"])
    answer = explaining.explain(logs)

    assert notes == []
    assert [(log.shown, log.rank) for log in logs] == [("rank_0.log", 0), ("link/b.log", None)]
    assert sorted(one.event.text for one in answer.cluster.seen) == [
        "RuntimeError: of a",
        "RuntimeError: of b",
    ]


@pytest.mark.bed
@pytest.mark.parametrize("typed", ["g/rank_0.log", "g/folder"])
def test_typed_files_that_are_links_of_another_user_are_left_out(stranger: Stranger, typed: str) -> None:
    private = stranger.folder / "private"
    private.mkdir()
    (private / "notes.log").write_text("RuntimeError: precious\n")
    os.chown(private / "notes.log", VICTIM, VICTIM)
    os.chown(private, VICTIM, VICTIM)
    private.chmod(0o700)
    stranger.python(
        "import os\n"
        "os.mkdir('g')\n"
        "os.chmod('g', 0o777)\n"
        f"os.symlink({str(private / 'notes.log')!r}, 'g/rank_0.log')\n"
        f"os.symlink({str(private)!r}, 'g/folder')\n"
        "open('g/rank_1.log', 'w').write('RuntimeError: shown\\n')\n"
    )

    done = as_user(stranger, VICTIM, "explain", typed, "g/rank_1.log", "--bundle", "bug.tar.gz")

    assert f"{typed} was not read: " in done.stdout
    assert "is a symbolic link of nobody" in done.stdout
    assert "shown" in done.stdout
    text = "".join(members(stranger.folder / "bug.tar.gz").values())
    assert "precious" not in done.stdout + done.stderr + text


@pytest.mark.bed
@pytest.mark.parametrize("uid", [VICTIM, 0], ids=["user", "root"])
def test_files_behind_links_in_a_folder_of_another_user_are_not_packed(stranger: Stranger, uid: int) -> None:
    """The owner of a folder may make links in it: they can lead to files that only the reader can read."""
    private = stranger.folder / "private"
    private.mkdir()
    (private / "notes.log").write_text("RuntimeError: precious\n")
    (private / "table.json").write_text(TABLE)
    for path in (private, *private.iterdir()):
        os.chown(path, uid, uid)
    private.chmod(0o700)
    stranger.python(
        "import os, sys\n"
        "os.mkdir('g', 0o755)\n"
        "os.symlink(sys.argv[1] + '/notes.log', 'g/a.log')\n"
        "os.symlink(sys.argv[1], 'g/folder')\n"
        "os.symlink(sys.argv[1] + '/table.json', 'g/table.json')\n"
        "for name in ('g/b.log', 'x.log'): open(name, 'w').write('RuntimeError: shown\\n')\n",
        str(private),
    )

    typed = ("g/a.log", "g/folder", "g/folder/notes.log", "g/b.log", "--bundle", "bug.tar.gz")
    table = as_user(stranger, uid, "explain", "x.log", "--rank-table", "g/table.json", *typed[-2:])
    done = as_user(stranger, uid, "explain", *typed)

    files = members(stranger.folder / "bug.tar.gz")
    assert "precious" not in done.stdout + done.stderr + "".join(files.values())
    assert table.returncode == 2
    assert "g/table.json cannot be read: " in table.stderr
    assert "type the path without the link" in table.stderr
    assert "shown" in "".join(files.values())
    for name, link in (("a.log", "a.log"), ("folder", "folder"), ("folder/notes.log", "folder")):
        assert (
            f"g/{name} was not read: {stranger.folder}/g/{link} is a symbolic link of nobody" in done.stdout
        )


@pytest.mark.bed
def test_a_log_of_ones_own_run_behind_a_link_of_another_user_is_not_packed(stranger: Stranger) -> None:
    """``--log-file`` can be in a folder of another user, who can put a link in its place."""
    (stranger.folder / "notes").write_text("RuntimeError: precious\n")
    (stranger.folder / "notes").chmod(0o600)
    stranger.python("import os; os.mkdir('g'); os.symlink('../notes', 'g/job.log')")
    run = Path("run").resolve()
    run.mkdir()
    process = {"rank": 0, "host": os.uname().nodename, "here": True, "argv": ["true"]}
    plan = {"hosts": [os.uname().nodename], "processes": [{**process, "log": f"{stranger.folder}/g/job.log"}]}
    (run / "plan.json").write_text(json.dumps(plan))
    own_runs.note(str(run), os.environ)

    done = explained(str(run), "--bundle", "bug.tar.gz")

    assert "precious" not in done.stdout + done.stderr + "".join(members(Path("bug.tar.gz")).values())
    assert f"{stranger.folder}/g/job.log was not read: " in done.stdout


def test_a_run_without_its_table_is_explained(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    process = {"rank": 0, "host": "localhost", "here": True, "log": "rank_0.log", "argv": ["true"]}
    plan = {"world_size": 1, "hosts": ["localhost"], "processes": [process]}
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "rank_0.log").write_text(
        "EI0014: The value of config [server_list] in the rank table is invalid, Reason: it is empty\n"
    )

    done = explained(str(run))

    assert done.returncode == 0, done.stderr
    assert "EI0014" in done.stdout
    assert done.stderr == ""
