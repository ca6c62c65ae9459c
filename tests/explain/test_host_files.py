"""What files of hosts beside the logs add: pods, Slurm's rows, links, devices, packages, restarts, the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.log_folders import explained

if TYPE_CHECKING:
    from tests.support.commands import CommandLine

STEPS = "".join(
    f"[2026-03-18 10:{m:02}:{s:02}] iteration {m * 4 + s // 15}/ 90000 loss 2.5\n"
    for m in range(30)
    for s in (0, 15, 30, 45)
)
WAIT = "[rank{rank}]: EI0002: [PID: 880{rank}] 2026-03-18-{time}.000.000 The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify record from remote rank: [unknown].\n"
LIBRARY = "ImportError: libhccl.so: cannot open shared object file: No such file or directory\n"
EVENTS = """\
Name:         dpo-0
Events:
  Warning  OOMKilling        {age}               kernel-monitor     Memory cgroup out of memory: Killed process 40991 (python3) total-vm:9kB, anon-rss:4kB
  Normal   Scheduled         {pod}                  volcano            Successfully assigned ml/dpo-0 to ascend-12
  Normal   Started           {pod}                  kubelet            Started container trainer
"""
SACCT = """\
JobID           JobName      NodeList      State ExitCode     MaxRSS               Start                 End
------------ ---------- ------------- ---------- -------- ---------- ------------------- -------------------
{job}          moe       r02n[01-02]     FAILED      1:0            2026-03-18T09:00:01 2026-03-18T10:45:11
{job}.0       node0        r02n01  CANCELLED     0:15     65.04G 2026-03-18T09:00:05 2026-03-18T10:45:11
{job}.1       node1        r02n02  OUT_OF_ME+    0:125   149.80G 2026-03-18T09:00:05 2026-03-18T10:14:02
"""
SQUEUE = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
             {job}     npu16 llama70b    zhouy  {state}    6:12:44      2 npu[16-17]
"""
SCHEDULER = "[WARNING] DISTRIBUTED(916,ffffb85d0c80,python):2026-03-18-10:12:05.100.000 [mindspore/ccsrc/distributed/cluster/topology/compute_graph_node.cc:173] Register] Failed to connect to the meta server node url: 10.1.2.3:8118\n"
JOINED = "[WARNING] DISTRIBUTED(916,ffffb85d0c80,python):2026-03-18-10:12:05.700.000 [mindspore/ccsrc/distributed/cluster/cluster_context.cc:275] BuildCluster] Cluster is successfully initialized.\n"
DATA = "[ERROR] Invalid file, failed to open files for reading mindrecord files. Please check file path, permission and open files limit(ulimit -a): /cache/train.mindrecord6\n"
CQE = (
    "[ERROR] HCCL(88013,python3):2026-03-18-09:12:33.934.772 [heartbeat.cc:1229] [88101][TaskExecStage][HeartbeatAbnormal][ROCE CQE ERROR]cqe error status[12],"
    " time:[2026-03-18 09:12:33.104772],localInfo{server[10.30.0.21],deviceId[3],deviceIp[192.168.21.13]}, remoteIP{server[10.30.0.22],deviceId[3],deviceIp[192.168.22.13]}\n"
)
LINK = "[devid 3]link change records :\n[devid 3]    Wed Mar 18 09:12:37 2026    LINK UP\n[devid 3]    Wed Mar 18 {} 2026    LINK DOWN\n"
DIFFERS = "EI0005: [PID: 9044{rank}] 2026-03-18-12:21:09.800.000 The arguments for collective communication are inconsistent between ranks:tag[AllReduce_10.5.5.5], parameter[cmdType], local[2], remote [6]\n"
TO = "        Transport init error. Reason: [Create][DestLink]Create Dest error! createLink para:rank[{rank}]-localUserrank[{rank}]-localIpAddr[10.5.5.5], dst_rank[{peer}]-remoteUserrank[{peer}]-remote_ip_addr[10.5.5.5]\n"
BITS = "RuntimeError: npuSynchronizeDevice:x.ts:515 NPU function error: HBM MULTI BIT ECC ERROR., error code is 507054\n"
ROW = "| {}     910B3               | {:<13} | 71.2        49                0    / 0             |\n"
ECC = "\tNPU ID                         : {}\n\tChip Count                     : 1\n\n\tHBM Double Bit Error Count     : {}\n"
MISSING = "[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File \"t.py\", line 9, in f\n[rank{rank}]: AttributeError: module 'torch_npu' has no attribute 'npu_moe'\n"
PACKAGES = "Package     Version\n----------- -----------\nnumpy       {}\ntorch-npu   {}\n"
REFUSED = "EE1001: [PID: 702] 2026-03-18-08:08:20.542.748 The argument is invalid.Reason: Set visible device failed, invalid device=2, input visible devices:2\n"
LOST = "[rank0]:     Cluster Exception Location[IP/ID]:[10.20.0.6/0], Arrival Time:[Wed Mar 18 10:23:13 2026], Discoverer:[10.20.0.1/0], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited, 2. Network Disconnected\n"
STORE = "[rank{rank}]:[W318 10:07:0{rank}.639260 TCPStore.cpp:122] [c10d] recvValue failed on SocketImpl(fd=71, addr=[m1]:46034, remote=[m0]:29500): Connection reset by peer\n"
RESET = "[rank{rank}]: torch.distributed.DistBackendError: [{rank}] store->get('default_pg/0//hccl//17') got error: Connection reset by peer\n"
UNCORRECTED = (
    "[rank3]: [ERROR] 2026-03-18-10:02:{} (PID:30, Device:3, RankID:3) ERR00100 error code is 507053\n"
)


