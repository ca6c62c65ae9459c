"""The decision table: which rank is the cause, in logs of whole jobs whose first message may be a consequence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.explain import cluster, explaining, inference, sources
from hccl_tools.explain.as_json import as_json
from hccl_tools.explain.events import Event
from hccl_tools.explain.knowledge.registry import messages
from hccl_tools.explain.locations import Places
from tests.support.plogs import Plogs
from tests.support.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ATTEMPT = "[Connect][Server]connect fail, errno[110] Connection timed out, remote ip[10.0.0.1:60000], retry"


def answer(folder: Path, *, rank_table: str | None = None) -> dict[str, Any]:
    logs, notes = sources.collect([str(folder)])
    return as_json(explaining.explain(logs, notes=notes, table=rank_table))


def npu_port(job: Plogs) -> None:
    job.error(
        5,
        5,
        f"[InitGroupStage][Resource]socket type[0], listen on ip[{job.address(5)}] and specific port[16666] fail. Please check the port status.",
    )
    for rank in set(range(job.ranks)) - {5}:
        job.no_link(rank, 5, 125)


def host_port(job: Plogs) -> None:
    job.error(0, 2, "host nic listen start failed, port[60000], return[11]")
    for rank in range(1, job.ranks):
        job.error(rank, 122, "[Get][Connection]topo exchange agent get socket timeout! timeout[120]")
        job.screen(rank, "EI0006: Getting socket times out. Reason: topo exchange agent")


def silent_rank(job: Plogs) -> None:
    for rank in set(range(job.ranks)) - {11}:
        job.notify(rank, (rank + 1) % job.ranks, 1900)


def missing_at_root(job: Plogs) -> None:
    there = [rank for rank in range(job.ranks) if rank not in {6, 7}]
    job.error(
        0, 121, "[InitGroupStage][RanktableDetect]topo exchange server get socket timeout! timeout[120 s]"
    )
    job.error(
        0,
        121,
        f"[InitGroupStage][DisplayConnectionedRank]total connected num is [{len(there)}],line num is [1]",
    )
    job.error(0, 121, f"[InitGroupStage][DisplayConnectionedRank]need connect rankNum is [{job.ranks}]")
    ranks = ",".join(f"[{rank:016}]" for rank in there)
    job.error(0, 121, f"[InitGroupStage][DisplayConnectionedRank]connected rankinfo[LINE 0]: {ranks};")
    for rank in there[1:]:
        job.error(rank, 121.2, "[Recv][ClusterInfoMsg]receive msg length from fdhandle failed, ret[-1]")


def named_by_root(job: Plogs) -> None:
    job.error(0, 121, 'TopoDetect ERROR occur !!! fault_type[1], fault_info["Failed to connect agent[1,3,]"]')


def late_rank(job: Plogs) -> None:
    for rank in range(job.ranks - 1):
        job.no_link(rank, job.ranks - 1, 125 + rank * 0.1)
    job.no_link(job.ranks - 1, 0, 420)


def chain(job: Plogs) -> None:
    for rank in range(job.ranks - 1):
        job.notify(rank, rank + 1, 1840 + rank)
    job.error(
        job.ranks - 1,
        1840,
        "[TaskExecStage][Timeout]Task run failed, base information is streamID:[9], tag[AllReduce_world]",
    )


def cycle(job: Plogs) -> None:
    for rank in range(job.ranks):
        job.notify(rank, (rank + 1) % job.ranks, 1840)


def heartbeat(job: Plogs) -> None:
    for rank in set(range(job.ranks)) - {9}:
        job.notify(rank, None, 1836)
        job.error(
            rank,
            1836,
            f"[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[{job.host(9)}/{job.device(9)}], Arrival Time:[Thu Mar 18 10:00:40 2026], Discoverer:[10.0.0.1/0], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited, 2. Network Disconnected",
        )


def link_error_after_exception(job: Plogs) -> None:
    job.error(3, 50, "Failed to allocate 209715200 bytes of NPU memory. (EI0011)")
    for rank in (0, 1, 2):
        job.error(
            rank,
            51,
            f"[TaskExecStage]cqe error status[12], localInfo{{server[{job.host(rank)}],deviceId[{job.device(rank)}],deviceIp[{job.address(rank)}]}}, remoteIP{{server[{job.host(3)}],deviceId[{job.device(3)}],deviceIp[{job.address(3)}]}}",
        )


def link_flap(job: Plogs) -> None:
    job.error(
        2,
        60,
        f"EI0013: An error CQE occurred. Local: server {job.host(2)}, device ID {job.device(2)}, device IP {job.address(2)}. Peer: server {job.host(6)}, device ID {job.device(6)}, device IP {job.address(6)}.",
    )
    for rank in set(range(job.ranks)) - {2}:
        job.notify(rank, 2, 1896)


def wrong_table(job: Plogs) -> None:
    for rank in range(job.ranks):
        if rank in {1, 3}:
            job.error(
                rank,
                2,
                f"[InitGroupStage][RanktableCheck]ranktable config devId[{job.device(4 - rank)}], but local devId[{job.device(rank)}]",
            )
        else:
            job.no_link(rank, 1, 123)


def wrong_address(job: Plogs) -> None:
    job.error(
        4,
        3,
        f"[check][ip]fail, ret(-16) the IP address({job.address(4)}) in the ranktable is inconsistent with the IP(192.168.77.1)address of the network adapter",
    )
    job.error(4, 3.1, "rdma init fail ret(-19)")
    for rank in set(range(job.ranks)) - {4}:
        job.no_link(rank, 4, 124)


def tls(job: Plogs) -> None:
    for rank in range(job.ranks):
        job.no_link(rank, (rank + 4) % job.ranks, 121)
    job.error(0, 1.5, "[InitGroupStage][RanktableCheck]Some ranks tlsStatus are inconsistent")


def tls_by_links(job: Plogs) -> None:
    for rank, state in ((1, "DISABLE"), (5, "ENABLE"), (6, "DISABLE")):
        peer = 5 if rank != 5 else 1
        row = f"{job.address(peer)}({peer})  |  16666  |  {job.address(rank)}({rank})  |  2882681339"
        job.error(rank, 121, f"   |  {row}  |  client  |  time out  |  {state}  |")
        job.no_link(rank, peer, 121)
    for rank in set(range(job.ranks)) - {1, 5, 6}:
        job.notify(rank, None, 1960)


def tls_by_run_logs(job: Plogs) -> None:
    for rank in range(job.ranks):
        job.run(rank, 0.5, f"tls_switch get, phy_id({job.device(rank)}) TLS SWITCH ({int(rank == 2)})")
        job.no_link(rank, (rank + 2) % job.ranks, 121)


def one_count_differs(job: Plogs) -> None:
    for rank in range(job.ranks):
        own, other = ("40", "48") if rank == 6 else ("48", "40")
        job.error(
            rank, 30 + rank / 10,
            f"[InitChannelStage][ParameterConflict]CMD information count check fail. local[{own}], remote[{other}]",
        )  # fmt: skip


def late_in_torch(job: Plogs) -> None:
    for rank in range(job.ranks):
        at = 430 if rank == 3 else 121
        job.no_link(rank, (rank + 1) % job.ranks, at)
        stamp = "2026-03-18 10:02:01.100000" if rank != 3 else "2026-03-18 10:07:10.100000"
        job.screen(rank, f"[{stamp}] RuntimeError: [ERROR] HCCL error in: ProcessGroupHCCL.cpp:64")


def different_operations(job: Plogs) -> None:
    job.error(
        2,
        30,
        "[InitChannelStage][ParameterConflict]CMD information tag check fail. local[AllReduce_world], remote[Broadcast_world]",
    )
    for rank in set(range(job.ranks)) - {2}:
        job.notify(rank, 2, 1866)


def out_of_memory(job: Plogs) -> None:
    for rank in set(range(job.ranks)) - {7}:
        job.notify(rank, 7, 1900)
    path = job.folder / job.host(7) / "messages.log"
    path.write_text(
        f"[12345.6] Out of memory: Killed process {4000 + job.device(7)} (python3) total-vm:1kB\n"
    )


#: Name, what happened, ranks, ranks per host, version of CANN, the message at fault, its ranks, how sure.
CASES: list[tuple[Callable[[Plogs], None], int, int, int, str, list[int], str]] = [
    (npu_port, 16, 8, 9, "HCM207", [5], "named"),
    (npu_port, 8, 4, 8, "HCM207", [5], "named"),
    (host_port, 16, 8, 8, "HCM205", [0], "named"),
    (silent_rank, 16, 8, 9, "HCM824", [11], "silent"),
    (silent_rank, 64, 8, 8, "HCM824", [11], "silent"),
    (missing_at_root, 8, 4, 9, "HCM824", [6, 7], "named"),
    (named_by_root, 4, 4, 9, "HCM824", [1, 3], "named"),
    (late_rank, 16, 8, 8, "HCM825", [15], "order"),
    (late_rank, 4, 4, 9, "HCM825", [3], "order"),
    (chain, 8, 8, 9, "HCM307", [7], "waits"),
    (cycle, 4, 2, 9, "HCM826", [0, 1, 2, 3], "waits"),
    (heartbeat, 32, 8, 9, "HCM343", [9], "reported"),
    (link_error_after_exception, 4, 4, 8, "HCM011", [3], "named"),
    (link_flap, 8, 4, 9, "HCM305", [2], "order"),
    (wrong_table, 8, 8, 9, "HCM404", [1, 3], "named"),
    (wrong_address, 8, 4, 8, "HCM211", [4], "named"),
    (tls, 8, 4, 9, "HCM215", [0], "named"),
    (tls_by_links, 8, 4, 8, "HCM215", [5], "named"),
    (tls_by_run_logs, 8, 4, 9, "HCM215", [2], "named"),
    (one_count_differs, 8, 4, 9, "HCM219", [6], "named"),
    (late_in_torch, 8, 4, 9, "HCM825", [3], "order"),
    (different_operations, 8, 4, 9, "HCM219", [2], "named"),
    (out_of_memory, 8, 4, 9, "HCM801", [7], "named"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "ranks", "per_host", "cann", "message", "at_fault", "confidence"),
    CASES,
    ids=[f"{case[0].__name__}-{case[1]}-cann{case[3]}" for case in CASES],
)
def test_the_cause_comes_first(  # noqa: PLR0917  (the columns of the table)
    tmp_path: Path,
    fault: Callable[[Plogs], None],
    ranks: int,
    per_host: int,
    cann: int,
    message: str,
    at_fault: list[int],
    confidence: str,
) -> None:
    job = Plogs(tmp_path / "logs", ranks, per_host, cann).start()
    fault(job)
    file = tmp_path / "hccl.json"
    file.write_text(json.dumps(table("1.0", ranks // per_host, per_host), indent=4))
    found = answer(job.folder, rank_table=str(file))

    cause = found["causes"][0]
    assert (cause["message"], cause["ranks"], cause["confidence"]) == (message, at_fault, confidence)
    first = at_fault[0]
    assert (cause["host"], cause["device"]) == (job.host(first), job.device(first))
    line = file.read_text().splitlines()[cause["table"]["line"] - 1 :]
    assert line[1].strip() == f'"device_id": "{job.device(first)}",'
    assert found["ranks"] == ranks


def test_an_error_after_the_waits_is_a_consequence(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    for rank in (0, 1, 2):
        job.no_link(rank, 3, 125)
    job.error(0, 130, "EI0011: Failed to allocate 5 bytes of NPU memory.")
    (cause,) = answer(tmp_path)["causes"]

    assert (cause["message"], cause["ranks"]) == ("HCM824", [3])


def test_times_are_corrected_by_the_clocks_of_the_hosts(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 8, 4, clocks={1: 300.0}).start()
    job.error(6, 20, "[Recv][RaSocket]recv fail, the remote has closed the socket")
    job.error(1, 40, "[Recv][RaSocket]recv fail, the remote has closed the socket")
    found = answer(tmp_path)

    assert found["causes"][0]["rank"] == 6
    assert found["notes"] == ["the clock of 10.0.0.2 is 300 s ahead; corrected here"]


def test_without_the_log_of_the_peer_the_answer_says_where_it_is(tmp_path: Path) -> None:
    Plogs(tmp_path, 16, 8).identity(1, 1, 16, "world")
    Plogs(tmp_path, 16, 8).no_link(1, 12, 125)
    (cause,) = answer(tmp_path)["causes"]

    assert (cause["confidence"], cause["ranks"]) == ("open", [1])
    assert cause["peer"]["rank"] == 12
    assert cause["look_at"][0].startswith("the log of rank 12 on 10.0.0.2: ")


def test_a_rank_of_a_group_is_shown_by_its_rank_in_the_job(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 8, 4).start()
    job.identity(6, 1, 2, "tensor_parallel")
    job.error(6, 5, "host nic listen start failed, port[60000], return[11]")

    assert answer(tmp_path)["causes"][0]["ranks"] == [6]


def test_a_warning_of_a_healthy_job_is_no_cause(tmp_path: Path) -> None:
    line = "[WARNING] DISTRIBUTED(7,a,p):2026-03-18-10:00:01 [x.cc:1] Failed to connect to the meta server node url: 10.0.0.1:8118\n"
    (tmp_path / "rank_0.log").write_text(line + "step 1\n")
    assert answer(tmp_path)["causes"] == []

    (tmp_path / "rank_0.log").write_text(line + line.replace("WARNING", "ERROR"))
    assert answer(tmp_path)["causes"][0]["message"] == "HCM606"


def test_who_ended_a_rank_is_never_the_cause(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 2, 2).start()
    job.screen(0, "2026-03-18 10:00:01 error: received SIGTERM, exiting")
    found = answer(tmp_path)

    assert found["causes"] == []


def test_equal_tls_switches_are_no_cause(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    for rank in range(4):
        job.run(rank, 0.5, "TLS SWITCH (1)")
    for rank in (0, 1, 2):
        job.no_link(rank, 3, 125)

    assert answer(tmp_path)["causes"][0]["message"] == "HCM824"


def test_a_different_tls_switch_without_a_failed_link_is_no_cause(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    for rank in range(4):
        job.run(rank, 0.5, f"TLS SWITCH ({int(rank == 1)})")
    job.screen(2, "ValueError: 0 samples in this shard")

    assert answer(tmp_path)["causes"][0]["message"] == "HCM810"


def test_a_folder_of_a_host_is_no_rank(tmp_path: Path) -> None:
    job = Plogs(tmp_path / "logs", 16, 8)
    for rank in range(16):
        job.run(rank, 1, f"HcclCommInitClusterInfo success, take time [28]us, rankNum[16], rank[{rank}]")
    job.error(13, 5, "host nic listen start failed, port[60000], return[11]")
    for number in (0, 1):
        (job.folder / job.host(8 * number)).rename(job.folder / f"worker-{number}")

    assert answer(job.folder)["causes"][0]["ranks"] == [13]


def test_the_host_of_the_root_is_not_that_of_every_rank(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 16, 8, cann=8, names_root=True).start()
    job.error(13, 5, "host nic listen start failed, port[60000], return[11]")
    (cause,) = answer(tmp_path)["causes"]

    assert (cause["ranks"], cause["host"], cause["device"]) == ([13], "10.0.0.2", 5)


def test_all_ranks_that_miss_the_scheduler_are_named(tmp_path: Path) -> None:
    head = "[ERROR] DISTRIBUTED(7,a,p):2026-03-18-10:00:01 [x.cc:1]"
    for rank in range(4):
        line = f"{head} Failed to connect to the meta server node url: 10.0.0.1:8118"
        late = f"{head} Building networking for MS_WORKER failed."
        (tmp_path / f"rank_{rank}.log").write_text((line if rank > 1 else late) + "\n")

    (cause,) = answer(tmp_path)["causes"]
    assert (cause["message"], cause["ranks"], cause["peer"]["address"]) == ("HCM606", [2, 3], "10.0.0.1:8118")


@pytest.mark.slow
def test_a_ring_of_thousands_of_waits_is_answered(tmp_path: Path) -> None:
    """Following the whole ring from each rank, in a list, would take many minutes."""
    count, devices = 5000, [f"10.0.{rank >> 8}.{rank & 255}({rank})" for rank in range(5000)]
    rows = [
        f"[ERROR] HCCL({rank + 1},p):2026-03-18-10:02:05.113.403 [a.cc:12] [{rank}]"
        f"|  {devices[rank]}  |  1  |  {devices[(rank + 1) % count]}  | 1 | tcp | time out\n"
        for rank in range(count)
    ]
    (tmp_path / "plog-1_1.log").write_text("".join(rows))
    (cause,) = answer(tmp_path)["causes"]

    assert (cause["message"], cause["ranks"]) == ("HCM826", list(range(count)))


def test_the_longest_chain_is_followed_also_where_chains_join(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 7, 7).start()
    for rank, peer in ((0, 1), (1, 2), (3, 4), (4, 5), (5, 1), (6, 5)):
        job.notify(rank, peer, 1840)
    job.error(2, 1840, "[TaskExecStage][Timeout]Task run failed, base information is streamID:[9], tag[a]")
    (cause,) = answer(tmp_path)["causes"]

    assert "rank 3 -> rank 4 -> rank 5 -> rank 1 -> rank 2" in cause["sentence"] + cause["reason"]


#: So many that comparing each with each takes minutes.
MANY = range(10_000)
FLOODS: dict[str, tuple[list[tuple[str, dict[str, str], float]], str]] = {
    "verdicts": (
        [("HCM301", {"peer": "0", "peer_server": f"h{number}"}, 2.0) for number in MANY]
        + [("HCM207", {"rank": "0"}, 9.0) for _ in MANY],
        "HCM301",
    ),
    "causes": (
        [("HCM207", {"rank": f"{number}"}, 1.0) for number in MANY]
        + [("HCM222", {"rank": f"{number}"}, 9.0) for number in MANY],
        "HCM207",
    ),
    "errors": (
        [("HCM303", {"rank": f"{number}", "peer": f"{number + len(MANY)}"}, 1.0) for number in MANY],
        "HCM303",
    ),
    "process ids": (
        [("HCM328", {"rank": f"{number}", "size": "99"}, 1.0) for number in MANY]
        + [("HCM801", {"pid": f"{number + len(MANY)}"}, 1.0) for number in MANY],
        "HCM801",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("flood", FLOODS)
def test_tens_of_thousands_of_events_are_answered(flood: str) -> None:
    lines, message = FLOODS[flood]
    events = [
        Event(messages()[name], fields, (), 0, 1, time, str(number))
        for number, (name, fields, time) in enumerate(lines)
    ]
    log = sources.Source("", "hostb:/log", group="hostb:/")

    assert inference.causes(cluster.build(events, [log], Places()))[0].message.id == message


def test_a_fault_after_the_wait_of_another_rank_is_a_consequence(tmp_path: Path) -> None:
    """Rank 0 waits first, but a rank's own wait says nothing about its fault."""
    job = Plogs(tmp_path, 4, 4).start()
    job.notify(0, 1, 10)
    job.notify(1, 2, 20)
    job.error(0, 15, "host nic listen start failed, port[60000], return[11]")
    assert answer(tmp_path)["causes"][0]["message"] == "HCM205"

    job.notify(2, 3, 12)
    assert answer(tmp_path)["causes"][0]["message"] != "HCM205"


