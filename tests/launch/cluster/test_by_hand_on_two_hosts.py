"""The same command typed on two hosts: a failure, a loss, a stop or a restart is that of both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import two_by_two
from tests.support.jobs import LONG, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.network_host import Host
    from tests.beds.two_hosts import TwoHosts

pytestmark = pytest.mark.bed

GRACE_S = 2.0
#: In /proc/net/tcp: the state of a connection, and the column of its unanswered probes.
ESTABLISHED, PROBES = "01", 8
#: A rank that nothing but a signal ends.
PROGRAM = ["--no-python", "sleep", "6363"]


def command_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


def ranks_on(host: Host) -> dict[int, int]:
    """Return the ranks that run on a host, with their process ids."""
    found = {}
    for pid in host.pids():
        if command_of(pid) == PROGRAM[1:]:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            (rank,) = [word for word in environment if word.startswith(b"RANK_ID=")]
            found[int(rank.partition(b"=")[2])] = pid
    return found


def launcher_on(host: Host) -> int:
    (pid,) = [pid for pid in host.pids() if command_of(pid)[1:4] == ["-m", "hccl_tools", "launch"]]
    return pid


class Typed:
    """A command that was typed on both hosts, with a log directory for each."""

    def __init__(
        self,
        bed: TwoHosts,
        *options: str,
        program: list[str],
        first: dict[str, str] | None = None,
        second: dict[str, str] | None = None,
    ) -> None:
        self.bed, self.hosts = bed, (bed.first, bed.second)
        command = two_by_two.command((bed.first.address, bed.second.address), "--start", "torch", *options)
        self.launchers = []
        for host in self.hosts:
            swapped = (second if host is bed.second else first) or {}
            words = [swapped.get(word, word) for word in command]
            self.launchers.append(
                host.start(
                    [*words, "--grace", str(GRACE_S), "--log-dir", host.namespace, *program],
                    env=two_by_two.environ(bed, timing=""), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                )
            )  # fmt: skip

    def are_up(self) -> None:
        seats = [{rank for rank, (at, _) in two_by_two.SEATS.items() if at == index} for index in (0, 1)]
        assert eventually(lambda: [set(ranks_on(host)) for host in self.hosts] == seats)

    def end(self) -> tuple[list[int], list[str]]:
        """Wait for both launchers and for all ranks; their exit codes and what they said."""
        said = [launcher.communicate(timeout=LONG)[1] for launcher in self.launchers]
        assert eventually(lambda: not any(ranks_on(host) for host in self.hosts)), said
        return [launcher.returncode for launcher in self.launchers], said

    def run_dir(self, index: int) -> Path:
        return (Path(self.hosts[index].namespace) / "latest").resolve()

    def report(self, index: int) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.run_dir(index) / "report.json").read_text())
        return value


@pytest.fixture
def typed(two_hosts: TwoHosts) -> Iterator[Any]:
    started: list[Typed] = []

    def start(*options: str, program: list[str] | None = None, **more: Any) -> Typed:
        started.append(Typed(two_hosts, *options, program=program or PROGRAM, **more))
        return started[-1]

    yield start
    for job in started:
        for launcher in job.launchers:
            if launcher.poll() is None:
                launcher.kill()
            launcher.communicate()


@pytest.mark.parametrize("index", [0, 1])
def test_a_table_with_errors_on_one_host_ends_the_wait_on_the_other(
    two_hosts: TwoHosts, typed: Any, index: int
) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    text = json.dumps(two_by_two.table(hosts)).replace("completed", "initializing")
    Path("bad.json").write_text(text)
    wrong = {"table.json": "bad.json"}
    job = typed(**{"second" if index else "first": wrong})
    codes, said = job.end()

    assert codes == [125, 125], said
    assert f"{hosts[index]} does not start its part: bad.json cannot be used" in said[1 - index]
    assert "bad.json cannot be used" in said[index]


@pytest.mark.parametrize("rank", [0, 2])
def test_killed_rank(typed: Any, rank: int) -> None:
    job = typed()
    job.are_up()
    at, device = two_by_two.SEATS[rank]
    os.kill(ranks_on(job.hosts[at])[rank], signal.SIGKILL)
    codes, said = job.end()

    assert codes == [137, 137], said
    for index in (0, 1):
        assert f"rank {rank} failed first: killed by SIGKILL" in said[index]
        assert f"(device {device}, host {job.hosts[at].address}, pid " in said[index]
        assert job.report(index)["first_failure"]["host"] == job.hosts[at].address


@pytest.mark.parametrize("index", [0, 1])
def test_killed_launcher(typed: Any, index: int) -> None:
    job = typed()
    job.are_up()
    os.kill(launcher_on(job.hosts[index]), signal.SIGKILL)
    codes, said = job.end()

    assert codes[1 - index] == 137, said
    ranks = ("1, 2", "0, 3")[index]
    named = f"lost contact with the launcher on {job.hosts[index].address} (ranks {ranks}): "
    assert named in said[1 - index]
    assert named in job.report(1 - index)["detail"]


@pytest.mark.slow
def test_cut_link(typed: Any) -> None:
    """This test keeps the times that users get."""
    job = typed()
    job.are_up()
    job.hosts[0].cut_off()
    try:
        codes, said = job.end()
    finally:
        job.hosts[0].reconnect()

    # Each side takes the other for lost, and nothing is left on either.
    assert codes == [137, 137], said
    assert f"lost contact with the launcher on {job.hosts[1].address} (ranks 0, 3): " in said[0]
    assert f"lost contact with the launcher on {job.hosts[0].address} (ranks 1, 2): " in said[1]


@pytest.mark.slow
def test_link_that_is_cut_for_a_moment_ends_nothing(typed: Any) -> None:
    job = typed("--host-timeout", "20")
    job.are_up()
    job.hosts[0].cut_off()
    try:
        assert eventually(lambda: any(has_no_answer(host) for host in job.hosts))
    finally:
        job.hosts[0].reconnect()
    assert eventually(lambda: not any(has_no_answer(host) for host in job.hosts))

    # A host that had taken the other for lost would end with 137.
    os.kill(ranks_on(job.hosts[0])[1], signal.SIGTERM)
    assert job.end()[0] == [143, 143]


def has_no_answer(host: Host) -> bool:
    """Whether the kernel of a host has probed a connection of the job and got no answer."""
    rows = [row.split() for row in host.run(["cat", "/proc/net/tcp"]).stdout.splitlines()[1:]]
    return any(row[3] == ESTABLISHED and int(row[PROBES]) for row in rows)


@pytest.mark.parametrize("index", [0, 1])
def test_stop_on_one_host_ends_both(typed: Any, index: int) -> None:
    job = typed()
    job.are_up()
    host, other = job.hosts[index], job.hosts[1 - index]
    done = host.run([sys.executable, "-m", "hccl_tools", "stop", "--log-dir", host.namespace])
    codes, said = job.end()

    assert done.returncode == 0, done.stderr
    assert f"exit code 143; its ranks on {other.address} end as well" in done.stderr
    assert codes == [143, 143], said
    assert f": the launcher on {host.address} received SIGTERM" in said[1 - index]


@pytest.mark.parametrize("swapped", ["18200", "18118"])
def test_another_start_port_on_one_host_names_both(typed: Any, swapped: str) -> None:
    ours = "18200" if swapped == "18118" else "18300"
    job = typed("--start-port", ours, second={ours: swapped})
    codes, said = job.end()

    assert codes == [125, 125], said
    first, second = (host.address for host in job.hosts)
    # Rank 0 is on the second host.
    assert all(f"--start-port: {second} has {swapped}, {first} has {ours}" in each for each in said)


def test_another_order_of_the_machines_on_one_host_is_told_on_both(two_hosts: TwoHosts, typed: Any) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    here, there = ",".join(hosts), ",".join(reversed(hosts))
    without_table = {"--rank-table": "--ips", "table.json": here, "--product": "--nproc-per-node", "a2": "2"}
    job = typed(first=without_table, second={**without_table, "table.json": there})
    codes, said = job.end()

    assert codes == [125, 125], said
    for index in (0, 1):
        assert "both claim rank 0: --ips: " in said[index]
        assert here in said[index]
        assert there in said[index]


@pytest.mark.parametrize(("name", "code"), [("HCCL_LOGIC_SUPERPOD_ID", 0), ("HCCL_BUFFSIZE", 125)])
def test_a_variable_that_differs_is_refused_unless_hosts_have_their_own(
    typed: Any, name: str, code: int
) -> None:
    ours = f"{name}=200"
    job = typed("--env", ours, second={ours: f"{name}=201"}, program=["--no-python", "true"])
    codes, said = job.end()

    assert codes == [code, code], said
    assert all((f"{name}: " in each) == bool(code) for each in said), said


def test_all_ranks_of_both_hosts_start_again(typed: Any) -> None:
    once = 'echo up; [ "$RANK_ID" != 1 ] || [ -e been.here ] || { touch been.here; exit 7; }; sleep 0.3'
    job = typed("--max-restarts", "1", program=["--no-python", "sh", "-c", once])
    codes, said = job.end()

    assert codes == [0, 0], said
    for rank, (index, _) in two_by_two.SEATS.items():
        assert (job.run_dir(index) / f"rank_{rank}.restart_1.log").read_text() == "up\n"
    assert [job.report(index)["restarts"] for index in (0, 1)] == [1, 1]
    assert all("rank 1 failed first: exit code 7" in each for each in said)


def test_a_table_that_has_changed_on_one_host_is_not_started_again(typed: Any) -> None:
    change = "sed 's/192.168.0.5/192.168.0.55/' table.json > there.new && mv there.new there.json; exit 7"
    Path("there.json").write_text(json.dumps(two_by_two.table(("10.77.0.1", "10.77.0.2"))))
    program = ["--no-python", "sh", "-c", f'[ "$RANK_ID" != 3 ] || {{ {change}; }}; sleep 60']
    job = typed("--max-restarts", "1", program=program, second={"table.json": "there.json"})
    codes, said = job.end()

    assert codes == [7, 7], said
    assert "no restart: there.json has changed since the job started" in said[1].replace(f"{Path.cwd()}/", "")
    assert f"no restart: {job.hosts[1].address} does not start its part: " in said[0]


def test_logs_are_found_in_the_other_hosts_own_run_directory(typed: Any) -> None:
    say = 'echo "rank $RANK_ID"; [ "$RANK_ID" != 3 ] || exit 7; exec sleep 60'
    job = typed(program=["--no-python", "sh", "-c", say])
    job.end()
    host = job.hosts[0]
    options = ["--log-dir", host.namespace, "--ssh", str(job.bed.ssh)]
    done = host.run([sys.executable, "-m", "hccl_tools", "logs", *options])

    # The rank that failed first, on the second host.
    assert (done.returncode, done.stdout) == (0, "rank 3\n"), done.stderr
