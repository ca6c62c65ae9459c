"""``--engine ssh``: what only it does; how its jobs start and end is tested together with mpirun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from tests.beds.two_hosts import TwoHosts

REMOTE_SHELL = [sys.executable, "-m", "hccl_tools.launch.engines.remote_shell"]


def shell(
    tmp_path: Path,
    hosts: str,
    *command: str,
    ssh: str = "ssh",
    greeting: str = "",
    shown: str | None = None,
    **variables: str,
) -> subprocess.Popen[str]:
    """Start the engine's program without a launcher; ``fake`` is an ssh that runs the command here."""
    begin = f"echo {greeting}\n" if greeting else ""
    (tmp_path / "fake").write_text(
        f'#!/bin/sh\n{begin}while [ "$1" != -- ]; do shift; done\nshift 2\nexec sh -c "$*"\n'
    )
    (tmp_path / "fake").chmod(0o755)
    options = ["--ssh", ssh.replace("fake", str(tmp_path / "fake")), "--hosts", hosts, "--dir", str(tmp_path)]
    options += [] if shown is None else ["--shown", shown]
    return subprocess.Popen(
        [*REMOTE_SHELL, *options, "--export", ",".join(variables), "--", *command],
        env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_many_hosts_at_once(tmp_path: Path) -> None:
    hosts = ",".join(f"node{number}" for number in range(100))
    program = "import os; print(os.environ['SECRET'], os.getcwd(), flush=True)"

    process = shell(tmp_path, hosts, sys.executable, "-c", program, ssh="fake", SECRET="x" * 100_000)
    out, err = process.communicate(timeout=120)

    assert (process.returncode, err) == (0, "")
    assert out.splitlines() == [f"{'x' * 100_000} {tmp_path}"] * 100


@pytest.mark.slow
def test_lines_of_several_hosts_are_whole(tmp_path: Path) -> None:
    program = (
        "import sys\nfor n in range(2000): sys.stdout.write('a' * 50); sys.stdout.flush(); print('b' * 50)"
    )

    process = shell(tmp_path, "a,b,c", sys.executable, "-c", program, ssh="fake")
    out, _ = process.communicate(timeout=120)

    assert out.splitlines() == ["a" * 50 + "b" * 50] * 6000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("sh", "-c", "exit 7"), 7, ""),
        (("sh", "-c", "kill -9 $$"), 137, ""),
        (("/no/such",), 1, "/no/such: No such file or directory"),
    ],
)
def test_the_exit_code(tmp_path: Path, command: tuple[str, ...], code: int, said: str) -> None:
    argv = (f"/bin/{command[0]}", *command[1:]) if command[0] == "sh" else command

    process = shell(tmp_path, "a,b", *argv, ssh="fake")
    _, err = process.communicate(timeout=60)

    assert process.returncode == code
    assert said in err


@pytest.mark.slow
def test_a_host_without_a_rank_that_is_shown_writes_named_and_escaped_lines(tmp_path: Path) -> None:
    said = r"\033]0;title\007hccl-tools: the job failed\n  help: run evil\nhccl-tools: b: a message\n"
    command = ("/bin/sh", "-c", f"printf '{said}'")

    out, err = shell(tmp_path, "b", *command, ssh="fake", shown="a").communicate(timeout=60)
    raw, _ = shell(tmp_path, "a", *command, ssh="fake", shown="a").communicate(timeout=60)

    assert err == ""
    assert out.splitlines() == [
        "hccl-tools: b: \\u001b]0;title\\u0007hccl-tools: the job failed",
        "hccl-tools: b:   help: run evil",
        "hccl-tools: b: a message",
    ]
    assert raw.startswith("\x1b]0;title\x07hccl-tools: the job failed\n  help: run evil\n")


@pytest.mark.slow
def test_a_host_without_a_rank_that_is_shown_does_not_flood(tmp_path: Path) -> None:
    program = "import os\nfor _ in range(200): os.write(1, b'a' * 100_000); os.write(2, b'b' * 100_000)"

    process = shell(tmp_path, "a", sys.executable, "-c", program, ssh="fake", shown="")
    out, err = process.communicate(timeout=60)

    assert len(out) < 70_000
    assert out.endswith("hccl-tools: a: the rest of its output is left out\n")
    assert err == "b" * 65_536


@pytest.mark.slow
def test_what_a_login_shell_prints_is_not_output(tmp_path: Path) -> None:
    process = shell(tmp_path, "a", "/bin/echo", "hello", ssh="fake", greeting="Welcome!")

    assert process.communicate(timeout=60)[0] == "hello\n"


@pytest.mark.bed
def test_no_command_line_has_the_secret_of_the_job(two_hosts: TwoHosts, own_directory: Path) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    command = two_by_two.command(hosts, "--engine", "ssh", "--start", "torch", "--grace", "1")
    program = ["--no-python", "sh", "-c", "env > env.$RANK_ID; exec sleep 6363"]
    launcher = two_hosts.first.start([*command, *program], env=two_by_two.environ(two_hosts))
    seen: set[str] = set()

    def all_run() -> bool:
        for host in (two_hosts.first, two_hosts.second):
            seen.update(word for argv in host.commands().values() for word in argv)
        return len(list(own_directory.glob("env.?"))) == 4

    assert eventually(all_run)
    agents = [
        pid
        for pid, argv in two_hosts.first.commands().items()
        if "hccl_tools.launch.engines.remote_shell" in argv
    ]
    environment = Path(f"/proc/{agents[0]}/environ").read_bytes().decode().split("\0")
    (value,) = [word.partition("=")[2] for word in environment if word.startswith("HCCL_TOOLS_LAUNCHER=")]
    token = value.partition("@")[0]
    launcher.terminate()
    launcher.wait()

    assert len(token) == 64
    assert not [word for word in seen if token in word]
    assert not [
        file
        for file in own_directory.rglob("*")
        if file.is_file() and token in file.read_text(errors="replace")
    ]


@pytest.mark.bed
def test_the_plan_names_the_engine(two_hosts: TwoHosts, own_directory: Path) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    command = two_by_two.command(hosts, "--engine", "ssh", "--dry-run=json", "--no-python", "true")

    done = two_hosts.first.run(command, env=two_by_two.environ(two_hosts))

    plan = json.loads(done.stdout)
    assert plan["engine"] == "ssh"
    assert "hccl_tools.launch.engines.remote_shell" in plan["command"]


@pytest.mark.bed
def test_a_series_of_one_and_two_machines(two_hosts: TwoHosts, own_directory: Path) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    launch = two_by_two.command(hosts, "--engine", "ssh", "--start", "torch", "--no-python", "sleep", "0.2")
    begin = launch.index("launch")
    series = ["scaling", "run", "--nproc-per-node", "2", "--nnodes", "1,2", "-f", "json", "--"]

    done = two_hosts.second.run(
        [*launch[:begin], *series, *launch[begin + 1 :]], env=two_by_two.environ(two_hosts)
    )

    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["series"]
    assert [(point["machines"], point["devices"]) for point in found["points"]] == [(1, 2), (2, 4)]
    rows = json.loads((own_directory / "scaling.json").read_bytes())["runs"]
    assert all((own_directory / row["run"] / "report.json").exists() for row in rows)
