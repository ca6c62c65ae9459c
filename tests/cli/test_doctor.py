"""``hccl-tools doctor`` on stand-in hosts: a fault is named with host, device and cause, and nothing else."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from hccl_tools.formats.schema import load
from hccl_tools.host.host import own_address
from tests.support.hosts import StandInHost, conf_text, described, make_host
from tests.support.sockets import ADDRESS, OTHER_ADDRESS, connection, listener

if TYPE_CHECKING:
    from pathlib import Path

IPS = [f"192.168.{100 + device}.101" for device in range(4)]
HERE = os.uname().nodename


@pytest.fixture
def host(tmp_path: Path) -> StandInHost:
    four = {str(device): {"ip": ip} for device, ip in enumerate(IPS)}
    return make_host(tmp_path, nodes=range(4), conf=conf_text(IPS), devices=four)


def table(host: StandInHost, *, servers: int = 2, **differs: str) -> Path:
    """Write the table of this host and others; ``differs`` has device ids and other addresses."""
    entries = []
    for server in range(servers):
        ips = [f"192.168.{100 + device}.{101 + server}" for device in range(4)]
        entries.append(
            {
                "server_id": own_address()[0] if server == 0 else f"10.99.0.{server}",
                "device": [
                    {
                        "device_id": str(device),
                        "device_ip": differs.get(f"device_{device}", ip) if server == 0 else ip,
                        "rank_id": str(4 * server + device),
                    }
                    for device, ip in enumerate(ips)
                ],
            }
        )
    path = host.work / "table.json"
    fields = {"version": "1.0", "server_count": str(servers), "server_list": entries, "status": "completed"}
    path.write_text(json.dumps(fields, indent=1))
    return path


def doctor(host: StandInHost, *args: str, **variables: Any) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit code and the findings of this host alone."""
    done = host.run(
        *("doctor", "--local", "--product", "a2", "-f", "json"), *args, HOME=str(host.folder), **variables
    )  # fmt: skip
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    assert not list(Draft202012Validator(load("doctor")).iter_errors(answer))
    assert "Traceback" not in done.stderr
    return done.returncode, answer["findings"]


def severe(findings: list[dict[str, Any]]) -> list[tuple[str, list[int]]]:
    assert all(one["hosts"] == [HERE] for one in findings)
    return [(one["check"], one["devices"]) for one in findings if one["consequence"] != "note"]


def differ(host: StandInHost, device: int = 3, **fields: Any) -> None:
    description = {**host.description, "product": "a2"}
    description["devices"][str(device)] |= fields
    host.describe(description)


@pytest.fixture
def a2(host: StandInHost) -> StandInHost:
    differ(host)
    return host


def test_a_sound_host_with_its_table(a2: StandInHost) -> None:
    code, found = doctor(a2, str(table(a2)))

    assert (code, severe(found)) == (0, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"ip": "192.168.9.9"}, ("HCC431", [3])),
        ({"tls": 1}, ("HCD204", [3])),
        ({"link": "DOWN"}, ("HCD202", [3])),
        ({"health": "Unreachable"}, ("HCD203", [3])),
        ({"npu_health": "Critical"}, ("HCD103", [3])),
    ],
)
def test_a_fault_of_one_device(
    a2: StandInHost, fields: dict[str, Any], expected: tuple[str, list[int]]
) -> None:
    differ(a2, **fields)

    code, found = doctor(a2, str(table(a2)))

    assert severe(found) == [expected]
    assert code == int(found[0]["consequence"] == "stops")
    assert "device 3" in found[0]["message"]


def test_a_link_that_is_down_with_its_time(a2: StandInHost) -> None:
    differ(a2, link="DOWN", link_down="Tue Aug  1 14:43:40 2022")

    _code, found = doctor(a2, str(table(a2)))

    assert found[0]["message"] == "the network link of device 3 is DOWN since Tue Aug  1 14:43:40 2022"


