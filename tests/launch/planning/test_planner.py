from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import LaunchError, UsageError
from hccl_tools.host.local_addresses import interface_address, interface_addresses
from hccl_tools.launch.planning import planner
from hccl_tools.launch.render import plan_output
from hccl_tools.programs.lookup import ProgramMissingError
from tests.support.requests import launch_request, with_options
from tests.support.tables import table as made

if TYPE_CHECKING:
    from hccl_tools.launch.model.plan import Plan
    from hccl_tools.launch.model.request import LaunchRequest
    from hccl_tools.launch.planning.planner import PreparedLaunch

ENVIRON = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def script(own_directory: Path) -> str:
    (own_directory / "train.py").write_text("print('trained')\n")
    return "train.py"


def guide_table(first: int = 4, count: int = 4) -> dict[str, Any]:
    """Return the guide's table of devices 4-7 of one host."""
    devices = [
        {"device_id": str(first + rank), "device_ip": f"192.168.0.{rank + 1}", "rank_id": str(rank)}
        for rank in range(count)
    ]
    return {
        "version": "1.0", "server_count": "1", "status": "completed",
        "server_list": [{"server_id": "127.0.0.1", "device": devices, "host_nic_ip": "reserve"}],
    }  # fmt: skip


def write(value: dict[str, Any], name: str = "table.json") -> str:
    Path(name).write_text(json.dumps(value))
    return name


def prepare(
    request: LaunchRequest, environ: dict[str, str] | None = None, nodes: tuple[int, ...] = ()
) -> PreparedLaunch:
    return planner.prepare(
        request, environ={**ENVIRON, **(environ or {})}, working_dir=str(Path.cwd()), nodes=nodes
    )


def plan(**options: Any) -> Plan:
    options = {"program": ("train.py",), "start": "table", "python": sys.executable, **options}
    return prepare(launch_request(**options)).plan


def test_guides_table_starts_devices_4_to_7_as_ranks_0_to_3(script: str) -> None:
    made_plan = plan(rank_table=write(guide_table()), program=(script, "-c", "conf.yml", "--epochs", "3"))

    assert [(rank.rank, rank.device, rank.device_id, rank.log) for rank in made_plan.ranks] == [
        (0, 4, 4, "rank_0.log"), (1, 5, 5, "rank_1.log"), (2, 6, 6, "rank_2.log"), (3, 7, 7, "rank_3.log"),
    ]  # fmt: skip
    assert made_plan.processes == made_plan.ranks
    assert made_plan.ranks[2].argv == (sys.executable, script, "-c", "conf.yml", "--epochs", "3")
    assert made_plan.ranks[2].environment == {
        "RANK_ID": "2", "RANK_SIZE": "4", "DEVICE_ID": "6", "DEVICE_NUM": "4", "SERVER_ID": "0",
        "RANK_TABLE_FILE": f"{made_plan.run_dir}/rank_table.json",
        "PADDLE_TRAINER_ID": "2", "PADDLE_TRAINERS_NUM": "4", "PADDLE_RANK_IN_NODE": "2",
        "PADDLE_GLOBAL_RANK": "2", "PADDLE_GLOBAL_SIZE": "4",
        "PADDLE_LOCAL_RANK": "2", "PADDLE_LOCAL_SIZE": "4",
        "FLAGS_selected_npus": "6", "PADDLE_DISTRI_BACKEND": "xccl", "PADDLE_XCCL_BACKEND": "npu",
        "ASCEND_PROCESS_LOG_PATH": f"{made_plan.run_dir}/plog_rank_2",
    }  # fmt: skip


def test_container_with_physical_4_to_7(script: str) -> None:
    request = launch_request(
        program=(script,), start="table", rank_table=write(guide_table()), python=sys.executable
    )

    ranks = prepare(request, nodes=(4, 5, 6, 7)).plan.ranks

    assert [(rank.device, rank.device_id) for rank in ranks] == [(4, 0), (5, 1), (6, 2), (7, 3)]


