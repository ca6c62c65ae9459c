"""A device that its host lost, versions and values that differ between hosts, and exceptions that pass a failure on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plogs import Plogs

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

LOST = "Cluster Exception Location[IP/ID]:[10.0.0.1/1], Arrival Time:[Wed], Discoverer:[10.0.0.1/0], ExceptionType:[Heartbeat Lost Occurred]"
PCIE = (
    "[Wed Mar 18 10:{:02}:00 2026] pcieport 0000:80:04.0: AER: Uncorrected (Fatal) error received: 0000:81:00.0\n",
    "[Wed Mar 18 10:{:02}:00 2026] pcieport 0000:80:04.0: pciehp: Slot(3): Link Down\n",
    "[Wed Mar 18 10:{:02}:00 2026] npu 0000:81:00.0: GPU has fallen off the bus\n",
)


def job_without_device_1(command_line: CommandLine) -> Plogs:
    job = Plogs(command_line.folder / "logs", 2, 2).start()
    job.error(1, 300.0, "wait for compute stream failed, runtime result = 507010")
    job.error(0, 900.0, LOST)
    return job


def first(command_line: CommandLine) -> str:
    return command_line("explain", "logs").out.splitlines()[0]


def test_a_device_that_does_not_answer_comes_before_its_heartbeat(command_line: CommandLine) -> None:
    job_without_device_1(command_line)

    assert first(command_line).startswith(
        "Rank 1 (device 1 of 10.0.0.1, address 192.168.0.101): the device does not answer"
    )


@pytest.mark.parametrize("line", PCIE)
def test_the_kernel_lost_the_device(command_line: CommandLine, line: str) -> None:
    (job_without_device_1(command_line).folder / "dmesg.txt").write_text(line.format(5))

    answer = first(command_line)
    assert answer.startswith(
        "Rank 1 (device 1 of 10.0.0.1, address 192.168.0.101): the host lost a device on the PCIe bus"
    )
    assert "rank 1 reports that its device does not answer (507010)" in answer


@pytest.mark.parametrize(
    "line",
    [
        PCIE[0].format(45),
        "[Wed Mar 18 10:05:00 2026] pcieport 0000:80:04.0: AER: Corrected error received: 0000:81:00.0\n",
    ],
)
def test_another_error_of_the_bus(command_line: CommandLine, line: str) -> None:
    (job_without_device_1(command_line).folder / "dmesg.txt").write_text(line)

    assert "PCIe" not in first(command_line)


def test_an_exception_that_only_passes_a_failure_on(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 2, 1).start()
    job.screen(1, "2026-03-18 10:03:00 step 4")
    job.screen(
        1,
        "[rank1]: RuntimeError: [ERROR] 2026-03-18-10:03:10 (PID:4000, Device:0, RankID:1) ERR02200 DIST call hccl api failed.",
    )
    job.error(
        1,
        192.0,
        "cqe error status[12], time[], localInfo{server[10.0.0.2],deviceId[0],deviceIp[192.168.1.100]}, remoteIP{server[10.0.0.1],deviceId[0],deviceIp[192.168.0.100]}",
    )
    job.error(0, 900.0, LOST.replace("10.0.0.1/1", "10.0.0.2/0"))

    assert "the network between two devices failed" in first(command_line)


@pytest.mark.parametrize(
    "line",
    [
        "[RankConsistentImpl][CompareFrame]version check fail, local[{}], remote[{}], remote rank[1]",
        "EI0008: The HCCL versions are inconsistent. The local {}, while the remote {}.",
        "EI0008: The HCCL versions are inconsistent. The local version is {}, while the remote version is {}.",
        "EI0008: The CANN versions are inconsistent: tag [a_0], local version [{}], remote version [{}].",
    ],
)
def test_which_host_has_which_version(command_line: CommandLine, line: str) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    for rank in range(4):
        job.error(rank, 20.0, line.format(*(("8.1.RC1", "8.2.RC1") if rank < 2 else ("8.2.RC1", "8.1.RC1"))))

    answer = first(command_line)
    assert "the hosts have different versions of CANN" in answer
    assert "8.1.RC1 on 10.0.0.1 (ranks 0-1); 8.2.RC1 on 10.0.0.2 (ranks 2-3)" in answer


def test_a_count_that_differs_by_host(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    for rank in range(4):
        local, remote = (64, 96) if rank < 2 else (96, 64)
        job.error(rank, 20.0, f"CMD information count check fail. local[{local}], remote[{remote}]")

    assert "64 on 10.0.0.1 (ranks 0-1); 96 on 10.0.0.2 (ranks 2-3)" in first(command_line)


def test_values_of_which_only_one_side_is_known(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    for rank in range(2):
        job.error(rank, 20.0, "CMD information count check fail. local[64], remote[96]")

    assert " on 10.0.0.1 (ranks" not in first(command_line)


def test_logs_that_paddle_names_by_the_rank_on_the_host(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    for rank in range(4):
        path = job.folder / job.host(rank) / f"workerlog.{job.device(rank)}"
        text = f"[PID: {4000 + job.device(rank)}] 2026-03-18-10:00:20.000.000 x\n"
        path.write_text(
            text + (text.replace(" x", " EI0008: The local 8.1, while the remote 8.2.") if rank == 3 else "")
        )

    assert first(command_line).startswith("Rank 3 (device 1 of 10.0.0.2, address 192.168.1.101)")


CQE = (
    "cqe error status[12], time[], localInfo{server[10.0.0.1],deviceId[0],deviceIp[192.168.0.100]},"
    " remoteIP{server[10.0.0.2],deviceId[0],deviceIp[192.168.1.100]}"
)
RECORD = "[devid {}]    Wed Mar 18 10:{}:00 2026    LINK DOWN\n"


def failed_link(command_line: CommandLine, **records: str) -> str:
    """Ranks 0 and 1 lose their link at 10:03:20; records of the ports of host_1 and host_2."""
    job = Plogs(command_line.folder / "logs", 2, 1).start()
    job.error(0, 200.0, CQE)
    job.error(1, 260.0, "cqe error status[12]")
    for host, text in records.items():
        (job.folder / f"10.0.0.{host[-1]}" / "hccn.txt").write_text(text)
    return first(command_line)


@pytest.mark.parametrize("minute", ["03", "01"])
def test_the_end_of_a_link_whose_port_was_down(command_line: CommandLine, minute: str) -> None:
    answer = failed_link(command_line, host_1=RECORD.format(3, "03"), host_2=RECORD.format(0, minute))

    assert answer.startswith(
        "Rank 1 (device 0 of 10.0.0.2, address 192.168.1.100): the network between two devices failed"
    )
    assert f"The port of rank 1 was down at that time (Wed Mar 18 10:{minute}:00 2026)" in answer


@pytest.mark.parametrize(
    "records",
    [
        {"host_2": RECORD.format(0, "05")},
        {"host_2": RECORD.format(0, "03").replace("Wed Mar 18", "Tue Mar 17")},
        {"host_2": RECORD.format(1, "03")},
        {"host_1": RECORD.format(0, "03"), "host_2": RECORD.format(0, "03")},
        {"host_2": RECORD.format(0, "03").replace("DOWN", "UP")},
    ],
)
def test_records_that_do_not_name_one_end(command_line: CommandLine, records: dict[str, str]) -> None:
    assert "The port of rank" not in failed_link(command_line, **records)


BLOCKED = "Mar 18 10:0{}:00 10.0.0.1 kernel: INFO: task python3:4000 blocked for more than 120 seconds.\n"
SERVER = "Mar 18 10:0{}:00 10.0.0.1 kernel: nfs: server 10.8.0.2 not responding, still trying\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SERVER.format(1) + BLOCKED.format(3), "a file server does not respond (NFS): 10.8.0.2"),
        (BLOCKED.format(1) + SERVER.format(3), "a process waits in the kernel"),
        (BLOCKED.format(3), "a process waits in the kernel"),
    ],
)
def test_a_process_that_waits_for_a_file_server(command_line: CommandLine, text: str, expected: str) -> None:
    job = Plogs(command_line.folder / "logs", 2, 1).start()
    job.notify(1, 0, 1900.0)
    (job.folder / "10.0.0.1" / "journal.txt").write_text(text)

    assert expected in first(command_line)


def lost(device: str, finder: str, second: int) -> str:
    return (
        f"[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[{device}], Arrival Time:[Wed Mar 18"
        f" 10:05:{second:02} 2026], Discoverer:[{finder}], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1."
    )


def test_two_hosts_that_lost_each_other(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2).start()
    for rank in range(4):
        job.notify(rank, None, 2136)
        peer = (rank + 2) % 4
        there, here = (f"{job.host(one)}/{job.device(one)}" for one in (peer, rank))
        job.error(rank, 2137, lost(there, here, 10 + rank))

    assert first(command_line).startswith(
        "The network between two hosts failed. 10.0.0.1 and 10.0.0.2 lost each other at Wed Mar 18 10:05:10 2026,"
        " and processes of both went on (inferred from the lines of the ranks)."
    )


def test_a_host_that_only_one_other_lost(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4, 2)
    for rank in (0, 1):
        job.identity(rank, rank, 4, "world")
        job.error(rank, 2137, lost(f"10.0.0.2/{1 - rank}", f"10.0.0.1/{rank}", 12 - rank))

    assert first(command_line).startswith("Devices 0-1 of 10.0.0.2: HCCL's heartbeat lost the process")
    assert "also a cause" not in command_line("explain", "logs").out


def test_the_sdma_error_of_a_rank_comes_before_the_waits_of_others(command_line: CommandLine) -> None:
    job = Plogs(command_line.folder / "logs", 4).start()
    job.error(
        3,
        300,
        "PrintSdmaErrorInfoForFftsPlusTask:fftsplus task execute failed, dev_id=3, stream_id=5, err_type=4[fftsplus sdma error]",
    )
    for rank in range(4):
        job.error(
            rank,
            300 if rank == 3 else 2136,
            "Task run failed, base information is streamID:[5], taskID[3], tag[AllReduce_world], AlgType(level 0-1-2):[x].",
        )

    assert first(command_line).startswith(
        "Rank 3 (device 3 of 10.0.0.1, address 192.168.0.103): copying between devices failed (SDMA)"
    )
