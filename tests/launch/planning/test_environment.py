"""The variables of every start: on a host, in a container, with visible devices, with ranks backwards."""

from __future__ import annotations

import json
import os
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from hccl_tools.errors import UsageError
from hccl_tools.launch.model.variables import composed
from hccl_tools.launch.planning import composition, environment, ports
from hccl_tools.launch.planning import job as jobs
from hccl_tools.launch.planning.composition import KeptMpi, inheritance
from hccl_tools.launch.planning.environment import JobFacts, rank_environment
from hccl_tools.launch.planning.placement import RankPlacement
from hccl_tools.launch.planning.visible_devices import VisibleDevices, visible_devices
from hccl_tools.notation.assignments import read_environment_file
from hccl_tools.table.model import SuperPod

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.launch.model.plan import Start

TABLE = "/run/rank_table.json"
HOST = visible_devices({}, tuple(range(8)))
CONTAINER = visible_devices({}, (4, 5, 6, 7))
CHOSEN = visible_devices({"ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7"}, tuple(range(8)))
STARTS: tuple[Start, ...] = ("table", "cluster", "mpi", "torch")


def seat(rank: int, device: int, server: int = 0) -> RankPlacement:
    return RankPlacement(rank, "10.0.0.1", server, device, device - 4, 4, rank % 4)


def job(start: Start, visible: VisibleDevices = HOST, **changes: Any) -> JobFacts:
    return JobFacts(start, 8, "10.0.0.1", 18118, TABLE, (4, 5, 6, 7), visible, **changes)


def rank_variables(rank: int, device_id: int, server: int = 0) -> dict[str, str]:
    return {
        "RANK_ID": str(rank), "RANK_SIZE": "8", "DEVICE_ID": str(device_id), "DEVICE_NUM": "4",
        "SERVER_ID": str(server),
    }  # fmt: skip


def paddle_variables(rank: int, device: int, device_id: int) -> dict[str, str]:
    return {
        "PADDLE_TRAINER_ID": str(rank), "PADDLE_TRAINERS_NUM": "8", "PADDLE_RANK_IN_NODE": str(rank % 4),
        "PADDLE_GLOBAL_RANK": str(rank), "PADDLE_GLOBAL_SIZE": "8",
        "PADDLE_LOCAL_RANK": str(rank % 4), "PADDLE_LOCAL_SIZE": "4",
        "FLAGS_selected_npus": str(device_id), "PADDLE_DISTRI_BACKEND": "xccl", "PADDLE_XCCL_BACKEND": "npu",
    }  # fmt: skip


def test_table_start_on_a_host_takes_the_tables_devices() -> None:
    for rank, device in enumerate((4, 5, 6, 7)):
        found = rank_environment(seat(rank, device), job("table"))

        assert found == {
            **rank_variables(rank, device),
            **paddle_variables(rank, device, device),
            "RANK_TABLE_FILE": TABLE,
        }


@pytest.mark.parametrize("visible", [CONTAINER, CHOSEN])
@pytest.mark.parametrize("start", ["table", "cluster"])
def test_devices_are_counted_as_the_process_sees_them(start: Start, visible: VisibleDevices) -> None:
    for rank, device in enumerate((4, 5, 6, 7)):
        found = rank_environment(seat(rank, device), job(start, visible))

        assert found["DEVICE_ID"] == str(rank)
        assert "ASCEND_RT_VISIBLE_DEVICES" not in found


def test_cluster_start_adds_what_mindspore_reads() -> None:
    found = rank_environment(seat(5, 6, server=1), job("cluster"))

    assert found == {
        **rank_variables(5, 6, server=1),
        **paddle_variables(5, 6, 6),
        "RANK_TABLE_FILE": TABLE,
        "MS_ROLE": "MS_WORKER",
        "MS_WORKER_NUM": "8",
        "MS_SCHED_HOST": "10.0.0.1",
        "MS_SCHED_PORT": "18118",
        "MS_NODE_ID": "5",
    }