def test_devices_outside_the_visible_ones_are_refused(script: str) -> None:
    request = launch_request(
        program=(script,), start="table", rank_table=write(guide_table()), python=sys.executable
    )
    limit = {"ASCEND_RT_VISIBLE_DEVICES": "4,5"}

    with pytest.raises(LaunchError, match=r"devices 6, 7, outside the visible devices 4, 5 \(ASCEND_RT"):
        prepare(request, limit, tuple(range(8)))
    ignoring = launch_request(
        program=(script,), start="table", rank_table="table.json", python=sys.executable, ignore_visible=True
    )
    prepared = prepare(ignoring, limit, tuple(range(8)))
    # The runtime would not let a process open a device outside the variable, which is gone.
    assert [rank.device_id for rank in prepared.plan.ranks] == [4, 5, 6, 7]
    assert "ASCEND_RT_VISIBLE_DEVICES" not in prepared.environment
    assert "ASCEND_RT_VISIBLE_DEVICES" in prepared.plan.removed
    torch = prepare(with_options(ignoring, start="torch"), limit, tuple(range(8))).plan.ranks[3]
    assert torch.environment["ASCEND_RT_VISIBLE_DEVICES"] == "4,5,6,7"


@pytest.mark.usefixtures("script")
def test_env_wins_over_the_contract() -> None:
    made_plan = plan(rank_table=write(guide_table()), environment={"DEVICE_NUM": "8", "OWN": "1"})

    assert made_plan.ranks[0].environment["DEVICE_NUM"] == "8"
    assert made_plan.ranks[3].environment["OWN"] == "1"


@pytest.mark.usefixtures("script")
def test_cluster_start_has_a_scheduler_first() -> None:
    made_plan = plan(rank_table=write(guide_table()), start="cluster", cpu=True)

    scheduler = made_plan.processes[0]
    assert (scheduler.name, scheduler.rank, scheduler.log) == ("scheduler", -1, "scheduler.log")
    assert scheduler.argv[0] == sys.executable
    assert scheduler.environment["MS_ROLE"] == "MS_SCHED"
    port = scheduler.environment["MS_SCHED_PORT"]
    assert {rank.environment["MS_SCHED_PORT"] for rank in made_plan.ranks} == {port}


@pytest.mark.usefixtures("script")
def test_table_of_several_servers_starts_this_hosts_ranks() -> None:
    value = made(servers=2, devices=8)
    value["server_list"][1]["server_id"] = "10.9.8.7"
    made_plan = plan(rank_table=write(value), server="10.9.8.7", start="cluster")

    assert made_plan.world_size == 16
    assert [rank.rank for rank in made_plan.local] == list(range(8, 16))
    assert made_plan.processes[0].name == "scheduler"
    assert made_plan.processes[0].host == "10.0.0.1"
    assert made_plan.ranks[0].environment["MS_SCHED_HOST"] == "10.0.0.1"
    assert made_plan.ranks[0].environment["MS_SCHED_PORT"] == "18118"
    assert made_plan.ranks[9].environment["SERVER_ID"] == "1"
    assert made_plan.hosts == ("10.0.0.1", "10.9.8.7")


@pytest.mark.usefixtures("script")
def test_all_here_runs_every_server_on_this_machine() -> None:
    table = write(made(servers=2, devices=8))
    made_plan = plan(rank_table=table, start="cluster", cpu=True, all_here=True)

    assert len(made_plan.local) == 17
    assert made_plan.ranks[0].environment["MS_SCHED_HOST"] == "127.0.0.1"
    with pytest.raises(LaunchError, match="16 ranks, more than --max-ranks 8"):
        plan(rank_table=table, start="cluster", cpu=True, all_here=True, max_ranks=8)
    with pytest.raises(UsageError, match="needs --cpu"):
        plan(rank_table=table, all_here=True)


@pytest.mark.usefixtures("script")
def test_the_users_folder_for_the_logs_of_cann_stays(script: str) -> None:
    table, name = write(guide_table()), "ASCEND_PROCESS_LOG_PATH"
    request = launch_request(program=(script,), rank_table=table, start="table", python=sys.executable)
    assigned = with_options(request, environment={name: "/var/plog"})

    assert name in prepare(request).plan.ranks[0].environment
    assert name not in prepare(request, {name: "/var/plog"}).plan.ranks[0].environment
    assert prepare(assigned).plan.ranks[0].environment[name] == "/var/plog"