@pytest.mark.parametrize(
    ("age", "pod", "is_former"),
    [("3h12m", "6m", True), ("8m30s", "6m", True), ("6m", "6m", False), ("5m", "6m", False)],
)
def test_events_that_are_older_than_their_pod(
    command_line: CommandLine, age: str, pod: str, *, is_former: bool
) -> None:
    out = explained(command_line, {"describe.txt": EVENTS.format(age=age, pod=pod), "pod.log": LIBRARY})
    causes, _, also = out.partition("also seen:")
    assert ("reached its memory limit" in causes) is not is_former
    assert ("reached its memory limit" in also) is is_former


@pytest.mark.parametrize(("job", "is_own"), [("70212", True), ("70213", False)])
def test_the_step_that_ran_out_of_memory(command_line: CommandLine, job: str, *, is_own: bool) -> None:
    log = STEPS[: STEPS.index("[2026-03-18 10:14:00")]
    log += "".join(WAIT.format(rank=rank, time="10:44:40") for rank in (0, 9))
    out = explained(command_line, {"slurm-70212.out": log, "sacct.txt": SACCT.format(job=job)})
    assert (
        out.startswith(
            "Host r02n02: Slurm's memory limit killed a process of the job, at 2026-03-18 10:14:02"
        )
        is is_own
    )
    assert is_own or "it is the row of another job" in out


def test_the_step_whose_node_failed(command_line: CommandLine) -> None:
    log = STEPS[: STEPS.index("[2026-03-18 10:14:00")] + WAIT.format(rank=0, time="10:44:40")
    rows = SACCT.format(job="70212").replace("OUT_OF_ME+", " NODE_FAIL")
    out = explained(command_line, {"slurm-70212.out": log, "sacct.txt": rows})
    assert out.startswith("Host r02n02: Slurm lost a node of the job, at 2026-03-18 10:14:02")


def test_a_task_that_srun_saw_killed_without_the_name_of_its_host(command_line: CommandLine) -> None:
    log = (
        STEPS
        + "srun: error: task 41: Killed\n"
        + "".join(WAIT.format(rank=rank, time="10:44:40") for rank in (0, 9))
    )
    assert explained(command_line, {"slurm-12.out": log}).startswith("Rank 41: srun saw a task fail: Killed")


@pytest.mark.parametrize(
    ("job", "state", "runs"), [("91777", "R", True), ("91777", "PD", False), ("91778", "R", False)]
)
def test_a_job_that_runs(command_line: CommandLine, job: str, state: str, *, runs: bool) -> None:
    out = explained(
        command_line, {"slurm-91777.out": STEPS, "squeue.txt": SQUEUE.format(job=job, state=state)}
    )
    assert out.startswith("Job 91777 is still running, by the row of squeue in logs/squeue.txt:2") is runs
    assert runs or out.startswith("no cause found")


@pytest.mark.parametrize("joined", [JOINED, ""])
def test_warnings_before_a_process_joins_the_cluster(command_line: CommandLine, joined: str) -> None:
    out = explained(command_line, {"worker_6.log": SCHEDULER + joined + DATA})
    said = "Rank 6: MindSpore's data pipeline could not open a file: /cache/train.mindrecord6"
    assert out.startswith(said)
    assert ("could not reach" in out) is not bool(joined)


