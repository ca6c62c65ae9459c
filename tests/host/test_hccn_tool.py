"""Addresses from a real child process that prints what ``hccn_tool`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hccl_tools.errors import InputError
from hccl_tools.host import hccn_tool
from hccl_tools.host.host_tools import ToolHangsError, run_tool
from hccl_tools.host.site_defaults import Site
from tests.support.hosts import IPS_910A, StandInHost, make_host
from tests.support.jobs import MARK, eventually, living

if TYPE_CHECKING:
    from pathlib import Path

    from hccl_tools.host.facts import Reading


def read(host: StandInHost, device_id: int = 0, timeout: float = 20.0, mark: str = "") -> Reading:
    site = Site(environ=host.environ(**{MARK: mark}), tool_timeout=timeout)
    tool = hccn_tool.find_hccn_tool(site)
    assert tool is not None
    return hccn_tool.read_addresses(tool, device_id, site)


def answering(folder: Path, stdout: str = "", stderr: str = "", status: int = 0, **more: Any) -> StandInHost:
    """A host whose tool says this and nothing else for device 0."""
    told = {"stdout": stdout, "stderr": stderr, "status": status}
    return make_host(folder / "host", answers={"hccn_tool -i 0 -ip -g": told}, **more)


def test_a_sound_machine(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host")

    assert [read(host, device).ips for device in range(8)] == [(ip,) for ip in IPS_910A]
    assert host.calls() == [f"hccn_tool -i {device} -ip -g" for device in range(8)]


@pytest.mark.parametrize(
    ("stdout", "ips"),
    [
        ("ipaddr:192.161.200.10\nnetmask:255.255.255.0\n\n", ("192.161.200.10",)),
        ("ipaddr: 192.161.200.10 \n", ("192.161.200.10",)),
        ("netmask:255.255.255.0\nipaddr:10.0.0.1\n", ("10.0.0.1",)),
        ("hccn_tool: some notice\nipaddr:10.0.0.1\n", ("10.0.0.1",)),
        (
            "ipaddr:10.0.0.1\nnetmask:255.0.0.0\nipaddr:10.1.0.1\nnetmask:255.0.0.0\n",
            ("10.0.0.1", "10.1.0.1"),
        ),
        ("ipaddr:2001:db8::1\n", ("2001:db8::1",)),
        ("ipv6_address:2001:db8::1\nprefix_length:64\n", ("2001:db8::1",)),
        ("ipv6 address: 2001:db8::1/64\n", ("2001:db8::1",)),
    ],
)
def test_forms_of_an_answer(tmp_path: Path, stdout: str, ips: tuple[str, ...]) -> None:
    reading = read(answering(tmp_path, stdout))

    assert (reading.ips, reading.problem, reading.source) == (ips, None, "hccn_tool")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"stdout": ""}, "nothing (exit status 0)"),
        ({"stdout": "\n\n"}, "nothing (exit status 0)"),
        ({"stderr": "Command execute failed!\n", "status": 1}, '"Command execute failed!" (exit status 1)'),
        ({"stderr": "The device is not exist!\n", "status": 1}, "The device is not exist!"),
        ({"stderr": "The VM does not support this command.\n", "status": 1}, "The VM does not support"),
        ({"stdout": "The command is not supported on this product.\n"}, "not supported on this product"),
        ({"stdout": "ipaddr:-.-.-.-\n"}, '"-.-.-.-"'),
        ({"stdout": "ipaddr:0.0.0.0\n"}, '"0.0.0.0"'),
        ({"stdout": "ipaddr:\n"}, '""'),
        ({"stdout": "ipaddr:10.0.0.1\nipaddr:10.0.0.300\n"}, '"10.0.0.300"'),
        (
            {"stdout": "ipaddr:10.0.0.1\n", "stderr": "Segmentation fault\n", "status": 139},
            "Segmentation fault",
        ),
        ({"stdout": "Kernel 5.10: driver loaded 10:22\n"}, "Kernel 5.10"),
    ],
)
def test_what_is_no_address(tmp_path: Path, answer: dict[str, Any], said: str) -> None:
    reading = read(answering(tmp_path, **answer))

    assert reading.ips == ()
    assert said in (reading.problem or "")


def test_both_streams_and_the_status_are_kept(tmp_path: Path) -> None:
    reading = read(answering(tmp_path, stdout="on stdout\n", stderr="on stderr\n", status=7))

    assert reading.problem == 'hccn_tool printed "on stderr / on stdout" (exit status 7)'


def test_no_address_set_and_none_in_ipv6(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", devices={"0": {}})

    reading = read(host)

    assert reading.problem == (
        'hccn_tool printed "Get ipconf failed, because no ip was preset there!" (exit status 13)'
    )
    assert host.calls() == ["hccn_tool -i 0 -ip -g", "hccn_tool -i 0 -ip -inet6 -g"]


def test_an_ipv6_address_where_no_ipv4_one_is_set(tmp_path: Path) -> None:
    assert read(make_host(tmp_path / "host", devices={"0": {"ipv6": "2001:db8::7"}})).ips == ("2001:db8::7",)


def test_permission_denied(tmp_path: Path) -> None:
    assert "permission denied" in (read(make_host(tmp_path / "host", denied=True)).problem or "")


@pytest.mark.parametrize("status", [0, 1])
def test_a_busy_tool_is_asked_again(tmp_path: Path, status: int) -> None:
    host = make_host(tmp_path / "host", busy=3, busy_status=status)

    assert read(host).ips == (IPS_910A[0],)
    assert len(host.calls()) == 4


def test_a_tool_that_stays_busy_is_given_up(tmp_path: Path) -> None:
    reading = read(make_host(tmp_path / "host", busy=1000), timeout=2)

    assert not reading.worth_asking
    assert "stays busy" in (reading.problem or "")
    assert "hccn_tool is busy, please try again." in (reading.problem or "")


def test_a_tool_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", answers={"hccn_tool -i 0 -ip -g": {"hang": True}})

    reading = read(replace_path(host), timeout=0.5, mark=str(tmp_path))

    assert reading.problem == '"hccn_tool -i 0 -ip -g" did not exit within 0.5 s and was killed'
    assert not reading.worth_asking
    assert eventually(lambda: not living(str(tmp_path)))


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_tool_that_prints_without_end_is_ended(stream: str) -> None:
    with pytest.raises(ToolHangsError, match="and was killed"):
        run_tool(["/bin/sh", "-c", f"exec yes{stream}"], Site(tool_timeout=0.3))


def test_of_a_long_output_the_beginning_is_kept() -> None:
    printed = run_tool(["/bin/sh", "-c", "echo first; head -c 3000000 /dev/zero; exit 3"], Site())

    assert (printed.stdout[:6], len(printed.stdout), printed.status) == ("first\n", 1 << 20, 3)


def replace_path(host: StandInHost) -> StandInHost:
    """The hanging stand-in starts ``sleep``: let it find one."""
    (host.bin / "sleep").symlink_to("/bin/sleep")
    return host


def test_where_the_tool_is_looked_for(tmp_path: Path) -> None:
    host = make_host(tmp_path / "host", tools=())
    site = Site(environ=host.environ())
    assert hccn_tool.find_hccn_tool(site) is None

    driver = host.install("hccn_tool", host.root / "usr/local/Ascend/driver/tools")
    assert hccn_tool.find_hccn_tool(site) == str(driver)

    on_path = host.install("hccn_tool")
    assert hccn_tool.find_hccn_tool(site) == str(on_path)

    named = host.install("hccn_tool", tmp_path / "named")
    assert hccn_tool.find_hccn_tool(site._replace(hccn_tool=str(named))) == str(named)


def test_a_named_tool_must_be_one(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch(mode=0o644)

    with pytest.raises(InputError, match="does not exist"):
        hccn_tool.find_hccn_tool(Site(environ={}, hccn_tool=str(tmp_path / "none")))
    with pytest.raises(InputError, match="is not executable"):
        hccn_tool.find_hccn_tool(Site(environ={}, hccn_tool=str(plain)))
    with pytest.raises(InputError, match="is not executable"):
        hccn_tool.find_hccn_tool(Site(environ={}, hccn_tool=str(tmp_path)))
