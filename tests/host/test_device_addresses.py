"""Two sources for each address: who is believed, what is refused, what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hccl_tools import own_python
from hccl_tools.errors import DiscoveryError
from hccl_tools.host import device_addresses
from hccl_tools.host.site_defaults import Site
from tests.support.hosts import IPS_910A, StandInHost, conf_text, make_host

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.host.facts import DeviceFacts


def find(
    host: StandInHost, *device_ids: int, prefer: str | None = None, timeout: float = 20.0
) -> tuple[list[DeviceFacts], list[str]]:
    return device_addresses.find_addresses(
        device_ids, Site(environ=host.environ(), tool_timeout=timeout), prefer=prefer
    )


def refusal(host: StandInHost, *device_ids: int, timeout: float = 20.0) -> tuple[str, str]:
    with pytest.raises(DiscoveryError) as caught:
        find(host, *device_ids, timeout=timeout)
    return caught.value.message, caught.value.hint or ""


def test_the_tool_first(tmp_path: Path) -> None:
    devices, warnings = find(make_host(tmp_path / "host", conf=conf_text(IPS_910A)), 4, 0)

    assert [(device.device_id, device.ips, device.source) for device in devices] == [
        (4, (IPS_910A[4],), "hccn_tool"), (0, (IPS_910A[0],), "hccn_tool"),
    ]  # fmt: skip
    assert warnings == []


def test_the_file_where_there_is_no_tool(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", tools=(), conf=conf_text({4: "10.0.0.4"}))

    devices, warnings = find(host, 4)

    assert (devices[0].ips, devices[0].source) == (("10.0.0.4",), str(host.root / "etc/hccn.conf"))
    assert warnings == []


def test_the_file_where_the_tool_fails_for_one_device(tmp_path: Path) -> None:
    host = make_host(
        tmp_path / "host",
        devices={"0": {"ip": "10.0.0.1"}, "1": {}},
        conf=conf_text(["10.0.0.1", "10.0.0.2"]),
    )

    devices, warnings = find(host, 0, 1)

    assert [device.source for device in devices] == ["hccn_tool", str(host.root / "etc/hccn.conf")]
    assert len(warnings) == 1
    assert "device 1: hccn_tool printed" in warnings[0]
    assert "no ip was preset" in warnings[0]


def test_a_missing_address_names_the_device_and_both_sources(tmp_path: Path) -> None:
    host = make_host(
        tmp_path / "host", devices={"0": {"ip": "10.0.0.1"}, "2": {}, "3": {}}, conf="address_0=10.0.0.1\n"
    )

    message, hint = refusal(host, 0, 2, 3)

    assert message == (
        'no address for device 2: hccn_tool printed "Get ipconf failed, because no ip was preset there!" '
        f"(exit status 13), and {host.root}/etc/hccn.conf has no address_2 (nor for device 3)"
    )
    assert "hccn_tool -i 2 -ip -s" in hint


def test_neither_tool_nor_file(tmp_path: Path) -> None:
    message, hint = refusal(make_host(tmp_path / "host", tools=()), 0)

    assert "no hccn_tool on PATH or at /usr/local/Ascend/driver/tools/hccn_tool" in message
    assert "etc/hccn.conf does not exist" in message
    assert "--hccn-tool" in hint
    assert "--hccn-conf" in hint
    assert "--simulate 910a" in hint


def test_a_device_that_does_not_exist(tmp_path: Path) -> None:
    message, hint = refusal(make_host(tmp_path / "host"), 9)

    assert "The device is not exist!" in message
    assert "/dev/davinci" in hint


def test_permission_denied(tmp_path: Path) -> None:
    message, hint = refusal(make_host(tmp_path / "host", denied=True), 0)

    assert "permission denied" in message
    assert f"sudo {own_python.typed()} gen" in hint


def test_a_hanging_tool_is_not_asked_again(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", answers={"hccn_tool -i 0 -ip -g": {"hang": True}})
    (host.bin / "sleep").symlink_to("/bin/sleep")

    message, _ = refusal(host, 0, 1, 2, timeout=0.5)

    assert "did not exit within 0.5 s" in message
    assert host.calls() == ["hccn_tool -i 0 -ip -g"]


STALE = {**dict(enumerate(IPS_910A)), 3: "10.9.9.9"}


def test_sources_that_disagree_are_an_error(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", conf=conf_text(STALE))

    message, hint = refusal(host, *range(8))

    assert message == (
        "the sources disagree about 1 of 8 addresses: device 3: hccn_tool has 192.168.103.101, "
        f"{host.root}/etc/hccn.conf has 10.9.9.9"
    )
    assert "--prefer hccn_tool" in hint
    assert "--prefer hccn.conf" in hint


@pytest.mark.parametrize(("prefer", "taken"), [("hccn_tool", "192.168.103.101"), ("hccn.conf", "10.9.9.9")])
def test_prefer_settles_it_and_says_so(tmp_path: Path, prefer: str, taken: str) -> None:
    devices, warnings = find(make_host(tmp_path / "host", conf=conf_text(STALE)), *range(8), prefer=prefer)

    assert devices[3].ips == (taken,)
    assert len(warnings) == 1
    assert "10.9.9.9" in warnings[0]
    assert "192.168.103.101" in warnings[0]


def test_the_same_address_written_differently_agrees(tmp_path: Path) -> None:
    host = make_host(
        tmp_path / "host", devices={"0": {"ip": "2001:db8::7"}}, conf="IPv6address_0=2001:0DB8:0:0::7/64\n"
    )

    assert find(host, 0)[0][0].ips == ("2001:db8::7",)


def test_the_file_may_know_one_of_several_ports(tmp_path: Path) -> None:
    host = make_host(
        tmp_path / "host", devices={"0": {"ip": ["10.0.0.1", "10.1.0.1"]}}, conf="address_0=10.1.0.1\n"
    )

    assert find(host, 0)[0][0].ips == ("10.0.0.1", "10.1.0.1")


def test_a_preferred_source_without_an_answer_leaves_the_other(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", conf="address_1=192.168.101.101\n")

    devices, _ = find(host, 0, 1, prefer="hccn.conf")

    assert [device.source for device in devices] == ["hccn_tool", str(host.root / "etc/hccn.conf")]


def test_a_named_file_is_read_in_place_of_the_usual_one(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", tools=(), conf="address_0=10.0.0.1\n")
    copy = tmp_path / "copy.conf"
    copy.write_text("address_0=10.0.0.2\n")

    devices, _ = device_addresses.find_addresses(
        [0], Site(environ=host.environ())._replace(hccn_conf=str(copy))
    )

    assert (devices[0].ips, devices[0].source) == (("10.0.0.2",), str(copy))
