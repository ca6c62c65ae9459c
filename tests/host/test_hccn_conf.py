"""Every key seen in a real ``hccn.conf``, and the ways in which there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hccl_tools.errors import DiscoveryError, InputError
from hccl_tools.host import hccn_conf
from hccl_tools.host.site_defaults import Site

if TYPE_CHECKING:
    from pathlib import Path


def load(folder: Path, text: str) -> hccn_conf.HccnConf:
    path = folder / "hccn.conf"
    path.write_text(text)
    return hccn_conf.load(Site(environ={}, hccn_conf=str(path)))


ALL_KEYS = """\
xsfp_reset_max_times_5=0
xsfp_reset_wait_times_5=7
netmask_1=255.255.0.0
address_10=10.0.0.10
address_1=10.0.0.1
IPv6address_1=2001:db8::1
IPv6netmask_1=64
IPv6netdetect_1=2001:db8::fe
IPv6gateway_1=2001:db8::ff
bond_address_0=10.9.9.9
bond_netmask_0=255.255.0.0
gateway_0=127.0.0.1
arp_0=-i eth0 -s 127.0.0.114 bc:1e:85:d8:ca:dd
netdetect_0=127.0.0.1
send_arp_status_0=1
tls_enable_0=0
roce_port_0=4791
dscp_tc_0=0:1
bitmap_0=1
udhcpc_enable_0=0
lldp_portid_type_0=3
ip_rule_0=add from 10.0.0.0 table 100
ip_route_0=add 10.0.0.0/24 via 10.0.0.254 dev eth0 table 100
address_0=10.0.0.7
IPv6address_2=2001:db8::2/64
"""


def test_addresses_among_all_other_keys(tmp_path: Path) -> None:
    conf = load(tmp_path, ALL_KEYS)

    assert [conf.read(device).ips for device in (0, 1, 2, 10)] == [
        ("10.0.0.7",), ("10.0.0.1",), ("2001:db8::2",), ("10.0.0.10",),
    ]  # fmt: skip
    assert conf.read(0).source == str(tmp_path / "hccn.conf")


def test_address_1_is_not_address_10(tmp_path: Path) -> None:
    reading = load(tmp_path, "address_10=10.0.0.10\n").read(1)

    assert reading.ips == ()
    assert reading.problem == f"{tmp_path / 'hccn.conf'} has no address_1"


def test_blanks_comments_and_line_ends(tmp_path: Path) -> None:
    text = "\ufeff# set by hand\r\n address_0 = 10.0.0.1 \r\n\r\n#address_1=10.0.0.2\naddress_2=10.0.0.3"

    conf = load(tmp_path, text)

    assert [conf.read(device).ips for device in range(3)] == [("10.0.0.1",), (), ("10.0.0.3",)]


@pytest.mark.parametrize(
    "value", ["-.-.-.-", "10.0.0", "10.0.0.256", "01.2.3.4", "0.0.0.0", "host", "10.0.0.1 x"]
)
def test_what_is_no_address(tmp_path: Path, value: str) -> None:
    reading = load(tmp_path, f"netmask_3=255.255.255.0\naddress_3={value}\n").read(3)

    assert reading.ips == ()
    assert f'line 2 has "{value}" for address_3' in (reading.problem or "")


def test_an_empty_value_and_an_empty_file_hold_no_address(tmp_path: Path) -> None:
    assert "has no address_0" in (load(tmp_path, "address_0=\n").read(0).problem or "")
    assert "has no address_0" in (load(tmp_path, "").read(0).problem or "")


def test_one_device_with_two_addresses(tmp_path: Path) -> None:
    with pytest.raises(
        DiscoveryError, match=r'address_0 twice: "10\.0\.0\.1" in line 1 and "10\.0\.0\.2" in line 2'
    ):
        load(tmp_path, "address_0=10.0.0.1\naddress_0=10.0.0.2\n")
    assert load(tmp_path, "address_0=10.0.0.1\naddress_0=10.0.0.1\n").read(0).ips == ("10.0.0.1",)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "hccn.conf"
    path.write_bytes(b"\xff\xfe\x00\naddress_0=10.0.0.1\n")

    assert hccn_conf.load(Site(environ={}, hccn_conf=str(path))).read(0).ips == ("10.0.0.1",)


def test_no_file_is_a_fact_unless_it_was_named(tmp_path: Path) -> None:
    usual = hccn_conf.load(Site(environ={"HCCL_TOOLS_ROOT": str(tmp_path)}))

    assert usual.read(0).problem == f"{tmp_path}/etc/hccn.conf does not exist"
    assert usual.remedy is None
    with pytest.raises(InputError, match="does not exist"):
        hccn_conf.load(Site(environ={}, hccn_conf=str(tmp_path / "none")))
    with pytest.raises(InputError, match="cannot be read"):
        hccn_conf.load(Site(environ={}, hccn_conf=str(tmp_path)))


def test_no_permission_is_told_apart_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "etc" / "hccn.conf"
    path.parent.mkdir()
    path.write_text("address_0=10.0.0.1\n")
    path.chmod(0)

    # Root may read everything: the child becomes somebody else once it has loaded what it needs.
    script = (
        "import os, sys\n"
        "from hccl_tools.host import hccn_conf\n"
        "from hccl_tools.host.site_defaults import Site\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "conf = hccn_conf.load(Site(environ={'HCCL_TOOLS_ROOT': sys.argv[1]}))\n"
        "print(conf.read(0).problem, '|', conf.remedy)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        check=True, capture_output=True, text=True, env={"PATH": os.defpath},
    )  # fmt: skip

    assert f"{path} is not readable by this user" in done.stdout
    assert "sudo" in done.stdout
    assert "--hccn-conf" in done.stdout