@pytest.mark.parametrize(("key", "value"), [("rank_id", "7"), ("rank_id", "0"), ("device_id", "x")])
def test_ignored_rules_do_not_pass_a_table_without_a_number_for_each_rank(
    script: str, key: str, value: str
) -> None:
    broken = guide_table()
    broken["server_list"][0]["device"][3][key] = value

    with pytest.raises(LaunchError) as refused:
        plan(rank_table=write(broken), ignore=("HCC1", "HCC2", "HCC3", "HCC4", "HCC6"), cpu=True)

    assert refused.value.message == (
        "table.json: `launch` needs the rank ids 0 to 3, each once, and a number as device id of each"
    )


def test_table_with_an_error_is_refused_with_the_findings() -> None:
    value = guide_table()
    value["server_list"][0]["device"][1]["rank_id"] = "0"

    with pytest.raises(LaunchError, match="HCC2") as caught:
        plan(rank_table=write(value))
    assert caught.value.exit_code == 125


@pytest.mark.usefixtures("script")
def test_group_list_becomes_a_1_0_table_for_the_ranks() -> None:
    value = made("group_list", devices=2)
    value["group_list"][0]["instance_list"][0]["server_id"] = "127.0.0.1"
    request = launch_request(
        program=("train.py",),
        start="table",
        rank_table=write(value),
        python=sys.executable,
        server="127.0.0.1",
    )

    prepared = prepare(request)

    assert prepared.table_data is not None
    assert json.loads(prepared.table_data)["version"] == "1.0"
    assert len(prepared.plan.ranks) == 2


@pytest.mark.usefixtures("script")
def test_world_size_must_be_the_tables() -> None:
    with pytest.raises(UsageError, match="-n 8, but the table has 4 ranks"):
        plan(rank_table=write(guide_table()), ranks=8)


@pytest.mark.usefixtures("script")
def test_table_from_the_environment_is_said_aloud() -> None:
    table = write(guide_table())
    request = launch_request(program=("train.py",), start="table", python=sys.executable)

    prepared = prepare(request, {"RANK_TABLE_FILE": table})

    assert any("RANK_TABLE_FILE of your shell" in note for note in prepared.plan.notes)
    assert "RANK_TABLE_FILE" in prepared.plan.removed
    folder = Path("config")
    folder.mkdir()
    (folder / "jobstart_hccl.json").write_text(json.dumps(guide_table(count=2)))
    assert prepare(request, {"RANK_TABLE_FILE": "config"}).plan.world_size == 2


@pytest.mark.usefixtures("script")
def test_counts_and_devices_without_a_table() -> None:
    assert [rank.device for rank in plan(ranks=3, no_table=True).ranks] == [0, 1, 2]
    assert [rank.device for rank in plan(devices="4-7", no_table=True).ranks] == [4, 5, 6, 7]
    assert len(plan(ranks=256, no_table=True).ranks) == 256
    with pytest.raises(UsageError, match="the number of ranks is missing"):
        plan(no_table=True)
    with pytest.raises(UsageError, match="names 4"):
        plan(no_table=True, devices="0-3", ranks=2)


def test_devices_count_within_the_visible_ones(script: str) -> None:
    request = launch_request(
        program=(script,), start="table", devices="2,3", no_table=True, python=sys.executable
    )

    ranks = prepare(request, {"ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7"}, tuple(range(8))).plan.ranks

    assert [(rank.device, rank.device_id) for rank in ranks] == [(6, 2), (7, 3)]


@pytest.mark.parametrize(("ranks", "devices"), [(1, [4]), (3, [4, 5, 6]), (4, [4, 5, 6, 7])])
@pytest.mark.parametrize("options", [{}, {"cpu": True}, {"no_table": True}])
def test_a_number_of_ranks_takes_the_first_visible_devices(
    script: str, ranks: int, devices: list[int], options: dict[str, bool]
) -> None:
    request = launch_request((script,), start="torch", ranks=ranks, python=sys.executable, **options)

    found = prepare(request, {"ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7"}, tuple(range(8))).plan.ranks
    assert [rank.device for rank in found] == devices