def test_a_process_that_joined_no_cluster(command_line: CommandLine) -> None:
    last = SCHEDULER.replace("[WARNING]", "[ERROR]")
    assert explained(command_line, {"worker_6.log": SCHEDULER + last}).startswith(
        "Rank 6: a worker could not reach MindSpore's scheduler"
    )


@pytest.mark.parametrize(
    ("host", "down", "is_named"),
    [
        ("node-22", "09:12:04", True),
        ("node-22", "09:07:20", False),
        ("node-23", "09:12:04", False),
        ("node-2", "09:12:04", False),
    ],
)
def test_the_end_of_a_link_whose_port_was_down(
    command_line: CommandLine, host: str, down: str, *, is_named: bool
) -> None:
    """With the files of three hosts, the number at the end of a name is that of its address."""
    files = {"node-21/plog-88013_20260318065801123.log": CQE, f"{host}/link_stat.txt": LINK.format(down)}
    files["node-29/train.log"] = "2026-03-18 09:00:00 building the model\n"
    first = explained(command_line, files).splitlines()[0]
    assert first.startswith("Device 3 of 10.30.0.22") is is_named
    assert ("was down at that time" in first) is is_named


@pytest.mark.parametrize(
    ("folder", "end"), [("b", "Device 3 of 10.30.0.22"), ("a", "Device 3 of 10.30.0.21")]
)
def test_the_end_of_a_link_by_the_folders_of_two_hosts(
    command_line: CommandLine, folder: str, end: str
) -> None:
    """The process that reports the link wrote its log on its own host."""
    files = {
        "a/plog-88013_20260318065801123.log": CQE,
        "b/train.log": "2026-03-18 09:00:00 building the model\n",
    }
    files[f"{folder}/link_stat.txt"] = LINK.format("09:12:04")
    first = explained(command_line, files).splitlines()[0]
    assert first.startswith(end)
    assert "was down at that time" in first


@pytest.mark.parametrize(("peers", "is_common"), [((3, 3), True), ((3, 1), False)])
def test_the_rank_from_which_others_differ(
    command_line: CommandLine, peers: tuple[int, int], *, is_common: bool
) -> None:
    files = {
        f"rank{rank}.log": DIFFERS.format(rank=rank) + TO.format(rank=rank, peer=peer)
        for rank, peer in zip((2, 4), peers, strict=True)
    }
    first = explained(command_line, files).splitlines()[0]
    assert first.startswith("Rank 3: ") is is_common
    assert ("Ranks 2,4 report that they differ from it" in first) is is_common
    assert ("here 6, there 2" in first) is is_common


@pytest.mark.parametrize(
    ("states", "counts", "device"),
    [
        (("OK", "Critical"), (0, 0), "Device 6 of cn-a-19"),
        (("OK", "OK"), (0, 1), "Device 6 of cn-a-19"),
        (("Critical", "Critical"), (0, 0), "The memory"),
        (("OK", "OK"), (0, 0), "The memory"),
    ],
)
def test_the_device_with_wrong_bits(
    command_line: CommandLine, states: tuple[str, str], counts: tuple[int, int], device: str
) -> None:
    rows = "".join(ROW.format(number, state) for number, state in zip((5, 6), states, strict=True))
    rows += "".join(ECC.format(number, errors) for number, errors in zip((5, 6), counts, strict=True))
    out = explained(command_line, {"job.log": BITS, "npu-smi_cn-a-19.txt": rows})
    assert out.startswith(device)


@pytest.mark.parametrize(
    ("numpy", "torch_npu", "said"),
    [
        ("1.26.4", "2.1.0.post6", "it has torch-npu 2.1.0.post6, the others have 2.1.0.post10"),
        ("1.26.0", "2.1.0.post6", "it has torch-npu 2.1.0.post6, the others have 2.1.0.post10"),
        ("1.26.0", "2.1.0.post10", "it has numpy 1.26.0, the others have 1.26.4"),
        ("1.26.4", "2.1.0.post10", ""),
    ],
)
def test_another_version_of_a_package(
    command_line: CommandLine, numpy: str, torch_npu: str, said: str
) -> None:
    files = {f"c{number}/pip_list.txt": PACKAGES.format("1.26.4", "2.1.0.post10") for number in range(3)}
    files |= {f"c{number}/train.out": STEPS for number in range(3)}
    files["c3/pip_list.txt"] = PACKAGES.format(numpy, torch_npu)
    files["c3/train.out"] = "".join(MISSING.format(rank=rank) for rank in (24, 25))
    first = explained(command_line, files).splitlines()[0]
    assert first.startswith("Ranks 24-25: a package has another version on this host") is bool(said)
    assert said in first
    assert said or "AttributeError" in first


