"""``distribute`` on stand-in hosts: each has its own folder, mounted at the same path."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.table.fingerprint import fingerprint
from hccl_tools.validation.checker import validate
from tests.support.jobs import eventually
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NAMESPACE = ("unshare", "-rm", "true")
pytestmark = [
    pytest.mark.bed,
    pytest.mark.skipif(
        subprocess.run(_NAMESPACE, capture_output=True, check=False).returncode != 0,
        reason="no mount namespaces",
    ),
]

#: Runs a command with the folder of the host in place of ``shared``. A host called stuck answers once.
SSH = """\
#!/bin/sh
while [ "$1" != -- ]; do shift; done
host=$2
shift 2
case $host in
    down*) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255;;
    stuck*) [ ! -e {folder}/$host/asked ] || {{ echo stuck >> {folder}/$host/asked; exec sleep 60; }}
            touch {folder}/$host/asked;;
esac
export PATH={folder}/python:/usr/bin:/bin
exec unshare -rm sh -c "mount --bind {folder}/$host/shared {folder}/shared && $*"
"""


class Cluster:
    """Hosts ``node1`` ... that have a folder of their own at one path."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.shared = folder, folder / "shared"
        self.shared.mkdir()
        for name in names:
            (folder / name / "shared").mkdir(parents=True)
        (folder / "python").mkdir()
        (folder / "python" / "python3").symlink_to(sys.executable)
        self.ssh = folder / "ssh"
        self.ssh.write_text(SSH.format(folder=folder))
        self.ssh.chmod(0o755)
        self.table = folder / "table.json"
        self.write_table(table("1.0", 3, 8))

    def write_table(self, value: Any) -> None:
        for number, server in enumerate(value["server_list"][:3], 1):
            server["server_id"] = f"node{number}"
        self.table.write_text(json.dumps(value))

    def file(self, name: str) -> Path:
        return self.folder / name / "shared" / "table.json"

    def command(self, *args: str) -> list[str]:
        command = [sys.executable, "-m", "hccl_tools", "distribute", str(self.table), *args]
        return [*command, "--ssh", str(self.ssh), "-o", f"{self.shared}/"]

    def run(self, *args: str, code: int) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*args), capture_output=True, text=True, check=False, timeout=120, env=ENVIRON
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert not list(self.folder.glob("*/shared/.hccl-tools-*"))
        return done

    def has_table(self, name: str) -> bool:
        return self.file(name).is_file() and self.file(name).read_bytes() == self.table.read_bytes()


ENVIRON = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
NODES = ("node1", "node2", "node3")


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, [*NODES, "node4", "stuck1"])


def test_what_each_host_has_is_shown(cluster: Cluster) -> None:
    own = fingerprint(validate(str(cluster.table)).table)  # type: ignore[arg-type]
    cluster.file("node1").write_bytes(cluster.table.read_bytes())
    other = table("1.0", 1, 2)
    cluster.file("node3").write_text(json.dumps(other))
    cluster.file("node4").write_text("text")

    done = cluster.run("node[1-4]", code=1)

    theirs = fingerprint(validate(other).table)  # type: ignore[arg-type]
    assert done.stdout.splitlines() == [
        f"{cluster.shared}/table.json: fingerprint {own}, 4 hosts",
        "node1: has this table",
        "node2: has no such file",
        f"node3: has another file (fingerprint {theirs}); --write --force replaces it",
        "node4: has another file (not a rank table); --write --force replaces it",
    ]
    assert done.stderr.splitlines()[-1] == "nothing was written: --write copies the table"
    assert not cluster.file("node2").exists()


def test_the_servers_of_the_table_get_it(cluster: Cluster) -> None:
    done = cluster.run("--write", code=0)

    assert "node[1-3]: written, fingerprint " in done.stdout
    assert [name for name in (*NODES, "node4") if cluster.has_table(name)] == [*NODES]
    assert "node[1-3]: has this table" in cluster.run(code=0).stdout


def test_another_layout_is_the_same_table_and_is_made_equal(cluster: Cluster) -> None:
    cluster.file("node2").write_text(json.dumps(json.loads(cluster.table.read_text()), indent=3))

    assert "node2: has this table with another layout" in cluster.run("node2", code=1).stdout
    cluster.run("node2", "--write", code=0)

    assert cluster.has_table("node2")


