"""``hccl-tools key``: create a job key, copy it to other hosts, and show which one this host uses."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hccl_tools.runs import job_key_copy

if TYPE_CHECKING:
    from tests.beds.two_hosts import TwoHosts
    from tests.support.commands import CommandLine, Done

_FILE = Path(".config/hccl-tools/job-key")
#: An ssh that runs the command on this host. It finds the homes of the hosts in its own folder.
_FAKE_SSH = """\
#!/bin/sh
while [ "$1" != -- ]; do shift; done
export HOME="${0%%/*}/$2"
shift 2
%sexec %s -c "$*"
"""
_TOOLS = ("cat", "chmod", "ln", "mkdir", "mv", "rm", "tr", "wc")
#: A tool that keeps the command lines and the environments of all processes before it runs.
_SPY = """\
#!/bin/sh
/usr/bin/cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2> /dev/null | /usr/bin/tr "\\0" "\\n" >> {seen}
exec /usr/bin/{name} "$@"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of this user."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return path


def fake_ssh(folder: Path, shell: str = "sh", first: str = "") -> str:
    path = folder / "fake-ssh"
    path.write_text(_FAKE_SSH % (first, shell))
    path.chmod(0o755)
    return str(path)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def described(done: Done) -> tuple[int, str, str]:
    return done.code, done.out, done.err


def test_create(command_line: CommandLine, home: Path) -> None:
    done = command_line("key", "create")

    key = (home / _FILE).read_text().strip()
    assert described(done) == (0, f"created {home / _FILE}\n", "next: hccl-tools key copy HOST ...\n")
    assert re.fullmatch("[0-9a-f]{64}", key)
    assert (mode(home / _FILE), mode((home / _FILE).parent)) == (0o600, 0o700)


def test_create_replaces_a_key_only_with_force(command_line: CommandLine, home: Path) -> None:
    command_line("key", "create")
    old = (home / _FILE).read_text()

    refused = command_line("key", "create")
    kept = (home / _FILE).read_text()
    replaced = command_line("key", "create", "--force")

    assert refused.code == 1
    assert refused.err.splitlines() == [
        f"error: no job key is created: {home / _FILE} exists",
        "  help: --force replaces it; all other hosts then need the new key",
    ]
    assert kept == old != (home / _FILE).read_text()
    assert (replaced.code, replaced.err) == (0, "next: hccl-tools key copy --force HOST ...\n")


def test_create_warns_of_a_variable_with_another_key(
    command_line: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_TOOLS_JOB_KEY", "0" * 64)

    done = command_line("key", "create")

    warning = "warning: HCCL_TOOLS_JOB_KEY is set: this host uses that key instead of the new one\n"
    assert (done.code, done.err) == (0, warning)


def test_status(command_line: CommandLine, home: Path) -> None:
    command_line("key", "create")
    key = (home / _FILE).read_text().strip()

    done = command_line("key", "status")

    fingerprint = hashlib.sha256(bytes.fromhex(key)).hexdigest()[:12]
    text = f"job key      ~/.config/hccl-tools/job-key\nfingerprint  {fingerprint}\n"
    assert described(done) == (0, text, "")


def test_status_of_a_required_key_in_a_variable(
    command_line: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_TOOLS_JOB_KEY", "0" * 64)
    monkeypatch.setenv("HCCL_TOOLS_REQUIRE_KEY", "1")

    done = command_line("key", "status")

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "job key      HCCL_TOOLS_JOB_KEY",
        "fingerprint  66687aadf862",
        "required     yes (HCCL_TOOLS_REQUIRE_KEY=1)",
    ]


@pytest.mark.parametrize("call", [("status",), ("copy", "node1")])
def test_no_key(command_line: CommandLine, home: Path, call: tuple[str, ...]) -> None:
    done = command_line("key", *call)

    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "error: this host has no job key",
        "  help: `hccl-tools key create`, or `hccl-tools key copy` on a host that has the key",
    ]