def test_before_a_rehearsal_no_npu_is_looked_at(a2: StandInHost) -> None:
    differ(a2, link="DOWN", npu_health="Alarm")
    bare = ("doctor", "--local", "--cpu", "--product", "a2", "-f", "json")

    done = a2.run(*bare, str(table(a2)), HOME="/proc/nowhere", HCCL_IF_IP="203.0.113.9")

    assert [(one, devices) for one, devices in severe(json.loads(done.stdout)["findings"])] == [
        ("HCD306", [])
    ]
    assert done.returncode == 0
    assert a2.calls() == []
    refused = a2.run(*bare, "--full")
    assert (refused.returncode, "--cpu and --full exclude each other" in refused.stderr) == (2, True)


def test_net_health_init_is_a_note(a2: StandInHost) -> None:
    differ(a2, health="Init")

    code, found = doctor(a2, str(table(a2)))

    assert (code, severe(found)) == (0, [])
    assert [one["devices"] for one in found if one["check"] == "HCD205"] == [[3]]


def test_a_wrong_address_in_the_table_with_its_line(a2: StandInHost) -> None:
    path = table(a2, device_2="192.168.102.77")

    code, found = doctor(a2, str(path))

    assert (code, severe(found)) == (1, [("HCC431", [2])])
    line = int(found[0]["place"].rsplit(":", 2)[1])
    assert "192.168.102.77" in path.read_text().splitlines()[line - 1]


@pytest.mark.slow
def test_a_wrong_address_in_hccn_conf(a2: StandInHost) -> None:
    a2.conf(conf_text([*IPS[:3], "192.168.9.9"]))

    assert doctor(a2, str(table(a2)))[0] == 0
    assert severe(doctor(a2, str(table(a2)))[1]) == [("HCC641", [3])]
    assert severe(doctor(a2)[1]) == [("HCD201", [3])]


@pytest.mark.slow
def test_a_link_that_the_job_does_not_need_is_a_note(tmp_path: Path) -> None:
    description = described("a3")
    description["devices"]["3"]["link"] = "DOWN"
    pod = make_host(tmp_path, description, nodes=range(16))
    made = pod.run("gen", "--device_num", "[0,16)", "-o", "table.json")
    assert made.returncode == 0, made.stderr

    done = pod.run("doctor", "table.json", "-f", "json", HOME=str(pod.folder))
    found = json.loads(done.stdout)["findings"]

    assert (done.returncode, severe(found)) == (0, [])
    assert any(one["check"] == "HCD202" and "inside one super pod" in one["message"] for one in found)


TOOL = "hccn_tool -i {} -ip -g"
RIGHT = "ipaddr:192.168.103.101\nnetmask:255.255.255.0\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [{"stdout": "\x00\x01 core dumped"}, {"stdout": RIGHT, "status": 1}, {"hang": True}],
    ids=["garbage", "exit code 1", "hanging"],
)
def test_a_tool_that_does_not_answer_is_a_note_that_names_it(a2: StandInHost, answer: dict[str, Any]) -> None:
    a2.describe({**a2.description, "answers": {TOOL.format(3): answer}})

    code, found = doctor(a2, str(table(a2)), "--check-timeout", "2")

    assert (code, severe(found)) == (0, [])
    assert any(one["not_examined"] and 3 in one["devices"] and "hccn_tool" in one["message"] for one in found)
    assert doctor(a2, str(table(a2)), "--strict", "--check-timeout", "2")[0] == 1


def test_program_in_place_of_a_table_is_refused(a2: StandInHost) -> None:
    (a2.folder / "train.py").write_text("import torch\n")

    done = a2.run("doctor", str(a2.folder / "train.py"))

    assert (done.returncode, done.stdout) == (1, "")
    assert "train.py cannot be used: this is " in done.stderr
    assert "  help: specify the rank table" in done.stderr