def test_a_different_file_is_replaced_with_force_only(cluster: Cluster) -> None:
    cluster.file("node2").write_text("mine")
    cluster.file("node2").chmod(0o604)

    cluster.run("--write", code=1)
    assert cluster.file("node2").read_text() == "mine"
    assert cluster.has_table("node1")
    cluster.run("--write", "--force", code=0)

    assert cluster.has_table("node2")
    assert stat.S_IMODE(cluster.file("node2").stat().st_mode) == 0o604


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_nothing_is_written_through_a_link(cluster: Cluster, force: Sequence[str]) -> None:
    target = cluster.folder / "node2" / "shared" / "target"
    target.write_text("mine")
    cluster.file("node2").symlink_to("target")

    done = cluster.run("--write", *force, code=1)

    assert "node2: has a symbolic link there" in done.stdout
    assert target.read_text() == "mine"
    assert cluster.file("node2").is_symlink()


def test_the_mode_is_that_of_the_framework(cluster: Cluster) -> None:
    value = table("1.0", 2, 8)
    for number, server in enumerate(value["server_list"], 1):
        server["container_ip"] = f"10.0.0.{number}"
    cluster.table.write_text(json.dumps(value))
    cluster.file("node1").write_bytes(cluster.table.read_bytes())
    cluster.file("node1").chmod(0o644)

    assert "with mode 644 in place of 640" in cluster.run("node1,node2", "--target", "mindie", code=1).stdout
    cluster.run("node1,node2", "--target", "mindie", "--write", code=0)

    assert [stat.S_IMODE(cluster.file(name).stat().st_mode) for name in NODES[:2]] == [0o640, 0o640]


def test_a_host_that_does_not_answer_keeps_no_other_from_it(cluster: Cluster) -> None:
    done = cluster.run("node1,down1,node2", "--write", code=1)

    assert "error: 1 of 3 hosts failed\n  down1: ssh: connect to host down1" in done.stderr
    assert "error: 1 of 1 host failed\n" in cluster.run("down1", code=1).stderr
    assert cluster.has_table("node1")
    assert cluster.has_table("node2")


def test_a_folder_that_cannot_be_written_is_named(cluster: Cluster) -> None:
    (cluster.folder / "node2" / "shared").rmdir()
    (cluster.folder / "node2" / "shared").mkdir()
    command = cluster.command("node2", "--write")
    command[-1] = f"{cluster.shared}/none/table.json"

    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRON, timeout=60)

    assert done.returncode == 1
    assert f"node2: {cluster.shared}/none/table.json cannot be written: its folder does not" in done.stderr


def test_a_table_that_is_too_long_for_a_command_line(cluster: Cluster) -> None:
    value = table("1.0", 3, 8)
    value["note"] = os.urandom(300_000).hex()
    cluster.write_table(value)
    cluster.file("node3").write_text(json.dumps(value, indent=2))

    assert "node3: has this table with another layout" in cluster.run(code=1).stdout
    cluster.run("--write", code=0)

    assert all(map(cluster.has_table, NODES))


def test_a_table_with_errors_goes_nowhere(cluster: Cluster) -> None:
    cluster.table.write_text("{}")

    done = cluster.run("node1", "--write", code=1)

    assert "cannot be used" in done.stderr
    assert not cluster.file("node1").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--force"], "--force replaces files with --write only"),
        (["node1", "--hostfile", "x"], "HOSTS and --hostfile exclude each other"),
        (["node[1-"], "node["),
        (["--via", "ssh {host}"], "--via and --ssh exclude each other"),
        (["--engine", "mpirun"], "is not one of slurm, ssh"),
    ],
)
def test_wrong_usage(cluster: Cluster, args: list[str], words: str) -> None:
    assert words in cluster.run(*args, code=2).stderr


def test_ctrl_c_leaves_nothing_behind(cluster: Cluster) -> None:
    asked = cluster.folder / "stuck1" / "asked"
    process = subprocess.Popen(
        cluster.command("node1,stuck1", "--write"), env=ENVIRON, stderr=subprocess.PIPE, text=True
    )
    assert eventually(
        lambda: cluster.has_table("node1") and asked.exists() and asked.read_text() == "stuck\n"
    )
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Traceback" not in errors
    assert [path.name for path in cluster.folder.glob("*/shared/*")] == ["table.json"]