def test_more_ranks_than_visible_devices(script: str) -> None:
    request = launch_request(program=(script,), start="torch", ranks=4, python=sys.executable)

    with pytest.raises(LaunchError, match="4 ranks need 4 devices, but 2 are visible"):
        prepare(request, {}, (0, 1))


@pytest.mark.usefixtures("script")
def test_same_command_on_several_machines() -> None:
    made_plan = plan(start="torch", ips=("10.0.0.1", "10.0.0.2"), node_rank=1, ranks=4, no_table=True)

    assert [rank.rank for rank in made_plan.local] == [2, 3]
    first = made_plan.local[0].environment
    assert (first["RANK"], first["LOCAL_RANK"], first["WORLD_SIZE"]) == ("2", "0", "4")
    assert (first["MASTER_ADDR"], first["MASTER_PORT"]) == ("10.0.0.1", "18118")
    with pytest.raises(LaunchError, match="none of the addresses"):
        plan(start="torch", ips=("198.51.100.1", "198.51.100.2"), ranks=4, no_table=True)
    with pytest.raises(UsageError, match="--node-rank is missing: the job has 2 machines"):
        plan(start="torch", node_count=2, ranks=4, no_table=True)
    with pytest.raises(UsageError, match="--master-addr is missing"):
        plan(start="torch", node_count=2, node_rank=0, ranks=4, no_table=True)


def test_several_machines_cannot_meet_at_loopback() -> None:
    with pytest.raises(UsageError, match=r"127\.0\.0\.1 is not reachable from the other machines"):
        plan(ips=("127.0.0.1", "10.0.0.2"), node_rank=0, ranks=2, no_table=True, start="torch")


@pytest.mark.usefixtures("script")
def test_rehearsal_without_a_framework_hints_at_another_python(own_directory: Path) -> None:
    bare = own_directory / "python"
    bare.write_text("#!/bin/sh\necho /opt/bare/python\n")
    bare.chmod(0o755)
    request = launch_request(("train.py",), ranks=2, cpu=True, python=str(bare))

    said = "the ranks' Python has no MindSpore, torch or paddle (/opt/bare/python); --python selects another"
    assert said in prepare(request).plan.notes
    assert said not in prepare(with_options(request, start="table")).plan.notes


@pytest.mark.usefixtures("script")
def test_ranks_of_paddle_have_endpoints_under_the_start_by_the_table(own_directory: Path) -> None:
    site = own_directory / "site"
    (site / "paddlepaddle-3.3.1.dist-info").mkdir(parents=True)
    python = own_directory / "python"
    python.write_text(f"#!/bin/sh\necho /opt/paddle/python\necho {site}\n")
    python.chmod(0o755)
    request = launch_request(("train.py",), ranks=2, cpu=True, python=str(python), start="table")

    made = prepare(request).plan

    everyone = [rank.environment["PADDLE_CURRENT_ENDPOINT"] for rank in made.ranks]
    assert made.common["PADDLE_TRAINER_ENDPOINTS"].split(",") == everyone
    assert made.common["PADDLE_MASTER"] == everyone[0]
    assert prepare(with_options(request, start="torch")).plan.notes == made.notes


@pytest.mark.usefixtures("script")
def test_flags_start_port_counts_on_one_machine_too() -> None:
    request = launch_request(("train.py",), ranks=2, cpu=True, start="torch", python=sys.executable)

    found = prepare(request, {"FLAGS_START_PORT": "17100"}).plan
    assert found.common["PADDLE_TRAINER_ENDPOINTS"] == "127.0.0.1:17100,127.0.0.1:17101"
    assert found.ranks[0].environment["MASTER_PORT"] == "17100"
    with pytest.raises(UsageError, match='FLAGS_START_PORT="abc" is not a port'):
        prepare(request, {"FLAGS_START_PORT": "abc"})


