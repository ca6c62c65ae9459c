"""``logs`` of ranks whose logs lie on another host's own disk."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import two_by_two
from tests.support.jobs import LONG, eventually
from tests.support.mpiruns import MPIRUNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.beds.network_host import Host
    from tests.beds.two_hosts import TwoHosts

pytestmark = [pytest.mark.bed, pytest.mark.mpi]

#: Each rank tells its lines one by one, as long as the file that its argument names is not there.
COUNTS = 'i=0; until [ -e "$0" ]; do i=$((i+1)); echo "$RANK_ID: line $i"; sleep 0.05; done; echo "the end"'


@dataclass
class OwnDisks:
    """A job of both hosts, started on the first, each of which keeps its logs on its own disk."""

    bed: TwoHosts
    place: str

    def command(self, *args: str) -> list[str]:
        return ["env", "-C", f"{self.bed.first.disk}/{self.place}", sys.executable, "-m", "hccl_tools", *args]

    def logs(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.bed.first.run(self.command("logs", *args), env=two_by_two.environ(self.bed))

    def follow(self, *args: str) -> subprocess.Popen[str]:
        """Follow logs on the first host; what is shown comes into the file ``shown``."""
        command = self.command("logs", "-f", *args)
        environ = two_by_two.environ(self.bed)
        with Path("shown").open("w") as out:
            return self.bed.first.start(command, env=environ, stdout=out, stderr=subprocess.PIPE)

    def log(self, host: Host, name: str) -> str:
        """What a host has on its disk."""
        file = host.folder / "disk" / self.place / "log" / "latest" / name
        return file.read_text() if file.exists() else ""

    @contextmanager
    def running(self, script: str, *options: str) -> Iterator[subprocess.Popen[str]]:
        hosts = (self.bed.first.address, self.bed.second.address)
        start = (*MPIRUNS[0].for_launch, "--start", "torch", "--grace", "2")
        launch = two_by_two.command(hosts, *start, *options)
        Path("table.json").rename(self.bed.first.folder / "disk" / self.place / "table.json")
        command = [*self.command(*launch[3:]), "--no-python", "sh", "-c", script, str(self.over)]
        environ = two_by_two.environ(self.bed)
        job = self.bed.first.start(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            yield job
        finally:
            self.over.touch()
            job.communicate(timeout=LONG)

    @property
    def over(self) -> Path:
        """The file at which ranks that count come to their end."""
        return Path.cwd() / "over"


@pytest.fixture
def own_disks(two_hosts: TwoHosts, tmp_path: Path) -> OwnDisks:
    if not MPIRUNS:
        pytest.skip("no mpirun")
    first, second = two_hosts.first, two_hosts.second
    for disk in (first.disk, first.folder / "disk", second.folder / "disk"):
        (disk / tmp_path.name).mkdir()
    return OwnDisks(two_hosts, tmp_path.name)


def senders(host: Host) -> list[int]:
    """The processes on a host that send logs to another."""
    return [pid for pid, command in host.commands().items() if any("--serve" in word for word in command)]


def test_a_log_outside_of_the_run_directory_is_read_on_its_host(own_disks: OwnDisks) -> None:
    own_disks.over.touch()
    with own_disks.running("echo rank $RANK_ID", "--flat-logs") as job:
        job.communicate(timeout=LONG)

    here, there = own_disks.logs("--rank", "1"), own_disks.logs("--rank", "3")

    assert (here.returncode, here.stdout) == (0, "rank 1\n"), here.stderr
    assert (there.returncode, there.stdout) == (0, "rank 3\n"), there.stderr


def test_ranks_of_both_hosts_are_followed_in_whole_lines_to_the_end(own_disks: OwnDisks) -> None:
    with own_disks.running(COUNTS):
        assert eventually(lambda: "line 5" in own_disks.log(own_disks.bed.second, "rank_3.log"))
        following = own_disks.follow("--rank", "1", "--rank", "3", "--rank", "0", "-n", "3")
        shows = [f"[rank {rank}] " for rank in (1, 3, 0)]
        assert eventually(lambda: all(Path("shown").read_text().count(prefix) > 6 for prefix in shows))
        own_disks.over.touch()
        _, said = following.communicate(timeout=LONG)

    assert following.returncode == 0, said
    for rank, host in ((1, own_disks.bed.first), (3, own_disks.bed.second), (0, own_disks.bed.second)):
        prefix = f"[rank {rank}] "
        shown = Path("shown").read_text().splitlines()
        told = [line.removeprefix(prefix) for line in shown if line.startswith(prefix)]
        written = own_disks.log(host, f"rank_{rank}.log").splitlines()
        assert told == written[-len(told) :]
        assert 3 < len(told) < len(written)
    assert not (own_disks.bed.first.folder / "disk" / own_disks.place / "log/latest/rank_3.log").exists()
    assert eventually(lambda: not senders(own_disks.bed.second))


def test_a_log_of_another_host_after_the_end_and_its_last_lines(own_disks: OwnDisks) -> None:
    with own_disks.running("echo one; echo two; printf three") as job:
        job.wait(LONG)

    assert own_disks.logs("--rank", "3").stdout == "one\ntwo\nthree"
    assert own_disks.logs("--rank", "3", "-n", "2").stdout == "two\nthree"


def test_a_log_of_another_host_is_followed_over_a_restart(own_disks: OwnDisks) -> None:
    wait = 'until [ -e "$0.fail" ]; do sleep 0.05; done'
    fails_once = (
        f"echo up; [ $HCCL_TOOLS_RESTART = 0 ] || exit 0; {wait}; [ $RANK_ID != 3 ] || exit 7; sleep 6363"
    )
    with own_disks.running(fails_once, "--max-restarts", "1") as job:
        assert eventually(lambda: "up" in own_disks.log(own_disks.bed.second, "rank_3.log"))
        following = own_disks.follow("--rank", "3")
        assert eventually(lambda: Path("shown").read_text() == "up\n")
        Path(f"{own_disks.over}.fail").touch()
        _, said = following.communicate(timeout=LONG)
        job.wait(LONG)

    assert (following.returncode, Path("shown").read_text()) == (0, "up\nup\n"), said
    assert own_disks.logs("--rank", "3").stdout == "up\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL], ids=lambda each: each.name)
def test_who_follows_no_longer_leaves_nothing_on_the_other_host(own_disks: OwnDisks, number: int) -> None:
    with own_disks.running(COUNTS):
        assert eventually(lambda: "line 1" in own_disks.log(own_disks.bed.second, "rank_3.log"))
        following = own_disks.follow("--rank", "3")
        assert eventually(lambda: "line" in Path("shown").read_text())
        assert senders(own_disks.bed.second)

        following.send_signal(number)
        _, said = following.communicate(timeout=LONG)

        assert following.returncode == (130 if number == signal.SIGINT else -number)
        assert said.rstrip().endswith(", which is running:")
        assert eventually(lambda: not senders(own_disks.bed.second))


def test_a_host_that_cannot_be_reached_is_told_in_the_words_of_ssh(own_disks: OwnDisks) -> None:
    with own_disks.running("echo up") as job:
        job.wait(LONG)
    own_disks.bed.second.cut_off()
    try:
        done = own_disks.logs("--rank", "3")
    finally:
        own_disks.bed.second.reconnect()

    assert done.returncode == 2
    first, help_ = done.stderr.splitlines()
    address = own_disks.bed.second.address
    assert first.startswith(f"error: {address}: ssh: connect to host {address} port ")
    assert "read the logs there, in /" in help_.lower()


def test_a_shared_disk_needs_no_ssh(two_hosts: TwoHosts) -> None:
    hosts = (two_hosts.first.address, two_hosts.second.address)
    launch = two_by_two.command(hosts, *MPIRUNS[0].for_launch, "--start", "torch")
    program = ["--no-python", "sh", "-c", "echo $RANK_ID"]
    environ = two_by_two.environ(two_hosts)
    assert two_hosts.first.run([*launch, *program], env=environ).returncode == 0

    logs = [sys.executable, "-m", "hccl_tools", "logs", "--rank", "3", "--ssh", "/bin/false"]
    assert two_hosts.first.run(logs).stdout == "3\n"
