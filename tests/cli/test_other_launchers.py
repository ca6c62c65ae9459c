"""All options of msrun, torchrun, paddle and fleetrun, and the variables of a PaddleJob pod.

Each option is understood or refused with a hint. Variables are taken as options, refused, or left alone in a
rank.
"""

from __future__ import annotations

import os
import subprocess
import sys
from operator import attrgetter
from typing import TYPE_CHECKING

import click
import pytest

from hccl_tools.cli import launch_request, other_launchers
from hccl_tools.cli.launch import command
from hccl_tools.errors import UsageError
from tests.support.bulk import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.launch.model.request import LaunchRequest

MSRUN = """worker_num local_worker_num master_addr master_port node_rank log_dir join cluster_time_out
    bind_core bind_numa sim_level sim_rank_id rank_table_file worker_log_name tail_worker_log"""
TORCHRUN = """nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf standalone max-restarts
    monitor-interval start-method event-log-handler role module no-python run-path log-dir redirects tee
    local-ranks-filter node-rank master-addr master-port local-addr logs-specs numa-binding signals-to-handle
    use-env virtual-local-rank duplicate-stdout-filters duplicate-stderr-filters"""
PADDLE = """master legacy rank log_level log_overwrite sort_ip enable_gpu_log nnodes nproc_per_node log_dir
    run_mode job_id devices gpus npus xpus host ips start_port auto_parallel_config auto_cluster_config
    auto_tuner_json servers trainers trainer_num server_num gloo_port with_gloo max_restart elastic_level
    elastic_timeout"""
FLEETRUN = """log_dir nproc_per_node run_mode gpus selected_gpus xpus selected_xpus ips ranks
    enable_rank_mapping servers workers heter_workers worker_num server_num heter_worker_num http_port
    elastic_server job_id np scale host force backend cluster_topo_path rank_mapping_path enable_auto_mapping
    coordinators coordinator_num heter_devices elastic_pre_hook"""
#: Of Paddle 1.x; the last one is of Paddle 2.0.
OLD_PADDLE = "cluster_node_ips node_ip use_paddlecloud started_port print_config selected_gpus paddle_cpuonly"
POD = {"PADDLE_NNODES": "2", "PADDLE_MASTER": "job-master-0:37777", "PADDLE_NPROC_PER_NODE": "4"}


def typed(*args: str) -> LaunchRequest:
    """Return the request of a call."""
    with command.make_context("launch", [*args, "train.py"]) as context:
        return launch_request.read(context.params, own_python=True)


EVERY = f"{MSRUN} {TORCHRUN} {PADDLE} {FLEETRUN} {OLD_PADDLE}"


@for_each(sorted(set(EVERY.split())), name=str)
def test_every_option_of_other_launchers_is_known(name: str) -> None:
    own = {text for parameter in command.params for text in parameter.opts}
    plain = f"--{name.replace('_', '-')}"

    assert (plain in own) != (plain in other_launchers.OPTIONS)
    if plain in other_launchers.OPTIONS:
        found = other_launchers.OPTIONS[plain].translate("a value")
        for option in found if isinstance(found, list) else ():
            assert option.partition("=")[0] in own
        assert isinstance(found, list) or len(found) > 10