@pytest.mark.parametrize("call", [("status",), ("copy", "node1")])
def test_a_key_that_others_can_read(command_line: CommandLine, home: Path, call: tuple[str, ...]) -> None:
    command_line("key", "create")
    (home / _FILE).chmod(0o644)

    done = command_line("key", *call)

    assert (done.code, done.sentence) == (2, f"other users can read the job key {home / _FILE} (mode 0644)")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("copy", "no hosts are named"),
        ("copy node1 --hostfile hosts", "HOSTS and --hostfile exclude each other"),
        ("copy --hostfile absent", "the hostfile absent cannot be read: no such file or directory"),
        ("copy node1 node1", 'HOSTS "node1,node1" has node1 twice'),
        ("copy -- -oX=sh", 'cannot read HOSTS "-oX=sh": "-oX=sh" is not a host name'),
        ("copy root@node1", 'HOSTS: "root@node1" names a user'),
        ("copy node1 --ssh no-such-ssh", '--ssh "no-such-ssh": no program no-such-ssh on PATH'),
        ("copy --key 00", "no such option --key"),
        ("status node1", 'unexpected argument "node1"'),
        ("create node1", 'unexpected argument "node1"'),
        ("crate", 'no such command "crate"; did you mean "create"?'),
    ],
)  # fmt: skip
def test_a_wrong_call(command_line: CommandLine, home: Path, call: str, sentence: str) -> None:
    command_line("key", "create")

    done = command_line("key", *call.split())

    assert (done.code, done.sentence) == (2, sentence)


@pytest.mark.parametrize(
    "variable", ["HCCL_TOOLS_JOB_KEY", "HCCL_TOOLS_JOB_KEY_FILE", "HCCL_TOOLS_REQUIRE_KEY"]
)
def test_a_wrong_variable(
    command_line: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "nonsense")

    done = command_line("key", "status")

    assert (done.code, done.out) == (2, "")
    assert variable in done.err or "the job key nonsense cannot be read" in done.err


@pytest.mark.slow
def test_copy_to_many_hosts(command_line: CommandLine, home: Path) -> None:
    command_line("key", "create")
    key = (home / _FILE).read_text()
    ssh = fake_ssh(home)
    hosts = [f"node{number:03}" for number in range(1, 101)]
    command_line.write("hosts", "\n".join([*hosts, "localhost slots=8"]))

    first = command_line("key", "copy", "node[001-050]", "--ssh", ssh)
    done = command_line("key", "copy", "--hostfile", "hosts", "--ssh", ssh)

    files = [home / host / _FILE for host in hosts]
    assert (first.code, done.code, done.err) == (0, 0, "")
    assert done.out.splitlines() == [
        *(f"{host}: already has this key" for host in hosts[:50]),
        *(f"{host}: copied to {home / host / _FILE}" for host in hosts[50:]),
        "localhost: skipped, because it is this host",
    ]
    assert {path.read_text() for path in files} == {key}
    assert {mode(path) for path in files} == {0o600}
    assert {mode(path.parent) for path in files} == {0o700}
    assert {tuple(os.listdir(path.parent)) for path in files} == {("job-key",)}  # noqa: PTH208


def test_copy_of_a_key_in_a_variable(
    command_line: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCCL_TOOLS_JOB_KEY", "AB" * 32)
    ssh = fake_ssh(home, first='env | grep JOB_KEY > "$HOME.env"; ')

    done = command_line("key", "copy", "node1", "--ssh", ssh)

    assert (done.code, (home / "node1" / _FILE).read_text()) == (0, "ab" * 32 + "\n")
    assert (home / "node1.env").read_text() == ""


@pytest.mark.parametrize("text", ["{key}", "{KEY}\n", "{key}\r\n"])
def test_the_same_key_in_another_notation(command_line: CommandLine, home: Path, text: str) -> None:
    command_line("key", "create")
    key = (home / _FILE).read_text().strip()
    path = home / "node1" / _FILE
    path.parent.mkdir(parents=True)
    path.write_text(text.format(key=key, KEY=key.upper()))
    path.chmod(0o644)

    done = command_line("key", "copy", "node1", "--ssh", fake_ssh(home))

    assert (done.code, done.out) == (0, "node1: already has this key\n")
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)