def link_error(job: Plogs, rank: int, peer: int, at: float) -> None:
    own, other = ((job.host(one), job.device(one), job.address(one)) for one in (rank, peer))
    job.error(
        rank,
        at,
        "EI0013: An error CQE occurred. Local: server {}, device ID {}, device IP {}.".format(*own)
        + " Peer: server {}, device ID {}, device IP {}.".format(*other),
    )


def first_cause(folder: Path) -> tuple[str, list[int], str]:
    cause = answer(folder)["causes"][0]
    return cause["message"], cause["ranks"], cause["confidence"]


@pytest.mark.parametrize(
    ("links", "cause"),
    [
        ([(0, 5)], ("HCM305", [0], "alone")),
        ([(0, 5), (1, 6)], ("HCM305", [0], "order")),
        ([(0, 5), (1, 6), (2, 5)], ("HCM824", [5], "silent")),
    ],
)
def test_a_rank_to_which_several_links_failed(
    tmp_path: Path, links: list[tuple[int, int]], cause: tuple[str, list[int], str]
) -> None:
    job = Plogs(tmp_path, 8, 4).start()
    for rank, peer in links:
        link_error(job, rank, peer, 60 + rank)

    assert first_cause(tmp_path) == cause


def test_the_first_of_two_failed_links_of_a_rank_counts(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 8, 4).start()
    link_error(job, 0, 5, 60)
    link_error(job, 0, 6, 70)

    assert answer(tmp_path)["causes"][0]["peer"]["rank"] == 5


