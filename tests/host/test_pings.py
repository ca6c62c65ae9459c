"""Pings from the devices of a host: which addresses, and how the answers are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_tools.doctor.ping_results import most_pings
from hccl_tools.host.observation import HCCS, ROCE, DeviceObservation, PingObservation, PingServer
from hccl_tools.host.pings import Target, own_server, read_pings, targets
from hccl_tools.host.site_defaults import Site
from tests.support.hosts import make_host

if TYPE_CHECKING:
    from pathlib import Path


def servers(*pods: str, devices: int = 2) -> tuple[PingServer, ...]:
    return tuple(
        PingServer((f"node{at}",), pod, tuple((device, f"10.{at}.0.{device}") for device in range(devices)))
        for at, pod in enumerate(pods)
    )


def test_each_device_pings_its_rail_on_the_next_server() -> None:
    assert targets(servers("", "", ""), 2, every=False) == [Target(0, "10.0.0.0"), Target(1, "10.0.0.1")]


def test_servers_of_one_super_pod_are_not_pinged() -> None:
    assert targets(servers("a", "a"), 0, every=False) == []
    assert targets(servers("a", "a", "b"), 0, every=False) == [Target(0, "10.2.0.0"), Target(1, "10.2.0.1")]


def test_over_hccs_servers_of_one_super_pod_alone_are_pinged() -> None:
    made = servers("a", "b", "a", "a", "")

    assert targets(made, 3, every=False, over=HCCS) == [Target(0, "10.0.0.0"), Target(1, "10.0.0.1")]
    assert {one.address for one in targets(made, 0, every=True, over=HCCS)} == {
        "10.0.0.0", "10.0.0.1", "10.2.0.0", "10.2.0.1", "10.3.0.0", "10.3.0.1",
    }  # fmt: skip
    assert targets(made, 1, every=False, over=HCCS) == []
    assert targets(made, 1, every=True, over=HCCS) == [Target(0, "10.1.0.1"), Target(1, "10.1.0.0")]


def test_all_pairs() -> None:
    found = targets(servers("a", "a", "b", "c"), 0, every=True)

    assert {one.address for one in found} == {"10.2.0.0", "10.2.0.1", "10.3.0.0", "10.3.0.1"}
    assert len(found) == 8


@given(st.lists(st.sampled_from(["", "a", "b"]), max_size=6), st.booleans(), st.sampled_from([ROCE, HCCS]))
def test_the_announced_number_is_that_of_the_host_with_most_pings(
    pods: list[str], every: bool, over: str
) -> None:
    made = servers(*pods)
    numbers = [len(targets(made, own, every=every, over=over)) for own in range(len(made))]

    assert most_pings(made, every=every, over=over) == max(numbers, default=0)


@given(st.integers(2, 12), st.integers(1, 8))
def test_each_device_pings_once_and_is_pinged_once(number: int, devices: int) -> None:
    made = servers(*[""] * number, devices=devices)
    pinged = [one.address for own in range(number) for one in targets(made, own, every=False)]

    assert sorted(pinged) == sorted(ip for one in made for _device, ip in one.devices)


def test_a_server_with_fewer_devices_is_pinged_by_as_many() -> None:
    first, second = servers("", "")
    assert targets((first, second._replace(devices=second.devices[:1])), 0, every=False) == [
        Target(0, "10.1.0.0")
    ]


def test_the_own_server_by_name_or_by_addresses() -> None:
    made = servers("", "", "")
    seen = [DeviceObservation(0, ("10.2.0.0",)), DeviceObservation(1, ("10.2.0.1",))]

    assert own_server(made, frozenset({"node1"}), seen) == 1
    assert own_server(made, frozenset({"other"}), seen) == 2
    assert own_server(made, frozenset({"other"}), []) is None


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        ({"stdout": "3 packets transmitted, 3 received, 0.00% packet loss\n", "status": 1}, (3, 3)),
        (
            {"stdout": "This pkt send fail!\n1 packets transmitted, 0 received, 100.00% packets loss\n"},
            (1, 0),
        ),
        ({"stdout": "3 packets transmitted, 0 received\nCmd executed successfully!\n"}, (3, 0)),
        ({"stdout": "\x00garbage\n"}, None),
        ({"stderr": "permission denied: pls check this cmd run permission.\n", "status": 1}, None),
    ],
)
def test_answers_are_read_by_the_numbers(tmp_path: Path, answer: Any, counts: Any) -> None:
    host = make_host(tmp_path, answers={"hccn_tool -i 0 -ping -g address 10.1.0.0": answer})

    found, unknown = read_pings([Target(0, "10.1.0.0")], 10, Site(host.environ()))

    assert found == ([PingObservation(0, "10.1.0.0", *counts)] if counts else [])
    assert [one.devices for one in unknown] == ([] if counts else [(0,)])


def test_ipv6(tmp_path: Path) -> None:
    host = make_host(tmp_path)

    found, _unknown = read_pings([Target(3, "fd00::4")], 10, Site(host.environ()))

    assert found == [PingObservation(3, "fd00::4", 3, 3)]
    assert "-i 3 -ping -inet6 -g ipv6_address fd00::4" in (host.bin / "calls.log").read_text()


def test_a_tool_that_hangs_is_called_once(tmp_path: Path) -> None:
    host = make_host(tmp_path, answers={"hccn_tool -i 0 -ping -g address 10.1.0.0": {"hang": True}})
    wanted = [Target(0, "10.1.0.0"), Target(1, "10.1.0.1")]

    found, unknown = read_pings(wanted, 10, Site(host.environ(), tool_timeout=2))

    assert found == []
    assert {device for one in unknown for device in one.devices} == {0, 1}
    assert (host.bin / "calls.log").read_text().count("-ping") == 1


def test_no_ping_begins_after_the_time_limit(tmp_path: Path) -> None:
    host = make_host(tmp_path)

    found, unknown = read_pings([Target(0, "10.1.0.0")], -1, Site(host.environ()))

    assert found == []
    assert "not asked within" in unknown[0].reason