@pytest.mark.parametrize(("last", "lacks"), [(1, True), (2, False)])
def test_a_device_that_the_container_lacks(command_line: CommandLine, last: int, *, lacks: bool) -> None:
    listing = (
        "$ ls /dev\n" + "".join(f"davinci{number}\n" for number in range(last + 1)) + "davinci_manager\n"
    )
    first = explained(command_line, {"server.log": REFUSED, "container_dev.txt": listing}).splitlines()[0]
    assert ("asks for devices that its container or host does not have" in first) is lacks
    assert ("lists devices 0-1, and the program asks for device 2" in first) is lacks


@pytest.mark.parametrize(
    ("started", "hosts", "name"),
    [
        ("Wed Mar 18 10:31", "10.20.0.6 gz-n5\n", "gz-n5"),
        ("Wed Mar 18 10:31", "", "gz-n5"),
        ("Wed Mar 18 10:31", "10.20.0.6 gz-n4\n", ""),
        ("Tue Mar 17 10:31", "10.20.0.6 gz-n5\n", ""),
    ],
)
def test_a_lost_host_that_started_again(
    command_line: CommandLine, started: str, hosts: str, name: str
) -> None:
    files = {
        "gz-n0/rank.log": STEPS
        + WAIT.format(rank=0, time="10:53:13")
        + LOST
        + WAIT.format(rank=1, time="10:53:13"),
        "gz-n5/rank.log": STEPS[: STEPS.index("[2026-03-18 10:22:45")],
        "gz-n5/last.txt": f"reboot   system boot  5.10.0-60.18 {started}   still running\n",
        "hosts": hosts or "# none\n",
    }
    first = explained(command_line, files).splitlines()[0]
    assert first.startswith(
        "Host gz-n5: the host started again. Its logs end at 2026-03-18 10:22:30"
    ) is bool(name)
    assert name or first.startswith("Device 0 of 10.20.0.6: HCCL's heartbeat lost")


@pytest.mark.parametrize(
    ("told", "more", "first"),
    [
        (STORE, {}, "Rank 0 (host m0): rank 0, which keeps torch's store, is gone"),
        ("", {}, "Rank 0: rank 0, which keeps torch's store, is gone"),
        (STORE, {"m0.log": "starting\n"}, "Rank 8"),
        (STORE, {"rank0.log": WAIT.format(rank=0, time="10:07:09")}, "Rank 0: a collective operation waited"),
    ],
)
def test_the_store_is_in_the_process_of_rank_0(
    command_line: CommandLine, told: str, more: dict[str, str], first: str
) -> None:
    logs = {f"m{rank}.log": told.format(rank=rank) + RESET.format(rank=rank) for rank in (8, 9)}
    assert explained(command_line, {**logs, **more}).startswith(first)


@pytest.mark.parametrize(("steps", "went_on"), [(120, True), (4, False)])
def test_a_fault_after_which_the_job_went_on_is_no_consequence(
    command_line: CommandLine, steps: int, *, went_on: bool
) -> None:
    log = "[2026-03-18 10:02:00] iteration 1/ 900 loss 2\n" + UNCORRECTED.format("10")
    log += "".join(
        f"[2026-03-18 11:{n // 2:02}:{n % 2 * 30:02}] iteration {n + 2}/ 900 loss 2\n" for n in range(steps)
    )
    evicted = "Name:  w-1\nStatus:  Failed\nReason:  Evicted\nMessage:  The node was low on resource: memory. Threshold quantity: 1Gi\n"
    out = explained(
        command_line, {"w-0.log": log + WAIT.format(rank=0, time="12:40:00"), "describe.txt": evicted}
    )
    assert out.startswith("Kubernetes evicted the pod")
    assert ("(the job went on for long after it)" in out) is went_on
    assert ("507053" in out.partition("also seen:")[0]) is not went_on
