from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools import formats
from hccl_tools.errors import LaunchError
from hccl_tools.host.local_addresses import interface_addresses, is_local
from hccl_tools.launch.planning import local_server, placement
from hccl_tools.launch.planning.placement import place_ranks_without_table
from hccl_tools.notation import number_list
from tests.support.tables import table as made

if TYPE_CHECKING:
    from hccl_tools.table.model import RankTable

OWN = sorted(os.sched_getaffinity(0))
several_cores = pytest.mark.skipif(len(OWN) < 2, reason="this process may use one core only")


def read(value: dict[str, Any]) -> RankTable:
    return formats.read(value)


def find(value: dict[str, Any], *local: str, environ: dict[str, str] | None = None, **options: Any) -> int:
    return local_server.this_server(
        read(value), environ=environ or {}, local=lambda address: address in local, **options
    )


def test_seats_are_by_rank_and_places_by_device() -> None:
    value = made(devices=2)
    first, second = value["server_list"][0]["device"]
    first["rank_id"], second["rank_id"] = "1", "0"

    seats = placement.place_ranks(read(value))

    assert [(seat.rank, seat.device, seat.local_rank) for seat in seats] == [(0, 1, 1), (1, 0, 0)]


def test_seats_of_shuffled_servers() -> None:
    value = made(servers=2, devices=2)
    value["server_list"].reverse()

    seats = placement.place_ranks(read(value))

    assert [(seat.rank, seat.host, seat.server_index) for seat in seats] == [
        (0, "10.0.0.1", 1), (1, "10.0.0.1", 1), (2, "10.0.0.2", 0), (3, "10.0.0.2", 0),
    ]  # fmt: skip


def test_group_list_ranks_are_hccls_own_numbers() -> None:
    seats = placement.place_ranks(read(made("group_list", servers=2, devices=2)))

    assert [seat.rank for seat in seats] == [0, 1, 2, 3]


def test_server_named_by_the_user() -> None:
    assert find(made(servers=2), wanted="10.0.0.2") == 1
    with pytest.raises(LaunchError, match=r'no server "10.0.0.9"'):
        find(made(servers=2), wanted="10.0.0.9")


def test_server_by_its_address() -> None:
    assert find(made(servers=3), "10.0.0.3") == 2


def test_host_ip_comes_before_server_id() -> None:
    value = made(servers=2)
    value["server_list"][0]["host_ip"] = "172.16.0.1"

    assert find(value, "172.16.0.1", "10.0.0.2") == 0


def test_server_by_host_name_and_by_pod_name() -> None:
    value = made(servers=2)
    value["server_list"][1]["server_id"] = socket.gethostname()
    assert find(value) == 1

    groups = made("group_list", servers=2)
    assert find(groups, environ={"POD_NAME": "job1"}) == 1


def test_server_by_the_platforms_variable() -> None:
    assert find(made(servers=2), environ={"MA_CURRENT_HOST_IP": "10.0.0.2"}) == 1


def test_server_by_the_addresses_of_its_devices() -> None:
    addresses = {0: "192.168.1.100", 1: "192.168.1.101"}

    assert find(made(servers=2, devices=2), "10.0.0.1", device_addresses=addresses) == 1


def test_no_server_is_here() -> None:
    with pytest.raises(LaunchError, match="none of the table's servers is this host") as caught:
        find(made(servers=2))

    assert caught.value.hint is not None
    assert "--server 10.0.0.1" in caught.value.hint
    assert socket.gethostname() in caught.value.hint
    # Its interfaces' addresses, not what its own name leads to.
    for ip in interface_addresses():
        assert is_local(ip)
        assert ip in caught.value.hint
    assert "127.0." not in caught.value.hint


def test_two_servers_are_here() -> None:
    with pytest.raises(LaunchError, match=r'"10.0.0.1" and "10.0.0.2" match this host'):
        find(made(servers=2), "10.0.0.1", "10.0.0.2")