def test_hostfile_in_place_of_a_table_gets_the_command(a2: StandInHost) -> None:
    (a2.folder / "hosts").write_text("node1 slots=8\nnode2 slots=8\n")

    done = a2.run("doctor", str(a2.folder / "hosts"))

    assert done.returncode == 2
    assert "hosts is a list of hosts, not a rank table\n" in done.stderr
    assert f"`hccl-tools doctor --hostfile {a2.folder / 'hosts'}`" in done.stderr


def test_without_npus_and_tools_one_finding_says_that_nothing_was_looked_at(tmp_path: Path) -> None:
    bare = make_host(tmp_path, tools=(), nodes=())

    done = bare.run("doctor", HOME=str(tmp_path))

    assert done.returncode == 1  # `doctor && launch` starts nothing here
    assert done.stdout.startswith(
        f"stops[HCD101]: {HERE}: this host shows no NPU, so that no NPU was looked at: "
    )
    assert "HCD001" not in done.stdout
    assert done.stdout.splitlines()[-1] == f"{HERE}: 1 fault would stop the job"


def test_without_tools_it_says_what_it_could_not_look_at(tmp_path: Path) -> None:
    bare = make_host(tmp_path, tools=(), nodes=range(8))

    done = bare.run("doctor", HOME=str(tmp_path))

    assert "no hccn_tool on PATH" in done.stdout
    assert "no npu-smi on PATH" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "check", "words"),
    [
        ({"HCCL_SOCKET_IFNAME": "=eth77"}, "HCD307", "matches no interface"),
        ({"HCCL_IF_IP": "203.0.113.9"}, "HCD307", "is not an address of this host"),
        ({"HCCL_CONNECT_TIMEOUT": "60"}, "HCD307", "120 to 7200"),
        ({"HCCL_SOCKET_FAMILY": "inet"}, "HCD307", 'HCCL_SOCKET_FAMILY="inet": HCCL accepts AF_INET or'),
        ({"HCCL_INTRA_ROCE_ENABLE": "1", "HCCL_INTRA_PCIE_ENABLE": "1"}, "HCD308", "both 1"),
        ({"RANKTABLEFILE": "/etc/hosts", "RANK_TABLE_FILE": "/etc/passwd"}, "HCD308", "different tables"),
        ({"RANK_TABLE_FILE": "/none.json"}, "HCD318", "the file does not exist on this host"),
        ({"RANK_TABLE_FILE": "/none.json", "RANKTABLEFILE": "/none.json"}, "HCD318", "RANKTABLEFILE=/none"),
        ({"RANK_TABLE_FILE": "none.json"}, "", ""),  # the folder of the job is not known
        ({"GLOO_SOCKET_IFNAME": "eth77"}, "HCD316", "this host has no interface eth77 ("),
        ({"GLOO_SOCKET_IFNAME": "lo"}, "HCD316", "GLOO_SOCKET_IFNAME=lo is the loopback interface"),
        ({"HCCL_SOCKET_IFNAME": "=lo"}, "HCD316", "HCCL_SOCKET_IFNAME==lo is the loopback interface"),
        ({"ASCEND_MF_STORE_URL": "tcp://PIP:PORT"}, "HCD317", 'no address here, and "PORT" is not a port'),
        ({"ASCEND_MF_STORE_URL": "tcp://127.0.0.1:8081"}, "", ""),
        ({"MASTER_ADDR": "no-such-host.invalid"}, "HCD317", "its name has no address here"),
        ({"MASTER_ADDR": "10.99.0.1", "MASTER_PORT": "port"}, "HCD317", '"port" is not a port (MASTER_PORT)'),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0,2"}, "HCD319", "hides devices 1,3, which the table has here"),
        ({"ASCEND_RT_VISIBLE_DEVICES": "3,2,1,0"}, "", ""),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0,1,2,3,4"}, "HCD319", "no logical device 4"),
        ({"ASCEND_RT_VISIBLE_DEVICES": "0-3"}, "HCD319", 'cannot read "0-3"'),
        ({"RANK_ID": "8"}, "HCD320", "RANK_ID=8, but the table has the ranks 0 to 7"),
        ({"RANK_ID": "4"}, "HCD320", "RANK_ID=4, but the table has ranks 0-3 here"),
        ({"RANK_ID": "3", "RANK_SIZE": "8", "WORLD_SIZE": "8"}, "", ""),
        ({"WORLD_SIZE": "4"}, "HCD320", "WORLD_SIZE=4, but the table has 8 ranks"),
    ],
)
def test_variables(a2: StandInHost, variables: dict[str, Any], check: str, words: str) -> None:
    _code, found = doctor(a2, str(table(a2)), **variables)

    assert [one for one, _ in severe(found)] == ([check] if check else [])
    assert not check or words in found[0]["message"]


