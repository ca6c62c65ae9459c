"""Files beside the logs, such as the output of df and npu-smi, and the words of the kernel on storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

DF = "Filesystem      Size  Used Avail Use% Mounted on\n/dev/sda1       880G  310G  526G  38% /\n"
FULL = DF + "/dev/nvme0n1p1  3.5T  3.5T     0 100% /data\n"
NFS = "[Wed Mar 18 10:02:00 2026] nfs: server 10.8.0.200 not responding, still trying\n"
FAULTS = {
    "hccn_tool.txt": ("link status: UP\nlink status: DOWN\n", "The network port of a device is down"),
    "health.txt": ("net health status: Receive timeout\n", "A device does not reach the address"),
    "npu-smi.txt": (
        "| 0     910B2               | OK            | 90.1 | 40 |\n| 1     910B2               | Critical      | 91.0 | 41 |\n",
        "Device 1: a fault of a device that npu-smi reports: Critical",
    ),
    "kubectl_get_pods.txt": (
        "NAME      READY   STATUS    RESTARTS   AGE\nw-0       1/1     Running   0          10m\nw-1       0/1     Pending   0          10m\n",
        "A pod has not started",
    ),
    "docker_compose_ps.txt": (
        (
            'w-1-1   train:1   "python3 a.py"   w-1   2 hours ago   Up 2 hours\n'
            'w-2-1   train:1   "python3 a.py"   w-2   2 hours ago   Exited (137) 3 minutes ago\n'
        ),
        "A signal ended a container: pod w-2-1, Exited (137) 3 minutes ago",
    ),
    "describe.txt": (
        'Warning  FailedMount  2m  kubelet  MountVolume.SetUp failed for volume "data" : exit status 32\n',
        "Kubernetes could not mount a volume",
    ),
}
HEALTHY = {
    "hccn_tool.txt": "link status: UP\nnet health status: Success\n",
    "npu-smi.txt": "| 0     910B2               | OK            | 90.1 | 40 |\n",
    "kubectl_get_pods.txt": "NAME      READY   STATUS    RESTARTS   AGE\nw-0       1/1     Running   0          10m\n",
    "docker_compose_ps.txt": 'w-1-1   train:1   "python3 a.py"   w-1   2 hours ago   Exited (0) 3 minutes ago\n',
    "df.txt": f"{DF}/dev/loop3        64M   64M     0 100% /snap/core20/1\n",
    "sinfo.txt": "npu*         up   infinite      7   idle n[001-007]\n",
}


def answer(command_line: CommandLine) -> list[str]:
    return command_line("explain", "logs").out.splitlines()


def without_rank_3(command_line: CommandLine) -> Plogs:
    """The ranks wait for rank 3, of which there is no log."""
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    for rank in range(3):
        job.no_link(rank, 3, 200.0 + rank)
    return job


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_beside_logs_that_name_none(command_line: CommandLine, name: str) -> None:
    text, meaning = FAULTS[name]
    (without_rank_3(command_line).folder / name).write_text(text)

    lines = answer(command_line)

    assert lines[0].startswith(meaning)
    assert "The logs only say that rank 3 did not come" in lines[0]
    assert "the line does not say of which host it is (inferred from who waits for whom)" in lines[0]
    assert name in lines[1]


def test_a_fault_beside_a_wait_without_the_log_of_the_peer_is_shown_with_the_wait(
    command_line: CommandLine,
) -> None:
    job = Plogs(command_line.folder / "logs", 16, 8)
    job.identity(1, 1, 16, "world")
    job.no_link(1, 12, 125)
    (job.folder / "npu-smi.txt").write_text(FAULTS["npu-smi.txt"][0])

    lines = answer(command_line)

    assert "The logs only say that ranks waited" in lines[0]
    assert any("beside it, in" in line for line in lines)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_host_changes_nothing(command_line: CommandLine, name: str) -> None:
    job = without_rank_3(command_line)
    before = answer(command_line)
    (job.folder / name).write_text(HEALTHY[name])

    assert answer(command_line) == before


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "npu-smi.txt"])
def test_a_cause_that_the_logs_name_stays(command_line: CommandLine, name: str) -> None:
    job = without_rank_3(command_line)
    job.screen(3, "ValueError: bad shape")
    before = answer(command_line)
    (job.folder / name).write_text(FAULTS[name][0])

    assert answer(command_line) == before


def test_a_full_disk_of_no_known_host_comes_after_the_rank(command_line: CommandLine) -> None:
    (without_rank_3(command_line).folder / "df.txt").write_text(FULL)

    lines = answer(command_line)

    assert lines[0].startswith("Rank 3 (device 1 of 10.0.0.2, address 192.168.1.101): silent")
    assert any(line.startswith("A file system has no space left: /data") for line in lines)


def test_a_full_disk_that_the_rank_at_work_names(command_line: CommandLine) -> None:
    job = without_rank_3(command_line)
    job.screen(3, "2026-03-18 10:01:00 INFO saving checkpoint to /data/ckpt/step_100")
    (job.folder / "df.txt").write_text(FULL)

    assert answer(command_line)[0].startswith("A file system has no space left: /data")


def test_a_node_that_is_not_of_the_job(command_line: CommandLine) -> None:
    (without_rank_3(command_line).folder / "sinfo.txt").write_text("npu*  up  infinite  1  drain n002\n")

    lines = answer(command_line)

    assert lines[0].startswith("Rank 3 ")


@pytest.mark.parametrize("name", ["worker-7_df.txt", "rank_9.dmesg", "npu-smi_worker_12.txt"])
def test_the_state_of_a_host_is_no_log_of_a_rank(command_line: CommandLine, name: str) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2)
    job.folder.mkdir()
    for rank in range(4):
        job.screen(rank, "step 4" if rank == 1 else "EI0006: Getting socket times out.")
    (job.folder / name).write_text(DF)

    assert answer(command_line)[0].startswith("Rank 1: silent")


def test_who_holds_a_port(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    folder.mkdir()
    (folder / "rank_0.log").write_text(
        "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: 0,"
        " code: -98, name: EADDRINUSE, message: address already in use\n"
    )
    listen = 'LISTEN 0 128 0.0.0.0:{} 0.0.0.0:* users:(("python3",pid={},fd=3))\n'
    (folder / "ss.txt").write_text(listen.format(22, 1) + listen.format(29500, 777))

    lines = answer(command_line)

    assert "the port of torch's rendezvous store is in use: port 29500" in lines[0]
    assert "Process 777 (python3) listens on it" in lines[0]


def test_who_holds_a_device(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2).start()
    job.screen(
        1, "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 1; 60.97 GiB total capacity)"
    )
    row = "| {0}       0                 | {1}         | python3                  | {2}                   |\n"
    (job.folder / "npu-smi.txt").write_text(row.format(0, 31998, 5) + row.format(1, 31999, 55000))

    assert "Process 31999 (python3) uses it, with 55,000 MB" in answer(command_line)[0]


def test_a_file_server_before_a_lost_heartbeat(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    (job.folder / job.host(3) / "dmesg.txt").write_text(NFS)
    for rank in range(3):
        job.error(
            rank, 1240.0,
            "[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[10.0.0.2/1], Arrival Time:[Wed Mar 18 "
            "10:20:40 2026], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1.",
        )  # fmt: skip

    lines = answer(command_line)

    assert lines[0].startswith(
        "Rank 3 (device 1 of 10.0.0.2, address 192.168.1.101): a file server does not respond"
    )
    assert "Later: HCCL's heartbeat lost the process" in lines[0]
    assert not any("nothing shows that the job ended because of it" in line for line in lines)


def test_a_file_server_that_responded_again(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    (job.folder / job.host(3) / "dmesg.txt").write_text(
        f"{NFS}[Wed Mar 18 10:03:00 2026] nfs: server 10.8.0.200 OK\n"
    )
    job.screen(2, "2026-03-18 11:20:00 step 9\nOSError: bad header\n2026-03-18 11:20:01 ends")

    assert "bad header" in answer(command_line)[0]


def test_a_fault_of_the_program_does_not_follow_from_storage(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    (job.folder / job.host(3) / "dmesg.txt").write_text(NFS)
    job.screen(2, "2026-03-18 10:20:00 step 9\nValueError: bad shape\n2026-03-18 10:20:01 ends")

    assert "bad shape" in answer(command_line)[0]


def test_one_fault_in_the_words_of_several_programs_is_said_once(command_line: CommandLine) -> None:
    folder = command_line.folder / "logs"
    folder.mkdir()
    (folder / "describe.txt").write_text("    State:          Terminated\n      Reason:       OOMKilled\n")
    (folder / "kubectl_get_pods.txt").write_text("w-1   0/1     OOMKilled   0          5m\n")
    (folder / "dmesg.txt").write_text(
        "[Wed Mar 18 10:02:00 2026] Memory cgroup out of memory: Killed process 4003 (python3) total-vm:1kB\n"
    )

    lines = answer(command_line)

    assert "reached its memory limit" in lines[0]
    assert not any("memory limit" in line for line in lines[1:])
