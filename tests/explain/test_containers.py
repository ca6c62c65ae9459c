"""Containers that start late, fail a probe or are stopped by a user; configurations that a server refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

MOUNT = 'Warning  FailedMount  {}  kubelet  MountVolume.SetUp failed for volume "w" : exit status 32\n'
STARTED = "Normal   Started      {}  kubelet  Started container main\n"
LOST = "Warning FailedMount pod/{} MountVolume.SetUp failed for volume"


def explained(command_line: CommandLine, **files: str) -> str:
    folder = command_line.folder / "logs"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return command_line("explain", "logs").out


@pytest.mark.parametrize(
    "events",
    [
        MOUNT.format("9m") + STARTED.format("8m50s"),
        STARTED.format("2m") + MOUNT.format("1h2m"),
        MOUNT.format("9m (x3 over 12m)") + STARTED.format("9m"),
        "5m  Warning  FailedMount  pod/w-0  MountVolume.SetUp failed : timed out\n4m  Normal  Started  pod/w-0  Started container a\n",
        (
            "2026-03-18T10:00:00Z Warning FailedMount pod/w-0 MountVolume.SetUp failed : timed out\n"
            "2026-03-18T10:00:30Z Normal Started pod/w-0 Started container a\n"
        ),
    ],
)
def test_a_container_that_started_after_its_volume_was_late(command_line: CommandLine, events: str) -> None:
    assert explained(command_line, events=events).startswith("no cause found")


@pytest.mark.parametrize(
    "events",
    [
        MOUNT.format("1m") + STARTED.format("9m"),
        "5m  Warning  FailedMount  pod/w-0  MountVolume.SetUp failed : timed out\n4m  Normal  Started  pod/w-1  Started container a\n",
    ],
)
def test_a_container_that_has_not_started_again(command_line: CommandLine, events: str) -> None:
    assert explained(command_line, events=events).startswith("Kubernetes could not mount a volume")


def test_a_fault_beside_an_error_that_is_not_known(command_line: CommandLine) -> None:
    out = explained(
        command_line,
        events=MOUNT.format("1m"),
        server="2026-03-18 10:00:00 [ERROR] [worker.cpp:9] : the weights have another shape\n",
    )

    assert "The only failure" not in out
    assert "Other errors in these logs may be the cause" in out
    assert "server.txt:1 reports an error that has no message of its own" in out


def test_a_fault_alone(command_line: CommandLine) -> None:
    out = explained(
        command_line, events=MOUNT.format("1m"), server="2026-03-18 10:00:00 INFO ERROR_LEVEL=3\n"
    )

    assert "The only failure in these logs" in out


@pytest.mark.parametrize(
    "line",
    [
        "The size of npuDeviceIds does not equal to modelInstanceNumber",
        "npuDeviceId does not allow repetitive element",
        "2026-03-18 10:00:00 [server] [ERROR] [config_manager.cpp:7] : Failed to initialize ServerConfig from JSON",
        "[2026-03-18 10:00:00.1+08:00] [4] [4] [server] [ERROR] [llm_daemon.cpp:7] : ConfigManager init exception",
    ],
)
def test_mindie_refuses_its_configuration(command_line: CommandLine, line: str) -> None:
    out = explained(command_line, server=f"starting\n{line}\nKilled\n", events=MOUNT.format("1m"))

    assert out.startswith("MindIE refuses its configuration")
    assert "worldSize" in out


def test_a_configuration_that_mindie_takes(command_line: CommandLine) -> None:
    line = "[server] [INFO] [config_manager.cpp:7] : npuDeviceIds and worldSize are read\n"

    assert explained(command_line, server=line).startswith("no cause found")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "api_server.py: error: argument --tensor-parallel-size: invalid int value: '8x'",
            "argument --tensor",
        ),
        (
            "vllm serve: error: unrecognized arguments: --enable-magic",
            "unrecognized arguments: --enable-magic",
        ),
        ("train.py: error: the following arguments are required: --data", "the following arguments"),
    ],
)
def test_a_program_refuses_its_arguments(command_line: CommandLine, line: str, reason: str) -> None:
    out = explained(command_line, server=f"usage: x [-h]\n{line}\n")

    assert out.startswith(f"A program refuses its arguments: {reason}")


PROBE = "Warning  Unhealthy  2m (x9 over 14m)  kubelet  {} probe failed: {}\n"
REFUSED = 'Get "http://10.0.0.9:8000/health": dial tcp 10.0.0.9:8000: connect: connection refused'


@pytest.mark.parametrize("kind", ["Liveness", "Startup"])
@pytest.mark.parametrize(
    "how", [REFUSED, "HTTP probe failed with statuscode: 503", "context deadline exceeded"]
)
def test_a_probe_that_ends_a_container(command_line: CommandLine, kind: str, how: str) -> None:
    kill = f"Normal  Killing  2m (x3 over 14m)  kubelet  Container main failed {kind.lower()} probe, will be restarted\n"
    described = f"Name:         trainer-0\n    Exit Code: 137\n{PROBE.format(kind, how)}{kill}"
    out = explained(command_line, describe=described)

    assert out.startswith(
        "The kubelet ended a container because its probe failed: pod trainer-0,"
        f" Container main failed {kind.lower()} probe"
    )
    assert "startupProbe" in out
    assert "memory" not in out


def test_a_container_that_is_not_ready_yet(command_line: CommandLine) -> None:
    assert explained(command_line, describe=PROBE.format("Readiness", REFUSED)).startswith("no cause found")


def test_a_probe_after_an_exception_of_the_program(command_line: CommandLine) -> None:
    kill = "Normal  Killing  2m  kubelet  Container main failed liveness probe, will be restarted\n"
    log = "2026-03-18 10:00:00 loaded\nTraceback (most recent call last):\n  File a\nValueError: bad shape\n"
    out = explained(command_line, describe=kill, server=log)

    assert out.startswith("The program raised an exception: ValueError: bad shape")


def stopped_job(command_line: CommandLine) -> Plogs:
    """Ranks 0 and 1 lose rank 2 at 10:03:30."""
    job = Plogs(command_line.folder / "logs", 3, 1).start()
    for rank in range(2):
        job.error(rank, 210.0, "[HeartBeat] heartbeat lost, remote rank[2]")
        job.notify(rank, 2, 211.0)
    return job


PS = "NAMES STATUS\nw-0  Exited (137) 9 minutes ago\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "w-0  | 2026-03-18 10:03:00 step 9\n^CGracefully stopping... (press Ctrl+C again to force)\nw-0 exited with code 137\n",
            "A user interrupted docker compose",
        ),
        (
            "2026-03-18 10:02:59 step 9\nGracefully stopping... (press Ctrl+C again to force)\n",
            "A user interrupted docker compose",
        ),
        (
            "2026-03-18T10:03:00.1 container kill 4ac0 (image=a, name=w-0, signal=15)\n2026-03-18T10:03:10.1 container die 4ac0 (exitCode=137, name=w-0)\n",
            "A user or a program stopped a container",
        ),
        (
            "2026-03-18 10:02:59 step 9\n$ docker compose down\n2026-03-18 10:03:11 bye\n",
            "A user stopped the job with a command",
        ),
        ("2026-03-18 10:02:59 step 9\n^C\n", "A user interrupted the job with Ctrl-C"),
    ],
)
def test_a_user_stopped_the_job(command_line: CommandLine, text: str, expected: str) -> None:
    stopped_job(command_line)
    out = explained(command_line, screen=text, ps=PS)

    assert out.startswith(expected)


def test_a_user_stopped_a_job_that_hung(command_line: CommandLine) -> None:
    stopped_job(command_line)
    out = explained(command_line, screen="2026-03-18 09:50:00 step 9\n^CGracefully stopping...\n", ps=PS)

    assert not out.startswith("A user")
    assert "also a cause:\nA user interrupted docker compose" in out


def test_a_user_stopped_the_job_after_it_had_failed(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 3, 1).start()
    job.screen(2, "2026-03-18 10:03:20 ValueError: bad shape")
    job.screen(2, "ValueError: bad shape")
    job.notify(0, 2, 211.0)
    out = explained(command_line, screen="2026-03-18 10:09:59 step 9\n^CGracefully stopping...\n", ps=PS)

    assert "ValueError: bad shape" in out.splitlines()[0]


def test_docker_stops_the_others_after_a_container_died(command_line: CommandLine) -> None:
    events = (
        "2026-03-18T10:03:00.1 container die 4ac0 (exitCode=139, name=w-0)\n"
        "2026-03-18T10:03:01.1 container kill 4ac1 (name=w-1, signal=15)\n"
    )

    assert "stopped a container (docker" not in explained(command_line, events=events, ps=PS).splitlines()[0]


def test_a_signal_without_a_known_sender_is_not_called_memory(command_line: CommandLine) -> None:
    out = explained(command_line, ps=PS)

    assert out.startswith("A signal ended a container: pod w-0, Exited (137)")
    assert "usually because of the memory" not in out


@pytest.mark.parametrize(
    ("after", "sure"),
    [
        ("Traceback (most recent call last):\n  File a\nKeyboardInterrupt\n", "Certain: the log says so"),
        ("$ ls\n", "The logs do not show the cause"),
    ],
)
def test_a_key_that_may_have_ended_another_program(command_line: CommandLine, after: str, sure: str) -> None:
    out = explained(command_line, screen=f"step 9\n^C\n{after}")

    assert out.startswith(f"A user interrupted the job with Ctrl-C. {sure}.")


def test_a_probe_that_failed_before_an_exception(command_line: CommandLine) -> None:
    journal = "2026-03-18T09:59:00Z kubelet Liveness probe failed: HTTP probe failed with statuscode: 503\n"
    log = "2026-03-18 10:00:00 loaded\nTraceback (most recent call last):\n  File a\nValueError: bad shape\n"

    assert explained(command_line, a=journal, server=log).startswith(
        "The program raised an exception: ValueError"
    )


def test_a_probe_alone(command_line: CommandLine) -> None:
    out = explained(command_line, describe=PROBE.format("Liveness", "context deadline exceeded"))

    assert out.startswith(
        "A probe failed after which the kubelet ends a container: Liveness probe failed: context"
    )
    assert "The logs do not show the cause" in out