@pytest.mark.parametrize("content", ["0" * 64 + "\n", "", "link"])
def test_a_different_key_is_replaced_only_with_force(
    command_line: CommandLine, home: Path, content: str
) -> None:
    command_line("key", "create")
    ssh, path = fake_ssh(home), home / "node1" / _FILE
    path.parent.mkdir(parents=True)
    if content == "link":
        path.symlink_to("absent")
    else:
        path.write_text(content)

    refused = command_line("key", "copy", "node1,node2", "--ssh", ssh)
    kept = path.is_symlink() if content == "link" else path.read_text() == content
    forced = command_line("key", "copy", "node1", "--force", "--ssh", ssh)

    assert (refused.code, kept) == (1, True)
    assert refused.out == f"node2: copied to {home / 'node2' / _FILE}\n"
    assert refused.err.splitlines() == [
        "error: the job key was not copied to 1 of 2 hosts",
        f"  node1: has a different job key in {path}",
        "    help: --force replaces it",
    ]
    assert (forced.code, forced.out) == (0, f"node1: copied to {path}\n")
    assert path.read_text() == (home / _FILE).read_text()
    assert mode(path) == 0o600
    assert os.listdir(path.parent) == ["job-key"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("first", "problem", "hint"),
    [
        ("echo 'Connection refused' >&2; exit 255; ", "Connection refused", "sshd does not listen there"),
        ("exit 255; ", "ssh failed without a message", ""),
        ("exit 3; ", "its shell exited with exit code 3", "check that `ssh node1 sh` starts a shell"),
        ("exit 0; ", "its shell exited with exit code 0", "check that `ssh node1 sh` starts a shell"),
        ("head -c 10 > /dev/null; ", "the key was not received completely", ""),
        ("HOME=/proc/none; ", "mkdir: cannot create directory", "check the home directory there"),
        ('mkdir -p "$HOME/.config/hccl-tools/job-key"; ', "job-key is a directory", ""),
        ("echo 'hccl-tools-job-key copied /x'; exit 1; ", "its shell exited with exit code 1", ""),
    ],
)  # fmt: skip
def test_a_host_that_fails(
    command_line: CommandLine, home: Path, first: str, problem: str, hint: str
) -> None:
    command_line("key", "create")
    first = f'case "$HOME" in *node1) {first.rstrip("; ")};; esac; '

    done = command_line("key", "copy", "node1", "node2", "--ssh", fake_ssh(home, first=first))

    assert (done.code, done.out) == (1, f"node2: copied to {home / 'node2' / _FILE}\n")
    assert "error: the job key was not copied to 1 of 2 hosts\n  node1: " in done.err
    assert problem in done.err
    assert hint in done.err
    assert not (home / "node1" / _FILE).is_file()