@pytest.mark.parametrize(("rank", "cause"), [(5, "HCM927"), (7, "HCM305")])
def test_a_fault_of_a_device_counts_before_the_failed_link_to_it_alone(
    tmp_path: Path, rank: int, cause: str
) -> None:
    job = Plogs(tmp_path, 8, 4).start()
    link_error(job, 0, 5, 60)
    job.error(
        rank,
        61,
        "there is an aivec error exception, device_id=0, the error code = 0x800000, errorStr: The DDR address of"
        " the MTE instruction is out of range. 507035",
    )

    assert answer(tmp_path)["causes"][0]["message"] == cause


def test_an_error_without_a_time_is_after_those_with_one(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    job.screen(1, "EI0013: An error CQE occurred.")
    link_error(job, 0, 3, 60)

    assert first_cause(tmp_path) == ("HCM305", [0], "order")


@pytest.mark.parametrize(("later", "cause"), [(0, ("HCM824", [3])), (1, ("HCM305", [0]))])
def test_an_error_more_than_twelve_hours_after_a_wait_is_of_another_job(
    tmp_path: Path, later: int, cause: tuple[str, list[int]]
) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    for rank in (1, 2):
        job.notify(rank, 3, 1840)
    link_error(job, 0, 3, 1840 + 12 * 3600 + later)

    assert first_cause(tmp_path)[:2] == cause


def test_an_exception_after_the_waits_is_a_consequence(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    for rank in (1, 2):
        job.no_link(rank, 3, 125)
    job.screen(0, "[2026-03-18 10:05:01.100000] ValueError: x")

    assert first_cause(tmp_path) == ("HCM824", [3], "silent")


def test_the_exception_of_a_monitor_is_no_failure_of_a_rank(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    job.screen(2, "ValueError: x")
    (tmp_path / "monitor.log").write_text("KeyError: 'y'\n")

    assert first_cause(tmp_path)[:2] == ("HCM810", [2])


def test_a_screen_of_several_ranks_does_not_date_an_exception_by_the_line_of_another(tmp_path: Path) -> None:
    """Its exception can be of any time: the fault long before the last time on the screen is the cause."""
    job = Plogs(tmp_path, 4, 4).start()
    job.error(0, 50, "host nic listen start failed, port[60000], return[11]")
    (tmp_path / "screen.log").write_text(
        "[2026-03-18 10:20:00.000000] step 1\n"
        "[rank2]: Traceback (most recent call last):\n[rank2]: KeyError: 'y'\n"
        "[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: x\n"
    )

    assert first_cause(tmp_path)[:2] == ("HCM205", [0])


def lost_heartbeat(job: Plogs, rank: int, lost: int) -> None:
    job.error(
        rank,
        1836,
        f"[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[{job.host(lost)}/{job.device(lost)}],"
        " Arrival Time:[Wed Mar 18 10:20:00 2026], Discoverer:[10.0.0.1/0], ExceptionType:[Heartbeat Lost Occurred],"
        " Possible Reason:1. Process has exited, 2. Network Disconnected",
    )


@pytest.mark.parametrize(("rank", "cause"), [(3, "HCM854"), (1, "HCM343")])
def test_the_end_of_another_process_is_not_that_of_a_lost_rank(tmp_path: Path, rank: int, cause: str) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    lost_heartbeat(job, 0, 3)
    job.screen(rank, "[2026-03-18 10:16:40.000000] Segmentation fault (core dumped)")

    message, ranks, _ = first_cause(tmp_path)
    assert (message, ranks) == (cause, [3])


def test_a_lost_rank_that_was_ended_from_outside_is_named_if_it_is_the_only_one(tmp_path: Path) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    lost_heartbeat(job, 0, 3)
    job.screen(3, "2026-03-18 10:00:01 error: received SIGTERM, exiting")
    assert first_cause(tmp_path) == ("HCM343", [3], "reported")

    lost_heartbeat(job, 0, 2)
    assert first_cause(tmp_path) == ("HCM343", [2], "reported")


@pytest.mark.parametrize(("last", "causes"), [(189.0, 1), (191.0, 0)])
def test_a_rank_that_writes_for_long_after_an_attempt_to_connect_has_gone_on(
    tmp_path: Path, last: float, causes: int
) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    job.error(1, 10, ATTEMPT)
    job.error(1, last, "step 1")

    assert [cause["message"] for cause in answer(tmp_path)["causes"]] == ["HCM667"] * causes


@pytest.mark.parametrize(("last", "causes"), [(11.0, 1), (11.001, 0)])
def test_a_line_more_than_a_second_after_an_attempt_to_connect_shows_that_the_rank_has_gone_on(
    tmp_path: Path, last: float, causes: int
) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    job.error(1, 10, ATTEMPT)
    job.run(1, last, "tls_switch get, phy_id(1) TLS SWITCH (0)")

    assert [cause["message"] for cause in answer(tmp_path)["causes"]] == ["HCM667"] * causes


@pytest.mark.parametrize(("rank", "cause"), [(1, ("HCM824", [3])), (3, ("HCM810", [3]))])
def test_an_error_after_which_a_rank_went_on_counts_only_if_the_others_wait_for_this_rank(
    tmp_path: Path, rank: int, cause: tuple[str, list[int]]
) -> None:
    job = Plogs(tmp_path, 4, 4).start()
    for waiting in (0, 1, 2):
        job.notify(waiting, 3, 1840)
    job.screen(rank, "[2026-03-18 10:33:20.000000] ValueError: x")
    job.screen(rank, "[2026-03-18 10:35:00.000000] loss 0.5")

    assert first_cause(tmp_path)[:2] == cause