def test_mpi_start_chooses_devices_by_the_visible_list() -> None:
    found = rank_environment(seat(1, 5), job("mpi"))

    assert found == {
        **rank_variables(1, 1),
        "ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    }


def test_torch_start() -> None:
    found = rank_environment(seat(1, 5), job("torch"))

    assert found == {
        **rank_variables(1, 1),
        **paddle_variables(1, 5, 1),
        "RANK": "1",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "4",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "18118",
        "ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7",
    }
    assert rank_environment(seat(1, 5), job("torch", pass_table=True))["RANK_TABLE_FILE"] == TABLE


@pytest.mark.parametrize("start", ["mpi", "torch"])
def test_visible_list_names_devices_as_the_container_does(start: Start) -> None:
    found = rank_environment(seat(2, 6), job(start, CONTAINER))

    assert (found["DEVICE_ID"], found["ASCEND_RT_VISIBLE_DEVICES"]) == ("2", "0,1,2,3")


@pytest.mark.parametrize("start", STARTS)
def test_ranks_that_run_backwards_keep_their_devices(start: Start) -> None:
    devices = {rank: 7 - rank for rank in range(4)}
    for rank, device in devices.items():
        found = rank_environment(seat(rank, device), job(start))

        # The position in the visible list, where that is what the process counts by, else the device itself.
        visible = found.get("ASCEND_RT_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7").split(",")
        assert int(visible[int(found["DEVICE_ID"])]) == device
        assert found["RANK_ID"] == str(rank)
        assert found.get("LOCAL_RANK", found["DEVICE_ID"]) == found["DEVICE_ID"]
        assert found.get("OMPI_COMM_WORLD_LOCAL_RANK", found["DEVICE_ID"]) == found["DEVICE_ID"]


def test_mpi_ranks_on_the_cpu_meet_at_the_scheduler() -> None:
    found = rank_environment(seat(1, 5), job("mpi", cpu=True))

    assert found["MS_ROLE"] == "MS_WORKER"
    assert "ASCEND_RT_VISIBLE_DEVICES" not in found
    assert "RANK_TABLE_FILE" not in found


def test_keep_mpi_tells_mindspore_the_right_device() -> None:
    assert rank_environment(seat(1, 5), job("cluster", keep_mpi=True))["OMPI_COMM_WORLD_LOCAL_RANK"] == "5"


def test_scheduler_has_its_own_role_and_the_ranks_meeting_point() -> None:
    found = composition.scheduler_environment(job("cluster"))

    assert found["MS_ROLE"] == "MS_SCHED"
    assert (found["MS_SCHED_HOST"], found["MS_SCHED_PORT"], found["MS_WORKER_NUM"]) == (
        "10.0.0.1",
        "18118",
        "8",
    )


STALE = {
    "RANK_ID": "9", "DEVICE_ID": "5", "RANK_SIZE": "16", "RANK_TABLE_FILE": "/old", "MS_ROLE": "MS_SCHED",
    "MS_NODE_ID": "3", "OMPI_COMM_WORLD_RANK": "1", "PMIX_RANK": "1", "PADDLE_TRAINER_ID": "1",
    "MINDSPORE_HCCL_CONFIG_PATH": "/old",
}  # fmt: skip
KEPT = {"HCCL_CONNECT_TIMEOUT": "600", "ASCEND_VISIBLE_DEVICES": "0-3", "HOME": "/home/me", "GLOG_v": "2"}


def kept(environ: dict[str, str], start: Start, keep_mpi: KeptMpi = "none") -> dict[str, str]:
    return composed(environ, inheritance(start, keep_mpi=keep_mpi), {}, {})


@pytest.mark.parametrize("start", STARTS)
def test_stale_variables_go_and_all_others_stay(start: Start) -> None:
    assert kept({**STALE, **KEPT}, start) == KEPT


@pytest.mark.parametrize("start", STARTS)
def test_settings_of_paddle_are_the_users_and_stay(start: Start) -> None:
    mine = {"PADDLE_PG_TIMEOUT": "1800000", "PADDLE_HOME": "/models", "FLAGS_allocator_strategy": "naive"}
    other = {"PADDLE_MASTER": "10.0.0.9:1", "PADDLE_NNODES": "2", "PADDLE_PSERVERS_IP_PORT_LIST": "a:1"}

    assert kept({**mine, **other, "FLAGS_selected_gpus": "3"}, start) == mine


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("keep_mpi", ["none", "settings", "all"])
def test_ranks_do_not_get_the_job_key(start: Start, keep_mpi: KeptMpi) -> None:
    key = {"HCCL_TOOLS_JOB_KEY": "0" * 64, "HCCL_TOOLS_JOB_KEY_FILE": "/key", "HCCL_TOOLS_REQUIRE_KEY": "1"}

    assert kept(key, start, keep_mpi) == {"HCCL_TOOLS_REQUIRE_KEY": "1"}


def test_users_own_mpi_settings_reach_mpirun_only() -> None:
    mine = {"OMPI_MCA_btl": "self", "OMPI_ALLOW_RUN_AS_ROOT": "1"}

    assert kept(mine, "mpi", "settings") == mine
    assert kept(mine, "table") == {}
    assert kept(mine, "table", "all") == mine


def test_torch_replaces_what_torchrun_has_left() -> None:
    assert kept({"RANK": "3", "TORCHELASTIC_RUN_ID": "x"}, "torch") == {}
    mine = {"MASTER_ADDR": "10.0.0.1", "TORCHELASTIC_RUN_ID": "x"}
    assert kept(mine, "table") == mine


@pytest.mark.parametrize("start", STARTS)
def test_no_rank_takes_its_place_from_the_launchers_environment(start: Start) -> None:
    """ascend-operator sets these for a pod; with MindSpore, all ranks of the pod had rank 0."""
    of_pod = {"RANK": "0", "WORLD_SIZE": "16", "LOCAL_RANK": "0,1,2,3", "LOCAL_WORLD_SIZE": "4"}

    assert kept(of_pod, start) == {}


def shared(**facts: Any) -> dict[str, str]:
    """What all ranks of a job at its first start have in common, besides the count of the restarts."""
    found = rank_environment(seat(0, 4), job("table", **facts), shared=True)
    assert found.pop("HCCL_TOOLS_RESTART") == "0"
    return found


def test_a_rank_learns_how_often_the_job_was_restarted() -> None:
    again = rank_environment(seat(0, 4), job("torch", restart=3), shared=True)

    assert (again["HCCL_TOOLS_RESTART"], again["TORCHELASTIC_RESTART_COUNT"]) == ("3", "3")
    assert "TORCHELASTIC_RESTART_COUNT" not in rank_environment(seat(0, 4), job("table"), shared=True)


@pytest.mark.parametrize("start", STARTS)
def test_each_rank_has_a_folder_for_the_logs_of_cann_unless_the_user_decides(start: Start) -> None:
    def folder(**facts: Any) -> str | None:
        found = rank_environment(seat(3, 7), job(start, **facts))
        return found.get("ASCEND_PROCESS_LOG_PATH")

    assert folder(run_dir="/run") == "/run/plog_rank_3"
    assert folder(run_dir="/run", set_by_user=frozenset({"ASCEND_PROCESS_LOG_PATH"})) is None
    assert folder(run_dir="/run", cpu=True) is None


def test_output_is_unbuffered_unless_the_user_decides() -> None:
    assert shared() == {"PYTHONUNBUFFERED": "1"}
    assert shared(buffered=True) == {}
    assert shared(buffered=True, run_dir="/run") == {
        "HCCL_TOOLS_RUN_DIR": "/run", "PADDLE_LOG_DIR": "/run",
    }  # fmt: skip


def test_rehearsals_do_not_spin_unless_the_user_decides() -> None:
    name = "MS_DEV_HOST_BLOCKING_RUN"

    assert shared(cpu=True)[name] == "1"
    assert name not in shared()
    assert name not in shared(cpu=True, set_by_user=environment.set_by_user({name, "PATH"}))


def test_paddles_endpoints_begin_where_all_ranks_meet() -> None:
    servers = ("10.0.0.1", "10.0.0.2")
    seats = [RankPlacement(rank, servers[rank // 2 % 2], rank // 2 % 2, 4, 0, 4, 0) for rank in range(8)]
    several = ports.endpoints(seats, master="10.0.0.9", port=18118, servers=2)
    here = ports.endpoints(seats, master="127.0.0.1", port=18118, servers=1)

    assert several[:6] == (
        *("10.0.0.9:18118", "10.0.0.9:18119", "10.0.0.2:18118", "10.0.0.2:18119"),
        *("10.0.0.9:18120", "10.0.0.9:18121"),
    )
    assert here == tuple(f"127.0.0.1:{18118 + rank}" for rank in range(8))
    assert ports.endpoints(seats, master="127.0.0.1", port=0, servers=1) == ()
    assert rank_environment(seat(2, 6), job("table", endpoints=here))["PADDLE_CURRENT_ENDPOINT"] == here[2]
    assert shared(buffered=True, endpoints=several, servers=2) == {
        "PADDLE_TRAINER_ENDPOINTS": ",".join(several),
        "PADDLE_MASTER": "10.0.0.9:18118", "PADDLE_NNODES": "2",
    }  # fmt: skip


def test_endpoints_beyond_the_limit_are_in_a_file() -> None:
    many = [f"10.10.{rank // 2000}.{rank // 8 % 250}:{18118 + rank % 8}" for rank in range(8192)]
    facts = job("torch", endpoints=tuple(many), run_dir="/run")

    found = rank_environment(seat(0, 4), facts, shared=True)
    assert found["PADDLE_MASTER"] == many[0]
    assert found["PADDLE_BACKUP_ENV_PATH"] == "/run/backup_env.json"
    assert "PADDLE_TRAINER_ENDPOINTS" not in found
    assert json.loads(environment.backup_variables(facts) or b"") == {
        "PADDLE_TRAINER_ENDPOINTS": ",".join(many)
    }


def test_endpoints_below_the_limit_are_a_variable_that_linux_accepts() -> None:
    one = "10.10.100.100:18118"
    fitting, beyond = (one,) * 2400, (one,) * 2401  # 47,999 and 48,019 bytes

    few = shared(buffered=True, endpoints=fitting)
    length = ["sh", "-c", "echo ${#PADDLE_TRAINER_ENDPOINTS}"]
    done = subprocess.run(length, env={**os.environ, **few}, capture_output=True, check=True)
    assert int(done.stdout) == 47_999
    assert environment.backup_variables(job("torch", endpoints=fitting)) is None
    assert environment.backup_variables(job("torch", endpoints=beyond)) is not None


@pytest.mark.parametrize(("text", "limit"), [("100", 100), ("1000000", (1 << 17) - 64), (None, 48_000)])
def test_paddles_own_variable_sets_the_limit(text: str | None, limit: int) -> None:
    assert ports.endpoints_limit({} if text is None else {"PADDLE_ENV_LIMIT_LEN": text}) == limit


def test_limit_that_is_not_a_number() -> None:
    with pytest.raises(UsageError, match='PADDLE_ENV_LIMIT_LEN="many"'):
        ports.endpoints_limit({"PADDLE_ENV_LIMIT_LEN": "many"})


def test_every_variable_is_explained_once() -> None:
    rows = [row for family in environment.VARIABLES.values() for row in family]

    assert len({row.name for row in rows}) == len(rows)
    assert all(row.meaning for row in rows)


def test_environment_file(tmp_path: Path) -> None:
    file = tmp_path / "job.env"
    file.write_text("# a comment\n\nGLOG_v=2\nexport NAME='a b'\nEMPTY=\nNONE=''\nONE='\nURL=http://x?a=b\n")

    assert read_environment_file(str(file)) == {
        "GLOG_v": "2", "NAME": "a b", "EMPTY": "", "NONE": "", "ONE": "'", "URL": "http://x?a=b",
    }  # fmt: skip


def test_environment_file_of_a_windows_editor(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_bytes(b"\xef\xbb\xbfA=1\r\nB = 2 \r\nC = ' 3 '\r\n")

    assert read_environment_file(str(file)) == {"A": "1", "B": "2", "C": " 3 "}


def test_environment_file_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "job.env"
    file.write_text("A=1\nnot an assignment\n")

    with pytest.raises(UsageError, match=r"job.env:2: .*not an assignment"):
        read_environment_file(str(file))
    with pytest.raises(UsageError, match="No such file"):
        read_environment_file(str(tmp_path / "absent"))


def test_ranks_without_a_table_get_the_super_pod_of_their_server() -> None:
    """HCCL would take the physical one, however the scheduler has divided the job."""

    def pod(start: Start, server: int = 1, **facts: Any) -> str | None:
        at = RankPlacement(3, "10.0.0.2", server, 4, 0, 4, 0)
        found = rank_environment(at, job(start, super_pods=("0", "pod-b"), **facts))
        return found.get("HCCL_LOGIC_SUPERPOD_ID")

    assert [pod("torch"), pod("torch", 0), pod("mpi")] == ["pod-b", "0", "pod-b"]
    own = environment.set_by_user({"HCCL_LOGIC_SUPERPOD_ID"})
    without = [pod("table"), pod("cluster"), pod("torch", cpu=True), pod("torch", pass_table=True)]
    assert [*without, pod("torch", set_by_user=own)] == [None] * 5


@pytest.mark.parametrize(
    ("pods", "expected"), [([["a", "b"], ["c"]], ("0", "0", "1")), ([["a", "b", "c"]], ())]
)
def test_super_pods_count_if_there_are_several(pods: list[list[str]], expected: tuple[str, ...]) -> None:
    found = [SuperPod(str(number), servers) for number, servers in enumerate(pods)]
    servers = [SimpleNamespace(server_id=name) for name in "abc"]
    loaded = SimpleNamespace(table=SimpleNamespace(super_pods=found, servers=servers))

    assert jobs.super_pods(cast("Any", SimpleNamespace(table=loaded))) == expected
