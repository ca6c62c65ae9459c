"""``doctor`` on stand-in hosts, reached by a stand-in for ssh that runs its commands on this machine."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.doctor.check_input import Case
from hccl_tools.doctor.findings import compare
from hccl_tools.host.observation import DeviceObservation, Observation
from tests.support import junit
from tests.support.commands import run_here
from tests.support.hosts import StandInHost, make_host

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

#: Drops its options, and runs the rest with the tools and the tree of the host.
SSH = """\
#!/bin/sh
while [ "$1" != -- ]; do shift; done
host=$2
shift 2
case $host in
    down*) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255;;
    strange*) echo "Host key verification failed." >&2; exit 255;;
    closed*) echo "user@$host: Permission denied (publickey,password)." >&2; exit 255;;
    hanging*) exec sleep 600;;
esac
export HCCL_TOOLS_ROOT={folder}/$host/root HOME={folder} PATH={folder}/$host/bin:{python}:/usr/bin:/bin
exec sh -c "$*"
"""


class Cluster:
    """Hosts ``node1`` ... under a folder, with two devices each."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.names = [f"node{number}" for number in range(1, count + 1)]
        self.hosts: dict[str, StandInHost] = {}
        for number, name in enumerate(self.names, 1):
            devices = {str(device): {"ip": f"192.168.{100 + device}.{number}"} for device in range(2)}
            (folder / name).mkdir()
            self.hosts[name] = make_host(folder / name, product="a2", devices=devices, nodes=range(2))
        (folder / "python").mkdir()
        (folder / "python" / "python3").symlink_to(sys.executable)
        self.ssh = folder / "ssh"
        self.ssh.write_text(SSH.format(folder=folder, python=folder / "python"))
        self.ssh.chmod(0o755)

    def table(self, *others: str) -> Path:
        servers = [
            {
                "server_id": name,
                "device": [
                    {
                        "device_id": str(device),
                        "device_ip": f"192.168.{100 + device}.{number + 1}",
                        "rank_id": str(2 * number + device),
                    }
                    for device in range(2)
                ],
            }
            for number, name in enumerate([*self.names, *others])
        ]
        fields = {"version": "1.0", "server_count": str(len(servers)), "server_list": servers}
        path = self.folder / "table.json"
        path.write_text(json.dumps({**fields, "status": "completed"}, indent=1))
        return path

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        command = ["doctor", "--product", "a2", "--engine", "ssh"]
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"}
        return run_here(*command, "--ssh", str(self.ssh), *args, environ=environ)

    def findings(self, *args: str) -> list[dict[str, Any]]:
        done = self.run("-f", "json", *args)
        assert done.stdout, done.stderr
        return [one for one in json.loads(done.stdout)["findings"] if one["consequence"] != "note"]

    def differ(self, name: str, device: int | None = None, **fields: Any) -> None:
        description = self.hosts[name].description
        (description if device is None else description["devices"][str(device)]).update(fields)
        self.hosts[name].describe(description)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, 3)


@pytest.mark.slow
def test_sound_hosts(cluster: Cluster) -> None:
    done = cluster.run(str(cluster.table()))

    assert done.returncode == 0, done.stdout
    assert "querying 3 hosts with ssh" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("3 hosts: nothing would stop the job")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "fields", "check", "words"),
    [
        (1, {"tls": 1}, "HCD204", "TLS is on on device 1"),
        (1, {"ip": "192.168.101.77"}, "HCC431", "device 1 has 192.168.101.77"),
        (1, {"link": "DOWN"}, "HCD202", "device 1 is DOWN"),
        (None, {"product": "910a"}, "HCD502", "910a, but a2 on node1,node3"),
    ],
)
def test_a_fault_of_one_host(
    cluster: Cluster, device: int | None, fields: dict[str, Any], check: str, words: str
) -> None:
    cluster.differ("node2", device, **fields)

    found = [one for one in cluster.findings(str(cluster.table())) if one["check"] != "HCD107"]

    assert [(one["check"], one["hosts"]) for one in found] == [(check, ["node2"])]
    assert words in found[0]["message"]


@pytest.mark.slow
def test_tls_that_differs_between_hosts(cluster: Cluster) -> None:
    for device in range(2):
        cluster.differ("node3", device, tls=1)

    found = cluster.findings(str(cluster.table()))

    assert [(one["check"], one["hosts"]) for one in found] == [("HCD504", ["node3"])]
    assert found[0]["message"] == "the TLS switch of the devices differs: on, but off on node[1-2]"


@pytest.mark.slow
@pytest.mark.parametrize("selected", ["HCD2", "HCD305"])
def test_a_host_that_does_not_answer_is_told_whatever_is_selected(tmp_path: Path, selected: str) -> None:
    cluster = Cluster(tmp_path, 1)

    done = cluster.run("--hosts", "node1,down1", "--select", selected)
    ignored = cluster.run("--hosts", "node1,down1", "--select", selected, "--ignore", "HCD501")

    assert "stops[HCD501]: down1: " in done.stdout
    assert (done.returncode, ignored.returncode) == (1, 0)


@pytest.mark.slow
def test_what_was_selected_and_could_not_be_looked_at_is_told(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1)
    (tmp_path / "node1" / "bin" / "hccn_tool").unlink()

    done = cluster.run("--hosts", "node1", "--select", "HCD2")

    assert "not looked at: link" in done.stdout
    assert "node1: nothing was found that would stop the job" in done.stdout
    assert "not looked at" not in cluster.run("--hosts", "node1", "--select", "HCD305").stdout


