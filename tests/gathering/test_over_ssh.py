"""Queries over a stand-in for ssh that runs what it is given on this machine: many hosts, Pythons, limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.jobs import eventually
from tests.support.processes import has_ended
from tests.support.pythons import python

#: Drops its options and the host, greets as a login shell may, and notes how many of it run at the same time.
FAKE_SSH = """\
#!/bin/sh
while [ "$1" != -- ]; do shift; done
host=$2
shift 2
case $host in bad*) echo "ssh: Could not resolve hostname $host" >&2; exit 255;; esac
echo "Welcome to $host!"
mkdir "{folder}/open/$host"
ls "{folder}/open" | wc -l >> {folder}/counts
sh -c "$*"
code=$?
rmdir "{folder}/open/$host"
exit $code
"""


@pytest.fixture
def ssh(tmp_path: Path) -> Path:
    folder = tmp_path / "ssh"
    (folder / "open").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(
        "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    )
    program = folder / "ssh"
    program.write_text(FAKE_SSH.format(folder=folder))
    program.chmod(0o755)
    return program


def start(ssh: Path, work: Path, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "hccl_tools", "gen", "--simulate", "910a", "--engine", "ssh"]
    (work / "tmp").mkdir(exist_ok=True)
    path = f"{ssh.parent}/bin:{os.environ['PATH']}"
    return subprocess.Popen(
        [*command, "--ssh", str(ssh), "-o", "table.json", *args],
        cwd=work, env={**os.environ, "PATH": path, "TMPDIR": str(work / "tmp")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def gen(ssh: Path, work: Path, *args: str) -> subprocess.CompletedProcess[str]:
    process = start(ssh, work, *args)
    out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(args, process.returncode, out, err)


@pytest.mark.slow
def test_at_most_64_connections_are_open_at_a_time(ssh: Path, tmp_path: Path) -> None:
    done = gen(ssh, tmp_path, "--hosts", "node[001-070]", "--gather-timeout", "200")

    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "table.json").read_text())["server_count"] == "70"
    counts = [int(line) for line in (ssh.parent / "counts").read_text().split()]
    assert len(counts) == 70
    assert 2 <= max(counts) <= 64
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
def test_servers_are_in_the_order_of_the_list_whoever_answers_first(ssh: Path, tmp_path: Path) -> None:
    done = gen(ssh, tmp_path, "--hosts", "c,a,b")

    assert [line.split("from ")[1] for line in done.stderr.splitlines() if " ranks " in line] == [
        "c",
        "a",
        "b",
    ]


@pytest.mark.slow
def test_each_unreachable_host_of_many_is_named(ssh: Path, tmp_path: Path) -> None:
    done = gen(ssh, tmp_path, "--hosts", "bad[1-3],node[1-3]")

    assert done.returncode == 1
    assert "3 of 6 hosts did not answer" in done.stderr
    for number in (1, 2, 3):
        assert f"bad{number}: ssh: Could not resolve hostname bad{number}" in done.stderr
    assert done.stderr.count("correct the name, or use its address") == 3
    assert not (tmp_path / "table.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.8", "server 192.0.2.1"),
        ("3.9", "server 192.0.2.1"),
        (
            "3.6",
            "node1: python3 there is 3.6; 3.8 or later is required\n    help: install Python 3.8 or later",
        ),
    ],
)
def test_the_python_of_a_host_may_be_old(ssh: Path, tmp_path: Path, version: str, expected: str) -> None:
    found = python(version)
    (ssh.parent / "bin" / "python3").unlink()
    (ssh.parent / "bin" / "python3").symlink_to(found)

    done = gen(ssh, tmp_path, "--hosts", "node1")

    assert expected in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_host_without_a_temporary_directory_is_named(ssh: Path, tmp_path: Path) -> None:
    program = ssh.parent / "bin" / "python3"
    real = program.resolve()
    program.unlink()
    program.write_text(f'#!/bin/sh\nulimit -f 0\nexec {real} "$@"\n')  # no file may have a byte
    program.chmod(0o755)

    done = gen(ssh, tmp_path, "--hosts", "node1")

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "node1: " in done.stderr
    assert "o space" in done.stderr or "temporary directory" in done.stderr or "too large" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_no_ssh_remains_after_a_signal(ssh: Path, tmp_path: Path, number: int, code: int) -> None:
    """This ssh neither sees the end of its input nor its connection's, as one whose host was cut off."""
    ssh.write_text(f"#!/bin/sh\nsleep 300 & echo $! > {tmp_path}/pid.new; mv pid.new pid; wait\n")

    process = start(ssh, tmp_path, "--hosts", "node1")
    assert eventually((tmp_path / "pid").exists)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)

    assert (process.returncode, "Traceback" in err) == (code, False)
    sleeping = int((tmp_path / "pid").read_text())
    assert eventually(lambda: has_ended(sleeping))