@pytest.mark.usefixtures("script")
def test_gloo_of_several_machines_uses_the_interface_of_the_job() -> None:
    own = interface_addresses()[0]
    request = launch_request(
        ("train.py",), ranks=4, cpu=True, start="torch", python=sys.executable, ips=(own, "198.51.100.2")
    )

    here, there = prepare(request).plan.ranks[:2], prepare(request).plan.ranks[2:]

    name = here[0].environment["GLOO_SOCKET_IFNAME"]
    assert interface_address(name) == own
    assert {rank.environment.get("GLOO_SOCKET_IFNAME") for rank in here} == {name}
    assert {rank.environment.get("GLOO_SOCKET_IFNAME") for rank in there} == {None}
    mine = prepare(request, {"GLOO_SOCKET_IFNAME": "mine0"})
    assert mine.environment["GLOO_SOCKET_IFNAME"] == "mine0"
    assert "GLOO_SOCKET_IFNAME" not in mine.plan.ranks[0].environment
    alone = prepare(with_options(request, ips=(), ranks=2)).plan
    assert "GLOO_SOCKET_IFNAME" not in alone.ranks[0].environment


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize("here", [0, 1])
def test_the_interface_of_a_machine_is_found_by_either_address(here: int) -> None:
    """One of the two addresses, this machine's or the other's, leads to no interface of the job."""
    own, loopback = interface_addresses()[0], "127.0.0.9"
    found = plan(
        start="torch", cpu=True, ips=(loopback, own), node_rank=here, ranks=2, no_table=True,
        master_address=loopback,
    )  # fmt: skip

    assert interface_address(found.ranks[here].environment["GLOO_SOCKET_IFNAME"]) == own
    assert "GLOO_SOCKET_IFNAME" not in found.ranks[1 - here].environment


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize("faulthandler", [False, True])
def test_a_python_path_that_was_typed_is_that_of_the_ranks(faulthandler: bool) -> None:
    """With --faulthandler it is part of the launcher's own value, which each rank would otherwise replace."""
    found = plan(ranks=2, no_table=True, environment={"PYTHONPATH": "/own"}, faulthandler=faulthandler)

    values = {found.common.get("PYTHONPATH", ""), *(one.environment.get("PYTHONPATH") for one in found.ranks)}
    if faulthandler:
        assert found.common["PYTHONPATH"].endswith(":/own")
        assert values == {found.common["PYTHONPATH"], None}
    else:
        assert values == {"", "/own"}


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize(
    ("options", "start", "reason"),
    [
        ({}, "table", "a plain program"),
        ({"start": "torch"}, "torch", "--start"),
        ({"cpu": True}, "table", "the ranks' Python has no MindSpore, torch or paddle"),
    ],
)
def test_the_start_of_a_program_without_python_has_its_reason(
    own_directory: Path, options: dict[str, Any], start: str, reason: str
) -> None:
    bare = own_directory / "python"
    bare.write_text("#!/bin/sh\necho /opt/bare/python\n")
    bare.chmod(0o755)
    options = {"start": None, "python": str(bare), **options}

    found = plan(program=("true",), kind="program", ranks=2, no_table=True, **options)

    assert found.start == start
    assert reason in found.chosen["start"]


def test_program_that_is_not_there() -> None:
    with pytest.raises(ProgramMissingError, match=r'script "train.py" does not exist') as caught:
        plan(ranks=1, no_table=True)
    assert caught.value.exit_code == 127


@pytest.mark.usefixtures("script")
def test_logs_where_the_user_wants_them() -> None:
    assert plan(ranks=2, no_table=True, log_file="train.log").ranks[0].log == str(Path.cwd() / "train.log")
    flat = plan(ranks=2, no_table=True, flat_logs=True, log_dir="out")
    assert [rank.log for rank in flat.ranks] == [str(Path.cwd() / f"out/workerlog.{rank}") for rank in (0, 1)]


@pytest.mark.usefixtures("script")
def test_plan_as_json_masks_secrets() -> None:
    request = launch_request(
        program=("train.py",), start="table", rank_table=write(guide_table()), python=sys.executable,
        environment={"MY_APIKEY": "told to no one"},
    )  # fmt: skip
    prepared = prepare(request, {"HCCL_CONNECT_TIMEOUT": "600", "RANK_ID": "7"})

    value = json.loads(plan_output.as_json(prepared.plan, prepared.environment))

    assert value["schema_version"] == 1
    assert value["processes"][1]["environment"]["MY_APIKEY"] == "***"
    assert value["passed_variables"] == {"HCCL_CONNECT_TIMEOUT": "600"}
    assert value["removed_variables"] == ["RANK_ID"]
    assert "told to no one" not in plan_output.as_text(prepared.plan, prepared.environment)