def test_loopback_counts_in_a_table_of_one_server_only() -> None:
    value = made()
    value["server_list"][0]["server_id"] = "127.0.0.1"
    assert find(value, "127.0.0.1") == 0
    with pytest.raises(LaunchError, match="this host's devices have other addresses"):
        find(value, device_addresses={0: "192.168.9.9"})

    two = made(servers=2)
    two["server_list"][0]["server_id"] = "127.0.0.1"
    with pytest.raises(LaunchError, match="none of the table's servers"):
        find(two, "127.0.0.1")


def test_master_is_where_rank_0_is() -> None:
    value = made(servers=2)
    value["server_list"].reverse()
    table = read(value)

    assert placement.rendezvous_address(table, placement.place_ranks(table)) == "10.0.0.1"


def test_master_of_one_host_is_loopback() -> None:
    table = read(made())

    assert placement.rendezvous_address(table, placement.place_ranks(table)) == "127.0.0.1"


def test_loopback_cannot_be_master_of_several_hosts() -> None:
    value = made(servers=2)
    value["server_list"][0]["server_id"] = "127.0.0.1"
    table = read(value)

    with pytest.raises(LaunchError, match=r'rank 0 is on "127\.0\.0\.1"'):
        placement.rendezvous_address(table, placement.place_ranks(table))


def test_name_that_leads_to_loopback_cannot_be_master() -> None:
    value = made(servers=2)
    value["server_list"][0]["server_id"] = "LocalHost"  # a name to the resolver, as case does not count there
    table = read(value)

    with pytest.raises(LaunchError, match=r'"LocalHost", resolves to 127\.0\.0\.1, which'):
        placement.rendezvous_address(table, placement.place_ranks(table))


def launch(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hccl_tools.launch", "--no-table", "-n", "2", *args]
    program = ["--no-python", "sh", "-c", "grep Cpus_allowed_list /proc/self/status"]
    return subprocess.run([*command, *program], capture_output=True, text=True, timeout=120, check=False)


def host(folder: Path, *nodes: str) -> dict[str, str]:
    """Make a host's NUMA nodes with these lists of cores."""
    for number, cores in enumerate(nodes):
        place = folder / "sys/devices/system/node" / f"node{number}"
        place.mkdir(parents=True)
        (place / "cpulist").write_text(cores + "\n")
    return {"HCCL_TOOLS_ROOT": str(folder)}


@several_cores
def test_ranks_share_the_cores_evenly() -> None:
    done = launch("--bind", "cores")

    assert done.returncode == 0, done.stderr
    half = len(OWN) // 2
    for rank, share in enumerate((OWN[:half], OWN[half:])):
        said = Path(f"log/latest/rank_{rank}.log").read_text()
        assert said.split() == ["Cpus_allowed_list:", number_list.fold(share)]


@several_cores
def test_the_plan_shows_the_cores() -> None:
    shown = launch("--bind", "cores", "--dry-run").stdout

    assert "  DEVICE_ID  cores  log" in next(line for line in shown.splitlines() if "rank  host" in line)
    assert "  device  DEVICE_ID  log" in launch("--dry-run").stdout


def test_too_few_cores_are_refused() -> None:
    seats = place_ranks_without_table(range(len(OWN) + 1), ["localhost"])

    with pytest.raises(
        LaunchError, match=f"{len(seats)} ranks need one core each, but this process may use only {len(OWN)}"
    ):
        placement.cores_of("cores", seats, {})


def test_neighbouring_ranks_share_a_numa_node(tmp_path: Path) -> None:
    both = ",".join(map(str, OWN))
    environ = host(tmp_path, both, both)

    found = placement.cores_of("numa", place_ranks_without_table([3, 2, 1, 0], ["localhost"]), environ)

    assert found == dict.fromkeys(range(4), tuple(OWN))
    assert placement.numa_nodes(host(tmp_path / "other", "0-1,4", "2-3")) == [{0, 1, 4}, {2, 3}]


def test_a_host_that_tells_of_no_numa_nodes(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="lists no NUMA node"):
        placement.cores_of(
            "numa", place_ranks_without_table([0], ["localhost"]), {"HCCL_TOOLS_ROOT": str(tmp_path)}
        )