@pytest.mark.parametrize(
    ("args", "field", "value"),
    [
        (("--cluster_time_out", "300"), "variables.assigned", {"MS_TOPO_TIMEOUT": "300"}),
        (("--cluster_time_out=300",), "variables.assigned", {"MS_TOPO_TIMEOUT": "300"}),
        (("--bind_core", "True"), "start.bind", "cores"),
        (("--bind_numa=True",), "start.bind", "numa"),
        (("--bind_core=False",), "start.bind", "none"),
        (("--sim_level", "1"), "variables.assigned", {"MS_SIMULATION_LEVEL": "1"}),
        (("--rank_table_file", "t.json"), "table.file", "t.json"),
        (("--tail_worker_log", "-1"), "logs.tail", "all"),
        (("--tail_worker_log", "0,2"), "logs.tail", (0, 2)),
        (("--rdzv_backend", "c10d", "--rdzv-endpoint", "10.0.0.1:29400"), "hosts.master_address", "10.0.0.1"),
        (("--rdzv-endpoint=10.0.0.1:29400", "--rdzv_id=7"), "hosts.start_port", 29400),
        (("--rdzv-endpoint=localhost:0",), "hosts.start_port", None),
        (("--nnodes", "2:2", "--nproc-per-node=4"), "devices.ranks", 8),
        (("--nproc-per-node", "auto"), "devices.all_visible", True),
        (("--cpu", "--nproc_per_node=cpu"), "devices.per_node", len(os.sched_getaffinity(0))),
        (("-r", "3", "-t", "3"), "logs.tail", "all"),
        (("--tee=0:3,1:0,2:1",), "logs.tail", (0, 2)),
        (("--redirects", "0:1,1:2", "-n", "2"), "devices.ranks", 2),
        (("--local-ranks-filter=1",), "logs.tail", (1,)),
        (("--numa-binding", "node"), "start.bind", "numa"),
        (("--standalone", "--use_env", "--xpus", "0,1"), "devices.listed", "0,1"),
        (("--backend", "gloo", "-n", "2"), "start.cpu", True),
        (("--backend=auto", "-n", "2"), "start.cpu", False),
        (("--paddle_cpuonly", "-n", "2"), "start.cpu", True),
        (("--cluster_node_ips=10.0.0.1,10.0.0.2", "--node_ip=10.0.0.2"), "hosts.server", "10.0.0.2"),
        (("--cluster_node_ips=10.0.0.1,10.0.0.2",), "hosts.ips", ("10.0.0.1", "10.0.0.2")),
        (("--started_port", "6170", "--use_paddlecloud"), "hosts.start_port", 6170),
        (("--ips", "10.0.0.1,10.0.0.2", "--host", "10.0.0.1"), "hosts.server", "10.0.0.1"),
        (("--join=True", "--job_id", "x", "--run_mode=collective", "-n", "2"), "devices.ranks", 2),
    ],
)
def test_options_that_are_understood(args: tuple[str, ...], field: str, value: object) -> None:
    request = typed(*args)

    assert attrgetter(field)(request) == value
    assert request.program.argv == ("train.py",)