@pytest.mark.slow
@pytest.mark.parametrize("output", ["cat /dev/zero", "yes"])
def test_a_host_that_sends_without_end_is_named_at_once(ssh: Path, tmp_path: Path, output: str) -> None:
    ssh.write_text(f"#!/bin/sh\necho 'hccl-tools: ready'\n{output}\n")

    done = gen(ssh, tmp_path, "--hosts", "node1", "--gather-timeout", "250")

    assert done.returncode == 1
    assert "node1: it sent more than 4 MiB instead of an answer" in done.stderr


@pytest.mark.slow
def test_a_command_that_passes_no_input_on_is_explained(ssh: Path, tmp_path: Path) -> None:
    ssh.write_text('#!/bin/sh\nshift 2\nexec "$@" < /dev/null\n')

    command = [
        sys.executable,
        "-m",
        "hccl_tools",
        "gen",
        "--hosts",
        "worker-0",
        "--via",
        f"{ssh} exec {{host}}",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 1
    assert f"querying 1 host with {ssh} (--via)" in done.stderr
    assert (
        "worker-0: ssh ended without a message, exit code 0\n    help: the command must pass" in done.stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("printed", "code", "shown"),
    [
        ("sh: 1: exec: python3: not found", 127, "no python3 there\n    help: install Python 3.8"),
        (
            "python3 there is 3.6; 3.8 or later is required",
            1,
            "python3 there is 3.6; 3.8 or later is required\n    help",
        ),
    ],
)
def test_kubectl_s_line_with_the_exit_code_hides_no_message(
    ssh: Path, tmp_path: Path, printed: str, code: int, shown: str
) -> None:
    end = f"command terminated with exit code {code}"
    ssh.write_text(f"#!/bin/sh\nprintf '{printed}\\n{end}\\n' >&2\nexit {code}\n")

    command = [sys.executable, "-m", "hccl_tools", "gen", "--hosts", "worker-0"]
    command += ["--via", f"{ssh} exec {{host}}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)

    assert f"worker-0: {shown}" in done.stderr


@pytest.mark.slow
def test_an_error_of_the_command_is_shown_with_the_lines_before_it(ssh: Path, tmp_path: Path) -> None:
    """As kubectl prints it for a command line without ``--``."""
    lines = "error: you must specify at least one command\\nSee kubectl exec -h"
    ssh.write_text(f"#!/bin/sh\nprintf '{lines}\\n' >&2\nexit 1\n")

    command = [sys.executable, "-m", "hccl_tools", "gen", "--hosts", "worker-0"]
    command += ["--via", f"{ssh} exec {{host}}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)

    assert "worker-0: error: you must specify at least one command; See kubectl exec -h\n" in done.stderr


@pytest.mark.slow
def test_control_characters_of_a_host_are_escaped(ssh: Path, tmp_path: Path) -> None:
    ssh.write_text("#!/bin/sh\nprintf '\\033[31mred\\n' >&2\nexit 255\n")

    done = gen(ssh, tmp_path, "--hosts", "node1")

    assert "node1: \\u001b[31mred" in done.stderr


def test_more_hosts_than_files_may_be_open_are_asked(tmp_path: Path) -> None:
    """The usual `ulimit -n` is 1024: it is raised, and a hard limit is named."""
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\nexit 255\n")
    ssh.chmod(0o755)
    call = [sys.executable, "-m", "hccl_tools", "gen", "--hosts", "10.0.0.[1-40]"]
    call += ["--engine", "ssh", "--ssh", str(ssh), "-o", "-"]

    def limited(soft: int, hard: int) -> subprocess.CompletedProcess[str]:
        shell = ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$@"', "sh", *call]
        return subprocess.run(shell, capture_output=True, text=True, check=False)

    raised, refused = limited(64, 512), limited(64, 64)

    assert (raised.returncode, refused.returncode) == (1, 2)
    assert "40 of 40 hosts did not answer" in raised.stderr
    assert "error: 40 hosts cannot be asked: this process may have 64 open files" in refused.stderr
    assert "help: raise the limit: ulimit -n 224" in refused.stderr
