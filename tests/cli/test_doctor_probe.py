"""``doctor --probe``: exit code 0, 1 or 2, and nothing but the finding, for exec probes and plug-ins."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_doctor import a2, differ, host
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from tests.support.hosts import StandInHost

__all__ = ["a2", "host"]  # fixtures

PROBE = ("doctor", "--probe", "--product", "a2")


def probe(host: StandInHost, *args: str) -> subprocess.CompletedProcess[str]:
    return host.run(*PROBE, *args, HOME=str(host.folder))


def test_a_sound_host_prints_nothing(a2: StandInHost) -> None:
    done = probe(a2, "--timeout", "60")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_fault_is_one_line(a2: StandInHost) -> None:
    """node-problem-detector keeps the first 80 characters of standard output by default."""
    differ(a2, npu_health="Critical")

    done = probe(a2)

    assert (done.returncode, done.stderr) == (1, "")
    (line,) = done.stdout.splitlines()
    assert line.startswith("HCD103 npu-smi reports the health of device 3 as Critical")


def test_a_running_job_is_no_fault(a2: StandInHost) -> None:
    running = [[device, 4000 + device, "python3.9", 900] for device in range(4)]
    a2.describe({**a2.description, "processes": running})

    done = probe(a2)

    assert (done.returncode, done.stdout) == (0, "")
    assert a2.run("doctor", "--local", "--product", "a2", HOME=str(a2.folder)).returncode == 1


def test_what_may_stop_a_job_counts_if_asked(a2: StandInHost) -> None:
    differ(a2, health="Unreachable")

    assert probe(a2).returncode == 0
    strict = probe(a2, "--strict", "--select", "HCD203")
    assert (strict.returncode, strict.stdout[:6]) == (1, "HCD203")


def test_for_programs(a2: StandInHost) -> None:
    differ(a2, npu_health="Critical")

    done = probe(a2, "-f", "json")

    assert (done.returncode, done.stderr) == (1, "")
    stops = [one for one in json.loads(done.stdout)["findings"] if one["consequence"] == "stops"]
    assert [one["check"] for one in stops] == ["HCD103"]


def test_the_time_limit_is_for_everything(a2: StandInHost) -> None:
    """A tool that hangs, with a child that holds its output, is not left behind."""
    a2.describe(
        {**a2.description, "answers": {"npu-smi info": {"hang": True}, "npu-smi info -l": {"hang": True}}}
    )
    began = time.monotonic()

    done = probe(a2, "--timeout", "3", "--check-timeout", "600")

    assert time.monotonic() - began < 30
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "not known: the checks did not end within 3 s\n",
        "",
    )
    tool = str(a2.bin / "npu-smi")

    def left() -> str:
        return subprocess.run(["pgrep", "-f", tool], capture_output=True, text=True, check=False).stdout

    assert eventually(lambda: not left()), left()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["doctor", "--timeout", "3"], "--timeout is for --probe"),
        ([*PROBE, "--hosts", "a"], "--probe and --hosts exclude each other"),
        ([*PROBE, "--bandwidth"], "--probe and --bandwidth exclude each other"),
        ([*PROBE, "-f", "matrix"], "--probe and -f matrix exclude each other"),
        ([*PROBE, "--emit-remedies", "x"], "--probe and --emit-remedies exclude each other"),
        ([*PROBE, "no-such-table.json"], "no such file"),
    ],
)
def test_wrong_usage_is_not_known(a2: StandInHost, args: list[str], words: str) -> None:
    done = a2.run(*args, HOME=str(a2.folder))

    assert done.returncode == 2
    assert words in done.stderr
