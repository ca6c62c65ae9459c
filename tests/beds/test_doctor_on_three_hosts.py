"""``doctor`` on three hosts over ssh: each fault is planted alone, and nothing else is above a note."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.beds.daemons import end_processes
from tests.beds.three_hosts import ADDRESSES
from tests.support.hosts import conf_text, make_host
from tests.support.jobs import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.beds.three_hosts import ThreeHosts
    from tests.support.hosts import StandInHost

pytestmark = pytest.mark.bed

DEVICES = range(2)
PYTHON = """\
#!/bin/sh
{first}
exec /usr/bin/python3 "$@"
"""
LISTEN = """
import socket, sys
ports = [socket.socket() for _ in sys.argv[1:]]
for port, number in zip(ports, sys.argv[1:]):
    port.bind(("", int(number)))
    port.listen()
print("up", flush=True)
sys.stdin.read()
"""
#: Connects from an address and a port to the same address.
CONNECT = """
import socket, sys
server = socket.socket()
server.bind((sys.argv[1], 0))
server.listen()
client = socket.create_connection(server.getsockname(), source_address=(sys.argv[1], int(sys.argv[2])))
accepted, _ = server.accept()
print("up", flush=True)
sys.stdin.read()
client.close()
accepted.recv(1)
accepted.close()
"""


def address(machine: int, device: int) -> str:
    return f"192.168.{100 + device}.{machine}"


class Bed:
    """Three sound A2 hosts with their table, and ``doctor`` typed on the first."""

    def __init__(self, hosts: ThreeHosts) -> None:
        self.hosts = hosts
        self.machines: list[StandInHost] = []
        for number, host in enumerate(hosts.hosts, 1):
            ips = [address(number, device) for device in DEVICES]
            devices = {str(device): {"ip": ip} for device, ip in enumerate(ips)}
            self.machines.append(
                make_host(
                    *(host.folder / "ascend",), product="a2", devices=devices, nodes=DEVICES,
                    conf=conf_text(ips),
                )
            )  # fmt: skip
        #: A path with other contents on each host.
        self.disk = hosts.hosts[0].disk
        self.write_table()

    def write_table(self, **differs: str) -> None:
        """Write the same table on each host; ``differs`` has rank ids (``rank_3``) and other addresses."""
        servers = [
            {
                "server_id": server,
                "device": [
                    {
                        "device_id": str(device),
                        "device_ip": differs.get(f"rank_{2 * number + device}", address(number + 1, device)),
                        "rank_id": str(2 * number + device),
                    }
                    for device in DEVICES
                ],
            }
            for number, server in enumerate(ADDRESSES)
        ]
        fields = {"version": "1.0", "server_count": "3", "server_list": servers, "status": "completed"}
        for number in range(3):
            self.file(number, "table.json").write_text(json.dumps(fields, indent=1))

    def file(self, number: int, name: str) -> Path:
        """Return a file of the disk of a host, as this test sees it."""
        return self.hosts.hosts[number].folder / "disk" / name

    def differ(self, number: int, device: int | None = None, **fields: Any) -> None:
        """Change what the tools of a host say."""
        machine = self.machines[number]
        description = machine.description
        (description if device is None else description["devices"][str(device)]).update(fields)
        machine.describe(description)

    def before_python(self, number: int, first: str) -> None:
        """Run some lines of shell before Python starts on a host."""
        program = self.machines[number].bin / "python3"
        program.write_text(PYTHON.format(first=first))
        program.chmod(0o755)

    def run(self, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
        first = self.machines[0]
        command = ["env", f"PATH={first.bin}", f"HCCL_TOOLS_ROOT={first.root}", "HOME=/tmp"]
        command += [f"{name}={value}" for name, value in more.items()]
        command += [sys.executable, "-m", "hccl_tools", "doctor", str(self.disk / "table.json")]
        command += ["--engine", "ssh", "--ssh", str(self.hosts.ssh), *args]
        return self.hosts.hosts[0].run(command, cwd=str(self.hosts.hosts[0].folder))

    def findings(self, *args: str) -> list[tuple[str, list[str], str]]:
        """Return the check, the hosts and the message of all findings above a note."""
        done = self.run("-f", "json", *args)
        assert done.stdout, done.stderr
        assert "Traceback" not in done.stderr
        found = json.loads(done.stdout)["findings"]
        return [(one["check"], one["hosts"], one["message"]) for one in found if one["consequence"] != "note"]

    def about(self, check: str) -> list[dict[str, Any]]:
        """Return the findings of a check, notes included."""
        found: list[dict[str, Any]] = json.loads(self.run("-f", "json", "--select", check).stdout)["findings"]
        return found


@pytest.fixture
def bed(three_hosts: ThreeHosts) -> Bed:
    return Bed(three_hosts)


def test_sound_hosts(bed: Bed) -> None:
    done = bed.run()

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("3 hosts: nothing would stop the job")
    assert bed.findings() == []


def wrong_address_in_the_table(bed: Bed) -> None:
    bed.write_table(rank_3="192.168.101.77")


def wrong_address_in_hccn_conf(bed: Bed) -> None:
    bed.machines[1].conf(conf_text([address(2, 0), "192.168.101.77"]))


def wrong_address_on_the_device(bed: Bed) -> None:
    bed.differ(1, 1, ip="192.168.101.77")


def tls_on_one_device(bed: Bed) -> None:
    bed.differ(1, 1, tls=1)


def tls_on_one_host(bed: Bed) -> None:
    for device in DEVICES:
        bed.differ(2, device, tls=1)


def link_down(bed: Bed) -> None:
    bed.differ(1, 1, link="DOWN")


def slow_link(bed: Bed) -> None:
    bed.differ(1, 1, speed=100000)


def bad_health(bed: Bed) -> None:
    bed.differ(1, 0, npu_health="Alarm")


def other_table(bed: Bed) -> None:
    path = bed.file(1, "table.json")
    path.write_text(path.read_text().replace(address(3, 1), "192.168.101.9"))


def rootinfo_is_a_folder(bed: Bed) -> None:
    (bed.machines[2].root / "etc" / "hccl_rootinfo.json").mkdir(parents=True)


def clock_ahead(bed: Bed) -> None:
    bed.before_python(2, "export LD_PRELOAD='/usr/$LIB/faketime/libfaketime.so.1' FAKETIME=+5m")


def no_such_interface(bed: Bed) -> None:
    bed.before_python(1, "export HCCL_SOCKET_IFNAME==eth77")


def other_variable(bed: Bed) -> None:
    bed.before_python(1, "export HCCL_BUFFSIZE=64")


def little_locked_memory(bed: Bed) -> None:
    bed.before_python(1, "ulimit -l 16")


def few_open_files(bed: Bed) -> None:
    bed.before_python(1, "ulimit -n 256")


def no_device_node(bed: Bed) -> None:
    (bed.machines[2].root / "dev" / "davinci1").unlink()


def one_way_lost(bed: Bed) -> None:
    bed.differ(1, 1, lost={address(3, 1): 3})


def full_log_disk(bed: Bed) -> None:
    folder = bed.disk / "logs"
    mount = f"mkdir -p {folder} && mount -t tmpfs -o size=1m tmpfs {folder}"
    bed.before_python(
        1,
        f"export ASCEND_PROCESS_LOG_PATH={folder}\n"
        f'exec unshare --mount sh -c \'{mount} && exec /usr/bin/python3 "$@"\' sh "$@"',
    )


def device_without_a_way(bed: Bed) -> None:
    bed.differ(0, 1, lost={address(2, 1): 3})
    bed.differ(1, 1, lost={address(3, 1): 3})


def some_packets_lost(bed: Bed) -> None:
    bed.differ(1, 0, lost={address(3, 0): 1}, ping_status=1)


@pytest.mark.parametrize(
    ("plant", "host", "check", "words"),
    [
        (wrong_address_in_the_table, 1, "HCC431", "192.168.101.77"),
        (wrong_address_in_hccn_conf, 1, "HCC641", "192.168.101.77"),
        (wrong_address_on_the_device, 1, "HCC431", "device 1 has 192.168.101.77"),
        (tls_on_one_device, 1, "HCD204", "TLS is on on device 1"),
        (tls_on_one_host, 2, "HCD504", "the TLS switch of the devices differs: on"),
        (link_down, 1, "HCD202", "device 1 is DOWN"),
        (slow_link, 1, "HCD206", "device 1 has 100 Gb/s, those of the others 200 Gb/s"),
        (bad_health, 1, "HCD103", "device 0"),
        (other_table, 1, "HCD507", "the table differs"),
        (rootinfo_is_a_folder, 2, "HCD403", "hccl_rootinfo.json"),
        (clock_ahead, 2, "HCD506", "ahead of the others"),
        (no_such_interface, 1, "HCD307", "eth77"),
        (other_variable, 1, "HCD508", "HCCL_BUFFSIZE=64"),
        (little_locked_memory, 1, "HCD304", "locked memory is 16,384"),
        (few_open_files, 1, "HCD304", "256"),
        (no_device_node, 2, "HCC341", "device 1"),
        (one_way_lost, 1, "HCD601", "device 1 to device 1, the other direction was not asked"),
        (full_log_disk, 1, "HCD306", "has 1 MiB of free space"),
        (device_without_a_way, 1, "HCD601", "device 1 reaches no other server"),
        (some_packets_lost, 1, "HCD603", f"1 of 3 from device 0 to device 0 of {ADDRESSES[2]}"),
    ],
)
def test_a_planted_fault(bed: Bed, plant: Callable[[Bed], None], host: int, check: str, words: str) -> None:
    plant(bed)

    found = bed.findings()

    assert [(one, hosts) for one, hosts, _ in found] == [(check, [ADDRESSES[host]])], found
    assert words in found[0][2]


def test_a_rail_without_a_way(bed: Bed) -> None:
    for number in range(3):
        bed.differ(number, 1, lost={address((number + 1) % 3 + 1, 1): 3})

    found = bed.findings()

    assert [(one, hosts) for one, hosts, _ in found] == [("HCD602", list(ADDRESSES))]
    assert "rail 1: none of 3 pings" in found[0][2]


def test_a_pair_without_a_way_among_all_pairs(bed: Bed) -> None:
    bed.differ(0, 0, lost={address(3, 1): 3})
    bed.differ(2, 1, lost={address(1, 0): 3})

    assert bed.findings() == []  # the devices of different rails do not ping each other
    found = bed.findings("--full")

    assert [(one, hosts) for one, hosts, _ in found] == [("HCD601", [ADDRESSES[0], ADDRESSES[2]])]
    assert f"from {ADDRESSES[2]}: device 0 to device 1, in either direction" in found[0][2]


def test_logical_ids_in_the_table(bed: Bed) -> None:
    """The second host has the devices 4 and 5: its programs count them as 0 and 1, as the table does."""
    machine = bed.machines[1]
    for device in DEVICES:
        (machine.root / "dev" / f"davinci{device}").rename(machine.root / "dev" / f"davinci{device + 4}")
    devices = {str(device + 4): {"ip": address(2, device)} for device in DEVICES}
    bed.differ(1, devices=devices)
    bed.machines[1].conf(conf_text({device + 4: address(2, device) for device in DEVICES}))

    found = bed.findings()

    assert [(one, hosts) for one, hosts, _ in found] == [("HCC341", [ADDRESSES[1]])] * 2
    assert "their logical ids" in bed.run().stdout


def test_the_matrix_of_pings(bed: Bed) -> None:
    bed.differ(0, 0, lost={address(3, 1): 3})
    bed.differ(2, 1, lost={address(1, 0): 1})

    done = bed.run("--full", "-f", "matrix")

    body, _, legend = done.stdout.partition("\n\nLegend:\n")
    assert [line.split() for line in body.partition("pings answered\n")[2].splitlines() if line] == [
        ["S0", "S1", "S2", "Server"],
        ["S0", "X", "4/4", "3/4", ADDRESSES[0] + ",", "ranks", "0-1"],
        ["S1", "4/4", "X", "4/4", ADDRESSES[1] + ",", "ranks", "2-3"],
        ["S2", "4/4", "4/4", "X", ADDRESSES[2] + ",", "ranks", "4-5"],
        f"packets received from {ADDRESSES[2]} by {ADDRESSES[0]}".split(),
        ["NPU0", "NPU1"],
        ["NPU0", "3/3", "0/3"],
        ["NPU1", "3/3", "3/3"],
        f"packets received from {ADDRESSES[0]} by {ADDRESSES[2]}".split(),
        ["NPU0", "NPU1"],
        ["NPU0", "3/3", "3/3"],
        ["NPU1", "2/3", "3/3"],
    ]
    assert "HCCS" in legend
    assert done.returncode == 1  # as with the other formats


def test_no_pings_if_nobody_asks(bed: Bed) -> None:
    bed.differ(1, 1, lost={address(3, 1): 3})

    assert bed.findings("--ignore", "HCD6") == []
    calls = (bed.machines[1].bin / "calls.log").read_text()
    assert "-ping" not in calls


def test_the_time_of_pings_is_told_before(bed: Bed) -> None:
    done = bed.run()

    assert "pinging 2 devices of other servers from each host over RoCE, about 6 s" in done.stderr


def test_another_product(bed: Bed) -> None:
    bed.differ(2, product="910a")

    found = bed.findings()

    assert [(one, hosts) for one, hosts, _ in found] == [("HCD502", [ADDRESSES[2]])]
    assert "910a, but a2 on" in found[0][2]


def test_another_address_family(bed: Bed) -> None:
    for device in DEVICES:
        bed.differ(2, device, ip=f"fd00:1::{device + 1}")
    bed.machines[2].conf(conf_text([f"fd00:1::{device + 1}" for device in DEVICES]))
    bed.write_table(rank_4="fd00:1::1", rank_5="fd00:1::2")

    found = bed.findings("--ignore", "HCD002")

    assert [(one, hosts) for one, hosts, _ in found] == [("HCD505", [ADDRESSES[2]])]
    assert "IPv6, but IPv4 on" in found[0][2]


@pytest.mark.parametrize(
    "answer",
    [
        {"hang": True}, {"stdout": "\x00\xffgarbage\n"}, {"status": 1, "stdout": "link status: UP\n"}
    ],
)  # fmt: skip
def test_a_tool_without_an_answer(bed: Bed, answer: dict[str, Any]) -> None:
    bed.differ(1, answers={"hccn_tool -i 1 -link -g": answer})

    assert bed.findings("--check-timeout", "2") == []


def test_a_host_without_the_tool(bed: Bed) -> None:
    (bed.machines[2].bin / "hccn_tool").unlink()

    done = bed.run("-f", "json")

    found = [one for one in json.loads(done.stdout)["findings"] if one["not_examined"]]
    assert done.returncode == 0
    assert any(one["hosts"] == [ADDRESSES[2]] and "hccn_tool" in one["message"] for one in found)


def test_net_health_init_is_a_note(bed: Bed) -> None:
    bed.differ(1, 1, health="Init")

    assert bed.findings() == []


@contextmanager
def rewritten(path: Path, text: str) -> Iterator[None]:
    before = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


def silent(bed: Bed, *args: str) -> str:
    """Return why the third host did not answer; nothing else is found."""
    found = bed.findings("--gather-timeout", "10", *args)
    assert [(check, hosts) for check, hosts, _ in found] == [("HCD501", [ADDRESSES[2]])], found
    return found[0][2]


def test_a_host_without_the_key(bed: Bed) -> None:
    with rewritten(bed.hosts.hosts[2].folder / "authorized_keys", ""):
        assert "Permission denied" in silent(bed)


def test_a_host_with_an_unknown_key(bed: Bed) -> None:
    known = bed.hosts.ssh.with_name("known_hosts")
    rest = [line for line in known.read_text().splitlines(keepends=True) if ADDRESSES[2] not in line]
    with rewritten(known, "".join(rest)):
        assert "Host key verification failed" in silent(bed)


def test_a_host_that_is_down(bed: Bed) -> None:
    bed.hosts.hosts[2].cut_off()
    try:
        assert silent(bed)
    finally:
        bed.hosts.hosts[2].reconnect()


def test_a_host_that_hangs_after_the_login(bed: Bed) -> None:
    third = bed.hosts.hosts[2]
    bed.before_python(2, "exec sleep 300")

    try:
        assert "within" in silent(bed)
    finally:
        end_processes(lambda: [pid for pid, argv in third.commands().items() if argv == ["sleep", "300"]])


@contextmanager
def running(bed: Bed, program: str, *args: str, index: int = 1) -> Iterator[int]:
    """Run a program on a host, where the ports in use are read from the kernel; yield its pid."""
    bed.machines[index].real_ports()
    command = [sys.executable, "-c", program, *args]
    with bed.hosts.hosts[index].start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "up\n"
        yield job.pid
        job.communicate("")


@pytest.mark.parametrize(
    ("port", "check", "args"),
    [(18555, "HCD303", ["--start-port", "18555"]), (16666, "HCD302", [])],
)
def test_a_taken_port(bed: Bed, port: int, check: str, args: list[str]) -> None:
    with running(bed, LISTEN, str(port)):
        found = bed.findings(*args)

    assert [(one, hosts) for one, hosts, _ in found] == [(check, [ADDRESSES[1]])]
    assert f"port {port} is in use by process" in found[0][2]


@pytest.mark.parametrize(("taken", "consequence"), [(1, "note"), (14, "note"), (15, "stops")])
def test_ports_of_hccl_on_which_a_program_listens(bed: Bed, taken: int, consequence: str) -> None:
    """Two ranks run on each host, and HCCL has 16 ports."""
    with running(bed, LISTEN, *map(str, range(60000, 60000 + taken))) as pid:
        found = [one for one in bed.about("HCD301") if one["hosts"] == [ADDRESSES[1]]]

    assert [one["consequence"] for one in found] == [consequence]
    assert f"in use by process {pid} (" in found[0]["message"]


def test_a_port_of_hccl_that_belongs_to_a_connection(bed: Bed) -> None:
    """The port is in use for a minute after that, so no other test has a listener on this host."""
    with running(bed, CONNECT, ADDRESSES[2], "60008", index=2):
        found = bed.about("HCD301")

    assert [(one["consequence"], one["hosts"]) for one in found] == [("note", [ADDRESSES[2]])]
    assert "port 60008 belongs to an outgoing connection" in found[0]["message"]
    assert "15 of 60000-60015" in found[0]["message"]
    assert bed.about("HCD301") == found  # the connection is closed, and its port is in TIME_WAIT


def test_a_connection_at_another_address(bed: Bed) -> None:
    with running(bed, CONNECT, "127.0.0.1", "60009", index=2):
        assert not any("60009" in one["message"] for one in bed.about("HCD301"))


def test_code_that_differs_in_one_file(bed: Bed) -> None:
    for number in range(3):
        folder = bed.file(number, "code")
        folder.mkdir()
        (folder / "train.py").write_text("steps = 100\n")
        (folder / "model.py").write_text(f"layers = {12 + (number == 1)}\n")

    same = bed.findings("--code", str(bed.disk / "code" / "train.py"))
    found = bed.findings("--code", str(bed.disk / "code"))

    assert same == []
    assert [(one, hosts) for one, hosts, _ in found] == [("HCD509", [ADDRESSES[1]])]


def test_data_with_a_missing_file(bed: Bed) -> None:
    for number in range(3):
        folder = bed.file(number, "data")
        folder.mkdir()
        for part in range(4 - (number == 2)):
            (folder / f"part-{part}").write_bytes(b"x" * 1000)
    found = bed.findings("--data", str(bed.disk / "data"))

    assert [(one, hosts) for one, hosts, _ in found] == [("HCD510", [ADDRESSES[2]])]
    assert "3 files of 3,000 bytes" in found[0][2]


def test_nothing_is_left_after_ctrl_c(bed: Bed) -> None:
    bed.differ(1, answers={"hccn_tool -i 1 -link -g": {"hang": True}})
    first, second = bed.machines[0], bed.hosts.hosts[1]
    before = set(second.tmp.iterdir())

    def is_hanging() -> bool:
        return any("hccn_tool" in " ".join(argv) for argv in second.commands().values())

    command = ["env", f"PATH={first.bin}", f"HCCL_TOOLS_ROOT={first.root}"]
    command += [sys.executable, "-m", "hccl_tools", "doctor", str(bed.disk / "table.json")]
    command += ["--engine", "ssh", "--ssh", str(bed.hosts.ssh), "--check-timeout", "60"]
    with bed.hosts.hosts[0].start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        assert eventually(is_hanging)
        job.send_signal(signal.SIGINT)
        _out, err = job.communicate(timeout=30)

    assert job.returncode == 130
    assert "Traceback" not in err
    assert eventually(lambda: not is_hanging())
    assert eventually(lambda: set(second.tmp.iterdir()) == before)


ALL_REDUCE_TEST = """\
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0
speed=67.10886
[ "$(cat {disk}/number) $ASCEND_RT_VISIBLE_DEVICES" != "1 1" ] || speed=30.00000
echo "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"
echo "67108864          | 1000.00        | $speed             | success"
"""


@pytest.mark.skipif(not Path("/usr/bin/mpirun.openmpi").exists(), reason="no mpirun of the system")
def test_bandwidth(bed: Bed) -> None:
    for number in range(3):
        bed.file(number, "number").write_text(str(number))
        program = bed.file(number, "cann/tools/hccl_test/bin/all_reduce_test")
        program.parent.mkdir(parents=True)
        program.write_text(ALL_REDUCE_TEST.format(disk=bed.disk))
        program.chmod(0o755)
    first = bed.machines[0]
    mpirun = first.folder / "mpirun"  # in a folder bin/, it would be an installation of its own
    mpirun.write_text('#!/bin/sh\nexec /usr/bin/mpirun.openmpi "$@"\n')
    mpirun.chmod(0o755)

    done = bed.run(
        *("--bandwidth", "--select", "HCD6", "--select", "HCD001"),
        ASCEND_HOME_PATH=f"{bed.disk}/cann", PATH=f"{first.folder}:{first.bin}:/usr/bin:/bin",
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    pair = f"{ADDRESSES[1].rpartition('.')[0]}.[2-3]"
    slow = f"device 1 of {ADDRESSES[1]} and device 1 of {ADDRESSES[2]} (30.00 GB/s)"
    assert done.stdout.startswith(
        f"slows[HCD605]: {pair}: 1 of 6 pairs over RoCE between servers has less than 75% of the median of "
        f"67.11 GB/s: {slow}\n"
    ), done.stdout + done.stderr
    assert "9 pairs measured" in done.stdout