def test_torch_needs_a_longer_timeout_and_no_link(a2: StandInHost) -> None:
    link = a2.work / "link.json"
    link.symlink_to(table(a2))

    _code, found = doctor(a2, str(link), "--target", "torch", HCCL_CONNECT_TIMEOUT="200")

    assert [one for one, _ in severe(found)] == ["HCD312", "HCD311"]


def test_mindie_requires_a_mode(a2: StandInHost) -> None:
    path = table(a2)
    value = json.loads(path.read_text())
    for server in value["server_list"]:
        server["container_ip"] = server["server_id"]
    path.write_text(json.dumps(value))
    path.chmod(0o777)

    _code, found = doctor(a2, str(path), "--target", "mindie")

    assert [one for one, _ in severe(found)] == ["HCD312"]
    assert found[0]["remedy"] == f"`chmod 640 {path}`"


def test_what_the_framework_requires_of_the_table(a2: StandInHost) -> None:
    path = table(a2)
    path.chmod(0o640)

    code, found = doctor(a2, str(path), "--target", "mindie")

    assert code == 1
    assert [one for one, _ in severe(found)] == ["HCD002"]
    assert "HCC864 server" in found[0]["message"]
    assert "takes the server_id" in found[0]["remedy"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "variables", "words"),
    [
        ("mindie", {"MIES_CONTAINER_IP": "172.17.0.9"}, "but the table has 172.17.0.2"),
        ("mindie", {"MASTER_IP": "10.0.0.9"}, "MASTER_IP=10.0.0.9"),
        ("mindie", {"MIES_CONTAINER_IP": "172.17.0.2", "MASTER_IP": "127.0.0.1"}, ""),
        ("mindspore", {"ASCEND_RT_VISIBLE_DEVICES": "0,1"}, "but the table has devices 0,1,2,3 here"),
        ("mindspore", {"ASCEND_RT_VISIBLE_DEVICES": "3,2,1,0"}, ""),
    ],
)
def test_variables_of_the_framework(
    a2: StandInHost, target: str, variables: dict[str, Any], words: str
) -> None:
    path = table(a2)
    value = json.loads(path.read_text())
    value["server_list"][0] |= {"server_id": "127.0.0.1", "container_ip": "172.17.0.2"}
    value["server_list"][1] |= {"server_id": "192.0.2.9", "container_ip": "172.17.0.3"}
    path.write_text(json.dumps(value))
    path.chmod(0o640)

    _code, found = doctor(a2, str(path), "--target", target, **variables)

    assert [one for one, _ in severe(found)] == (["HCD313"] if words else [])
    assert words in (found[0]["message"] if words else "")