def test_a_host_that_prints_a_lot_takes_no_more_memory(command_line: CommandLine, home: Path) -> None:
    command_line("key", "create")
    ssh = fake_ssh(home, first="head -c 50M /dev/zero | tee /dev/stderr; ")
    tracemalloc.start()

    done = command_line("key", "copy", "node1", "--ssh", ssh)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (done.code, done.out[:20]) == (1, "")
    assert peak < 20 << 20


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh", "ksh", "mksh", "zsh", "csh", "tcsh", "fish"])
def test_login_shells_that_greet(command_line: CommandLine, home: Path, shell: str) -> None:
    if shutil.which(shell.partition(" ")[0]) is None:
        pytest.skip(f"{shell} is not installed")
    command_line("key", "create")
    ssh = fake_ssh(home, shell, first="echo Welcome; echo Welcome >&2; ")

    done = command_line("key", "copy", "node1", "--ssh", ssh)

    assert described(done) == (0, f"node1: copied to {home / 'node1' / _FILE}\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 2])
def test_several_copies_at_the_same_time(home: Path, keys: int) -> None:
    ssh = [fake_ssh(home)]
    secrets = [bytes([number % keys]) * 32 for number in range(8)]

    def copy(host: str, key: bytes) -> str:
        return job_key_copy.copy(host, key, over_ssh=ssh, force=False, environ=os.environ).state

    with ThreadPoolExecutor(8) as pool:
        for host in ("node1", "node2", "node3", "node4", "node5"):
            states = list(pool.map(lambda key, host=host: copy(host, key), secrets))
            folder = (home / host / _FILE).parent

            assert states.count("copied") == 1
            assert states.count("same") == (7 if keys == 1 else 3)
            assert states.count("different") == (0 if keys == 1 else 4)
            assert os.listdir(folder) == ["job-key"]  # noqa: PTH208
            assert bytes.fromhex((folder / "job-key").read_text()) == secrets[states.index("copied")]


def test_copy_over_ssh(two_hosts: TwoHosts, home: Path) -> None:
    hosts = f"{two_hosts.first.address},{two_hosts.second.address},10.77.0.3"
    there = two_hosts.second.folder / "config" / "hccl-tools" / "job-key"
    tools = [sys.executable, "-m", "hccl_tools", "key"]
    copy = [*tools, "copy", hosts, "--ssh", str(two_hosts.ssh)]

    created = two_hosts.first.run([*tools, "create"])
    first = two_hosts.first.run(copy)
    second = two_hosts.first.run(copy)
    status = two_hosts.first.run([*tools, "status"])
    there.write_text("0" * 64)
    third = two_hosts.first.run(copy)
    forced = two_hosts.first.run([*copy, "--force"])
    remote = two_hosts.first.run(
        [
            str(two_hosts.ssh),
            two_hosts.second.address,
            f"cd {Path.cwd()}; {sys.executable} -m hccl_tools key status",
        ],
        env={**os.environ, "PYTHONPATH": ""},
    )

    assert (created.returncode, first.returncode, forced.returncode) == (0, 1, 1), first.stderr
    here = "10.77.0.1: skipped, because it is this host\n"
    assert first.stdout == forced.stdout == f"{here}10.77.0.2: copied to {there}\n"
    assert (
        "error: the job key was not copied to 1 of 3 hosts\n  10.77.0.3: ssh: connect to host" in first.stderr
    )
    assert "    help: check the address, the host and its cable" in first.stderr
    assert second.stdout == f"{here}10.77.0.2: already has this key\n"
    assert third.stdout == here
    assert f"  10.77.0.2: has a different job key in {there}\n    help: --force replaces it" in third.stderr
    assert there.read_text() == (home / _FILE).read_text()
    assert (mode(there), mode(there.parent)) == (0o600, 0o700)
    assert "fingerprint  " in status.stdout
    assert remote.stdout.splitlines()[1:] == status.stdout.splitlines()[1:], remote.stderr


def test_the_key_is_on_no_command_line(two_hosts: TwoHosts, home: Path, tmp_path: Path) -> None:
    spies = two_hosts.second.folder / "ascend" / "bin"
    spies.mkdir(parents=True)
    tools = [sys.executable, "-m", "hccl_tools", "key"]
    copy = [*tools, "copy", two_hosts.second.address, "--ssh", str(two_hosts.ssh)]
    created = two_hosts.first.run([*tools, "create"])
    for name in _TOOLS:
        (spies / name).write_text(_SPY.format(name=name, seen=tmp_path / "seen"))
        (spies / name).chmod(0o755)

    done = [two_hosts.first.run([*copy, *more]) for more in ([], [], ["--force"])]

    key = (home / _FILE).read_text().strip()
    seen = (tmp_path / "seen").read_text(errors="replace")
    assert [one.returncode for one in (created, *done)] == [0, 0, 0, 0], done[0].stderr
    assert (two_hosts.second.folder / "config" / "hccl-tools" / "job-key").read_text().strip() == key
    assert "hccl_tools\nkey\ncopy\n" in seen
    assert "exec sh -c " in seen
    assert key not in seen
    assert key not in "".join(one.stdout + one.stderr for one in (created, *done))


@pytest.mark.parametrize(
    "echo",
    [
        "cat", "tr a-f A-F", "rev", "base64 -w0", "sed s/../\\&:/g", "xxd -p", "od -An -tx1 -w65",
        "od -An -tu1 -w65",         "cut -c 20-40", "sed s/^/hccl-tools-job-key\\ copied\\ /",
    ],
)  # fmt: skip
@pytest.mark.parametrize("code", [0, 1, 255])
def test_nothing_that_the_other_host_echoes_shows_the_key(
    command_line: CommandLine, home: Path, echo: str, code: int
) -> None:
    if shutil.which(echo.partition(" ")[0]) is None:
        pytest.skip("no such program")
    command_line("key", "create")
    key = (home / _FILE).read_text().strip()
    path = home / "echoing-ssh"
    path.write_text(f"#!/bin/sh\n{echo} | tee /dev/stderr\nexit {code}\n")
    path.chmod(0o755)

    done = command_line("key", "copy", "node1", "--ssh", str(path))

    shown = "".join(filter(str.isalnum, done.out + done.err)).lower()
    raw = bytes.fromhex(key)
    spellings = [key, key[::-1], key.encode().hex(), base64.b64encode(key.encode()).decode().lower()]
    spellings.append("".join(map(str, raw)))
    parts = [text[at : at + 10] for text in spellings for at in range(len(text) - 9)]
    assert done.code == 1
    assert not [part for part in parts if part in shown]
    assert "its answer is not shown, because it contains the job key" in done.err or code == 0


def test_a_host_whose_shell_prints_what_it_reads_gets_the_key(command_line: CommandLine, home: Path) -> None:
    command_line("key", "create")
    key = (home / _FILE).read_text().strip()

    done = command_line("key", "copy", "node1", "--ssh", fake_ssh(home, first="set -v; echo note >&2; "))

    assert described(done) == (0, f"node1: copied to {home / 'node1' / _FILE}\n", "")
    assert key not in done.out + done.err