@pytest.mark.usefixtures("script")
def test_plan_as_text_has_aligned_columns() -> None:
    prepared = prepare(
        launch_request(
            program=("train.py",), start="table", rank_table=write(guide_table()), python=sys.executable
        ),
        nodes=(4, 5, 6, 7),
    )

    lines = plan_output.as_text(prepared.plan, {}).splitlines()

    header = next(index for index, line in enumerate(lines) if line.startswith("  rank  host"))
    assert lines[header : header + 3] == [
        "  rank  host       device  DEVICE_ID  log",
        "  0     127.0.0.1  4       0          rank_0.log",
        "  1     127.0.0.1  5       1          rank_1.log",
    ]
    assert "  device: the physical id, as in the table; DEVICE_ID: the id in the process" in lines


def test_one_rank_of_several_is_counted_among_ranks() -> None:
    options = {"program": ("true",), "kind": "program", "cpu": True, "start": "torch", "no_table": True}
    machines = {"node_count": 2, "node_rank": 0, "master_address": "10.0.0.1"}

    of_two, alone = plan(ranks=2, **options, **machines), plan(ranks=1, **options)

    assert next(plan_output.lines(of_two)).startswith("1 of 2 ranks, ")
    assert next(plan_output.lines(alone)).startswith("1 rank, ")


def two_servers(*hosts: str) -> dict[str, Any]:
    """Return a table of these servers with two devices each, 4 and 5, or 6 and 7 on the second."""
    servers = [
        {
            "server_id": host,
            "host_nic_ip": "reserve",
            "device": [
                {"device_id": str(4 + 2 * index + place), "device_ip": f"192.168.{index}.{place + 1}",
                 "rank_id": str(2 * index + place)}
                for place in (0, 1)
            ],
        }
        for index, host in enumerate(hosts)
    ]  # fmt: skip
    return {"version": "1.0", "server_count": str(len(hosts)), "status": "completed", "server_list": servers}


@pytest.mark.parametrize("hosts", [("203.0.113.1", "203.0.113.2"), ("203.0.113.1",)])
def test_plan_of_other_hosts_can_be_shown_but_not_carried_out(script: str, hosts: tuple[str, ...]) -> None:
    request = launch_request(
        program=(script,), rank_table=write(two_servers(*hosts)), start="torch", python=sys.executable,
        product="a2", ignore=("HCC2", "HCC5", "HCC6"), ignore_visible=True, bind="cores",
    )  # fmt: skip
    with pytest.raises(LaunchError, match="none of the table's servers is this host"):
        prepare(request)
    shown = prepare(with_options(request, include_this_host=False)).plan
    text = plan_output.as_text(shown, {})

    assert [rank.host for rank in shown.ranks] == [host for host in hosts for _ in (0, 1)]
    assert "a launch on this host would be refused" in " ".join(text.split())
    assert text.count("RANK_ID={rank} ") == 1
    assert [line.split()[0] for line in text.splitlines() if line.endswith((".log", "(there)"))] == [
        str(rank) for rank in range(2 * len(hosts))
    ]
    assert not any(one["here"] for one in json.loads(plan_output.as_json(shown, {}))["processes"])
    # Each host's own devices, whichever host looks.
    visible = [rank.environment["ASCEND_RT_VISIBLE_DEVICES"] for rank in shown.ranks]
    assert visible == ["4,5", "4,5", "6,7", "6,7"][: 2 * len(hosts)]


@pytest.mark.usefixtures("script")
def test_one_command_cannot_give_several_hosts_one_address() -> None:
    """HCCL would look for it on each; where the command is typed on each host, it can be that host's own."""
    options = {"rank_table": write(made("1.0", 2, 8)), "environment": {"HCCL_IF_IP": "10.0.0.1"}, "cpu": True}

    with pytest.raises(UsageError, match=r"HCCL_IF_IP=10\.0\.0\.1 assigns one address to all 2 hosts"):
        plan(engine="ssh", **options)
    assert plan(server="10.0.0.1", **options).processes