@pytest.mark.slow
def test_all_devices_of_one_server_ping_each_other_over_hccs(tmp_path: Path) -> None:
    description = described("a3")
    first, second = (description["devices"][device]["vnic"] for device in ("1", "2"))
    description["devices"]["1"]["lost_over_hccs"] = {second: 3}
    description["devices"]["2"]["lost_over_hccs"] = {first: 3}
    host = make_host(tmp_path / "host", description, nodes=range(4))
    made = host.run("gen", "--server_ip", own_address()[0], "--devices", "0-3", "-o", "t.json")
    assert made.returncode == 0, made.stderr
    ask = ["doctor", "--local", "-f", "json", "t.json", "--ignore", "HCC642"]

    quiet = host.run(*ask)
    done = host.run(*ask, "--full")

    assert severe(json.loads(quiet.stdout)["findings"]) == []
    (found,) = [one for one in json.loads(done.stdout)["findings"] if one["consequence"] != "note"]
    assert (found["check"], done.returncode) == ("HCD604", 1)
    assert "device 1 to device 2, in either direction" in found["message"]
    assert "pinging" not in quiet.stderr


def test_the_start_port_is_in_use(a2: StandInHost) -> None:
    a2.real_ports()
    with listener() as port:
        code, found = doctor(a2, str(table(a2)), "--start-port", str(port), "--select", "HCD303")

    assert (code, severe(found)) == (1, [("HCD303", [])])
    assert f"port {port} is in use by process {os.getpid()} (" in found[0]["message"]


def test_hccls_port_is_in_use(a2: StandInHost) -> None:
    a2.real_ports()
    with listener() as port:
        base = {"HCCL_IF_BASE_PORT": str(port - 2), "HCCL_IF_IP": ADDRESS}
        code, found = doctor(a2, str(table(a2)), "--select", "HCD301", **base)
        other = doctor(a2, "--select", "HCD301", **{**base, "HCCL_IF_IP": OTHER_ADDRESS})

    assert (code, severe(found)) == (1, [("HCD301", [])])
    assert f"port {port} is in use by process {os.getpid()} (" in found[0]["message"]
    assert other == (0, [])


@pytest.mark.parametrize("closed", [False, True], ids=["open", "TIME_WAIT"])
def test_hccls_port_belongs_to_a_connection(a2: StandInHost, closed: bool) -> None:
    a2.real_ports()
    with connection(closed=closed) as port:
        base = {"HCCL_IF_BASE_PORT": str(port - 2), "HCCL_IF_IP": ADDRESS}
        code, found = doctor(a2, str(table(a2)), "--select", "HCD301", **base)

    assert (code, severe(found)) == (0, [("HCD301", [])])
    assert f"port {port} belongs to an outgoing connection at the moment" in found[0]["message"]
    assert f"ip_local_reserved_ports={port - 2}-{port + 13}`" in found[0]["remedy"]


def test_a_running_job_is_one_finding(a2: StandInHost) -> None:
    running = [[device, 4000 + device, "python3.9", 900] for device in range(4)]
    a2.describe({**a2.description, "processes": running})

    code, found = doctor(a2, str(table(a2)))

    assert (code, severe(found)) == (1, [("HCD106", [0, 1, 2, 3])])
    assert "4 processes" in found[0]["message"]
    assert "python3.9" in found[0]["message"]


def test_the_process_that_holds_a_device(a2: StandInHost) -> None:
    node = a2.root / "dev" / "davinci2"
    program = f"import sys; file = open({str(node)!r}); print('up', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as it:
        assert it.stdout is not None
        it.stdout.readline()
        _code, found = doctor(a2)
        it.communicate()

    assert severe(found) == [("HCD106", [2])]
    assert f"process {it.pid}" in found[0]["message"]


