"""The addresses of 2.0 tables are those that ``inet_pton`` accepts."""

from __future__ import annotations

import pytest

from hccl_tools import validate
from tests.support.tables import table


def verdict(address: str, key: str) -> str:
    value = table("2.0", 1, 1)
    entry = value["rank_list"][0]["level_list"][0]["rank_addr_list"][0]
    entry["addr_type"] = "IPV6"
    entry["addr"] = "fd00::1"
    if key == "control_plane":
        value["rank_list"][0]["control_plane"] = {"addr_type": "IPV6", "addr": address, "listen_port": 50000}
    else:
        entry[key] = address if key == "addr" else [address]
    report = validate(value)
    assert {finding.rule.id for finding in report.findings} <= {"HCC456", "HCC457"}
    return report.verdict


@pytest.mark.parametrize("key", ["addr", "backup_addr", "control_plane"])
@pytest.mark.parametrize(
    ("address", "taken"),
    [
        ("1:2:3:4:5:6:7::", True),
        ("::2:3:4:5:6:7:8", True),
        ("1:2:3:4::6:7:8", True),
        ("1:2:3:4:5:6:7:8", True),
        ("::", True),
        ("1::", True),
        ("::1.2.3.4", True),
        ("1:2:3:4:5:6:1.2.3.4", True),
        ("1:2:3:4:5::1.2.3.4", True),
        ("::ffff:1.2.3.4", True),
        ("FD00::AbCd", True),
        ("1:2:3:4:5:6:7:8::", False),
        ("1:2:3:4::5:6:7:8", False),
        ("1:2:3:4:5:6:7", False),
        ("1:2:3:4:5:6:7:1.2.3.4", False),
        ("1.2.3.4::", False),
        ("::1.2.3.04", False),
        ("::1.2.3", False),
        ("::1.2.3.256", False),
        ("1::2::3", False),
        (":1:2:3:4:5:6:7", False),
        ("1:2:3:4:5:6:7:", False),
        (":::", False),
        ("::12345", False),
        ("::g", False),
        ("fe80::1%eth0", False),
        (" ::1", False),
        ("::1\n", False),
        ("::1\0", False),
        ("1.2.3.4\0", False),
        ("1.2.3.4", False),
        ("::\uff11", False),
        ("", False),
    ],
)
def test_ipv6(address: str, taken: bool, key: str) -> None:
    assert verdict(address, key) == ("accepted" if taken else "refused")