def test_restarts_of_paddle() -> None:
    assert typed("--max_restart", "3").watch.max_restarts == 3


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (("--bind_core", '{"device0": ["0-3"]}'), "no option --bind_core", "--bind cores"),
        (("--rdzv_backend", "etcd"), "no option --rdzv_backend etcd", "--master-addr"),
        (("--nnodes", "1:4"), '--nnodes "1:4"', "--max-restarts"),
        (("--nnodes", "0"), '--nnodes "0"', "--nnodes 2"),
        (("--nproc-per-node", "cpu"), '--nproc-per-node "cpu"', "--cpu"),
        (("--run_mode=ps",), "no option --run_mode ps", "parameter servers"),
        (("--run_mode", "rpc"), "no option --run_mode rpc", "paddle.distributed.rpc"),
        (("--backend", "nccl"), "no option --backend nccl", "xccl"),
        (("--master", "etcd://10.0.0.1:2379"), "is not ADDRESS:PORT", "fixed --nnodes"),
        (("--elastic_level", "1"), "no option --elastic_level 1", "--max-restarts"),
        (("-r", "job.json"), "no option -r job.json", "--rank-table job.json"),
        (("--redirects=4",), "no option --redirects 4", "0 to 3"),
        (("-r", "0:1,1"), "no option -r 0:1,1", "0 to 3"),
        (("-t", "job.json"), "no option -t job.json", "--rank-table job.json"),
        (("--tee", "0:9"), "no option --tee 0:9", "--tail 0,3"),
        (("--worker_log_name=w",), "no option --worker_log_name w", "--log-file"),
    ],
)
def test_options_that_are_refused(args: tuple[str, ...], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        typed(*args)
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


def test_a_mistyped_option_is_still_one() -> None:
    with pytest.raises(click.NoSuchOption, match="--cluster_timeout"):
        typed("--cluster_timeout", "300")


def read(environ: dict[str, str], *typed: str, here: bool = False) -> other_launchers.PodOptions:
    return other_launchers.of_pod(environ, typed, lambda _name: here)


def test_a_pod_of_two_is_a_machine_of_two() -> None:
    expected = ("--master=job-master-0:37777", "--nnodes=2", "--nproc-per-node=4")

    for here, rank in ((True, 0), (False, 1)):
        taken = read(POD, here=here)
        assert taken.options == (*expected, f"--node-rank={rank}")
        assert "PADDLE_NNODES=2" in taken.note
        assert "unset them to ignore them" in taken.note
    assert read({**POD, "PADDLE_RANK": "1"}, here=True).options == (*expected, "--node-rank=1")
    assert read({**POD, "PADDLE_NNODES": "3"}).options == (expected[0], "--nnodes=3", expected[2])


def test_a_typed_option_counts_and_the_note_says_so() -> None:
    taken = read({"PADDLE_NPROC_PER_NODE": "4", "PADDLE_DEVICES": "0,1"}, "--nproc-per-node")

    assert taken.options == ("--devices=0,1",)
    assert "PADDLE_NPROC_PER_NODE does not count beside --nproc-per-node" in taken.note


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({"PADDLE_TRAINERS": "10.0.0.1,10.0.0.2"}, ("--ips=10.0.0.1,10.0.0.2",)),
        ({"PADDLE_IPS": "10.0.0.1", "PADDLE_TRAINERS": "10.0.0.2"}, ("--ips=10.0.0.1",)),
        ({"PADDLE_NNODES": "2", "PADDLE_TRAINER_ID": "1"}, ("--nnodes=2", "--node-rank=1")),
        ({"PADDLE_RUN_MODE": "collective", "PADDLE_ELASTIC_LEVEL": "-1"}, ()),
        ({"PADDLE_MAX_RESTART": "3"}, ("--max-restarts=3",)),
        ({"PADDLE_START_PORT": "17000"}, ("--start-port=17000",)),
        ({"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2"}, ()),  # Left in the shell by a launcher.
        ({"PADDLE_RANK": "-1", "PADDLE_SERVER_NUM": "0", "PADDLE_PG_TIMEOUT": "60000"}, ()),
        ({"PADDLE_JOB_ID": "job", "PADDLE_LOG_LEVEL": "INFO"}, ()),
    ],
)
def test_variables_that_are_understood(environ: dict[str, str], options: tuple[str, ...]) -> None:
    assert read(environ).options == options


@pytest.mark.parametrize(
    "left", ["PADDLE_CURRENT_ENDPOINT", "PADDLE_RANK_IN_NODE", "PADDLE_GLOBAL_RANK", "HCCL_TOOLS_RUN_DIR"]
)
def test_what_a_rank_has_is_not_taken(left: str) -> None:
    assert read({**POD, left: "0"}) == other_launchers.PodOptions()


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("PADDLE_RUN_MODE", "ps", "parameter servers"),
        ("PADDLE_SERVER_NUM", "2", "parameter servers"),
        ("PADDLE_ELASTIC_LEVEL", "1", "--max-restarts"),
        ("PADDLE_SORT_IP", "true", "in rank order"),
    ],
)
def test_variables_that_are_refused(name: str, value: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"{name}={value}: launch has no option") as caught:
        read({name: value})
    assert hint in str(caught.value.hint)
    assert f"unset {name}" in str(caught.value.hint)


def test_every_option_is_one_of_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLE_NPROC_PER_NODE", "3")
    with command.make_context("launch", ["--cpu", "--nnodes", "1", "train.py"]) as context:
        assert context.params["per_node"] == "3"
    with command.make_context("launch", ["--nproc_per_node=2", "train.py"]) as context:
        assert context.params["per_node"] == "2"


def test_the_launch_of_a_pod_prints_what_it_has_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("")
    for name, value in {**POD, "PADDLE_MASTER": "127.0.0.1:37777", "PADDLE_NNODES": "1"}.items():
        monkeypatch.setenv(name, value)

    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "launch", "--dry-run", "--cpu", "train.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "plan: 4 ranks on localhost" in done.stdout
    assert "PADDLE_NPROC_PER_NODE=4 of this pod: taken as --master=127.0.0.1:37777" in done.stderr