def test_a_small_limit_of_locked_memory(a2: StandInHost) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hccl_tools", "doctor", "-f", "json"],
        check=False, capture_output=True, text=True, env=a2.environ(HOME=str(a2.folder)),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (16384, 16384)),
    )  # fmt: skip
    found = json.loads(done.stdout)["findings"]

    assert [one for one, _ in severe(found)] == ["HCD304"]
    assert "locked memory is 16,384" in found[0]["message"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_full_disk_for_logs(a2: StandInHost) -> None:
    logs = a2.folder / "logs"
    logs.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "logs", logs], check=False).returncode:
        pytest.skip("this machine does not let root mount a file system")
    try:
        _code, found = doctor(a2, ASCEND_PROCESS_LOG_PATH=str(logs))
    finally:
        subprocess.run(["umount", logs], check=True)

    assert [one for one, _ in severe(found)] == ["HCD306"]
    assert str(logs) in found[0]["message"]


def test_rootinfo_that_docker_made_a_directory(a2: StandInHost) -> None:
    (a2.root / "etc" / "hccl_rootinfo.json").mkdir(parents=True)

    code, found = doctor(a2)

    assert (code, [one for one, _ in severe(found)]) == (1, ["HCD403"])


def test_a_container_without_mounts_gets_the_options_to_type(a2: StandInHost) -> None:
    (a2.root / ".dockerenv").touch()
    (a2.root / "dev" / "hisi_hdc").unlink()

    code, found = doctor(a2)

    assert code == 1
    assert [one for one, _ in severe(found)] == ["HCD401", "HCD402"]
    remedies = "\n".join(one["remedy"] for one in found[:2])
    assert "docker run --device /dev/hisi_hdc" in remedies
    assert "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro" in remedies


def test_logical_ids_in_the_table(tmp_path: Path) -> None:
    devices = {str(device): {"ip": ip} for device, ip in zip(range(4, 8), IPS, strict=True)}
    container = make_host(tmp_path, nodes=range(4, 8), devices=devices)
    differ(container, 7)

    code, found = doctor(container, str(table(container)))

    assert code == 1
    assert severe(found) == [("HCC341", [device]) for device in range(4)]
    assert "physical devices 4,5,6,7 are devices 0,1,2,3" in "\n".join(one["message"] for one in found)


def test_a_table_for_another_product(a2: StandInHost) -> None:
    code, found = doctor(a2, str(table(a2)), "--product", "a3")

    assert (code, [one for one, _ in severe(found)]) == (1, ["HCD107"])


def test_a_table_with_errors(a2: StandInHost) -> None:
    path = table(a2)
    path.write_text(path.read_text().replace('"rank_id": "1"', '"rank_id": "0"'))

    code, found = doctor(a2, str(path))

    assert code == 1
    assert "HCD002" in [one for one, _ in severe(found)]
    assert "rank id" in found[0]["message"]


def test_rank_table_file_is_used_and_named(a2: StandInHost) -> None:
    done = a2.run("doctor", "--local", HOME=str(a2.folder), RANK_TABLE_FILE=str(table(a2)))

    assert "using RANK_TABLE_FILE=" in done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"{HERE}: nothing would stop the job")


def test_select_ignore_and_text(a2: StandInHost) -> None:
    differ(a2, tls=1, link="DOWN")
    path = str(table(a2))

    only = a2.run("doctor", "--local", path, "--select", "tls-differs", HOME=str(a2.folder))
    without = a2.run("doctor", "--local", path, "--ignore", "HCD2", HOME=str(a2.folder))

    assert only.stdout.splitlines()[:2] == [
        f"stops[HCD204]: {HERE}: TLS is on on device 3 and off on the others",
        "  = help: set one value on all devices of the job: `hccn_tool -i 3 -tls -s enable 0` (or 1)",
    ]
    assert (only.returncode, without.returncode) == (1, 0)
    assert "HCD2" not in without.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [(["missing.json"], "missing.json"), (["--select", "HCD9"], 'no check matches "HCD9"')],
)
def test_wrong_usage(a2: StandInHost, args: list[str], words: str) -> None:
    done = a2.run("doctor", *args)

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_list_of_checks(a2: StandInHost) -> None:
    done = a2.run("doctor", "--list")

    assert done.returncode == 0
    assert "HCD204  stops" in done.stdout