@pytest.mark.slow
def test_equal_findings_of_hosts_are_one(cluster: Cluster) -> None:
    for name in ("node1", "node3"):
        cluster.differ(name, 0, npu_health="Alarm")

    done = cluster.run("--hosts", "node[1-3]", "--select", "HCD103")

    assert done.returncode == 1
    assert done.stdout.splitlines()[:1] == [
        "stops[HCD103]: node1,node3: npu-smi reports the health of device 0 as Alarm",
    ]  # fmt: skip


@pytest.mark.slow
def test_junit_has_every_check_of_every_host(cluster: Cluster) -> None:
    cluster.differ("node2", 1, tls=1)

    done = cluster.run("-f", "junit", "--ignore", "HCD301", str(cluster.table("down1")))

    states = junit.cases(done.stdout)
    assert [key for key, state in states.items() if state == "failure"] == [
        ("node2", "HCD204"), ("down1", "HCD501")
    ]  # fmt: skip
    assert {host for host, _ in states} == {"node1", "node2", "node3", "down1"}
    assert states["node1", "HCD204"] == states["node3", "HCD502"] == states["node1", "HCC431"] == "passed"
    assert ("node1", "HCD301") not in states  # it is ignored


@pytest.mark.slow
def test_remedies_are_a_script_per_host(cluster: Cluster) -> None:
    cluster.differ("node2", 1, tls=1)
    folder = cluster.folder / "scripts"

    done = cluster.run(str(cluster.table()), "--emit-remedies", str(folder), "--select", "HCD204")

    assert done.returncode == 1
    assert done.stdout.startswith("stops[HCD204]: node2: TLS is on on device 1")
    assert done.stderr.splitlines()[-1] == f"wrote 1 script to {folder}; nothing was run"
    (script,) = folder.iterdir()
    assert script.name == "remedies-node2.sh"
    assert script.read_text().splitlines()[-1] == "hccn_tool -i 1 -tls -s enable 0"


@pytest.mark.slow
def test_the_script_of_one_host_is_printed(cluster: Cluster) -> None:
    cluster.differ("node2", 1, tls=1)

    done = cluster.run("--hosts", "node2", "--emit-remedies", "-", "--select", "HCD204")

    assert done.stdout.startswith("#!/bin/sh\n")
    assert done.stdout.endswith("\nhccn_tool -i 1 -tls -s enable 0\n")


def test_the_scripts_of_several_hosts_are_not_printed_as_one(cluster: Cluster) -> None:
    done = cluster.run("--hosts", "node[1-3]", "--emit-remedies", "-")

    assert (done.returncode, done.stdout) == (2, "")
    assert "prints the script of one host, but 3 are asked" in done.stderr
    assert "querying" not in done.stderr


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("down1", "No route to host"),
        ("strange1", "Host key verification failed"),
        ("closed1", "Permission denied"),
        pytest.param("hanging1", "no answer over ssh within 20 s", marks=pytest.mark.slow),
    ],
)
def test_a_host_that_does_not_answer(cluster: Cluster, other: str, words: str) -> None:
    found = cluster.findings("--hosts", f"node1,{other}", "--gather-timeout", "20")

    assert [(one["check"], one["hosts"], one["consequence"]) for one in found] == [
        ("HCD501", [other], "stops")
    ]
    assert words in found[0]["message"]


@pytest.mark.slow
def test_one_host_of_the_list(cluster: Cluster) -> None:
    done = cluster.run("--hosts", "node2", "-f", "json")

    assert [one["host"] for one in json.loads(done.stdout)["hosts"]] == ["node2"]


@pytest.mark.parametrize(
    "args", [["--local", "--hosts", "node1"], ["--hosts", "node1", "--hostfile", "file"], ["--hosts", "a[1"]]
)
def test_wrong_usage(cluster: Cluster, args: list[str]) -> None:
    done = cluster.run(*args)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def compared(**differences: Any) -> list[tuple[str, tuple[str, ...], str]]:
    """Compare three hosts, the last of which differs."""
    equal = Observation(clock=1e9, table_sha256="a" * 64, versions={"CANN": "8.0"})
    cases = {"node1": Case(equal), "node2": Case(equal), "node3": Case(equal._replace(**differences))}
    return [(one.check, one.hosts, one.message) for one in compare(cases)]


@pytest.mark.parametrize(
    ("differences", "check", "words"),
    [
        ({"clock": 1e9 + 300}, "HCD506", "5 min 0 s ahead of the others"),
        ({"clock": 1e9 - 300}, "HCD506", "5 min 0 s behind the others"),
        ({"table_sha256": "b" * 64}, "HCD507", "the table differs"),
        ({"versions": {"CANN": "7.0"}}, "HCD503", "the version of CANN differs: 7.0, but 8.0 on node[1-2]"),
        ({"variables": {"HCCL_BUFFSIZE": "64"}}, "HCD508", "HCCL_BUFFSIZE=64, but HCCL_BUFFSIZE=(unset)"),
    ],
)
def test_what_only_a_comparison_shows(differences: dict[str, Any], check: str, words: str) -> None:
    found = compared(**differences)

    assert [(one, hosts) for one, hosts, _ in found] == [(check, ("node3",))]
    assert words in found[0][2]


def test_address_families() -> None:
    four, six = (Case(Observation(devices=(DeviceObservation(0, (ip,)),))) for ip in ("10.0.0.1", "fd00::1"))

    found = list(compare({"node1": four, "node2": four, "node3": six}))

    assert [(one.check, one.hosts) for one in found] == [("HCD505", ("node3",))]
    assert "IPv6, but IPv4 on node[1-2]" in found[0].message


def test_equal_hosts_have_no_differences() -> None:
    assert compared() == []
    assert compared(variables={"HCCL_IF_IP": "10.0.0.3"}) == []
    assert compared(clock=1e9 + 30) == []
